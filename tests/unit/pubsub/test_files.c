/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "pubsub/pubsub_internal.h"
#include "test.h"
#include "world.h"

#define STATUS "persist/status/baseosmgr/ZbootStatus"

static struct pubsub_place place_of(struct world *w, bool is_persistent)
{
    struct pubsub_place place;
    struct pubsub_name name = {
        .agent = STR("baseosmgr"), .topic = STR("ZbootStatus"), .is_persistent = is_persistent};
    assert_int_equal(pubsub_place_init(&place, w->pubsub, &name), 0);
    return place;
}

struct found {
    struct world *world;
    struct buf text; /* key=text; in the order found */
};

static bool on_value(void *arg, struct str key, struct str text)
{
    struct found *f = arg;
    if (!json_parse_quick(f->world->arena, text))
        return false;
    buf_printf(&f->text, "%.*s=%.*s;", STR_ARG(key), STR_ARG(text));
    return true;
}

static struct str load(struct world *w, const struct pubsub_place *place, bool is_owner)
{
    struct found f = {.world = w};
    assert_int_equal(pubsub_values_load(place, &(struct pubsub_loader){on_value, &f, is_owner}), 0);
    struct str all = arena_str(w->arena, buf_str(&f.text));
    buf_done(&f.text);
    return all;
}

TEST(names_are_those_of_the_device)
{
    struct world w;
    world_init(&w);
    static const struct {
        struct pubsub_name name;
        const char *values, *large, *socket;
    } cases[] = {
        {{.agent = STR("nim"), .topic = STR("T")},
         "run/nim/T",
         "persist/pubsub-large/nim/T",
         "run/nim/T.sock"},
        {{.agent = STR("zedagent"), .scope = STR("baseosmgr"), .topic = STR("T")},
         "run/zedagent/baseosmgr/T",
         "persist/pubsub-large/zedagent/baseosmgr/T",
         "run/zedagent/baseosmgr/T.sock"},
        {{.agent = STR("nim"), .scope = STR("s"), .topic = STR("T"), .is_persistent = true},
         "persist/status/nim/s/T",
         "persist/pubsub-large/nim/s/T",
         "run/nim/s/T.sock"},
        {{.agent = STR(""), .topic = STR("T")},
         "run/global/T",
         "persist/pubsub-large/global/T",
         NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct pubsub_place p;
        assert_int_equal(pubsub_place_init(&p, w.pubsub, &cases[i].name), 0);
        assert_string_equal(p.values, world_path(&w, cases[i].values));
        assert_string_equal(p.large, world_path(&w, cases[i].large));
        assert_int_equal(p.directory == NULL, cases[i].socket == NULL);
        if (cases[i].socket)
            assert_string_equal(arena_printf(w.arena, "%s/%s", p.directory, p.socket).p,
                                world_path(&w, cases[i].socket));
        pubsub_place_done(&p);
    }
    world_done(&w);
}

TEST(names_lead_nowhere_else)
{
    struct world w;
    world_init(&w);
    static const struct pubsub_name bad[] = {
        {.agent = STR("a"), .topic = STR("")},
        {.agent = STR("a"), .topic = STR("..")},
        {.agent = STR("a"), .topic = STR("b/c")},
        {.agent = STR("a"), .topic = STR("b c")},
        {.agent = STR("../a"), .topic = STR("T")},
        {.agent = STR("."), .topic = STR("T")},
        {.agent = STR("a"), .scope = STR(".."), .topic = STR("T")},
        {.agent = STR(""), .topic = STR("T"), .is_persistent = true},
    };
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct pubsub_place p;
        assert_true(pubsub_place_init(&p, w.pubsub, &bad[i]) < 0);
    }
    assert_true(pubsub_is_key(STR("8d6f2d4e-0c1b-4a57-9d4e-3f1f6a2f6a01-1"), true));
    assert_false(pubsub_is_key(STR(""), false));
    assert_false(pubsub_is_key(STR("a/b"), false));
    assert_false(pubsub_is_key(STR("a\0b"), false));
    assert_false(pubsub_is_key(STR("a.json"), false));
    char longest[256];
    memset(longest, 'k', sizeof(longest));
    assert_true(pubsub_is_key(str_range(longest, 250), false));
    assert_false(pubsub_is_key(str_range(longest, 251), false));
    assert_false(pubsub_is_key(str_range(longest, 247), true));
    world_done(&w);
}

TEST(a_persistent_value_keeps_the_one_before)
{
    struct world w;
    world_init(&w);
    struct pubsub_place p = place_of(&w, true);
    assert_int_equal(pubsub_value_write(&p, STR("k"), STR("{\"n\":1}")), 0);
    assert_false(world_exists(&w, STATUS "/k.json.bak"));
    assert_int_equal(pubsub_value_write(&p, STR("k"), STR("{\"n\":2}")), 0);
    assert_string_equal(world_read(&w, STATUS "/k.json"), "{\"n\":2}");
    assert_string_equal(world_read(&w, STATUS "/k.json.bak"), "{\"n\":1}");
    assert_int_equal(world_count_files(&w, STATUS), 2);
    struct stat st;
    assert_int_equal(stat(world_path(&w, STATUS), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(pubsub_value_remove(&p, STR("k")), 0);
    assert_int_equal(world_count_files(&w, STATUS), 0);
    pubsub_place_done(&p);
    world_done(&w);
}

TEST(a_backup_stands_in_for_a_file_that_is_missing_or_broken)
{
    static const char *const broken[] = {NULL, "", "{\"n\":"};
    for (size_t i = 0; i < N_ELEMENTS(broken); i++) {
        struct world w;
        world_init(&w);
        struct pubsub_place p = place_of(&w, true);
        world_write(&w, STATUS "/k.json.bak", "{\"n\":1}");
        if (broken[i])
            world_write(&w, STATUS "/k.json", broken[i]);
        assert_str(load(&w, &p, /* is_owner= */ false), "k={\"n\":1};");
        assert_true(!broken[i] || str_is(str_of(world_read(&w, STATUS "/k.json")), broken[i]));
        assert_true(load(&w, &p, /* is_owner= */ true).n > 0);
        assert_string_equal(world_read(&w, STATUS "/k.json"), "{\"n\":1}");
        pubsub_place_done(&p);
        world_done(&w);
    }
}

TEST(the_owner_clears_away_what_a_crash_left)
{
    struct world w;
    world_init(&w);
    struct pubsub_place p = place_of(&w, false);
    world_write(&w, "run/baseosmgr/ZbootStatus/tmp1234567890", "{\"half\":");
    world_write(&w, "run/baseosmgr/ZbootStatus/tmpkey.json", "{\"n\":1}");
    world_write(&w, "run/baseosmgr/ZbootStatus/empty.json", "");
    world_write(&w, "run/baseosmgr/ZbootStatus/other.txt", "{}");
    world_write(&w, "run/baseosmgr/ZbootStatus/old.json.bak", "{}");
    assert_str(load(&w, &p, false), "tmpkey={\"n\":1};");
    assert_int_equal(world_count_files(&w, "run/baseosmgr/ZbootStatus"), 5);
    assert_str(load(&w, &p, true), "tmpkey={\"n\":1};");
    assert_int_equal(world_count_files(&w, "run/baseosmgr/ZbootStatus"), 4);
    pubsub_place_done(&p);
    world_done(&w);
}

TEST(the_counter_survives_and_nonsense_counts_as_one)
{
    struct world w;
    world_init(&w);
    struct pubsub_place p = place_of(&w, true);
    assert_int_equal(pubsub_restarted_read(&p), 0);
    assert_int_equal(pubsub_restarted_write(&p, 7), 0);
    assert_string_equal(world_read(&w, STATUS "/restarted"), "7");
    assert_int_equal(pubsub_restarted_read(&p), 7);
    assert_int_equal(pubsub_restarted_write(&p, 0), 0);
    assert_false(world_exists(&w, STATUS "/restarted"));
    static const char *const nonsense[] = {"", "x", "-4", "99999999999999999999999999999999999999"};
    for (size_t i = 0; i < N_ELEMENTS(nonsense); i++) {
        world_write(&w, STATUS "/restarted", nonsense[i]);
        assert_int_equal(pubsub_restarted_read(&p), 1);
    }
    world_write(&w, STATUS "/restarted", "4\n");
    assert_int_equal(pubsub_restarted_read(&p), 4);
    pubsub_place_done(&p);
    world_done(&w);
}
