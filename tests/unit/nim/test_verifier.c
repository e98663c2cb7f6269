/* SPDX-License-Identifier: Apache-2.0 */
/* Verification on a virtual clock: the table of waits, and whole stories in which each port of each
 * configuration works or not as the test says. */
#include "test.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "nim/verifier.h"

#define SECOND ((int64_t) 1000 * 1000)
#define DURATION_MS 30000

/* ---- the table ----------------------------------------------------------------------------- */

TEST(what_a_test_means_depends_on_how_long_it_has_been_waited)
{
    const struct verifier_findings
        nothing = {0},
        good = {.is_reachable = true, .n_present = 1},
        refused = {.is_temporary = true, .n_present = 1},
        assigned = {.is_assigned = true, .is_reachable = true},
        applied = {.is_being_applied = true, .is_reachable = true},
        held = {.is_held = true, .n_present = 1, .has_ip_and_dns = true},
        modem = {.awaits_modem = true, .n_present = 1, .has_ip_and_dns = true},
        missing = {.n_missing = 1},
        one_missing = {.n_missing = 1, .n_present = 1, .has_ip_and_dns = true},
        no_address = {.n_present = 1},
        not_ready = {.n_present = 2, .has_ip_and_dns = true, .is_not_ready = true},
        bad = {.n_present = 1, .has_ip_and_dns = true};
    const struct {
        const struct verifier_findings *f;
        int64_t elapsed_s;
        enum node_network_state state;
    } cases[] = {
        {&good, 0, NODE_NETWORK_SUCCESS},
        {&refused, 0, NODE_NETWORK_REMOTE_WAIT},
        {&assigned, 0, NODE_NETWORK_FAIL},
        {&applied, 59, NODE_NETWORK_ASYNC_WAIT},
        {&applied, 60, NODE_NETWORK_SUCCESS},
        {&held, 59, NODE_NETWORK_PCI_WAIT},
        {&held, 60, NODE_NETWORK_FAIL_WITH_IP_AND_DNS},
        {&modem, 89, NODE_NETWORK_WWAN_WAIT},
        {&modem, 90, NODE_NETWORK_FAIL_WITH_IP_AND_DNS},
        {&missing, 59, NODE_NETWORK_INTERFACE_WAIT},
        {&missing, 60, NODE_NETWORK_FAIL},
        {&one_missing, 59, NODE_NETWORK_INTERFACE_WAIT},
        {&one_missing, 60, NODE_NETWORK_FAIL_WITH_IP_AND_DNS},
        {&nothing, 0, NODE_NETWORK_FAIL},
        {&no_address, 149, NODE_NETWORK_IPDNS_WAIT},
        {&no_address, 150, NODE_NETWORK_FAIL},
        {&not_ready, 149, NODE_NETWORK_IPDNS_WAIT},
        {&not_ready, 150, NODE_NETWORK_FAIL_WITH_IP_AND_DNS},
        {&bad, 0, NODE_NETWORK_FAIL_WITH_IP_AND_DNS},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (verifier_judge(cases[i].f, cases[i].elapsed_s * 1000, DURATION_MS) != cases[i].state)
            fail_msg("case %zu", i);
}

/* ---- stories ------------------------------------------------------------------------------- */

enum network { WORKS, TEMPORARY, BAD, NO_ADDRESS, MISSING };

struct world {
    struct clock_virtual clock;
    struct dpc_list list;
    struct verifier v;
    enum network network[8]; /* by the number in the port's name: p0 */
    struct buf tests;        /* "<second>:<key> " */
};

static void init(struct world *w)
{
    *w = (struct world){0};
    clock_virtual_init(&w->clock, (int64_t) 1793000000 * SECOND);
    dpc_list_init(&w->list);
    verifier_init(&w->v, &w->list, &w->clock.clock);
    verifier_set_times(&w->v, DURATION_MS, 300000, 600000);
}

static void done(struct world *w)
{
    dpc_list_done(&w->list);
    buf_done(&w->tests);
}

static int64_t second(const struct world *w)
{
    return w->clock.now_us / SECOND - 1793000000;
}

static void put(struct world *w, const char *key, int64_t time_s, int port)
{
    ARENA_AUTO a = arena_new();
    const struct dpc_defaults d = {.key = str_of(key), .priority_us = time_s * SECOND};
    struct dpc *dpc = NULL;
    const struct str text =
        arena_printf(a, "{\"Version\":1,\"Ports\":[{\"IfName\":\"p%d\",\"IsMgmt\":true}]}", port);
    assert_int_equal(dpc_read(json_parse_quick(a, text), &d, &dpc), 0);
    if (dpc_list_put(&w->list, dpc))
        verifier_restart_anew(&w->v);
}

static void test(struct world *w)
{
    const struct dpc *d = dpc_list_current(&w->list);
    assert_non_null(d);
    buf_printf(&w->tests, "%lld:%s ", (long long) second(w), d->key);
    const enum network n = w->network[d->ports[0].name[1] - '0'];
    const struct verifier_findings f = {.is_reachable = n == WORKS,
                                        .is_temporary = n == TEMPORARY,
                                        .n_missing = n == MISSING,
                                        .n_present = n != MISSING,
                                        .has_ip_and_dns = n != NO_ADDRESS && n != MISSING,
                                        .words = STR("as told")};
    verifier_take(&w->v, &f);
}

/* As the service does it: tests that are wanted, then the clock to what is due, until then. */
static void run(struct world *w, int64_t until_s)
{
    for (;;) {
        while (w->v.wants_test)
            test(w);
        const int64_t due_us = verifier_due_us(&w->v);
        const int64_t end_us = ((int64_t) 1793000000 + until_s) * SECOND;
        if (due_us == 0 || due_us > end_us) {
            w->clock.now_us = end_us;
            return;
        }
        w->clock.now_us = MAX(due_us, w->clock.now_us);
        verifier_wake(&w->v);
    }
}

static void assert_tests(struct world *w, const char *expected)
{
    assert_string_equal(w->tests.p ? w->tests.p : "", expected);
    buf_reset(&w->tests);
}

static const char *in_use(const struct world *w)
{
    const struct dpc *d = dpc_list_current(&w->list);
    return d ? d->key : "none";
}

TEST(one_that_works_is_tested_every_five_minutes)
{
    struct world w;
    init(&w);
    put(&w, "zedagent", 20, 0);
    run(&w, 1000);
    assert_tests(&w, "0:zedagent 300:zedagent 600:zedagent 900:zedagent ");
    assert_false(w.v.is_running);
    assert_true(w.v.works && dpc_was_working(w.list.items[0]));
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_SUCCESS);
    done(&w);
}

TEST(bad_new_one_falls_back_at_once_and_is_tried_again_after_ten_minutes)
{
    struct world w;
    init(&w);
    put(&w, "override", 10, 0);
    run(&w, 10);
    w.network[1] = BAD;
    put(&w, "zedagent", 20, 1);
    run(&w, 20);
    assert_tests(&w, "0:override 10:zedagent 10:override ");
    assert_string_equal(in_use(&w), "override");
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_FAIL_WITH_IP_AND_DNS);
    assert_string_equal(w.list.items[0]->results.error, "as told");
    run(&w, 620);
    assert_tests(&w, "310:override 610:zedagent 610:override ");
    w.network[1] = WORKS;
    run(&w, 1300);
    assert_tests(&w, "910:override 1210:zedagent ");
    assert_string_equal(in_use(&w), "zedagent");
    /* What it fell back to is no longer needed: a controller's has worked. */
    assert_int_equal(w.list.n_items, 1);
    done(&w);
}

TEST(without_an_address_it_waits_five_times_thirty_seconds)
{
    struct world w;
    init(&w);
    put(&w, "override", 10, 0);
    run(&w, 10);
    buf_reset(&w.tests);
    w.network[1] = NO_ADDRESS;
    put(&w, "zedagent", 20, 1);
    run(&w, 30);
    assert_int_equal(dpc_list_current(&w.list)->state, NODE_NETWORK_IPDNS_WAIT);
    assert_true(w.v.is_running);
    run(&w, 200);
    assert_tests(&w, "10:zedagent 40:zedagent 70:zedagent 100:zedagent 130:zedagent 160:zedagent "
                     "160:override ");
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_FAIL);
    done(&w);
}

TEST(without_its_interface_it_waits_twice_and_an_event_ends_the_wait)
{
    struct world w;
    init(&w);
    w.network[1] = MISSING;
    put(&w, "zedagent", 20, 1);
    run(&w, 10);
    w.network[1] = WORKS;
    verifier_hurry(&w.v);
    run(&w, 20);
    assert_tests(&w, "0:zedagent 10:zedagent ");
    done(&w);
    init(&w);
    w.network[1] = MISSING;
    put(&w, "zedagent", 20, 1);
    run(&w, 100);
    assert_tests(&w, "0:zedagent 30:zedagent 60:zedagent ");
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_FAIL);
    /* There is nothing else, so it stays in use. */
    assert_string_equal(in_use(&w), "zedagent");
    done(&w);
}

TEST(two_failures_in_a_row_are_a_reason_to_look_around)
{
    struct world w;
    init(&w);
    put(&w, "bootstrap", 10, 1);
    put(&w, "zedagent", 20, 0);
    run(&w, 10);
    buf_reset(&w.tests);
    /* One is an accident. */
    w.network[0] = BAD;
    run(&w, 310);
    assert_tests(&w, "300:zedagent ");
    assert_false(w.v.works);
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_SUCCESS);
    w.network[0] = WORKS;
    run(&w, 610);
    assert_true(w.v.works);
    w.network[0] = BAD;
    buf_reset(&w.tests);
    run(&w, 1210);
    assert_tests(&w, "900:zedagent 1200:zedagent 1200:zedagent 1200:bootstrap ");
    assert_string_equal(in_use(&w), "bootstrap");
    done(&w);
}

TEST(a_day_without_the_controller_costs_few_tests_and_ends_by_itself)
{
    struct world w;
    init(&w);
    put(&w, "zedagent", 20, 0);
    run(&w, 10);
    w.network[0] = BAD;
    run(&w, 86400);
    assert_string_equal(in_use(&w), "zedagent");
    size_t n = 0;
    for (size_t i = 0; i < w.tests.n; i++)
        n += w.tests.p[i] == ' ';
    /* Every five minutes one, and one more for each verification. */
    assert_in_range(n, 280, 600);
    w.network[0] = WORKS;
    run(&w, 86400 + 301);
    assert_true(w.v.works);
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_SUCCESS);
    done(&w);
}

TEST(temporary_failure_of_the_controller_counts_as_working)
{
    struct world w;
    init(&w);
    w.network[0] = TEMPORARY;
    put(&w, "override", 5, 1);
    put(&w, "zedagent", 20, 0);
    run(&w, 1000);
    assert_string_equal(in_use(&w), "zedagent");
    assert_tests(&w, "0:zedagent 300:zedagent 600:zedagent 900:zedagent ");
    assert_int_equal(w.list.items[0]->state, NODE_NETWORK_REMOTE_WAIT);
    assert_string_equal(w.list.items[0]->results.warning, "as told");
    assert_true(w.v.works);
    done(&w);
}

TEST(one_that_comes_during_a_wait_is_tested_first)
{
    struct world w;
    init(&w);
    w.network[0] = NO_ADDRESS;
    put(&w, "override", 10, 0);
    run(&w, 45);
    put(&w, "zedagent", 20, 1);
    run(&w, 100);
    assert_tests(&w, "0:override 30:override 45:zedagent ");
    assert_string_equal(in_use(&w), "zedagent");
    done(&w);
}

TEST(made_by_hand_is_never_fallen_below)
{
    struct world w;
    init(&w);
    put(&w, "override", 10, 0);
    run(&w, 10);
    w.network[1] = BAD;
    put(&w, "manual", 5, 1);
    run(&w, 20);
    assert_string_equal(in_use(&w), "manual");
    w.network[2] = BAD;
    put(&w, "zedagent", 30, 2);
    run(&w, 30);
    /* The controller's is above it, and what failed a moment ago is left alone. */
    assert_string_equal(in_use(&w), "manual");
    assert_tests(&w, "0:override 10:manual 20:zedagent ");
    run(&w, 2000);
    assert_null(strstr(w.tests.p, "override"));
    done(&w);
}

TEST(radio_silence_stops_verification)
{
    struct world w;
    init(&w);
    put(&w, "zedagent", 20, 0);
    run(&w, 10);
    buf_reset(&w.tests);
    w.v.is_silent = true;
    w.network[0] = BAD;
    verifier_restart(&w.v);
    run(&w, 3000);
    assert_tests(&w, "");
    w.v.is_silent = false;
    w.network[0] = WORKS;
    verifier_restart(&w.v);
    run(&w, 3010);
    assert_tests(&w, "3000:zedagent ");
    done(&w);
}

TEST(without_the_better_timer_it_stays_where_it_works)
{
    struct world w;
    init(&w);
    verifier_set_times(&w.v, DURATION_MS, 300000, 0);
    w.network[1] = BAD;
    put(&w, "override", 10, 0);
    put(&w, "zedagent", 20, 1);
    run(&w, 1000);
    assert_tests(&w, "0:zedagent 0:override 300:override 600:override 900:override ");
    done(&w);
}

/* Whatever fails when: the machine never stops, and ends on the first that works. */
TEST(whatever_happens_it_ends_on_the_best_that_works)
{
    static const char *const keys[] = {"zedagent", "override", "usb", "lastresort"};
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct world w;
        unsigned drawn = seed * 2654435761u;
        init(&w);
        w.v.keeps_last_resort = true;
        int64_t at = 0;
        for (int step = 0; step < 30; step++) {
            drawn = drawn * 1664525u + 1013904223u;
            const unsigned pick = drawn >> 8;
            w.network[pick % 4] = (enum network)(pick / 4 % 5);
            if (pick / 20 % 3 == 0)
                put(&w, keys[pick / 60 % 4], pick / 60 % 4 == 3 ? 0 : step, (int) (pick / 240 % 4));
            if (pick / 960 % 3 == 0)
                verifier_hurry(&w.v);
            if (pick / 2880 % 5 == 0)
                verifier_restart(&w.v);
            at += pick / 14400 % 400;
            run(&w, at);
        }
        for (size_t i = 0; i < 4; i++)
            w.network[i] = WORKS;
        put(&w, "zedagent", 1000, 0);
        run(&w, at + 5000);
        if (strcmp(in_use(&w), "zedagent") != 0 || w.list.current != 0 || !w.v.works)
            fail_msg("seed %u: %s", seed, w.tests.p);
        done(&w);
    }
}
