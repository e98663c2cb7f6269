/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "fleet/files.h"
#include "fleet/network.h"
#include "fleet/report.h"
#include "fleet/settings.h"
#include "fleet/shard.h"
#include "fleet/view.h"
#include "loop/loop.h"
#include "pki/file.h"

#define SECOND_MS 1000

struct run {
    const struct fleet_settings *settings;
    struct arena *arena;
    const char *root;
    bool is_root_temporary;
    struct fleet_network network;
    struct buf root_pem;
    struct loop *loop;
    struct loop_timer *ticker, *phase_timer;
    struct fleet_shard **shards;
    size_t n_shards, n_sampling; /* shards whose sample is awaited */
    struct fleet_sample sample;
    int64_t begin_us, steady_us, sampled_us; /* monotonic; steady 0: not yet */
    int64_t began_wall_us;
    size_t speed; /* which of them */
    struct fleet_usage at_begin, at_steady, at_sample;
    uint64_t answered[FLEET_ENDPOINTS]; /* at the last sample */
    bool is_ending;
};

static int64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

/* ---- the view -------------------------------------------------------------------------------- */

static void merge_samples(struct run *r)
{
    memset(&r->sample, 0, sizeof(r->sample));
    for (size_t i = 0; i < r->n_shards; i++)
        fleet_sample_merge(&r->sample, fleet_shard_sample(r->shards[i]));
}

static void remember(struct run *r, const struct fleet_view *v, int64_t at_us)
{
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        r->answered[i] = r->sample.tallies[FLEET_RAMP].endpoints[i].n_answered +
                         r->sample.tallies[FLEET_STEADY].endpoints[i].n_answered;
    r->at_sample = v->usage;
    r->sampled_us = at_us;
}

static void show(struct run *r)
{
    BUF_AUTO text = {0};
    const int64_t at_us = now_us();
    struct fleet_view v = {.settings = r->settings,
                           .now = &r->sample,
                           .usage = fleet_usage_now(),
                           .usage_before = r->at_sample,
                           .rss_at_begin = r->at_begin.rss_bytes,
                           .seconds = (double) (at_us - r->sampled_us) / 1e6,
                           .elapsed_s = (double) (at_us - r->begin_us) / 1e6,
                           .speed = r->settings->speeds[r->speed],
                           .phase = r->steady_us ? FLEET_STEADY : FLEET_RAMP};
    memcpy(v.before, r->answered, sizeof(v.before));
    if (r->settings->has_view && isatty(STDOUT_FILENO))
        fleet_view_screen(&v, &text);
    else
        fleet_view_line(&v, &text);
    if (fwrite(text.p, 1, text.n, stdout) == text.n)
        (void) fflush(stdout);
    remember(r, &v, at_us);
}

static void on_sampled(void *arg, const struct fleet_shard *s)
{
    struct run *r = arg;
    (void) s;
    if (--r->n_sampling > 0 || r->is_ending)
        return;
    merge_samples(r);
    show(r);
}

static void on_tick(void *arg)
{
    struct run *r = arg;
    if (r->n_sampling > 0)
        return; /* the devices have no time for that */
    r->n_sampling = r->n_shards;
    for (size_t i = 0; i < r->n_shards; i++)
        fleet_shard_ask_sample(r->shards[i]);
}

/* ---- phases and signals ---------------------------------------------------------------------- */

static void on_end(void *arg)
{
    struct run *r = arg;
    r->is_ending = true;
    loop_stop(r->loop);
}

static void on_steady(void *arg)
{
    struct run *r = arg;
    r->steady_us = now_us();
    r->at_steady = fleet_usage_now();
    for (size_t i = 0; i < r->n_shards; i++)
        fleet_shard_set_phase(r->shards[i], FLEET_STEADY);
    if (r->settings->duration_ms == 0)
        return;
    loop_timer_free(r->phase_timer);
    r->phase_timer = loop_timer_new(r->loop, on_end, r);
    loop_timer_start(r->phase_timer, r->settings->duration_ms, /* repeat_ms= */ 0);
}

static void on_signal(void *arg, int signal_number)
{
    struct run *r = arg;
    if (signal_number == SIGINT || signal_number == SIGTERM) {
        on_end(r);
        return;
    }
    if (signal_number == SIGUSR2)
        r->speed = MIN(r->speed + 1, r->settings->n_speeds - 1);
    else
        r->speed -= r->speed > 0;
    for (size_t i = 0; i < r->n_shards; i++)
        fleet_shard_set_speed(r->shards[i], r->settings->speeds[r->speed]);
}

/* ---- before ---------------------------------------------------------------------------------- */

static int make_root(struct run *r)
{
    const char *temporary = getenv("TMPDIR");
    r->root = r->settings->state_dir;
    if (r->root)
        return 0;
    char *name = arena_strz(
        r->arena, arena_printf(r->arena, "%s/seth-fleet-XXXXXX", temporary ? temporary : "/tmp"));
    if (!mkdtemp(name)) {
        fprintf(stderr, "seth-fleet: %s: %s\n", name, strerror(errno));
        return -errno;
    }
    r->root = name;
    r->is_root_temporary = true;
    return 0;
}

static int prepare(struct run *r)
{
    int n = make_root(r);
    if (n == 0)
        n = fleet_files_prepare(r->arena, r->settings, r->root);
    if (n < 0)
        return n;
    n = pki_file_read(r->settings->root_certificate, &r->root_pem);
    if (n == 0)
        n = fleet_network_find(r->arena, r->settings->server, &r->network);
    if (n < 0)
        fprintf(stderr, "seth-fleet: --server: %.*s: %s\n", STR_ARG(r->settings->server),
                strerror(-n));
    return n;
}

/* A connection for each request under way; a storm needs as many as there are devices. */
static void raise_file_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &l);
}

static int make_shards(struct run *r)
{
    const struct fleet_settings *s = r->settings;
    const size_t n = MIN(s->n_threads, s->n_devices);
    r->shards = ARENA_ARRAY(r->arena, struct fleet_shard *, n);
    for (size_t i = 0; i < n; i++) {
        const struct fleet_shard_options o = {.settings = s,
                                              .number = i,
                                              .n_shards = n,
                                              .root = r->root,
                                              .root_pem = buf_str(&r->root_pem),
                                              .address = r->network.address,
                                              .dns_servers = r->network.dns_servers,
                                              .n_dns_servers = r->network.n_dns_servers,
                                              .begin_us = r->begin_us,
                                              .control = r->loop,
                                              .on_sampled = on_sampled,
                                              .arg = r};
        const int made = fleet_shard_new(&o, &r->shards[i]);
        if (made < 0) {
            fprintf(stderr, "seth-fleet: cannot start: %s\n",
                    made == -EINVAL ? "--root-certificate holds no certificate, or a damaged one"
                                    : strerror(-made));
            return made;
        }
        r->n_shards++;
    }
    return 0;
}

static void begin(struct run *r)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < N_ELEMENTS(signals); i++)
        loop_on_signal(r->loop, signals[i], on_signal, r);
    r->phase_timer = loop_timer_new(r->loop, on_steady, r);
    loop_timer_start(r->phase_timer, r->settings->ramp_ms + r->settings->warm_up_ms,
                     /* repeat_ms= */ 0);
    r->ticker = loop_timer_new(r->loop, on_tick, r);
    if (!r->settings->is_quiet)
        loop_timer_start(r->ticker, SECOND_MS, SECOND_MS);
}

/* ---- after ----------------------------------------------------------------------------------- */

static int write_report(const struct fleet_report *report, const char *path)
{
    BUF_AUTO text = {0};
    fleet_report_write(report, &text);
    FILE *f = fopen(path, "we");
    const bool is_written = f && fwrite(text.p, 1, text.n, f) == text.n;
    const bool is_closed = f && fclose(f) == 0;
    if (is_written && is_closed)
        return 0;
    fprintf(stderr, "seth-fleet: --json: %s: %s\n", path, strerror(errno));
    return -EIO;
}

static int conclude(struct run *r)
{
    const int64_t end_us = now_us(), steady_us = r->steady_us ? r->steady_us : end_us;
    struct fleet_report report = {
        .settings = r->settings,
        .sample = &r->sample,
        .began_wall_us = r->began_wall_us,
        .seconds = {[FLEET_RAMP] = (double) (steady_us - r->begin_us) / 1e6,
                    [FLEET_STEADY] = (double) (end_us - steady_us) / 1e6},
        .usage = fleet_usage_now(), /* while there are devices */
        .usage_at_begin = r->at_begin,
        .usage_at_steady = r->at_steady};
    struct fleet_timeline timeline = {0};
    for (size_t i = 0; i < r->n_shards; i++) {
        fleet_shard_end(r->shards[i]);
        fleet_timeline_merge(&timeline, fleet_shard_timeline(r->shards[i]));
    }
    merge_samples(r);
    report.timeline = &timeline;
    const uint64_t n_errors = fleet_report_errors(&report);
    int code = n_errors > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (r->settings->json && write_report(&report, r->settings->json) < 0)
        code = EXIT_FAILURE;
    fleet_timeline_done(&timeline);
    return code;
}

static void clean_up(struct run *r)
{
    loop_settle(r->loop); /* a sample may have come late */
    for (size_t i = 0; i < r->n_shards; i++)
        fleet_shard_free(r->shards[i]);
    loop_timer_free(r->ticker);
    loop_timer_free(r->phase_timer);
    loop_free(r->loop);
    if (r->is_root_temporary && fleet_files_remove(r->root) < 0)
        fprintf(stderr, "seth-fleet: %s cannot be removed\n", r->root);
    buf_done(&r->root_pem);
}

int fleet_run(const struct fleet_settings *s)
{
    ARENA_AUTO arena = arena_new();
    struct run *r = NEW(struct run);
    r->settings = s;
    r->arena = arena;
    r->loop = loop_new();
    log_set_level(s->log_level);
    raise_file_limit();
    int code = EXIT_FAILURE;
    if (prepare(r) == 0) {
        r->at_begin = r->at_sample = fleet_usage_now();
        r->begin_us = r->sampled_us = now_us();
        r->began_wall_us = clock_system.wall_us(&clock_system);
        if (make_shards(r) == 0) {
            begin(r);
            loop_run(r->loop);
            code = conclude(r);
        } else {
            r->is_ending = true;
            for (size_t i = 0; i < r->n_shards; i++)
                fleet_shard_end(r->shards[i]);
        }
    }
    clean_up(r);
    mem_free(r);
    return code;
}
