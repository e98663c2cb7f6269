/* SPDX-License-Identifier: Apache-2.0 */
#include "security.h"

#include "api/oidc/oidc.h"
#include "api/oidc/webhook.h"
#include "api/token/bootstrap_tokens.h"
#include "api/token/service_account_tokens.h"
#include "api/token/token_file.h"
#include "base/alloc.h"
#include "base/log.h"
#include "fetch/fetch.h"

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

static int open_issuer(struct security *s, struct arena *a, const struct options *o,
                       char **ret_error)
{
    const char *given = option_text(o, "service-account-jwks-uri");
    struct str jwks =
        given[0] ? str_of(given)
                 : arena_printf(a, "https://%s:%lld/openid/v1/jwks", option_text(o, "bind-address"),
                                (long long) option_int(o, "secure-port"));
    return token_issuer_open(
        &(struct token_issuer_options){
            .own_key_path =
                arena_printf(a, "%s/pki/service-account-key.pem", option_text(o, "data-dir")).p,
            .signing_key_file = option_text(o, "service-account-signing-key-file"),
            .key_files = option_text(o, "service-account-key-file"),
            .issuers = option_text(o, "service-account-issuer"),
            .api_audiences = option_text(o, "api-audiences"),
            .jwks_uri = jwks.p,
            .max_expiration_s = option_int(o, "service-account-max-token-expiration")},
        &s->token_issuer, ret_error);
}

static int add_oidc(struct security *s, const struct options *o, char **ret_error)
{
    struct token_source *source = NULL;
    struct str issuers = str_of(option_text(o, "service-account-issuer")), own = STR_NONE;
    (void) str_split(&issuers, ',', &own);
    struct oidc_options oidc = {
        .outside = {.clock = &clock_system, .fetch = s->fetch, .workers = s->workers},
        .api_audiences = token_issuer_audiences(s->token_issuer),
        .own_issuer = own,
        .config_path = option_text(o, "authentication-config"),
        .flags = {.issuer_url = option_text(o, "oidc-issuer-url"),
                  .client_id = option_text(o, "oidc-client-id"),
                  .username_claim = option_text(o, "oidc-username-claim"),
                  .username_prefix = option_text(o, "oidc-username-prefix"),
                  .groups_claim = option_text(o, "oidc-groups-claim"),
                  .groups_prefix = option_text(o, "oidc-groups-prefix"),
                  .ca_file = option_text(o, "oidc-ca-file"),
                  .required_claims = option_text(o, "oidc-required-claim"),
                  .signing_algs = option_text(o, "oidc-signing-algs")}};
    if (!oidc_is_wanted(&oidc))
        return 0;
    int r = oidc_source_new(&oidc, &source, ret_error);
    if (r == 0)
        authenticator_add(s->authenticator, source);
    return r;
}

static int add_token_webhook(struct security *s, const struct options *o, char **ret_error)
{
    struct token_source *source = NULL;
    const char *path = option_text(o, "authentication-token-webhook-config-file");
    if (!path[0])
        return 0;
    int r = token_webhook_new(
        &(struct token_webhook_options){
            .outside = {.clock = &clock_system, .fetch = s->fetch, .workers = s->workers},
            .config_path = path,
            .cache_us = option_int(o, "authentication-token-webhook-cache-ttl") * 1000000,
            .api_audiences = token_issuer_audiences(s->token_issuer)},
        &source, ret_error);
    if (r == 0)
        authenticator_add(s->authenticator, source);
    return r;
}

/* In the order in which they are asked. */
static int open_authenticator(struct security *s, const struct options *o, struct store *store,
                              char **ret_error)
{
    const struct clock *clock = &clock_system;
    const char *token_file = option_text(o, "token-auth-file");
    struct audiences audiences = token_issuer_audiences(s->token_issuer);
    struct token_source *source = NULL;
    s->authenticator = authenticator_new(clock);
    if (token_file[0]) {
        int r = token_file_open(token_file, audiences, &source, ret_error);
        if (r < 0)
            return r;
        authenticator_add(s->authenticator, source);
    }
    authenticator_add(s->authenticator, bootstrap_tokens_new(store, clock, audiences));
    authenticator_add(s->authenticator, service_account_tokens_new(store, clock, s->token_issuer));
    int r = add_oidc(s, o, ret_error);
    return r < 0 ? r : add_token_webhook(s, o, ret_error);
}

int security_open(struct security *s, struct arena *a, const struct options *o, struct store *store,
                  char **ret_error)
{
    s->workers = workers_new(WORKERS_MAX_THREADS, WORKERS_MAX_WAITING);
    s->fairness = fairness_new(&(struct fairness_options){
        .max_reads = (size_t) option_int(o, "max-requests-inflight"),
        .max_writes = (size_t) option_int(o, "max-mutating-requests-inflight"),
        .max_long_running_per_user = (size_t) option_int(o, "max-watches-per-user"),
        .clock = &clock_system});
    s->rbac = rbac_new(store);
    s->fetch = fetch_client_new();
    s->webhooks = webhooks_new(store, s->fetch);
    int r = open_issuer(s, a, o, ret_error);
    if (r == 0)
        r = open_authenticator(s, o, store, ret_error);
    return r < 0 ? r : open_audit(s, o, ret_error);
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
    webhooks_free(s->webhooks);
    if (s->fetch)
        fetch_client_free(s->fetch);
    audit_close(s->audit);
    if (s->authenticator)
        authenticator_free(s->authenticator);
    token_issuer_free(s->token_issuer);
    if (s->rbac)
        rbac_free(s->rbac);
    if (s->fairness)
        fairness_free(s->fairness);
}
