/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/place.h"

#include "preview/difference.h"

/* As conflicts of server-side apply show it. */
static void write_shown(struct buf *b, const struct json *v)
{
    if (json_is(v, JSON_STRING))
        causes_quote(b, json_str(v));
    else if (v)
        json_write(b, v);
    else
        buf_append_str(b, STR("null"));
}

/* The keys come by name there. */
static struct str nth_key(const struct schema *list, size_t n)
{
    for (size_t i = 0; i < list->n_list_map_keys; i++) {
        size_t n_before = 0;
        for (size_t j = 0; j < list->n_list_map_keys; j++)
            n_before += str_cmp(list->list_map_keys[j], list->list_map_keys[i]) < 0;
        if (n_before == n)
            return list->list_map_keys[i];
    }
    return STR("");
}

static const struct json *key_value(const struct schema *items, const struct json *item,
                                    struct str name)
{
    const struct json *value = json_get(item, name);
    const struct schema *member = schema_member(items, name);
    return value || !member ? value : member->default_value;
}

struct str place_item(struct arena *a, const struct schema *list, const struct json *item)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < list->n_list_map_keys; i++) {
        const struct str name = nth_key(list, i);
        buf_append_char(&b, i ? ',' : '[');
        buf_append_str(&b, name);
        buf_append_char(&b, '=');
        write_shown(&b, key_value(list->items, item, name));
    }
    buf_append_char(&b, ']');
    return arena_str(a, buf_str(&b));
}

static bool is_repeated(const struct str *keys, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (str_eq(keys[i], keys[j]))
                return true;
    return false;
}

const struct str *place_items(struct arena *a, const struct schema *list, const struct json *value)
{
    if (!list || list->list_type != SCHEMA_LIST_MAP || !json_is(value, JSON_ARRAY))
        return NULL;
    struct str *keys = ARENA_ARRAY(a, struct str, value->n + 1);
    for (size_t i = 0; i < value->n; i++) {
        if (value->items[i].type != JSON_OBJECT)
            return NULL;
        keys[i] = place_item(a, list, &value->items[i]);
    }
    return is_repeated(keys, value->n) ? NULL : keys;
}

ptrdiff_t place_find(const struct str *keys, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(keys[i], key))
            return (ptrdiff_t) i;
    return -1;
}

struct str place_member(struct arena *a, struct str place, struct str name)
{
    const struct str parts[] = {place, place.n ? STR(".") : STR(""), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Behind the quoted string that begins at `from`. */
static size_t skip_quoted(struct str s, size_t from)
{
    size_t i = from + 1;
    while (i < s.n && s.p[i] != '"')
        i += s.p[i] == '\\' ? 2 : 1;
    return MIN(i + 1, s.n);
}

/* Where the name, or the bracket, that begins the text ends. */
static size_t step_end(struct str s)
{
    const bool is_item = s.n && s.p[0] == '[';
    size_t i = is_item;
    while (i < s.n) {
        if (s.p[i] == '"')
            i = skip_quoted(s, i);
        else if (is_item && s.p[i] == ']')
            return i + 1;
        else if (!is_item && (s.p[i] == '.' || s.p[i] == '['))
            return i;
        else
            i++;
    }
    return s.n;
}

bool place_step(struct str *rest, struct str *ret_step)
{
    if (rest->n && rest->p[0] == '.')
        *rest = str_from(*rest, 1);
    if (!rest->n)
        return false;
    const size_t n = step_end(*rest);
    *ret_step = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return n > 0;
}

bool place_is_within(struct str place, struct str above)
{
    if (!str_starts_with(place, above))
        return false;
    const struct str rest = str_from(place, above.n);
    return !above.n || !rest.n || rest.p[0] == '.' || rest.p[0] == '[';
}

struct str place_first(struct str place)
{
    struct str rest = place, step;
    if (!place_step(&rest, &step))
        return STR("");
    if (rest.n && rest.p[0] == '[')
        (void) place_step(&rest, &step);
    return str_sub(place, 0, (size_t) (step.p + step.n - place.p));
}

/* ---- by index ------------------------------------------------------------------------------ */

static bool parse_index(struct str step, size_t *ret)
{
    size_t value = 0;
    if (step.n < 3 || step.n > 12 || step.p[0] != '[')
        return false;
    for (size_t i = 1; i + 1 < step.n; i++) {
        if (step.p[i] < '0' || step.p[i] > '9')
            return false;
        value = value * 10 + (size_t) (step.p[i] - '0');
    }
    *ret = value;
    return true;
}

/* One step down; *step becomes the item's own where it was an index. */
static void descend(struct arena *a, const struct schema **schema, const struct json **value,
                    struct str *step)
{
    size_t index = 0;
    if (step->p[0] != '[') {
        *value = json_get(*value, *step);
        *schema = schema_member(*schema, *step);
        return;
    }
    const struct str *keys = place_items(a, *schema, *value);
    const bool is_index = parse_index(*step, &index);
    if (is_index && keys && index < (*value)->n)
        *step = keys[index];
    ptrdiff_t at = keys ? place_find(keys, (*value)->n, *step) : -1;
    if (!keys && is_index && json_is(*value, JSON_ARRAY) && index < (*value)->n)
        at = (ptrdiff_t) index;
    *value = at < 0 ? NULL : &(*value)->items[at];
    *schema = *schema ? (*schema)->items : NULL;
}

const struct json *place_value(struct arena *a, const struct schema *schema,
                               const struct json *value, struct str place)
{
    struct str step;
    while (value && place_step(&place, &step))
        descend(a, &schema, &value, &step);
    return value;
}

struct str place_of_path(struct arena *a, const struct schema *schema, const struct json *value,
                         struct str path)
{
    BUF_AUTO b = {0};
    struct str step;
    while (place_step(&path, &step)) {
        descend(a, &schema, &value, &step);
        if (step.p[0] != '[' && b.n)
            buf_append_char(&b, '.');
        buf_append_str(&b, step);
    }
    return arena_str(a, buf_str(&b));
}
