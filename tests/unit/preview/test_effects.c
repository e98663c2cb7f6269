/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does about a new configuration. */
#include "test.h"

#include "configs.h"
#include "preview/effects.h"

static const struct {
    const char *name, *old, *new, *texts;
} cases[] = {
    {"restart", "apps: [{displayname: web, restart: {counter: 1}}]",
     "apps: [{displayname: web, restart: {counter: 2}}]", "application web restarts"},
    {"first restart", "apps: [{displayname: web, restart: {}}]",
     "apps: [{displayname: web, restart: {counter: 1}}]", "application web restarts"},
    {"purge",
     "apps: [{displayname: db, restart: {counter: 1}, purge: {}}]\n"
     "volumes: [{uuid: u, displayName: db}]",
     "apps: [{displayname: db, restart: {counter: 2}, purge: {counter: 1}}]\n"
     "volumes: [{uuid: u, displayName: db, generationCount: \"1\"}]",
     "application db is purged: its boot volume is made anew"},
    {"gone with its boot volume",
     "apps: [{displayname: web}]\nvolumes: [{uuid: u, displayName: web}]", "apps: []",
     "application web is removed"},
    {"a claim's volume is gone", "volumes: [{uuid: u, displayName: data}]", "volumes: []",
     "volume data is removed with what it holds"},
    {"a volume anew", "volumes: [{uuid: u, displayName: data, generationCount: \"1\"}]",
     "volumes: [{uuid: u, displayName: data, generationCount: \"2\"}]",
     "volume data is made anew: what it holds is lost"},
    {"a new volume", "volumes: []", "volumes: [{uuid: u, displayName: data}]", ""},
    {"new", "apps: []", "apps: [{displayname: web}]", "application web is new"},
    {"stops", "apps: [{displayname: web, activate: true}]", "apps: [{displayname: web}]",
     "application web stops"},
    {"starts", "apps: [{displayname: web}]", "apps: [{displayname: web, activate: true}]",
     "application web starts"},
    {"reboot", "reboot: {counter: 3}", "reboot: {counter: 4}", "the device reboots"},
    {"the first counter is only taken note of", "{}", "reboot: {counter: 4}", ""},
    {"shutdown", "shutdown: {}", "shutdown: {counter: 1}", "the device stops its applications"},
    {"update", "baseos: {baseOsVersion: a}", "baseos: {baseOsVersion: b}",
     "EVE is updated to b: the device reboots"},
    {"no update", "baseos: {baseOsVersion: b, retryUpdate: {}}",
     "baseos: {baseOsVersion: b, retryUpdate: {counter: 1}}", ""},
    {"memory alone", "apps: [{displayname: web, fixedresources: {memory: 1}}]",
     "apps: [{displayname: web, fixedresources: {memory: 2}}]", ""},
    {"by kind and name",
     "apps: [{displayname: b, restart: {}}, {displayname: a, restart: {}}, {displayname: c, purge: "
     "{}}]",
     "apps: [{displayname: b, restart: {counter: 1}}, {displayname: a, restart: {counter: 1}}, "
     "{displayname: c, purge: {counter: 1}}]",
     "application c is purged: its boot volume is made anew; application a restarts; application "
     "b restarts"},
};

TEST(effects_are_read_from_what_changes)
{
    CONFIGS(c);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct json *old = configs_parse(c.arena, cases[i].old);
        const struct json *new = configs_parse(c.arena, cases[i].new);
        const struct difference d = difference_make(c.arena, c.schema, old, new);
        const struct effects e = effects_find(c.arena, c.schema, old, new, &d);
        BUF_AUTO texts = {0};
        for (size_t k = 0; k < e.n; k++)
            buf_printf(&texts, "%s%s", k ? "; " : "", effect_text(c.arena, &e.items[k]).p);
        if (!str_is(buf_str(&texts), cases[i].texts))
            fail_msg("%s: got \"%.*s\", expected \"%s\"", cases[i].name, STR_ARG(buf_str(&texts)),
                     cases[i].texts);
    }
}

TEST(nothing_changes_nothing_happens)
{
    CONFIGS(c);
    for (size_t i = 0; i < c.n; i++) {
        const struct difference none = {0};
        assert_int_equal(effects_find(c.arena, c.schema, c.items[i], c.items[i], &none).n, 0);
    }
}
