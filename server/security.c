/* SPDX-License-Identifier: Apache-2.0 */
#include "security.h"

#include "base/alloc.h"
#include "base/log.h"

/* Calls that wait for webhooks, logins that wait for issuers. */
#define WORKERS_MAX_THREADS 64
#define WORKERS_MAX_WAITING 4096

static int open_audit(struct security *s, const struct options *o, char **ret_error)
{
    const char *log = option_text(o, "audit-log-path"),
               *policy = option_text(o, "audit-policy-file");
    if (!log[0])
        return 0;
    return audit_open(
        &(struct audit_options){.policy_path = policy[0] ? policy : NULL,
                                .log_path = log,
                                .max_size_bytes = option_int(o, "audit-log-maxsize") * 1024 * 1024,
                                .max_age_s = option_int(o, "audit-log-maxage") * 24 * 3600,
                                .max_backups = option_int(o, "audit-log-maxbackup"),
                                .clock = &clock_system},
        &s->audit, ret_error);
}

int security_open(struct security *s, const struct options *o, struct store *store,
                  char **ret_error)
{
    s->workers = workers_new(WORKERS_MAX_THREADS, WORKERS_MAX_WAITING);
    s->fairness = fairness_new(&(struct fairness_options){
        .max_reads = (size_t) option_int(o, "max-requests-inflight"),
        .max_writes = (size_t) option_int(o, "max-mutating-requests-inflight"),
        .max_long_running_per_user = (size_t) option_int(o, "max-watches-per-user"),
        .clock = &clock_system});
    s->rbac = rbac_new(store);
    s->authenticator = authenticator_new(&clock_system);
    return open_audit(s, o, ret_error);
}

static void report(int r, char *error, const char *what)
{
    if (r < 0)
        log_error("keeping what was read before", LOG_TEXT("of", what), LOG_TEXT("error", error));
    else
        log_info("reloaded", LOG_TEXT("what", what));
    mem_free(error);
}

void security_reload(struct security *s)
{
    char *error = NULL;
    int r = authenticator_reload(s->authenticator, &error);
    report(r, TAKE(error), "tokens");
    if (s->audit) {
        r = audit_reload(s->audit, &error);
        report(r, TAKE(error), "audit policy");
    }
}

void security_close(struct security *s)
{
    workers_free(s->workers);
    audit_close(s->audit);
    if (s->authenticator)
        authenticator_free(s->authenticator);
    if (s->rbac)
        rbac_free(s->rbac);
    if (s->fairness)
        fairness_free(s->fairness);
}
