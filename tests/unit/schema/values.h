/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in tests, written with single quotes; and a server of one object whose writes go through
 * managedFields. */
#pragma once

#include "device.h"

#include "schema/managed.h"

static inline struct json *value_of(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    return parse_text(a, copy);
}

static inline void assert_value(struct arena *a, const struct json *actual, const char *expected)
{
    if (!json_equal(actual, value_of(a, expected)))
        fail_msg("got %.*s, expected %s", STR_ARG(actual ? json_text(a, actual) : STR("nothing")),
                 expected);
}

/* Text that may hold single quotes for double ones. */
static inline void assert_text(struct arena *a, struct str actual, const char *expected)
{
    char *copy = arena_strz(a, str_of(expected));
    for (char *p = copy; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    assert_str(actual, copy);
}

static inline const struct schema *schema_of(struct arena *a, const char *text)
{
    const struct schema *schema = NULL;
    struct str error = STR_NONE;
    if (schema_compile(a, value_of(a, text), &schema, &error) < 0)
        fail_msg("%.*s", STR_ARG(error));
    return schema;
}

#define STRING "{'type':'string'}"
#define CONFIG_MAP_SCHEMA \
    "{'type':'object','properties':{'apiVersion':" STRING ",'kind':" STRING \
    ",'metadata':{'type':'object'}," \
    "'data':{'type':'object','additionalProperties':" STRING "},'immutable':{'type':'boolean'}}}"

struct server {
    struct arena *arena;
    struct json *object; /* NULL: none yet */
    struct managed_options options;
    int second;
    struct managed_conflict *conflicts;
    struct str error;
};

static inline void tick(struct server *s, const char *manager)
{
    s->options.manager = str_of(manager);
    s->options.time = arena_printf(s->arena, "2026-01-01T00:00:%02dZ", ++s->second);
}

/* Replaces the object. */
static inline void put(struct server *s, const char *manager, const char *object)
{
    tick(s, manager);
    struct json *new_object = value_of(s->arena, object);
    managed_update(s->arena, s->object, new_object, &s->options);
    s->object = new_object;
}

static inline int apply_value(struct server *s, const char *manager, bool force,
                              const struct json *config)
{
    tick(s, manager);
    s->conflicts = NULL;
    struct json *new_object = NULL;
    int r = managed_apply(s->arena, s->object, config, force, &s->options, &new_object,
                          &s->conflicts, &s->error);
    if (r == 0)
        s->object = new_object;
    return r;
}

static inline int apply(struct server *s, const char *manager, bool force, const char *config)
{
    return apply_value(s, manager, force, value_of(s->arena, config));
}

/* "manager Apply :01 {fields}" per entry and line; subresources behind the operation. */
static inline struct str managed_lines(struct server *s)
{
    BUF_AUTO b = {0};
    JSON_FOR_EACH_ITEM (json_at(s->object, "metadata", "managedFields", NULL), e) {
        struct str time = json_get_str(e, STR("time")), sub = json_get_str(e, STR("subresource"));
        buf_printf(&b, "%s%.*s %.*s%s%.*s ", b.n ? "\n" : "",
                   STR_ARG(json_get_str(e, STR("manager"))),
                   STR_ARG(json_get_str(e, STR("operation"))), sub.n ? "/" : "", STR_ARG(sub));
        if (time.n)
            buf_printf(&b, "%.*s ", STR_ARG(str_sub(time, 16, 19)));
        json_write(&b, json_get(e, STR("fieldsV1")));
    }
    return arena_str(s->arena, buf_str(&b));
}

static inline void assert_managed(struct server *s, const char *expected)
{
    assert_text(s->arena, managed_lines(s), expected);
}

/* The object without metadata.managedFields. */
static inline void assert_object(struct server *s, const char *expected)
{
    struct json copy = json_clone(s->arena, s->object);
    struct json *metadata = json_get(&copy, STR("metadata"));
    if (metadata)
        (void) json_remove(metadata, STR("managedFields"));
    assert_value(s->arena, &copy, expected);
}
