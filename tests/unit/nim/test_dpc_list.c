/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities, what is tested next and what is kept. Lists are written as words: a key, its time,
 * and `+` worked, `-` failed, `!` in use. */
#include "test.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "nim/dpc_list.h"

#define SECOND ((int64_t) 1000 * 1000)
#define NOW ((int64_t) 1793000000 * SECOND)

static struct dpc *make(const char *key, int64_t time_s, const char *port)
{
    ARENA_AUTO a = arena_new();
    const struct dpc_defaults d = {.key = str_of(key), .priority_us = time_s * SECOND};
    const struct str text =
        arena_printf(a, "{\"Version\":1,\"Ports\":[{\"IfName\":\"%s\",\"IsMgmt\":true}]}", port);
    struct dpc *dpc = NULL;
    assert_int_equal(dpc_read(json_parse_quick(a, text), &d, &dpc), 0);
    return dpc;
}

/* "zedagent:20+ override:10-!" in this order; ports differ by key and time. */
static void fill(struct dpc_list *l, const char *words)
{
    struct str rest = str_of(words), word;
    dpc_list_init(l);
    while (str_split(&rest, ' ', &word)) {
        ARENA_AUTO a = arena_new();
        const size_t colon = (size_t) str_find(word, ':');
        size_t end = colon + 1;
        while (end < word.n && word.p[end] >= '0' && word.p[end] <= '9')
            end++;
        int64_t time_s = 0;
        assert_int_equal(str_to_i64(str_sub(word, colon + 1, end), &time_s), 0);
        struct dpc *d = make(arena_strz(a, str_sub(word, 0, colon)), time_s,
                             arena_strz(a, str_sub(word, 0, end)));
        l->items = mem_realloc(l->items, sizeof(l->items[0]) * (l->n_items + 1));
        l->items[l->n_items] = d;
        if (str_find(word, '+') >= 0)
            dpc_results_succeed(&d->results, NOW, STR_NONE);
        if (str_find(word, '-') >= 0)
            dpc_results_fail(&d->results, NOW, STR("no"));
        if (str_find(word, '!') >= 0)
            l->current = (int) l->n_items;
        l->n_items++;
    }
}

static void assert_list(const struct dpc_list *l, const char *expected)
{
    BUF_AUTO text = {0};
    for (size_t i = 0; i < l->n_items; i++) {
        const struct dpc *d = l->items[i];
        buf_printf(&text, "%s%s:%d%s%s%s", i ? " " : "", d->key, (int) (d->priority_us / SECOND),
                   dpc_was_working(d) ? "+" : "", d->results.failed_us ? "-" : "",
                   l->current == (int) i ? "!" : "");
    }
    assert_string_equal(text.p ? text.p : "", expected);
}

TEST(a_new_one_goes_where_its_priority_is)
{
    static const struct {
        const char *before, *key;
        int64_t time_s;
        const char *after;
    } cases[] = {
        {"", "override", 10, "override:10"},
        {"usb:10", "override", 20, "override:20 usb:10"},
        {"usb:20", "override", 10, "usb:20 override:10"},
        {"usb:20", "lastresort", 0, "usb:20 lastresort:0"},
        /* The controller's above all others, whatever their time; among its own by time. */
        {"override:90 lastresort:0", "zedagent", 20, "zedagent:20 override:90 lastresort:0"},
        {"zedagent:30 override:90", "zedagent", 20, "zedagent:30 zedagent:20 override:90"},
        {"zedagent:10 override:90", "zedagent", 20, "zedagent:20 zedagent:10 override:90"},
        {"bootstrap:10", "zedagent", 20, "zedagent:20 bootstrap:10"},
        {"manual:50 override:10", "zedagent", 20, "zedagent:20 manual:50 override:10"},
        /* But a later one of another may come above. */
        {"zedagent:10 override:5", "usb", 20, "usb:20 zedagent:10 override:5"},
        {"zedagent:20", "manual", 1, "manual:1 zedagent:20"},
        {"manual:1", "usb", 20, "manual:1 usb:20"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dpc_list l;
        fill(&l, cases[i].before);
        assert_true(dpc_list_put(&l, make(cases[i].key, cases[i].time_s, "new")));
        assert_list(&l, cases[i].after);
        dpc_list_done(&l);
    }
}

TEST(same_key_and_time_is_an_update)
{
    struct dpc_list l;
    fill(&l, "zedagent:20+! override:10");
    assert_true(dpc_list_put(&l, make("zedagent", 20, "other")));
    /* Nothing is known of the new content. */
    assert_list(&l, "zedagent:20! override:10");
    dpc_list_done(&l);
}

TEST(same_content_under_another_time_moves_with_its_results)
{
    struct dpc_list l;
    fill(&l, "usb:30+! override:10-");
    assert_true(dpc_list_put(&l, make("override", 40, "override:10")));
    assert_list(&l, "override:40- usb:30+!");
    dpc_list_done(&l);
}

TEST(what_is_in_use_first_and_the_same_is_no_change)
{
    struct dpc_list l;
    fill(&l, "zedagent:20+! override:10");
    assert_false(dpc_list_put(&l, make("zedagent", 25, "zedagent:20")));
    assert_list(&l, "zedagent:20+! override:10");
    dpc_list_done(&l);
}

TEST(a_new_manual_one_replaces_the_old)
{
    struct dpc_list l;
    fill(&l, "zedagent:20 manual:5+! override:10");
    assert_true(dpc_list_put(&l, make("manual", 7, "hand")));
    assert_list(&l, "manual:7 zedagent:20 override:10");
    dpc_list_done(&l);
}

TEST(the_one_in_use_stays_so_when_it_works_and_moves)
{
    struct dpc_list l;
    fill(&l, "override:10+!");
    assert_true(dpc_list_put(&l, make("zedagent", 20, "z")));
    assert_list(&l, "zedagent:20 override:10+!");
    dpc_list_done(&l);
    fill(&l, "override:10-!");
    assert_true(dpc_list_put(&l, make("zedagent", 20, "z")));
    assert_list(&l, "zedagent:20 override:10-");
    dpc_list_done(&l);
}

TEST(removal_of_the_one_in_use_falls_to_the_first_that_worked)
{
    static const struct {
        const char *before, *after;
    } cases[] = {{"zedagent:20+! override:10+", "override:10+!"},
                 {"zedagent:20+! override:10", "override:10"},
                 {"zedagent:20 override:10+!", "override:10+!"}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dpc_list l;
        fill(&l, cases[i].before);
        CLEANUP(dpc_freep) struct dpc *like = make("zedagent", 20, "whatever");
        assert_true(dpc_list_remove(&l, like));
        assert_list(&l, cases[i].after);
        assert_false(dpc_list_remove(&l, like));
        dpc_list_done(&l);
    }
}

TEST(next_to_test_goes_around_and_never_below_manual)
{
    static const struct {
        const char *list;
        size_t from;
        int next;
    } cases[] = {{"", 0, -1},
                 {"zedagent:20 override:10", 0, 0},
                 {"zedagent:20- override:10", 0, 1},
                 {"zedagent:20- override:10-", 0, -1},
                 {"zedagent:20 override:10-", 1, 0},
                 {"zedagent:20- manual:5- override:10", 0, -1},
                 {"zedagent:20- manual:5 override:10", 0, 1},
                 {"zedagent:20 manual:5- override:10", 2, 0}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dpc_list l;
        fill(&l, cases[i].list);
        assert_int_equal(dpc_list_next_testable(&l, cases[i].from, NOW), cases[i].next);
        dpc_list_done(&l);
    }
}

TEST(while_nothing_works_it_stays_where_it_could)
{
    static const struct {
        const char *list;
        int at;
    } cases[] = {
        {"", -1}, {"zedagent:20- override:10-", 0}, {"zedagent:20- manual:5- override:10-", 1}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dpc_list l;
        fill(&l, cases[i].list);
        assert_int_equal(dpc_list_parking(&l), cases[i].at);
        dpc_list_done(&l);
    }
    /* A controller that knows no ports cuts nobody off. */
    struct dpc_list l;
    fill(&l, "zedagent:20- override:10-");
    l.items[0]->ports[0].is_management = false;
    assert_int_equal(dpc_list_parking(&l), 1);
    dpc_list_done(&l);
}

TEST(only_what_somebody_would_fall_back_to_is_kept)
{
    static const struct {
        const char *before;
        bool keeps_last_resort;
        const char *after;
    } cases[] = {
        /* The controller's has worked: others may go. */
        {"zedagent:30+! override:20 usb:10 lastresort:0", false, "zedagent:30+!"},
        {"zedagent:30+! override:20 usb:10 lastresort:0", true, "zedagent:30+! lastresort:0"},
        /* Not before: one of each key. */
        {"zedagent:30- override:20+! override:15 usb:10 lastresort:0", false,
         "zedagent:30- override:20+! usb:10 lastresort:0"},
        /* The first that works is there to fall back to, and what is in use. */
        {"zedagent:30- zedagent:25- zedagent:20+! zedagent:15+", false,
         "zedagent:30- zedagent:20+!"},
        {"zedagent:30+ zedagent:25-! zedagent:20", false, "zedagent:30+ zedagent:25-!"},
        /* The newest of each key of the controller. */
        {"zedagent:30+! bootstrap:20 bootstrap:10 override:5", false, "zedagent:30+! bootstrap:20"},
        /* One made by hand until something above it works. */
        {"zedagent:30- manual:20-! zedagent:10+", false, "zedagent:30- manual:20-! zedagent:10+"},
        {"zedagent:30+! manual:20", false, "zedagent:30+!"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dpc_list l;
        fill(&l, cases[i].before);
        dpc_list_compress(&l, cases[i].keeps_last_resort);
        assert_list(&l, cases[i].after);
        dpc_list_done(&l);
    }
}

TEST(the_list_never_grows_beyond_its_limit)
{
    struct dpc_list l;
    dpc_list_init(&l);
    for (int i = 0; i < 3 * DPC_LIST_MAX; i++) {
        char port[16];
        (void) snprintf(port, sizeof(port), "p%d", i);
        assert_true(dpc_list_put(&l, make("zedagent", i, port)));
        if (i == 0) {
            dpc_results_succeed(&l.items[0]->results, NOW, STR_NONE);
            l.current = 0;
        }
    }
    assert_int_equal(l.n_items, DPC_LIST_MAX);
    /* The one in use is the oldest, and stays. */
    assert_int_equal(l.current, DPC_LIST_MAX - 1);
    assert_int_equal(l.items[l.current]->priority_us, 0);
    dpc_list_done(&l);
}

TEST(over_a_restart_errors_of_ports_go_and_results_stay)
{
    struct dpc_list l, again;
    ARENA_AUTO a = arena_new();
    fill(&l, "zedagent:30- override:20+!");
    dpc_results_fail(&l.items[1]->ports[0].results, NOW, STR("cable"));
    const struct json *v = dpc_list_write(a, &l);
    assert_int_equal(json_get_int(v, STR("CurrentIndex"), -1), 1);
    dpc_list_init(&again);
    dpc_list_read(&again, v);
    assert_list(&again, "zedagent:30- override:20+");
    assert_null(again.items[1]->ports[0].results.error);
    dpc_list_done(&l);
    dpc_list_done(&again);
    /* Damage costs what is damaged. */
    dpc_list_read(&again, json_parse_quick(a, STR("{\"PortConfigList\":[7,{\"Key\":\"x\"},{\"Key\":"
                                                  "\"y\",\"Ports\":[{\"IfName\":\"e\"}]}]}")));
    assert_list(&again, "y:0");
    dpc_list_done(&again);
    dpc_list_read(&again, NULL);
    assert_int_equal(again.n_items, 0);
    dpc_list_done(&again);
}
