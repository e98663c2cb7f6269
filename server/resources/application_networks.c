/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/application_networks.h"

#define TOO_MANY "names more than 64 networks"

/* "[namespace/]name[@interface]" */
static const char *add_text(struct str text, struct network_choices *ret)
{
    struct network_choice c = {.name = str_trim(text)};
    const ptrdiff_t slash = str_find(c.name, '/');
    if (slash >= 0) {
        c.namespace = str_sub(c.name, 0, (size_t) slash);
        c.name = str_from(c.name, (size_t) slash + 1);
    }
    const ptrdiff_t at = str_find(c.name, '@');
    if (at >= 0) {
        c.interface = str_from(c.name, (size_t) at + 1);
        c.name = str_sub(c.name, 0, (size_t) at);
    }
    if (!c.name.n || str_find(c.name, '/') >= 0)
        return "must be a list of names, divided by commas, or a JSON list of objects with a name";
    if (ret->n == NETWORKS_MAX)
        return TOO_MANY;
    ret->items[ret->n++] = c;
    return NULL;
}

static const char *add_object(const struct json *item, struct network_choices *ret)
{
    const struct network_choice c = {.namespace = json_get_str(item, STR("namespace")),
                                     .name = json_get_str(item, STR("name")),
                                     .interface = json_get_str(item, STR("interface"))};
    if (!c.name.n)
        return "every network of a JSON list needs a name";
    if (ret->n == NETWORKS_MAX)
        return TOO_MANY;
    ret->items[ret->n++] = c;
    return NULL;
}

static const char *parse_list(struct arena *a, struct str text, struct network_choices *ret)
{
    struct json_parse_result parsed = {0};
    const char *error = NULL;
    if (json_parse(a, text, &parsed) < 0 || !json_is(parsed.value, JSON_ARRAY))
        return "is no JSON list";
    JSON_FOR_EACH_ITEM (parsed.value, item)
        error = error ? error : add_object(item, ret);
    return error;
}

const char *networks_parse(struct arena *a, struct str text, struct network_choices *ret)
{
    const char *error = NULL;
    struct str part = STR_NONE, rest = str_trim(text);
    ret->n = 0;
    if (str_starts_with(rest, STR("[")))
        return parse_list(a, rest, ret);
    while (!error && str_split(&rest, ',', &part))
        error = add_text(part, ret);
    return error;
}
