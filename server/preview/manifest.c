/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/manifest.h"

#include <errno.h>

#include "json/yaml.h"

/* ---- documents ----------------------------------------------------------------------------- */

static bool is_separator(struct str line)
{
    const struct str rest = str_from(line, 3);
    return str_starts_with(line, STR("---")) &&
           (!rest.n || rest.p[0] == ' ' || rest.p[0] == '\t' || rest.p[0] == '\r');
}

/* The text up to the next line that separates documents; false: there is no more. */
static bool next_document(struct str *rest, struct str *ret)
{
    const char *begin = rest->p, *end = rest->p + rest->n;
    struct str line;
    if (!rest->n)
        return false;
    while (str_split(rest, '\n', &line)) {
        /* The dashes begin the next document. */
        if (!is_separator(line) || line.p == begin)
            continue;
        *ret = str_range(begin, (size_t) (line.p - begin));
        *rest = str_range(line.p, (size_t) (end - line.p));
        return true;
    }
    *ret = str_range(begin, (size_t) (end - begin));
    return true;
}

/* ---- objects ------------------------------------------------------------------------------- */

static int add(struct manifest *m, struct json *value, struct status *st)
{
    if (m->n == MANIFEST_MAX_OBJECTS)
        return status_fail(st, 413, "RequestEntityTooLarge", "more than %d objects",
                           MANIFEST_MAX_OBJECTS);
    if (value->type != JSON_OBJECT || !json_get_str(value, STR("kind")).n ||
        !json_get_str(value, STR("apiVersion")).n)
        return status_bad_request(st, "every object needs apiVersion and kind");
    m->objects[m->n++] = value;
    return 0;
}

static int add_all(struct manifest *m, struct json *list, struct status *st)
{
    int r = 0;
    for (size_t i = 0; i < json_count(list) && r == 0; i++)
        r = add(m, &list->items[i], st);
    return r;
}

static int take(struct manifest *m, struct json *value, struct status *st)
{
    struct json *items = json_get(value, STR("items"));
    if (value->type == JSON_NULL)
        return 0;
    if (value->type == JSON_ARRAY)
        return add_all(m, value, st);
    if (str_ends_with(json_get_str(value, STR("kind")), STR("List")) && json_is(items, JSON_ARRAY))
        return add_all(m, items, st);
    return add(m, value, st);
}

int manifest_read(struct arena *a, struct str body, struct manifest *ret, struct status *st)
{
    struct str document;
    if (body.n > MANIFEST_MAX_BYTES)
        return status_fail(st, 413, "RequestEntityTooLarge",
                           "Request entity too large: limit is %zu", MANIFEST_MAX_BYTES);
    ret->n = 0;
    while (next_document(&body, &document)) {
        struct json_parse_result parsed = {0};
        if (yaml_parse(a, document, &parsed) < 0)
            return status_bad_request(st, "error parsing the objects: %.*s", STR_ARG(parsed.error));
        const int r = take(ret, parsed.value, st);
        if (r < 0)
            return r;
    }
    return ret->n ? 0 : status_bad_request(st, "there is no object in the body");
}
