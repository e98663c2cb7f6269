/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/sample.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

const char *fleet_state_name(enum fleet_state s)
{
    static const char *const names[FLEET_STATES] = {
        [FLEET_WAITING] = "waiting",       [FLEET_OFF] = "off",
        [FLEET_STARTING] = "starting",     [FLEET_ONBOARDED] = "onboarded",
        [FLEET_CONFIGURED] = "configured", [FLEET_RUNNING] = "running",
        [FLEET_BROKEN] = "broken"};
    return names[s];
}

void fleet_population_merge(struct fleet_population *to, const struct fleet_population *from)
{
    for (size_t i = 0; i < FLEET_STATES; i++)
        to->states[i] += from->states[i];
    to->n_applications += from->n_applications;
    to->n_running += from->n_running;
    to->n_failed += from->n_failed;
    to->n_restarts += from->n_restarts;
    to->n_log_lines += from->n_log_lines;
    to->n_log_lines_lost += from->n_log_lines_lost;
    to->info_delivered += from->info_delivered;
    to->info_dropped += from->info_dropped;
    to->metrics_sent += from->metrics_sent;
    to->metrics_lost += from->metrics_lost;
    to->log_files_sent += from->log_files_sent;
    to->log_bytes_sent += from->log_bytes_sent;
    to->log_failures += from->log_failures;
    to->info_waiting += from->info_waiting;
    to->log_files_waiting += from->log_files_waiting;
}

size_t fleet_population_devices(const struct fleet_population *p)
{
    size_t n = 0;
    for (size_t i = 0; i < FLEET_STATES; i++)
        n += p->states[i];
    return n;
}

void fleet_sample_merge(struct fleet_sample *to, const struct fleet_sample *from)
{
    fleet_population_merge(&to->population, &from->population);
    for (size_t i = 0; i < FLEET_PHASES; i++)
        fleet_tally_merge(&to->tallies[i], &from->tallies[i]);
}

void fleet_sample_total(const struct fleet_sample *s, struct fleet_tally *ret)
{
    *ret = s->tallies[0];
    for (size_t i = 1; i < FLEET_PHASES; i++)
        fleet_tally_merge(ret, &s->tallies[i]);
}

static uint64_t resident_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    const int n = fscanf(f, "%lu %lu", &total, &resident);
    (void) fclose(f);
    return n == 2 ? (uint64_t) resident * (uint64_t) sysconf(_SC_PAGESIZE) : 0;
}

struct fleet_usage fleet_usage_now(void)
{
    struct rusage r = {0};
    (void) getrusage(RUSAGE_SELF, &r);
    const int64_t seconds = r.ru_utime.tv_sec + r.ru_stime.tv_sec;
    return (struct fleet_usage){.rss_bytes = resident_bytes(),
                                .peak_rss_bytes = (uint64_t) r.ru_maxrss * 1024,
                                .cpu_us =
                                    seconds * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec};
}
