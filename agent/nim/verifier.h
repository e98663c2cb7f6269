/* SPDX-License-Identifier: Apache-2.0 */
/* Which configuration is tested when, and what a test means for it: a function of the list, the
 * findings of tests and the clock, without any network.
 *
 *                 restart                    wait: not ready yet, tested again
 *      idle ----------------> testing <------------------------------------- waiting
 *       ^  ^                    |  |  ------------------------------------------>
 *       |  |  works, or nothing |  |                 (30 s, or something happens)
 *       |  +------ left --------+  +-- failed: the next that can be tested
 *       |
 *       +-- every 5 minutes a test; two failures in a row restart */
#pragma once

#include "nim/dpc_list.h"

/* What one test has found. */
struct verifier_findings {
    bool is_assigned;      /* a port is an application's */
    bool is_held;          /* a port is not yet given back by whoever passes devices through */
    bool is_being_applied; /* changes are still under way */
    bool awaits_modem;     /* a modem has yet to hear of this configuration */
    bool is_reachable;     /* the controller answers */
    bool is_temporary;     /* it is there, but refuses or is out of order */
    size_t n_present;      /* management interfaces that exist */
    size_t n_missing;      /* and that do not */
    bool has_ip_and_dns;   /* some management port has both */
    bool is_not_ready;     /* some port has not, or names are not yet answered */
    bool is_local;         /* all of it is as somebody nearby wants it, in whatever configuration */
    struct str words;      /* what was wrong, or a warning */
};

/* What it means, so long after testing of this configuration began. */
enum node_network_state verifier_judge(const struct verifier_findings *f, int64_t elapsed_ms,
                                       int64_t duration_ms);

struct verifier {
    struct dpc_list *list;
    const struct clock *clock;
    int64_t duration_ms, interval_ms, better_ms; /* timer.port.test*; better 0: never */
    bool keeps_last_resort;
    bool is_silent;  /* radio silence: nothing is verified */
    bool is_running; /* a configuration is sought, not just tested */
    bool works;      /* as the last test had it */
    bool stays;      /* it does not, but nothing below it would do better */
    bool wants_test; /* of the current configuration, now: the owner takes it off */
    int64_t begun_us;
    /* Monotonic, 0: not at all. */
    int64_t retry_us, test_us, better_us;
};

void verifier_init(struct verifier *v, struct dpc_list *list, const struct clock *clock);
/* From the most wanted on, unless that is being done. */
void verifier_restart(struct verifier *v);
/* The list is another: from the most wanted on, whatever was being done. */
void verifier_restart_anew(struct verifier *v);
/* Something happened for which a configuration under test may have waited. */
void verifier_hurry(struct verifier *v);
/* The end of the test that was wanted. */
void verifier_take(struct verifier *v, const struct verifier_findings *f);
/* When verifier_wake() has something to do, monotonic; 0: not by itself. */
int64_t verifier_due_us(const struct verifier *v);
void verifier_wake(struct verifier *v);
/* Times have changed. */
void verifier_set_times(struct verifier *v, int64_t duration_ms, int64_t interval_ms,
                        int64_t better_ms);
