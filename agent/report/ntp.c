/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time comes from: chrony is asked now and then, on a worker, and the controller is told.
 * Where chrony is not, nothing is said. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "report/report_internal.h"

#define COMMAND "chronyc -n -c sources 2>/dev/null"
#define MAX_OUTPUT_BYTES ((size_t) 16 * 1024)
#define MAX_SOURCES 64
#define N_FIELDS 8 /* that are read: mode state name stratum poll reach last offset */

struct ntp_task {
    struct report *report; /* NULL: it is gone, and the last worker cleans up */
    struct loop_timer *timer;
    int64_t interval_s;
    bool is_asking;
    struct buf output;
};

static void ask(void *arg)
{
    struct ntp_task *t = arg;
    FILE *pipe = popen(COMMAND, "re");
    if (!pipe)
        return;
    size_t n;
    do {
        n = fread(buf_reserve(&t->output, 4096), 1, 4096, pipe);
        t->output.n += n;
    } while (n && t->output.n < MAX_OUTPUT_BYTES);
    (void) pclose(pipe);
}

static bool parse_line(struct str line, struct ntp_source *ret)
{
    struct str fields[N_FIELDS] = {{0}};
    for (size_t i = 0; i < N_FIELDS; i++)
        if (!str_split(&line, ',', &fields[i]))
            return false;
    int64_t stratum = 0, poll = 0;
    char z[32] = {0};
    memcpy(z, fields[7].p, MIN(fields[7].n, sizeof(z) - 1));
    (void) str_to_i64(fields[3], &stratum);
    (void) str_to_i64(fields[4], &poll);
    unsigned reach = 0; /* octal */
    for (size_t i = 0; i < fields[5].n; i++)
        reach = reach * 8 + (unsigned) (fields[5].p[i] - '0') % 8;
    *ret = (struct ntp_source){
        .mode = fields[0].n ? fields[0].p[0] : 0,
        .state = fields[1].n ? fields[1].p[0] : 0,
        .name = fields[2],
        .stratum = (unsigned) stratum,
        .poll = (int) poll,
        .reach = reach,
        .offset_s = strtod(z, NULL),
    };
    return true;
}

static void tell(struct report *r, struct str output)
{
    ARENA_AUTO a = arena_new();
    struct report_view v;
    struct ntp_source *sources = ARENA_ARRAY(a, struct ntp_source, MAX_SOURCES);
    size_t n = 0;
    struct str line;
    while (n < MAX_SOURCES && str_split(&output, '\n', &line))
        n += parse_line(str_trim(line), &sources[n]);
    if (!n || !report_can_send(r))
        return;
    report_view_init(r, a, &v);
    (void) report_tell(
        r, &v,
        &(struct info_subject){.kind = KIND_NTP, .ntp_sources = sources, .n_ntp_sources = n});
}

static void task_free(struct ntp_task *t)
{
    buf_done(&t->output);
    mem_free(t);
}

static void on_asked(void *arg)
{
    struct ntp_task *t = arg;
    t->is_asking = false;
    if (!t->report) {
        task_free(t);
        return;
    }
    tell(t->report, buf_str(&t->output));
    buf_reset(&t->output);
}

void report_ntp_tell(struct report *r)
{
    struct ntp_task *t = r->ntp;
    if (!t || t->is_asking || !report_can_send(r))
        return;
    t->is_asking = true;
    loop_work(r->node->loop, ask, on_asked, t);
}

static void schedule(struct report *r)
{
    loop_timer_start(r->ntp->timer, node_jitter_ms(r->node, r->ntp->interval_s), 0);
}

static void on_timer(void *arg)
{
    struct report *r = arg;
    report_ntp_tell(r);
    schedule(r);
}

void report_ntp_init(struct report *r)
{
    if (r->node->is_simulated || access("/usr/bin/chronyc", X_OK) < 0)
        return;
    r->ntp = NEW(struct ntp_task);
    r->ntp->report = r;
    r->ntp->timer = loop_timer_new(r->node->loop, on_timer, r);
}

void report_ntp_update(struct report *r)
{
    const int64_t interval_s = items_int(zedagent_items(r->zedagent), "timer.ntpsources.interval");
    if (!r->ntp || interval_s == r->ntp->interval_s)
        return;
    r->ntp->interval_s = interval_s;
    schedule(r);
}

void report_ntp_done(struct report *r)
{
    struct ntp_task *t = r->ntp;
    if (!t)
        return;
    loop_timer_free(t->timer);
    t->report = NULL;
    if (!t->is_asking)
        task_free(t);
}
