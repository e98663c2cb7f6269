/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations to compare: those that the composer's tests expect, with the schema that says how
 * their lists are keyed. */
#pragma once

#include <stdio.h>

#include "preview/snapshot.h"
#include "json/yaml.h"

#define CONFIGS_MAX 64

struct configs {
    struct arena *arena;
    struct registry *registry;
    const struct schema *schema;
    const struct json *items[CONFIGS_MAX];
    size_t n;
};

static const struct json *configs_parse(struct arena *a, const char *text)
{
    struct json_parse_result parsed = {0};
    assert_int_equal(yaml_parse(a, str_of(text), &parsed), 0);
    return parsed.value;
}

static void configs_add_case(struct configs *c, const char *name)
{
    BUF_AUTO text = {0};
    FILE *f = fopen(arena_printf(c->arena, "%s/%s.json", TEST_DATA, name).p, "r");
    assert_non_null(f);
    for (size_t n = 1; n > 0;) {
        n = fread(buf_reserve(&text, 65536), 1, 65536, f);
        text.n += n;
    }
    fclose(f);
    JSON_FOR_EACH_ITEM (json_parse_quick(c->arena, buf_str(&text)), step) {
        assert_true(c->n < CONFIGS_MAX);
        c->items[c->n++] = snapshot_config(c->arena, c->schema, json_get(step, STR("config")));
    }
}

static void configs_init(struct configs *c)
{
    static const char *const cases[] = {"container", "virtual_machine", "wifi",
                                        "base_os",   "volume_edit",     "switch_passthrough"};
    struct str error = STR_NONE;
    *c = (struct configs){.arena = arena_new()};
    c->registry = registry_build(NULL, 0, 1, &error);
    assert_non_null(c->registry);
    c->schema = snapshot_schema(c->registry);
    assert_non_null(c->schema);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        configs_add_case(c, cases[i]);
    assert_true(c->n > 10);
}

static void configs_done(struct configs *c)
{
    registry_unref(c->registry);
    arena_free(c->arena);
}
#define CONFIGS(c) \
    CLEANUP(configs_done) struct configs c; \
    configs_init(&c)
