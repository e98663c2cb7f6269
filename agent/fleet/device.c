/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "box/box.h"
#include "fleet/dice.h"
#include "fleet/files.h"
#include "fleet/ground.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "runtime/sim.h"

/* From power on to the first service, in the device's time. */
#define BOOT_MIN_MS 20000
#define BOOT_MAX_MS 40000
#define MINUTE_MS 60000

/*   waiting -> on -> restarting -> on ...
 *               '--> off
 * A restart comes from --reboot-every, which is a power cut, or because a service asked for it. */
enum power { POWER_WAITING, POWER_ON, POWER_RESTARTING, POWER_OFF, POWER_BROKEN };

/* The wall clock of a device whose battery is empty. */
struct wrong_clock {
    struct clock clock;
    const struct clock *right;
    int64_t error_us;
};

struct fleet_device {
    const struct fleet_ground *ground;
    size_t number;
    struct fleet_dice dice;
    struct wrong_clock clock;
    enum power power;
    bool stays_off;
    struct machine *machine;
    struct box *box;
    struct loop_timer *switch_timer; /* the next change of power */
    struct loop_timer *log_timer;
    uint64_t n_log_lines;         /* ever, for their numbers */
    struct fleet_population past; /* what earlier boxes have counted, and what we count here */
};

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t wrong_wall(const struct clock *c)
{
    const struct wrong_clock *w = CONTAINER_OF(c, struct wrong_clock, clock);
    return w->right->wall_us(w->right) + w->error_us;
}

static int64_t right_monotonic(const struct clock *c)
{
    const struct wrong_clock *w = CONTAINER_OF(c, struct wrong_clock, clock);
    return w->right->monotonic_us(w->right);
}

static void set_clock(struct fleet_device *d)
{
    const struct fleet_settings *s = d->ground->settings;
    d->clock =
        (struct wrong_clock){.clock = {wrong_wall, right_monotonic}, .right = d->ground->clock};
    if (fleet_dice_below(&d->dice, 100) >= s->bad_clock_percent || s->clock_error_ms == 0)
        return;
    const int64_t most_us = s->clock_error_ms * 1000;
    d->clock.error_us = (int64_t) fleet_dice_below(&d->dice, 2 * (uint64_t) most_us) - most_us;
}

static const struct clock *clock_of(const struct fleet_device *d)
{
    return d->clock.error_us ? &d->clock.clock : d->ground->clock;
}

/* ---- applications ---------------------------------------------------------------------------- */

static int make_runtime(void *arg, const struct runtime_events *events, struct runtime **ret)
{
    struct fleet_device *d = arg;
    const struct fleet_settings *s = d->ground->settings;
    struct runtime_sim_options o = runtime_sim_defaults;
    o.seed = fleet_dice_next(&d->dice);
    o.crashes_permille = s->app_crashes_permille;
    o.crash_span = (struct runtime_sim_span){0, s->app_crash_after_ms};
    o.log_interval_ms = s->app_log_lines_per_minute ? MINUTE_MS / s->app_log_lines_per_minute : 0;
    for (size_t i = 0; s->app_step_ms > 0 && i < RUNTIME_SIM_STATES; i++)
        o.spans[i] = (struct runtime_sim_span){s->app_step_ms / 2, s->app_step_ms * 3 / 2};
    *ret = runtime_sim_new(d->ground->loop, clock_of(d), &o, events);
    return 0;
}

/* ---- log lines ------------------------------------------------------------------------------- */

static void plan_log_line(struct fleet_device *d)
{
    /* Twice the mean at most: lines of different devices do not come together. */
    const int64_t mean_ms = MINUTE_MS / d->ground->settings->log_lines_per_minute;
    loop_timer_start(d->log_timer, (int64_t) fleet_dice_below(&d->dice, 2 * (uint64_t) mean_ms + 1),
                     /* repeat_ms= */ 0);
}

static void on_log_line(void *arg)
{
    struct fleet_device *d = arg;
    char text[96];
    (void) snprintf(text, sizeof(text), "seth-fleet: line %llu of device %zu",
                    (unsigned long long) d->n_log_lines, d->number);
    const struct clock *clock = clock_of(d);
    const struct collector_line line = {.source = STR("fleet"),
                                        .severity = STR("info"),
                                        .content = str_of(text),
                                        .wall_us = clock->wall_us(clock)};
    d->n_log_lines++;
    if (collector_add(box_collector(d->box), &line) < 0)
        d->past.n_log_lines_lost++;
    else
        d->past.n_log_lines++;
    plan_log_line(d);
}

/* ---- power ----------------------------------------------------------------------------------- */

static struct str serial_of(struct arena *a, const struct fleet_device *d)
{
    const struct fleet_settings *s = d->ground->settings;
    return arena_printf(a, "%.*s%lld", STR_ARG(s->serial_prefix),
                        (long long) (s->first_serial + (int64_t) d->number));
}

/* Each device has one of the 16 million addresses of loopback, beginning at 127.1.0.1. */
static struct str address_of(struct arena *a, const struct fleet_device *d)
{
    const size_t n = d->number;
    return d->ground->address.n > 0
               ? d->ground->address
               : arena_printf(a, "127.%zu.%zu.%zu", 1 + n / 62500, n / 250 % 250, 1 + n % 250);
}

static void on_restart_wanted(void *arg, enum machine_restart how, struct str reason)
{
    struct fleet_device *d = arg;
    (void) reason;
    d->stays_off = how != MACHINE_REBOOT;
    /* Not now: a service of the box is asking. */
    loop_timer_start(d->switch_timer, 0, /* repeat_ms= */ 0);
}

static void plan_power_cut(struct fleet_device *d)
{
    const uint64_t every_ms = (uint64_t) d->ground->settings->reboot_every_ms;
    if (every_ms > 0)
        loop_timer_start(d->switch_timer,
                         (int64_t) (every_ms / 2 + fleet_dice_below(&d->dice, every_ms + 1)),
                         /* repeat_ms= */ 0);
}

static struct machine *make_machine(struct arena *a, struct fleet_device *d)
{
    const struct fleet_ground *g = d->ground;
    const struct machine_sim_options o = {.loop = g->loop,
                                          .clock = clock_of(d),
                                          .seed = g->settings->seed + d->number,
                                          .serial = serial_of(a, d),
                                          .address = address_of(a, d),
                                          .dns_servers = g->dns_servers,
                                          .n_dns_servers = g->n_dns_servers,
                                          .on_restart = on_restart_wanted,
                                          .arg = d};
    return machine_sim_new(&o);
}

static int make_box(struct arena *a, struct fleet_device *d, char **ret_error)
{
    const struct fleet_ground *g = d->ground;
    const struct str serial = serial_of(a, d);
    const char *const parts[] = {
        [NODE_CONFIG] = "config", [NODE_PERSIST] = "persist", [NODE_RUN] = "run"};
    struct box_options o = {.node = {.loop = g->loop,
                                     .clock = clock_of(d),
                                     .wire = g->wire,
                                     .machine = d->machine,
                                     .trust = g->trust,
                                     .is_simulated = true},
                            .make_runtime = make_runtime,
                            .make_arg = d,
                            .services = BOX_ALL & ~(1U << BOX_DIAG),
                            .starts_with_machine = true};
    for (size_t i = 0; i < N_ELEMENTS(parts); i++)
        o.node.directories[i] = arena_printf(a, "%s/%.*s/%s", g->root, STR_ARG(serial), parts[i]).p;
    const int r = fleet_files_of_device(a, g->root, serial);
    return r < 0 ? r : box_new(&o, &d->box, ret_error);
}

static void power_on(struct fleet_device *d)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    d->machine = make_machine(a, d);
    const int r = make_box(a, d, &error);
    if (r < 0) {
        log_error("a device cannot start", LOG_STR("device", serial_of(a, d)),
                  LOG_TEXT("why", error ? error : log_errno_text(r)));
        mem_free(error);
        d->power = POWER_BROKEN;
        return;
    }
    d->power = POWER_ON;
    plan_power_cut(d);
    if (d->ground->settings->log_lines_per_minute > 0)
        plan_log_line(d);
}

/* Of a box: what only ever grows. */
static struct fleet_population done_by(const struct box_counts *c)
{
    return (struct fleet_population){.info_delivered = c->report.delivered,
                                     .info_dropped = c->report.dropped,
                                     .metrics_sent = c->report.metrics_sent,
                                     .metrics_lost = c->report.metrics_lost,
                                     .log_files_sent = c->logs.files_sent,
                                     .log_bytes_sent = c->logs.bytes_sent,
                                     .log_failures = c->logs.failures};
}

/* What is in memory is gone, and so is what was in /run. */
static void power_off(struct fleet_device *d)
{
    ARENA_AUTO a = arena_new();
    loop_timer_stop(d->log_timer);
    const struct box_counts counts = box_counts(d->box);
    const struct fleet_population done = done_by(&counts);
    fleet_population_merge(&d->past, &done);
    box_free(TAKE(d->box));
    machine_free(TAKE(d->machine));
    const struct str serial = serial_of(a, d);
    (void) fleet_files_remove(arena_printf(a, "%s/%.*s/run", d->ground->root, STR_ARG(serial)).p);
}

static void on_switch(void *arg)
{
    struct fleet_device *d = arg;
    if (d->power == POWER_RESTARTING) {
        power_on(d);
        return;
    }
    power_off(d);
    d->power = d->stays_off ? POWER_OFF : POWER_RESTARTING;
    d->past.n_restarts += !d->stays_off;
    if (!d->stays_off)
        loop_timer_start(d->switch_timer,
                         BOOT_MIN_MS +
                             (int64_t) fleet_dice_below(&d->dice, BOOT_MAX_MS - BOOT_MIN_MS),
                         /* repeat_ms= */ 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct fleet_device *fleet_device_new(const struct fleet_ground *g, size_t number)
{
    struct fleet_device *d = NEW(struct fleet_device);
    d->ground = g;
    d->number = number;
    fleet_dice_init(&d->dice, g->settings->seed * 0x100000001b3 + number);
    set_clock(d);
    d->switch_timer = loop_timer_new(g->loop, on_switch, d);
    d->log_timer = loop_timer_new(g->loop, on_log_line, d);
    return d;
}

void fleet_device_start(struct fleet_device *d)
{
    power_on(d);
}

void fleet_device_free(struct fleet_device *d)
{
    if (!d)
        return;
    box_free(d->box);
    machine_free(d->machine);
    loop_timer_free(d->switch_timer);
    loop_timer_free(d->log_timer);
    mem_free(d);
}

static enum fleet_state state_of(const struct fleet_device *d, const struct box_counts *c)
{
    switch (d->power) {
    case POWER_WAITING:
        return FLEET_WAITING;
    case POWER_BROKEN:
        return FLEET_BROKEN;
    case POWER_RESTARTING:
    case POWER_OFF:
        return FLEET_OFF;
    case POWER_ON:
        break;
    }
    if (!c->is_onboarded)
        return FLEET_STARTING;
    if (!c->is_configured)
        return FLEET_ONBOARDED;
    return c->apps.applications > 0 && c->apps.running == c->apps.applications ? FLEET_RUNNING
                                                                               : FLEET_CONFIGURED;
}

void fleet_device_count(const struct fleet_device *d, struct fleet_population *p)
{
    const struct box_counts c = d->box ? box_counts(d->box) : (struct box_counts){0};
    struct fleet_population now = done_by(&c);
    now.n_applications = c.apps.applications;
    now.n_running = c.apps.running;
    now.n_failed = c.apps.failed;
    now.info_waiting = c.report.waiting;
    now.log_files_waiting = c.logs.files_waiting;
    fleet_population_merge(p, &d->past);
    fleet_population_merge(p, &now);
    p->states[state_of(d, &c)]++;
}
