/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/wire.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "test.h"

/* A wire without a network: each exchange is answered in the next turn. */
struct uplink_transfer {
    struct fake *fake;
    struct loop_timer *timer;
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

struct uplink_script {
    int nothing;
};

struct fake {
    struct uplink_wire wire;
    struct loop *loop;
    struct uplink_reply reply;
    bool is_mute;
    size_t n_started, n_cancelled, n_scripts, n_scripts_cancelled;
    struct uplink_transfer *last;
    struct uplink_script script;
    void (*on_script)(void *arg, struct str answer);
    void *script_arg;
};

static void free_fake_transfer(struct uplink_transfer *t)
{
    loop_timer_free(t->timer);
    mem_free(t);
}

static void on_fake_answer(void *arg)
{
    struct uplink_transfer *t = arg;
    t->on_done(t->arg, &t->fake->reply);
    free_fake_transfer(t);
}

static struct uplink_transfer *fake_start(struct uplink_wire *w, const struct uplink_exchange *x,
                                          void (*on_done)(void *arg, const struct uplink_reply *r),
                                          void *arg)
{
    struct fake *f = CONTAINER_OF(w, struct fake, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    (void) x;
    *t = (struct uplink_transfer){.fake = f, .on_done = on_done, .arg = arg};
    t->timer = loop_timer_new(f->loop, on_fake_answer, t);
    if (!f->is_mute)
        loop_timer_start(t->timer, 0, 0);
    f->n_started++;
    f->last = t;
    return t;
}

static void fake_cancel(struct uplink_transfer *t)
{
    t->fake->n_cancelled++;
    free_fake_transfer(t);
}

static struct uplink_script *fake_ask(struct uplink_wire *w, const struct uplink_port *port,
                                      struct str source, struct str url,
                                      void (*on_answer)(void *arg, struct str answer), void *arg)
{
    struct fake *f = CONTAINER_OF(w, struct fake, wire);
    (void) port;
    (void) source;
    (void) url;
    f->n_scripts++;
    f->on_script = on_answer;
    f->script_arg = arg;
    return &f->script;
}

static void fake_cancel_script(struct uplink_script *s)
{
    CONTAINER_OF(s, struct fake, script)->n_scripts_cancelled++;
}

static const struct uplink_wire_ops fake_ops = {fake_start, fake_cancel, fake_ask,
                                                fake_cancel_script};

struct world {
    struct fake fake;
    struct uplink_wire *wire;
    struct fleet_tally tallies[2], *tally;
    struct fleet_timeline timeline;
    size_t n_awaited, n_answers, n_timeouts;
    struct str script_answer;
};

static struct world *begin_with(const struct fleet_wire_faults *faults, size_t max_under_way)
{
    struct world *w = NEW(struct world);
    w->fake.wire.ops = &fake_ops;
    w->fake.loop = loop_new();
    w->fake.reply.http_status = 200;
    w->fake.reply.body = STR("12345");
    w->tally = &w->tallies[0];
    const struct fleet_wire_options o = {.loop = w->fake.loop,
                                         .max_under_way = max_under_way,
                                         .inner = &w->fake.wire,
                                         .faults = *faults,
                                         .begin_us = clock_system.monotonic_us(&clock_system),
                                         .timeline = &w->timeline,
                                         .tally = &w->tally};
    w->wire = fleet_wire_new(&o);
    return w;
}

static struct world *begin(const struct fleet_wire_faults *faults)
{
    return begin_with(faults, /* max_under_way= */ 0);
}

static void end(struct world *w)
{
    loop_settle(w->fake.loop);
    fleet_wire_free(w->wire);
    loop_free(w->fake.loop);
    fleet_timeline_done(&w->timeline);
    mem_free(w);
}

static void on_done(void *arg, const struct uplink_reply *r)
{
    struct world *w = arg;
    w->n_answers += r->fault == UPLINK_FAULT_NONE;
    w->n_timeouts += r->fault == UPLINK_FAULT_TIMEOUT;
    if (--w->n_awaited == 0)
        loop_stop(w->fake.loop);
}

static struct uplink_transfer *send_one(struct world *w, const char *url)
{
    const struct uplink_exchange x = {
        .url = str_of(url), .is_post = true, .body = STR("abc"), .timeout_ms = 30000};
    w->n_awaited++;
    return w->wire->ops->start(w->wire, &x, on_done, w);
}

#define CONFIG "https://zed.example/api/v2/edgedevice/config"
#define INFO "https://zed.example/api/v2/edgedevice/info"

TEST(what_passes_is_counted_by_endpoint_and_second)
{
    struct world *w = begin(&(struct fleet_wire_faults){0});
    (void) send_one(w, CONFIG);
    (void) send_one(w, CONFIG);
    (void) send_one(w, INFO);
    loop_run(w->fake.loop);
    const struct fleet_exchanges *config = &w->tally->endpoints[FLEET_CONFIG];
    assert_int_equal(w->n_answers, 3);
    assert_int_equal(config->n_started, 2);
    assert_int_equal(config->n_answered, 2);
    assert_int_equal(config->bytes_sent, 6);
    assert_int_equal(config->bytes_received, 10);
    assert_int_equal(config->latency.n, 2);
    assert_int_equal(w->tally->endpoints[FLEET_INFO].n_answered, 1);
    size_t n_started = 0, n_answered = 0;
    for (size_t i = 0; i < w->timeline.n; i++) {
        n_started += w->timeline.seconds[i].n_started;
        n_answered += w->timeline.seconds[i].n_answered;
    }
    assert_int_equal(n_started, 3);
    assert_int_equal(n_answered, 3);
    end(w);
}

TEST(the_owner_may_begin_another_tally)
{
    struct world *w = begin(&(struct fleet_wire_faults){0});
    (void) send_one(w, CONFIG);
    w->tally = &w->tallies[1];
    loop_run(w->fake.loop);
    assert_int_equal(w->tallies[0].endpoints[FLEET_CONFIG].n_started, 1);
    assert_int_equal(w->tallies[0].endpoints[FLEET_CONFIG].n_answered, 0);
    assert_int_equal(w->tallies[1].endpoints[FLEET_CONFIG].n_answered, 1);
    end(w);
}

TEST(failures_are_told_and_counted)
{
    struct world *w = begin(&(struct fleet_wire_faults){0});
    w->fake.reply = (struct uplink_reply){.fault = UPLINK_FAULT_REFUSED, .error = STR("refused")};
    (void) send_one(w, CONFIG);
    loop_run(w->fake.loop);
    assert_int_equal(w->n_answers, 0);
    assert_int_equal(w->tally->endpoints[FLEET_CONFIG].n_failed, 1);
    assert_int_equal(w->tally->faults[UPLINK_FAULT_REFUSED], 1);
    assert_int_equal(w->timeline.seconds[w->timeline.n - 1].n_failed, 1);
    end(w);
}

/* Half the requests never leave, the answers of the others never arrive; none of them is an error
 * of the controller. */
TEST(what_is_lost_ends_when_its_time_is_over)
{
    struct world *w = begin(&(struct fleet_wire_faults){.drop_percent = 100});
    loop_set_speed(w->fake.loop, 1000);
    for (int i = 0; i < 10; i++)
        (void) send_one(w, CONFIG);
    const int64_t before_ms = loop_now_ms(w->fake.loop);
    loop_run(w->fake.loop);
    assert_true(loop_now_ms(w->fake.loop) - before_ms >= 29000);
    const struct fleet_exchanges *config = &w->tally->endpoints[FLEET_CONFIG];
    assert_int_equal(w->n_timeouts, 10);
    assert_int_equal(w->fake.n_started, 5);
    assert_int_equal(config->n_unheard, 10);
    assert_int_equal(config->n_answered, 5);
    assert_int_equal(config->n_failed, 0);
    end(w);
}

TEST(a_share_is_lost_and_the_same_one_for_the_same_seed)
{
    size_t n_lost[2];
    for (int i = 0; i < 2; i++) {
        struct world *w = begin(&(struct fleet_wire_faults){.drop_percent = 20, .seed = 7});
        loop_set_speed(w->fake.loop, 10000);
        for (int k = 0; k < 1000; k++)
            (void) send_one(w, CONFIG);
        loop_run(w->fake.loop);
        n_lost[i] = w->n_timeouts;
        assert_int_equal(w->n_answers + w->n_timeouts, 1000);
        end(w);
    }
    assert_int_equal(n_lost[0], n_lost[1]);
    assert_in_range(n_lost[0], 150, 250);
}

TEST(slow_requests_are_held_back_and_not_measured_so)
{
    struct world *w = begin(&(struct fleet_wire_faults){.slow_ms = 30});
    const int64_t before_us = clock_system.monotonic_us(&clock_system);
    (void) send_one(w, CONFIG);
    assert_int_equal(w->fake.n_started, 0);
    loop_run(w->fake.loop);
    assert_true(clock_system.monotonic_us(&clock_system) - before_us >= 29000);
    assert_int_equal(w->tally->n_delayed, 1);
    assert_int_equal(w->tally->endpoints[FLEET_CONFIG].n_answered, 1);
    assert_true(w->tally->endpoints[FLEET_CONFIG].latency.max_us < 29000);
    end(w);
}

TEST(cancelling_ends_whatever_is_under_way)
{
    struct world *w = begin(&(struct fleet_wire_faults){0});
    w->fake.is_mute = true;
    w->wire->ops->cancel(send_one(w, CONFIG));
    assert_int_equal(w->fake.n_cancelled, 1);
    end(w);
    w = begin(&(struct fleet_wire_faults){.slow_ms = 60000});
    w->wire->ops->cancel(send_one(w, CONFIG));
    assert_int_equal(w->fake.n_started, 0);
    end(w);
    w = begin(&(struct fleet_wire_faults){.drop_percent = 100});
    w->fake.is_mute = true;
    w->wire->ops->cancel(send_one(w, CONFIG));
    w->wire->ops->cancel(send_one(w, CONFIG));
    assert_int_equal(w->fake.n_started, w->fake.n_cancelled);
    assert_int_equal(w->n_answers + w->n_timeouts, 0);
    end(w);
}

TEST(only_so_many_are_under_way_and_the_rest_wait_in_order)
{
    struct world *w = begin_with(&(struct fleet_wire_faults){0}, 3);
    struct uplink_transfer *last = NULL;
    for (int i = 0; i < 10; i++)
        last = send_one(w, CONFIG);
    assert_int_equal(w->fake.n_started, 3);
    w->wire->ops->cancel(last); /* it was still waiting */
    w->n_awaited--;
    loop_run(w->fake.loop);
    assert_int_equal(w->n_answers, 9);
    assert_int_equal(w->fake.n_started, 9);
    assert_int_equal(w->fake.n_cancelled, 0);
    end(w);
}

TEST(whoever_is_cancelled_makes_room)
{
    struct world *w = begin_with(&(struct fleet_wire_faults){0}, 1);
    w->fake.is_mute = true;
    struct uplink_transfer *stuck = send_one(w, CONFIG);
    (void) send_one(w, INFO);
    assert_int_equal(w->fake.n_started, 1);
    w->wire->ops->cancel(stuck);
    w->n_awaited--;
    w->fake.is_mute = false;
    loop_run(w->fake.loop);
    assert_int_equal(w->tally->endpoints[FLEET_INFO].n_answered, 1);
    end(w);
}

static void on_script(void *arg, struct str answer)
{
    ((struct world *) arg)->script_answer = answer;
}

TEST(scripts_pass_through)
{
    struct world *w = begin(&(struct fleet_wire_faults){.drop_percent = 100});
    const struct uplink_wire_ops *ops = w->wire->ops;
    (void) ops->ask_script(w->wire, NULL, STR_NONE, STR(CONFIG), on_script, w);
    w->fake.on_script(w->fake.script_arg, STR("DIRECT"));
    assert_str(w->script_answer, "DIRECT");
    ops->cancel_script(ops->ask_script(w->wire, NULL, STR_NONE, STR(CONFIG), on_script, w));
    assert_int_equal(w->fake.n_scripts, 2);
    assert_int_equal(w->fake.n_scripts_cancelled, 1);
    end(w);
}
