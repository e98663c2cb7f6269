/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/shard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "controllerconn/tls.h"
#include "controllerconn/wire.h"
#include "fleet/device.h"
#include "fleet/ground.h"
#include "fleet/wire.h"
#include "loop/loop.h"

/* However late the ramp is, the devices that run already must be heard in between. */
#define MAX_STARTS_PER_TURN 8

struct fleet_shard {
    struct fleet_shard_options o;
    pthread_t thread;
    struct loop *loop;
    struct clock_scaled clock;
    struct fleet_ground ground;
    struct uplink_wire *real_wire;
    struct fleet_device **devices;
    size_t n_devices, n_started;
    struct loop_timer *ramp;
    struct fleet_tally *tally; /* where the wire counts: one of these */
    struct fleet_tally tallies[FLEET_PHASES];
    struct fleet_timeline timeline;
    struct fleet_sample sample;
    /* From the other thread; the latest counts. */
    _Atomic double wanted_speed;
    atomic_int wanted_phase;
};

/* ---- the ramp -------------------------------------------------------------------------------- */

static int64_t start_us(const struct fleet_shard *s, size_t i)
{
    const size_t number = s->o.number + i * s->o.n_shards;
    const struct fleet_settings *settings = s->o.settings;
    return s->o.begin_us +
           settings->ramp_ms * 1000 * (int64_t) number / (int64_t) settings->n_devices;
}

static void on_ramp(void *arg)
{
    struct fleet_shard *s = arg;
    for (int n = 0; s->n_started < s->n_devices; n++) {
        const int64_t left_us =
            start_us(s, s->n_started) - clock_system.monotonic_us(&clock_system);
        if (left_us > 0 || n == MAX_STARTS_PER_TURN) {
            loop_timer_start_real(s->ramp, (MAX(left_us, 0) + 999) / 1000, /* repeat_ms= */ 0);
            return;
        }
        fleet_device_start(s->devices[s->n_started++]);
    }
}

/* ---- what the other thread wants ------------------------------------------------------------- */

static void on_speed(void *arg)
{
    struct fleet_shard *s = arg;
    const double speed = atomic_load(&s->wanted_speed);
    clock_scaled_set_speed(&s->clock, speed);
    loop_set_speed(s->loop, speed);
}

void fleet_shard_set_speed(struct fleet_shard *s, double factor)
{
    atomic_store(&s->wanted_speed, factor);
    loop_post(s->loop, on_speed, s);
}

static void on_phase(void *arg)
{
    struct fleet_shard *s = arg;
    s->tally = &s->tallies[atomic_load(&s->wanted_phase)];
}

void fleet_shard_set_phase(struct fleet_shard *s, enum fleet_phase phase)
{
    atomic_store(&s->wanted_phase, (int) phase);
    loop_post(s->loop, on_phase, s);
}

static void take_sample(struct fleet_shard *s)
{
    s->sample.population = (struct fleet_population){0};
    for (size_t i = 0; i < s->n_devices; i++)
        fleet_device_count(s->devices[i], &s->sample.population);
    memcpy(s->sample.tallies, s->tallies, sizeof(s->tallies));
}

static void tell_sampled(void *arg)
{
    struct fleet_shard *s = arg;
    s->o.on_sampled(s->o.arg, s);
}

static void on_sample_wanted(void *arg)
{
    struct fleet_shard *s = arg;
    take_sample(s);
    loop_post(s->o.control, tell_sampled, s);
}

void fleet_shard_ask_sample(struct fleet_shard *s)
{
    loop_post(s->loop, on_sample_wanted, s);
}

const struct fleet_sample *fleet_shard_sample(const struct fleet_shard *s)
{
    return &s->sample;
}

const struct fleet_timeline *fleet_shard_timeline(const struct fleet_shard *s)
{
    return &s->timeline;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void *run(void *arg)
{
    struct fleet_shard *s = arg;
    loop_run(s->loop);
    return NULL;
}

static void on_end(void *arg)
{
    struct fleet_shard *s = arg;
    take_sample(s);
    loop_timer_stop(s->ramp);
    for (size_t i = 0; i < s->n_devices; i++)
        fleet_device_free(s->devices[i]);
    s->n_devices = 0;
    loop_stop(s->loop);
}

void fleet_shard_end(struct fleet_shard *s)
{
    loop_post(s->loop, on_end, s);
    (void) pthread_join(s->thread, NULL);
}

static int lay_ground(struct fleet_shard *s)
{
    const struct fleet_shard_options *o = &s->o;
    const struct uplink_trust_options trust = {.pem = &o->root_pem, .n_pem = 1};
    size_t which = 0;
    int r = uplink_trust_new(&trust, &s->ground.trust, &which);
    if (r < 0)
        return r;
    s->real_wire = uplink_wire_new(s->loop, &s->clock.clock);
    if (!s->real_wire)
        return -ENOMEM;
    struct fleet_wire_options wire = {.loop = s->loop,
                                      .max_under_way = o->settings->max_connections,
                                      .inner = s->real_wire,
                                      .faults = o->settings->faults,
                                      .begin_us = o->begin_us,
                                      .timeline = &s->timeline,
                                      .tally = &s->tally};
    wire.faults.seed = o->settings->seed + o->number;
    s->ground.wire = fleet_wire_new(&wire);
    s->ground.settings = o->settings;
    s->ground.loop = s->loop;
    s->ground.clock = &s->clock.clock;
    s->ground.root = o->root;
    s->ground.address = o->address;
    s->ground.dns_servers = o->dns_servers;
    s->ground.n_dns_servers = o->n_dns_servers;
    return 0;
}

static void make_devices(struct fleet_shard *s)
{
    const size_t n_all = s->o.settings->n_devices;
    s->devices = mem_realloc_array(NULL, n_all / s->o.n_shards + 1, sizeof(struct fleet_device *));
    for (size_t number = s->o.number; number < n_all; number += s->o.n_shards)
        s->devices[s->n_devices++] = fleet_device_new(&s->ground, number);
    s->ramp = loop_timer_new(s->loop, on_ramp, s);
    loop_timer_start_real(s->ramp, 0, /* repeat_ms= */ 0);
}

int fleet_shard_new(const struct fleet_shard_options *o, struct fleet_shard **ret)
{
    struct fleet_shard *s = NEW(struct fleet_shard);
    s->o = *o;
    s->tally = &s->tallies[FLEET_RAMP];
    s->loop = loop_new();
    clock_scaled_init(&s->clock, &clock_system);
    clock_scaled_set_speed(&s->clock, o->settings->speeds[0]);
    loop_set_speed(s->loop, o->settings->speeds[0]);
    int r = lay_ground(s);
    if (r == 0) {
        make_devices(s);
        r = -pthread_create(&s->thread, NULL, run, s);
    }
    if (r < 0) {
        fleet_shard_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void fleet_shard_free(struct fleet_shard *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_devices; i++)
        fleet_device_free(s->devices[i]);
    loop_timer_free(s->ramp);
    loop_settle(s->loop);
    fleet_wire_free(s->ground.wire);
    if (s->real_wire)
        uplink_wire_free(s->real_wire);
    uplink_trust_unref(s->ground.trust);
    loop_free(s->loop);
    fleet_timeline_done(&s->timeline);
    mem_free(s->devices);
    mem_free(s);
}
