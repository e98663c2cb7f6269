/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sim.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "runtime/agenda.h"
#include "runtime/runtime_internal.h"

#define QUARTERS 4 /* of a download, as its progress is reported */

const struct runtime_sim_options runtime_sim_defaults = {
    .seed = 1,
    .spans =
        {
            [RUNTIME_INVALID] = {50, 200}, /* removing */
            [RUNTIME_INITIAL] = {10, 50},
            [RUNTIME_RESOLVING_TAG] = {200, 800},
            [RUNTIME_RESOLVED_TAG] = {10, 50},
            [RUNTIME_DOWNLOAD_STARTED] = {5000, 60000},
            [RUNTIME_DOWNLOADED] = {10, 50},
            [RUNTIME_VERIFYING] = {500, 3000},
            [RUNTIME_VERIFIED] = {10, 50},
            [RUNTIME_LOADING] = {500, 3000},
            [RUNTIME_CREATING_VOLUME] = {500, 5000},
            [RUNTIME_BOOTING] = {1000, 5000},
            [RUNTIME_HALTING] = {500, 10000},
        },
    .crash_span = {10000, 3600000},
    .memory_bytes = (int64_t) 64 << 20,
    .cpu_permille = 20,
};

struct sim {
    struct runtime *runtime;
    struct loop *loop;
    struct loop_timer *timer;
    const struct clock *clock;
    struct runtime_sim_options options;
    struct agenda agenda;
};

/* What is next for one object. */
struct plan {
    struct agenda_item item;
    struct runtime_object *object;
    uint64_t n_draws; /* numbers drawn for it, so that each is another */
    int quarters;
    int64_t started_us, crash_us; /* crash_us 0: never */
    uint64_t n_lines;
};

/* ---- chance -------------------------------------------------------------------------------- */

/* splitmix64; names are hashed here as map_hash() differs from process to process. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static uint64_t draw(const struct sim *s, struct plan *p)
{
    uint64_t x = mix(s->options.seed ^ (uint64_t) p->object->kind << 56);
    for (size_t i = 0; i < p->object->id.n; i++)
        x = mix(x ^ (unsigned char) p->object->id.p[i]);
    return mix(x ^ p->n_draws++);
}

static bool happens(const struct sim *s, struct plan *p, int permille)
{
    return (int64_t) (draw(s, p) % 1000) < permille;
}

static int64_t draw_us(const struct sim *s, struct plan *p, struct runtime_sim_span span)
{
    uint64_t width = (uint64_t) MAX(span.max_ms - span.min_ms, 0) + 1;
    return (span.min_ms + (int64_t) (draw(s, p) % width)) * 1000;
}

/* ---- the agenda ---------------------------------------------------------------------------- */

static int64_t now_us(const struct sim *s)
{
    return s->clock->monotonic_us(s->clock);
}

static void arm(struct sim *s)
{
    const struct agenda_item *first = agenda_first(&s->agenda);
    if (!s->loop)
        return;
    if (!first)
        loop_timer_stop(s->timer);
    else
        loop_timer_start(s->timer, (MAX(first->due_us - now_us(s), 0) + 999) / 1000, 0);
}

static void plan_at(struct sim *s, struct plan *p, int64_t due_us)
{
    bool was_first = agenda_first(&s->agenda) == &p->item;
    agenda_put(&s->agenda, &p->item, due_us);
    if (was_first || agenda_first(&s->agenda) == &p->item)
        arm(s);
}

/* After the time its state takes. */
static void plan_state(struct sim *s, struct plan *p)
{
    int64_t us = draw_us(s, p, s->options.spans[p->object->state]);
    plan_at(s, p, now_us(s) + (p->object->state == RUNTIME_DOWNLOAD_STARTED ? us / QUARTERS : us));
}

static struct plan *plan_of(struct runtime_object *o)
{
    if (!o->of_machine) {
        struct plan *p = NEW(struct plan);
        p->object = o;
        o->of_machine = p;
    }
    return o->of_machine;
}

/* ---- advancing ----------------------------------------------------------------------------- */

static void advance_content(struct sim *s, struct plan *p)
{
    struct runtime_object *o = p->object;
    if (o->state == RUNTIME_LOADING) {
        runtime_step_done(o, NULL);
        return;
    }
    if (o->state == RUNTIME_DOWNLOAD_STARTED) {
        if (p->quarters == 1 && happens(s, p, s->options.fetch_fails_permille)) {
            runtime_step_done(o, "simulated fault: the download broke off");
            return;
        }
        runtime_progress(o, ++p->quarters * 100 / QUARTERS);
    }
    if (o->state != RUNTIME_DOWNLOAD_STARTED || p->quarters == QUARTERS)
        runtime_move(o, runtime_content_next(o));
    plan_state(s, p);
}

static void plan_running(struct sim *s, struct plan *p)
{
    int64_t line_us =
        s->options.log_interval_ms ? now_us(s) + s->options.log_interval_ms * 1000 : INT64_MAX;
    int64_t due_us = p->crash_us ? MIN(p->crash_us, line_us) : line_us;
    if (due_us != INT64_MAX)
        plan_at(s, p, due_us);
}

static void booted(struct sim *s, struct plan *p)
{
    struct runtime_object *o = p->object;
    if (happens(s, p, s->options.boot_fails_permille)) {
        runtime_step_done(o, "simulated fault: it did not boot");
        return;
    }
    p->started_us = now_us(s);
    p->crash_us = 0;
    if (happens(s, p, s->options.crashes_permille))
        p->crash_us = p->started_us + draw_us(s, p, s->options.crash_span);
    plan_running(s, p);
    /* Last: whoever hears of it may stop it at once. */
    runtime_step_done(o, NULL);
}

static void go_on_running(struct sim *s, struct plan *p)
{
    if (p->crash_us && now_us(s) >= p->crash_us) {
        runtime_exited(p->object, 1, "simulated fault: it ended by itself");
        return;
    }
    BUF_AUTO line = {0};
    buf_printf(&line, "sim: line %llu of a simulated application",
               (unsigned long long) ++p->n_lines);
    plan_running(s, p);
    runtime_log(p->object, RUNTIME_STDOUT, buf_str(&line));
}

static void advance(struct sim *s, struct plan *p)
{
    struct runtime_object *o = p->object;
    if (o->state == RUNTIME_INVALID)
        runtime_step_done(o, NULL);
    else if (o->kind == RUNTIME_CONTENT)
        advance_content(s, p);
    else if (o->kind == RUNTIME_VOLUME)
        runtime_step_done(o, happens(s, p, s->options.create_fails_permille)
                                 ? "simulated fault: no room for the volume"
                                 : NULL);
    else if (o->state == RUNTIME_BOOTING)
        booted(s, p);
    else if (o->state == RUNTIME_RUNNING)
        go_on_running(s, p);
    else if (o->state == RUNTIME_HALTING)
        runtime_exited(o, o->wants_kill ? 128 + 9 : 0, NULL);
}

static int64_t turn(struct sim *s)
{
    const struct agenda_item *first;
    while ((first = agenda_first(&s->agenda)) && first->due_us <= now_us(s)) {
        struct plan *p = CONTAINER_OF(first, struct plan, item);
        agenda_remove(&s->agenda, &p->item);
        advance(s, p);
    }
    arm(s);
    return first ? first->due_us : -1;
}

static void on_timer(void *arg)
{
    (void) turn(arg);
}

/* ---- the table ----------------------------------------------------------------------------- */

static void sim_fetch(void *machine, struct runtime_object *content)
{
    plan_of(content)->quarters = 0;
    plan_state(machine, plan_of(content));
}

static void sim_create(void *machine, struct runtime_object *volume, struct runtime_object *content)
{
    (void) content;
    plan_state(machine, plan_of(volume));
}

static void sim_step(void *machine, struct runtime_object *o)
{
    plan_state(machine, plan_of(o));
}

static void sim_halt(void *machine, struct runtime_object *instance, bool at_once)
{
    if (at_once)
        plan_at(machine, plan_of(instance), now_us(machine));
    else
        plan_state(machine, plan_of(instance));
}

static int sim_metrics(void *machine, struct runtime_object *instance, struct runtime_metrics *ret)
{
    const struct sim *s = machine;
    int64_t ran_us = now_us(s) - plan_of(instance)->started_us;
    *ret = (struct runtime_metrics){
        .cpu_ns = ran_us * s->options.cpu_permille,
        .memory_bytes = s->options.memory_bytes,
        .memory_peak_bytes = s->options.memory_bytes,
        .memory_max_bytes = instance->instance.memory_max_bytes,
        .n_processes = 0,
        .is_simulated = true,
        .is_whole = true,
    };
    return 0;
}

static void sim_forget(void *machine, struct runtime_object *o)
{
    struct sim *s = machine;
    struct plan *p = o->of_machine;
    if (p)
        agenda_remove(&s->agenda, &p->item);
    mem_free(p);
}

static void sim_free(void *machine)
{
    struct sim *s = machine;
    loop_timer_free(s->timer);
    agenda_done(&s->agenda);
    mem_free(s);
}

static const struct runtime_machine sim_functions = {
    .name = "sim",
    .fetch = sim_fetch,
    .create = sim_create,
    .boot = sim_step,
    .halt = sim_halt,
    .remove = sim_step,
    .metrics = sim_metrics,
    .forget = sim_forget,
    .free = sim_free,
};

struct runtime *runtime_sim_new(struct loop *loop, const struct clock *clock,
                                const struct runtime_sim_options *options,
                                const struct runtime_events *events)
{
    struct sim *s = NEW(struct sim);
    s->loop = loop;
    s->clock = clock;
    s->options = *options;
    if (loop)
        s->timer = loop_timer_new(loop, on_timer, s);
    s->runtime = runtime_new(&sim_functions, s, clock, events);
    return s->runtime;
}

int64_t runtime_sim_turn(struct runtime *r)
{
    return turn(r->machine);
}
