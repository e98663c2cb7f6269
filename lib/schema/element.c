/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "schema/causes.h"
#include "schema/fieldset_internal.h"

/* ---- order -------------------------------------------------------------------------------- */

static int rank(struct str element)
{
    switch (element.p[0]) {
    case 'f':
        return 0;
    case 'k':
        return 1;
    case 'v':
        return 2;
    default:
        return 3;
    }
}

static bool is_number_char(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static bool is_inside_string(struct str s, size_t at)
{
    bool inside = false;
    for (size_t i = 0; i < at; i++) {
        if (inside && s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            inside = !inside;
    }
    return inside;
}

/* Where a JSON number that holds or ends before `at` begins; `at` when there is none. */
static size_t number_start(struct str s, size_t at)
{
    size_t start = at;
    while (start > 0 && is_number_char(s.p[start - 1]))
        start--;
    return start > 0 && s.p[start - 1] == ':' ? start : at;
}

static double number_at(struct str s, size_t at)
{
    char digits[40] = {0};
    for (size_t i = 0; i + 1 < sizeof(digits) && at + i < s.n && is_number_char(s.p[at + i]); i++)
        digits[i] = s.p[at + i];
    return strtod(digits, NULL);
}

/* As text, but for numbers in the same place, which compare by value: -10, -2, -1, 9, 10. */
static int compare_values(struct str a, struct str b)
{
    size_t at = 0;
    while (at < a.n && at < b.n && a.p[at] == b.p[at])
        at++;
    size_t start = number_start(a, at);
    if (start >= a.n || start >= b.n || !is_number_char(a.p[start]) ||
        !is_number_char(b.p[start]) || a.p[start - 1] != ':' || is_inside_string(a, at))
        return str_cmp(a, b);
    double x = number_at(a, start), y = number_at(b, start);
    return x < y ? -1 : x > y ? 1 : str_cmp(a, b);
}

int element_compare(struct str a, struct str b)
{
    if (a.p[0] != b.p[0])
        return rank(a) - rank(b);
    return a.p[0] == 'f' ? str_cmp(a, b) : compare_values(a, b);
}

/* ---- making them -------------------------------------------------------------------------- */

struct str element_of_field(struct arena *a, struct str name)
{
    char *p = arena_alloc(a, name.n + 2);
    p[0] = 'f';
    p[1] = ':';
    if (name.n)
        memcpy(p + 2, name.p, name.n);
    return str_range(p, name.n + 2);
}

static int fail(struct str *ret_error, struct str why)
{
    if (ret_error)
        *ret_error = why;
    return -EINVAL;
}

static int compare_names(const void *a, const void *b)
{
    const struct json_member *x = a, *y = b;
    return str_cmp(json_str(&x->key), json_str(&y->key));
}

/* Writes the members as a `k:` element; sorts them. */
static struct str key_element(struct arena *a, struct json_member *members, size_t n)
{
    if (n > 1)
        qsort(members, n, sizeof(*members), compare_names);
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("k:"));
    struct json key = {.type = JSON_OBJECT, .n = (uint32_t) n, .members = members};
    json_write(&b, &key);
    return arena_str(a, buf_str(&b));
}

static bool needs_no_escape(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char) s.p[i] < 0x20 || s.p[i] == '"' || s.p[i] == '\\')
            return false;
    }
    return s.p;
}

/* The commonest key by far: one string that needs no escapes. */
static bool plain_key_element(struct arena *a, struct str name, const struct json *value,
                              struct str *ret_element)
{
    struct str s = json_str(value);
    if (!needs_no_escape(s) || !needs_no_escape(name))
        return false;
    char *p = arena_alloc(a, name.n + s.n + 9), *start = p;
    p = mempcpy(p, "k:{\"", 4);
    p = mempcpy(p, name.p, name.n);
    p = mempcpy(p, "\":\"", 3);
    p = mempcpy(p, s.p, s.n);
    p = mempcpy(p, "\"}", 2);
    *ret_element = str_range(start, (size_t) (p - start));
    return true;
}

/* The same for the item of a set. */
static bool plain_value_element(struct arena *a, const struct json *value, struct str *ret_element)
{
    struct str s = json_str(value);
    if (!needs_no_escape(s))
        return false;
    char *p = arena_alloc(a, s.n + 4), *start = p;
    p = mempcpy(p, "v:\"", 3);
    p = mempcpy(p, s.p, s.n);
    *p++ = '"';
    *ret_element = str_range(start, (size_t) (p - start));
    return true;
}

static struct str key_names(struct arena *a, const struct schema *list)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < list->n_list_map_keys; i++) {
        if (i)
            buf_append_char(&b, ' ');
        causes_quote(&b, list->list_map_keys[i]);
    }
    return arena_str(a, buf_str(&b));
}

static const struct json *key_value(const struct schema *list, const struct json *item,
                                    struct str name)
{
    const struct json *value = json_get(item, name);
    const struct schema *schema = value ? NULL : schema_member(list->items, name);
    return value ? value : schema ? schema->default_value : NULL;
}

static int map_item_element(struct arena *a, const struct schema *list, const struct json *item,
                            struct str *ret_element, struct str *ret_error)
{
    if (json_is(item, JSON_NULL))
        return fail(ret_error, STR("associative list with keys may not have a null element"));
    if (!json_is(item, JSON_OBJECT))
        return fail(ret_error, STR("associative list with keys may not have non-map elements"));
    size_t n = list->n_list_map_keys, n_found = 0;
    const struct json *first = n ? key_value(list, item, list->list_map_keys[0]) : NULL;
    if (n == 1 && plain_key_element(a, list->list_map_keys[0], first, ret_element))
        return 0;
    struct json_member *found = ARENA_ARRAY(a, struct json_member, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct json *value = key_value(list, item, list->list_map_keys[i]);
        if (value)
            found[n_found++] = (struct json_member){json_string(list->list_map_keys[i]), *value};
    }
    if (n_found == 0) {
        if (ret_error)
            *ret_error =
                arena_printf(a,
                             "associative list with keys has an element that omits all key "
                             "fields [%.*s] (and doesn't have default values for any key fields)",
                             STR_ARG(key_names(a, list)));
        return -EINVAL;
    }
    *ret_element = key_element(a, found, n_found);
    return 0;
}

static int set_item_element(struct arena *a, const struct json *item, struct str *ret_element,
                            struct str *ret_error)
{
    switch (item->type) {
    case JSON_OBJECT:
        return fail(ret_error,
                    STR("associative list without keys has an element that's a map type"));
    case JSON_ARRAY:
        return fail(ret_error, STR("not supported: associative list with lists as elements"));
    case JSON_NULL:
        return fail(ret_error,
                    STR("associative list without keys has an element that's an explicit null"));
    default:
        break;
    }
    if (plain_value_element(a, item, ret_element))
        return 0;
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("v:"));
    json_write(&b, item);
    *ret_element = arena_str(a, buf_str(&b));
    return 0;
}

const struct json *element_only_key(const struct schema *list, const struct json *item)
{
    const struct json *key = item;
    if (list->list_type == SCHEMA_LIST_MAP)
        key = list->n_list_map_keys == 1 ? json_get(item, list->list_map_keys[0]) : NULL;
    return json_is(key, JSON_STRING) || json_is(key, JSON_INT) ? key : NULL;
}

int element_of_item(struct arena *a, const struct schema *list, const struct json *item,
                    struct str *ret_element, struct str *ret_error)
{
    if (list->list_type == SCHEMA_LIST_MAP)
        return map_item_element(a, list, item, ret_element, ret_error);
    return set_item_element(a, item, ret_element, ret_error);
}

/* ---- reading them ------------------------------------------------------------------------- */

/* {"name":"x"} with one member and nothing to unescape is canonical as it stands. */
static bool is_plain_key(struct str s)
{
    size_t n_quotes = 0;
    if (s.n < 7 || s.p[0] != '{' || s.p[1] != '"' || s.p[s.n - 2] != '"' || s.p[s.n - 1] != '}')
        return false;
    for (size_t i = 1; i + 1 < s.n; i++) {
        if (s.p[i] == '\\' || (unsigned char) s.p[i] < 0x20)
            return false;
        n_quotes += s.p[i] == '"';
        if (n_quotes == 2 && s.p[i] == '"' && (s.p[i + 1] != ':' || s.p[i + 2] != '"'))
            return false;
    }
    return n_quotes == 4;
}

static int parse_value(struct arena *a, struct str text, struct str *ret_element)
{
    const struct json *value = json_parse_quick(a, str_from(text, 2));
    if (!value)
        return -EINVAL;
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("v:"));
    json_write(&b, value);
    *ret_element = arena_str(a, buf_str(&b));
    return 0;
}

static int parse_key(struct arena *a, struct str text, struct str *ret_element)
{
    if (is_plain_key(str_from(text, 2))) {
        *ret_element = text;
        return 0;
    }
    struct json *value = json_parse_quick(a, str_from(text, 2));
    if (!json_is(value, JSON_OBJECT))
        return -EINVAL;
    *ret_element = key_element(a, value->members, value->n);
    return 0;
}

static int parse_index(struct arena *a, struct str text, struct str *ret_element)
{
    int64_t index = 0;
    if (str_to_i64(str_from(text, 2), &index) < 0)
        return -EINVAL;
    *ret_element = arena_printf(a, "i:%lld", (long long) index);
    return 0;
}

int element_parse(struct arena *a, struct str text, struct str *ret_element)
{
    if (text.n < 2 || text.p[1] != ':')
        return -EINVAL;
    switch (text.p[0]) {
    case 'f':
        *ret_element = text;
        return 0;
    case 'v':
        return parse_value(a, text, ret_element);
    case 'k':
        return parse_key(a, text, ret_element);
    case 'i':
        return parse_index(a, text, ret_element);
    default:
        return 1;
    }
}

/* ---- showing them ------------------------------------------------------------------------- */

static void write_shown(struct buf *b, const struct json *value)
{
    if (json_is(value, JSON_STRING))
        causes_quote(b, json_str(value));
    else
        json_write(b, value);
}

void element_write(struct arena *a, struct buf *b, struct str element)
{
    struct str rest = str_from(element, 2);
    if (element_is_field(element)) {
        buf_append_char(b, '.');
        buf_append_str(b, rest);
        return;
    }
    const struct json *value = element.p[0] == 'i' ? NULL : json_parse_quick(a, rest);
    buf_append_char(b, '[');
    if (!value) {
        buf_append_str(b, rest);
    } else if (element.p[0] == 'v') {
        buf_append_char(b, '=');
        write_shown(b, value);
    } else {
        JSON_FOR_EACH_MEMBER (value, m) {
            if (m != value->members)
                buf_append_char(b, ',');
            buf_append_str(b, json_str(&m->key));
            buf_append_char(b, '=');
            write_shown(b, &m->value);
        }
    }
    buf_append_char(b, ']');
}
