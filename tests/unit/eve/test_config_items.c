/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/config_items.h"

#include <errno.h>

#include "test.h"

TEST(the_table_is_in_order_and_every_default_is_a_value)
{
    ARENA_AUTO a = arena_new();
    size_t n;
    const struct config_item *items = config_items(&n);
    assert_true(n > 90);
    for (size_t i = 0; i < n; i++) {
        struct str reason = STR("");
        struct config_item_value v = {.number = items[i].number, .text = str_of(items[i].text)};
        if (i > 0 && str_cmp(str_of(items[i - 1].name), str_of(items[i].name)) >= 0)
            fail_msg("%s stands in the wrong place", items[i].name);
        assert_ptr_equal(config_item_find(str_of(items[i].name)), &items[i]);
        const struct str text = config_item_text(a, &items[i], &v);
        if (config_item_parse(a, &items[i], text, &v, &reason) < 0)
            fail_msg("%s=%.*s %.*s", items[i].name, STR_ARG(text), STR_ARG(reason));
        assert_int_equal(v.number, items[i].number);
        if (config_item_is_text(&items[i]))
            assert_str(v.text, items[i].text);
    }
    assert_null(config_item_find(STR("")));
    assert_null(config_item_find(STR("timer.config.intervals")));
    assert_null(config_item_find(STR("zzz")));
}

TEST(bounds_are_part_of_the_range)
{
    ARENA_AUTO a = arena_new();
    size_t n;
    const struct config_item *items = config_items(&n);
    for (size_t i = 0; i < n; i++) {
        struct str reason;
        struct config_item_value v;
        if (items[i].type != CONFIG_ITEM_INT)
            continue;
        const struct {
            int64_t value;
            int result;
        } cases[] = {{items[i].min, 0},
                     {items[i].max, 0},
                     {items[i].min - 1, -EINVAL},
                     {items[i].max + 1, -EINVAL}};
        for (size_t k = 0; k < N_ELEMENTS(cases); k++) {
            const struct str text = arena_printf(a, "%lld", (long long) cases[k].value);
            if (config_item_parse(a, &items[i], text, &v, &reason) != cases[k].result)
                fail_msg("%s=%.*s", items[i].name, STR_ARG(text));
        }
    }
}

TEST(settings_of_a_service_have_an_old_spelling)
{
    static const struct {
        const char *name, *agent, *setting; /* agent NULL: it is none */
    } cases[] = {
        {"agent.nim.debug.loglevel", "nim", "debug.loglevel"},
        {"agent.nim.debug.remote.loglevel", "nim", "debug.remote.loglevel"},
        {"debug.zedagent.loglevel", "zedagent", "debug.loglevel"},
        {"debug.zedagent.remote.loglevel", "zedagent", "debug.remote.loglevel"},
        {"agent..loglevel", NULL, NULL},
        {"agent.nim", NULL, NULL},
        {"agent.nim.colour", NULL, NULL},
        {"other.nim.loglevel", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str agent = STR(""), setting = STR("");
        const struct config_item *item =
            config_item_of_agent(str_of(cases[i].name), &agent, &setting);
        if ((item != NULL) != (cases[i].agent != NULL))
            fail_msg("%s", cases[i].name);
        if (!item)
            continue;
        assert_str(agent, cases[i].agent);
        assert_str(setting, cases[i].setting);
    }
}
