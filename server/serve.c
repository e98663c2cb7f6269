/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/codec.h"
#include "api/metrics.h"
#include "api/server.h"
#include "base/alloc.h"
#include "base/log.h"
#include "bootstrap.h"
#include "controllers/controller.h"
#include "identity.h"
#include "kubeconfig.h"
#include "notify.h"
#include "pki/file.h"
#include "pki/pki.h"
#include "reload.h"
#include "security.h"
#include "vault.h"

#define MAX_THREADS 64
#define DRAIN_MS 8000
#define MAX_SHUTDOWN_DELAY_S 600
#define HANDSHAKE_TIMEOUT_MS 10000
#define MAX_RENEW_MS ((int64_t) 24 * 3600 * 1000)
#define ADMIN_S ((int64_t) 3650 * 24 * 3600)
#define HEAP_KEPT_BYTES (8 * 1024 * 1024)
#define HEAP_LARGE_BYTES (1024 * 1024)

const struct option_spec serve_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where everything is kept", 0, 0},
    {"bind-address", OPTION_TEXT, "127.0.0.1", "address to listen on (numeric)", 0, 0},
    {"secure-port", OPTION_INT, "6443", "port of the Kubernetes API; 0 picks a free one", 0, 65535},
    {"device-port", OPTION_INT, "8443",
     "port of the device API, reserved: this version serves no devices", 0, 65535},
    {"threads", OPTION_INT, "0", "event loops; 0: one per core", 0, MAX_THREADS},
    {"max-connections", OPTION_INT, "20000", "open connections; further ones wait", 1, 1000000},
    {"max-connections-per-address", OPTION_INT, "0",
     "of one address (IPv6: one /64); further ones are closed; 0: no limit", 0, 1000000},
    {"max-handshakes", OPTION_INT, "1000",
     "TLS handshakes under way per thread; further connections wait; 0: no limit", 0, 1000000},
    {"tls-cert-file", OPTION_TEXT, "", "certificate chain to serve instead of our own (PEM)", 0, 0},
    {"tls-private-key-file", OPTION_TEXT, "", "its key (PEM)", 0, 0},
    {"tls-cert-lifetime-seconds", OPTION_INT, "31536000",
     "life of our own certificate; it is renewed when a third is left", 3, (int64_t) 1 << 31},
    {"cluster-signing-duration-seconds", OPTION_INT, "31536000",
     "life of certificates issued to approved CertificateSigningRequests, at most", 600,
     (int64_t) 1 << 31},
    {"tls-san", OPTION_LIST, "", "further names and addresses in our own certificate", 0, 0},
    {"history-seconds", OPTION_INT, "300", "how long watches can resume and pages continue", 1,
     86400},
    {"history-bytes", OPTION_INT, "67108864", "memory for superseded versions", 1048576,
     (int64_t) 1 << 40},
    {"shutdown-delay-seconds", OPTION_INT, "0", "how long readyz fails before anything else ends",
     0, MAX_SHUTDOWN_DELAY_S},
    {"token-auth-file", OPTION_TEXT, "", "CSV of static tokens: token,user,uid,\"group,group\"", 0,
     0},
    {"service-account-issuer", OPTION_LIST, "https://kubernetes.default.svc",
     "who issues ServiceAccount tokens; further ones are accepted", 0, 0},
    {"service-account-signing-key-file", OPTION_TEXT, "",
     "key that signs them instead of our own (PEM, P-256 or RSA)", 0, 0},
    {"service-account-key-file", OPTION_LIST, "", "further keys whose tokens are accepted (PEM)", 0,
     0},
    {"service-account-max-token-expiration", OPTION_INT, "0",
     "seconds a ServiceAccount token lives at most; 0: as asked", 0, INT32_MAX},
    {"service-account-jwks-uri", OPTION_TEXT, "",
     "where others fetch the keys of these tokens; empty: from this server", 0, 0},
    {"api-audiences", OPTION_LIST, "", "whom tokens must be for; empty: the issuer", 0, 0},
    {"oidc-issuer-url", OPTION_TEXT, "", "OpenID Connect issuer whose tokens are accepted (https)",
     0, 0},
    {"oidc-client-id", OPTION_TEXT, "", "audience its tokens must have", 0, 0},
    {"oidc-username-claim", OPTION_TEXT, "sub", "claim that is the user's name", 0, 0},
    {"oidc-username-prefix", OPTION_TEXT, "",
     "put before it; - is nothing; default: issuer# unless the claim is email", 0, 0},
    {"oidc-groups-claim", OPTION_TEXT, "", "claim that lists the user's groups", 0, 0},
    {"oidc-groups-prefix", OPTION_TEXT, "", "put before each of them", 0, 0},
    {"oidc-required-claim", OPTION_LIST, "", "key=value that a token must have", 0, 0},
    {"oidc-signing-algs", OPTION_LIST, "RS256", "accepted algorithms: RS256, ES256", 0, 0},
    {"oidc-ca-file", OPTION_TEXT, "", "CA of the issuer (PEM); default: the machine's", 0, 0},
    {"authentication-config", OPTION_TEXT, "",
     "AuthenticationConfiguration with any number of issuers, instead of --oidc-*", 0, 0},
    {"authentication-token-webhook-config-file", OPTION_TEXT, "",
     "kubeconfig of a server that is asked about tokens nobody here knows", 0, 0},
    {"authentication-token-webhook-cache-ttl", OPTION_INT, "120",
     "seconds its answers are believed", 0, 86400},
    {"max-requests-inflight", OPTION_INT, "400",
     "reads answered at once; more get 429; 0: no limit", 0, 1000000},
    {"max-mutating-requests-inflight", OPTION_INT, "200", "writes, likewise", 0, 1000000},
    {"max-watches-per-user", OPTION_INT, "10000", "open watches of one user; 0: no limit", 0,
     1000000},
    {"audit-log-path", OPTION_TEXT, "", "file for the audit log; - is standard output; empty: none",
     0, 0},
    {"audit-policy-file", OPTION_TEXT, "",
     "audit.k8s.io/v1 Policy; without it everything is logged at level Metadata", 0, 0},
    {"audit-log-maxsize", OPTION_INT, "100", "MiB after which the audit log is rotated; 0: never",
     0, 1000000},
    {"audit-log-maxage", OPTION_INT, "0", "days that rotated audit logs are kept; 0: for ever", 0,
     36500},
    {"audit-log-maxbackup", OPTION_INT, "10", "rotated audit logs that are kept; 0: all", 0,
     100000},
    {"encrypt", OPTION_TEXT, "secrets",
     "kinds encrypted at rest, as in secrets,deployments.apps; * is all, none is none", 0, 0},
    {"encryption-key-command", OPTION_TEXT, "",
     "program that wraps and unwraps the encryption keys; without it they are in a file", 0, 0},
    {"log-level", OPTION_TEXT, "info", "error, warning, info or debug", 0, 0},
    {0},
};

struct server {
    const struct options *options;
    struct arena *arena;
    struct identity identity;
    struct pki_cert *ca_cert;
    struct pki_key *ca_key;
    struct vault *vault;
    struct store *store;
    struct security security;
    struct api *api;
    struct loop *loops[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    size_t n_loops, n_threads;
    struct tls_config *tls;
    struct listener *listener;
    struct health health;
    struct api_metrics *metrics;
    struct api_server *door;
    struct kube_client *client;
    struct controller_runner *controllers;
    struct loop_timer *stop_timer, *renew_timer, *watchdog_timer;
    struct reload *reload;
    atomic_bool is_stopping;
};

/* ---- health ------------------------------------------------------------------------------- */

static bool store_is_healthy(void *ctx, char *reason)
{
    struct server *s = ctx;
    struct store_stats stats;
    store_stats(s->store, &stats);
    if (stats.is_full)
        (void) snprintf(reason, HEALTH_REASON_BYTES, "the disk is full");
    return !stats.is_full;
}

static bool is_not_stopping(void *ctx, char *reason)
{
    struct server *s = ctx;
    bool stopping = atomic_load(&s->is_stopping);
    if (stopping)
        (void) snprintf(reason, HEALTH_REASON_BYTES, "the server is shutting down");
    return !stopping;
}

static void add_checks(struct server *s)
{
    health_init(&s->health);
    /* The store answers under the name that tools look for. A full disk makes the server unready,
     * not dead: a restart would not help, and reads go on. */
    health_add(&s->health, &(struct health_check){STR("etcd"), HEALTH_LIVEZ, NULL, NULL});
    health_add(&s->health, &(struct health_check){STR("etcd"), HEALTH_READYZ | HEALTH_HEALTHZ,
                                                  store_is_healthy, s});
    health_add(&s->health,
               &(struct health_check){STR("etcd-readiness"), HEALTH_READYZ, store_is_healthy, s});
    health_add(&s->health,
               &(struct health_check){STR("shutdown"), HEALTH_READYZ, is_not_stopping, s});
}

/* ---- starting ----------------------------------------------------------------------------- */

static int set_log_level(const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        if (str_is(str_of(text), names[i])) {
            log_set_level((enum log_level) i);
            return 0;
        }
    }
    fprintf(stderr, "seth: --log-level: '%s' is none of error, warning, info, debug\n", text);
    return -EINVAL;
}

static void prepare_process(void)
{
    (void) mallopt(M_ARENA_MAX, 2); /* arenas per thread bloat resident memory */
    /* What one request frees the next one needs: to hand it back at once costs a page fault each
     * time. */
    (void) mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
    (void) mallopt(M_MMAP_THRESHOLD, HEAP_LARGE_BYTES);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full disk, not the end */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int open_store(struct server *s, char **ret_error)
{
    const struct options *o = s->options;
    struct vault_options vault = {.data_dir = option_text(o, "data-dir"),
                                  .kinds = option_text(o, "encrypt"),
                                  .key_command = option_text(o, "encryption-key-command")};
    int r = vault_new(&vault, &s->vault, ret_error);
    if (r < 0)
        return r;
    return store_open(
        &(struct store_options){
            .path = arena_printf(s->arena, "%s/objects.db", option_text(o, "data-dir")).p,
            .parse_head = codec_parse_stored,
            .cipher = vault_cipher(s->vault),
            .clock = &clock_system,
            .history_max_age_ms = option_int(o, "history-seconds") * 1000,
            .history_max_bytes = option_int(o, "history-bytes")},
        &s->store, ret_error);
}

static struct identity_options identity_options(const struct options *o)
{
    return (struct identity_options){.data_dir = option_text(o, "data-dir"),
                                     .bind_address = option_text(o, "bind-address"),
                                     .extra_names = option_text(o, "tls-san"),
                                     .certificate_file = option_text(o, "tls-cert-file"),
                                     .key_file = option_text(o, "tls-private-key-file"),
                                     .lifetime_s = option_int(o, "tls-cert-lifetime-seconds")};
}

static int open_identity(struct server *s, char **ret_error)
{
    struct identity_options i = identity_options(s->options);
    int r = identity_open(s->arena, &i, &s->identity, ret_error);
    if (r == 0)
        r = identity_authority(s->arena, i.data_dir, &s->ca_cert, &s->ca_key, ret_error);
    if (r < 0)
        return r;
    return tls_config_new(&(struct tls_files){s->identity.certificate_path, s->identity.key_path,
                                              s->identity.root_path},
                          &s->tls, ret_error);
}

/* How a client on this machine reaches us. */
static struct str reachable_address(struct server *s)
{
    struct str bind = str_of(option_text(s->options, "bind-address"));
    if (str_is(bind, "0.0.0.0"))
        return STR("127.0.0.1");
    if (str_is(bind, "::"))
        return STR("[::1]");
    return str_find(bind, ':') < 0 ? bind : arena_printf(s->arena, "[%.*s]", STR_ARG(bind));
}

static void open_loops(struct server *s)
{
    int64_t wanted = option_int(s->options, "threads");
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    s->n_loops = (size_t) MIN(wanted ? wanted : MAX(n_cores, 1L), (int64_t) MAX_THREADS);
    for (size_t i = 0; i < s->n_loops; i++)
        s->loops[i] = loop_new();
}

static int open_listener(struct server *s, char **ret_error)
{
    return listener_new(
        &(struct listener_options){
            .address = option_text(s->options, "bind-address"),
            .port = (int) option_int(s->options, "secure-port"),
            .tls = s->tls,
            .loops = s->loops,
            .n_loops = s->n_loops,
            .max_connections = (size_t) option_int(s->options, "max-connections"),
            .max_connections_per_address =
                (size_t) option_int(s->options, "max-connections-per-address"),
            .max_handshakes = (size_t) option_int(s->options, "max-handshakes"),
            .handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS,
            .on_accept = api_server_accept,
            .arg = s->door},
        &s->listener, ret_error);
}

static int make_admin_kubeconfig(struct server *s, const char *path, char **ret_error)
{
    static const struct str groups[] = {STR("system:masters")};
    struct identity_client admin = {.data_dir = option_text(s->options, "data-dir"),
                                    .user = STR("seth-admin"),
                                    .groups = groups,
                                    .n_groups = 1,
                                    .valid_s = ADMIN_S};
    struct kubeconfig k = {.server = arena_printf(s->arena, "https://%.*s:%d",
                                                  STR_ARG(reachable_address(s)),
                                                  listener_port(s->listener))
                                         .p,
                           .name = STR("seth"),
                           .user = admin.user};
    struct str text = STR_NONE;
    int r = identity_issue(s->arena, &admin, &k.cert_pem, &k.key_pem, &k.root_pem, ret_error);
    if (r == 0)
        r = kubeconfig_text(s->arena, &k, STR_NONE, &text, ret_error);
    if (r < 0)
        return r;
    r = pki_file_write(path, text, 0600);
    if (r < 0) {
        struct buf b = {0};
        buf_printf(&b, "cannot write %s: %s", path, strerror(-r));
        *ret_error = buf_take(&b);
    }
    return r;
}

static int write_admin_kubeconfig(struct server *s, char **ret_error)
{
    const char *path =
        arena_printf(s->arena, "%s/admin.kubeconfig", option_text(s->options, "data-dir")).p;
    int r = make_admin_kubeconfig(s, path, ret_error);
    if (r < 0 && access(path, R_OK) == 0) {
        /* The one of an earlier start still opens the door; a full disk must not keep readers out.
         */
        log_warning("keeping the administrator's kubeconfig as it was",
                    LOG_TEXT("error", *ret_error));
        mem_free(TAKE(*ret_error));
        return 0;
    }
    return r;
}

static int open_parts(struct server *s, char **ret_error)
{
    int r = open_identity(s, ret_error);
    if (r == 0)
        r = open_store(s, ret_error);
    if (r == 0)
        r = security_open(&s->security, s->arena, s->options, s->store, ret_error);
    if (r == 0)
        r = api_new(&(struct api_options){.store = s->store,
                                          .clock = &clock_system,
                                          .authenticator = s->security.authenticator,
                                          .rbac = s->security.rbac,
                                          .token_issuer = s->security.token_issuer},
                    &s->api, ret_error);
    if (r < 0)
        return r;
    s->metrics = api_metrics_new(
        &(struct api_metrics_options){s->api, &s->health, s->security.fairness, s->security.audit});
    s->client = kube_client_local(s->api, "kube-apiserver");
    r = bootstrap_objects(s->client, ret_error);
    if (r < 0)
        return r;
    /* Not before: a webhook that is down must not keep the server from starting. */
    api_set_webhooks(s->api, s->security.webhooks);
    add_checks(s);
    open_loops(s);
    struct str address = arena_printf(s->arena, "%.*s:%lld", STR_ARG(reachable_address(s)),
                                      (long long) option_int(s->options, "secure-port"));
    s->door = api_server_new(&(struct api_server_options){.api = s->api,
                                                          .loops = s->loops,
                                                          .n_loops = s->n_loops,
                                                          .address = address,
                                                          .health = &s->health,
                                                          .workers = s->security.workers,
                                                          .fairness = s->security.fairness,
                                                          .audit = s->security.audit,
                                                          .metrics = s->metrics});
    struct controller_context ctx = {
        .client = s->client,
        .clock = &clock_system,
        .root_ca_pem = s->identity.root_pem,
        .token_issuer = s->security.token_issuer,
        .ca_cert = s->ca_cert,
        .ca_key = s->ca_key,
        .signing_duration_s = option_int(s->options, "cluster-signing-duration-seconds")};
    s->controllers = controller_runner_new(&ctx);
    r = open_listener(s, ret_error);
    if (r < 0)
        return r;
    api_metrics_set_listener(s->metrics, s->listener);
    api_metrics_set_queues(s->metrics, controller_runner_figures, s->controllers);
    return write_admin_kubeconfig(s, ret_error);
}

/* ---- running ------------------------------------------------------------------------------ */

static void stop_loops(void *arg)
{
    struct server *s = arg;
    for (size_t i = 0; i < s->n_loops; i++)
        loop_stop(s->loops[i]);
}

static void drain(void *arg)
{
    struct server *s = arg;
    loop_timer_free(s->stop_timer);
    listener_close(s->listener);
    api_server_drain(s->door, stop_loops, s);
    s->stop_timer = loop_timer_new(s->loops[0], stop_loops, s);
    loop_timer_start(s->stop_timer, DRAIN_MS, 0);
}

/* From the first signal on we are not ready; whoever sends us requests has the delay to notice. A
 * second ends at once. */
static void on_stop_signal(void *arg, int number)
{
    struct server *s = arg;
    if (atomic_exchange(&s->is_stopping, true)) {
        stop_loops(s);
        return;
    }
    notify_stopping();
    log_info("stopping", LOG_INT("signal", number));
    s->stop_timer = loop_timer_new(s->loops[0], drain, s);
    loop_timer_start(s->stop_timer, option_int(s->options, "shutdown-delay-seconds") * 1000, 0);
}

static void reload_certificates(struct server *s)
{
    char *error = NULL;
    if (tls_config_reload(s->tls, &error) < 0)
        log_error("keeping the certificates as they were", LOG_TEXT("error", error));
    else
        log_info("certificates reloaded");
    mem_free(error);
}

static void reload_files(void *arg)
{
    struct server *s = arg;
    notify_reloading();
    reload_certificates(s);
    security_reload(&s->security);
    notify_ready();
}

static void on_reload_signal(void *arg, int number)
{
    struct server *s = arg;
    (void) number;
    if (!atomic_load(&s->is_stopping)) /* else what it would reload may be gone */
        reload_files(s);
}

static void renew(void *arg)
{
    struct server *s = arg;
    ARENA_AUTO a = arena_new();
    struct identity_options i = identity_options(s->options);
    char *error = NULL;
    bool is_new = false;
    if (identity_renew(a, &i, &is_new, &error) < 0)
        log_error("cannot renew the server's certificate", LOG_TEXT("error", error));
    else if (is_new)
        reload_certificates(s);
    mem_free(error);
}

static void on_watchdog(void *arg)
{
    (void) arg;
    notify_watchdog();
}

/* Certificates are looked after often enough for their life, systemd as often as it wants. */
static void start_upkeep(struct server *s)
{
    const struct options *o = s->options;
    const char *const files[] = {option_text(o, "tls-cert-file"),
                                 option_text(o, "tls-private-key-file"),
                                 option_text(o, "token-auth-file"),
                                 option_text(o, "authentication-config"),
                                 option_text(o, "authentication-token-webhook-config-file"),
                                 option_text(o, "oidc-ca-file"),
                                 option_text(o, "audit-policy-file")};
    int64_t period_ms = MIN(option_int(o, "tls-cert-lifetime-seconds") * 1000 / 10, MAX_RENEW_MS);
    s->reload = reload_new(s->loops[0], files, N_ELEMENTS(files), reload_files, s);
    s->renew_timer = loop_timer_new(s->loops[0], renew, s);
    loop_timer_start(s->renew_timer, period_ms, period_ms);
    if (notify_watchdog_ms()) {
        s->watchdog_timer = loop_timer_new(s->loops[0], on_watchdog, s);
        loop_timer_start(s->watchdog_timer, 0, notify_watchdog_ms());
    }
}

static void stop_upkeep(struct server *s)
{
    reload_free(s->reload);
    loop_timer_free(s->renew_timer);
    loop_timer_free(s->watchdog_timer);
}

static void *run_loop(void *loop)
{
    loop_run(loop);
    return NULL;
}

static void run(struct server *s)
{
    loop_on_signal(s->loops[0], SIGTERM, on_stop_signal, s);
    loop_on_signal(s->loops[0], SIGINT, on_stop_signal, s);
    loop_on_signal(s->loops[0], SIGHUP, on_reload_signal, s);
    for (size_t i = 1; i < s->n_loops; i++)
        if (pthread_create(&s->threads[s->n_threads++], NULL, run_loop, s->loops[i]) != 0)
            abort();
    start_upkeep(s);
    log_info("serving the Kubernetes API",
             LOG_TEXT("address", option_text(s->options, "bind-address")),
             LOG_INT("port", listener_port(s->listener)), LOG_INT("threads", (int64_t) s->n_loops),
             LOG_STR("kubeconfig", arena_printf(s->arena, "%s/admin.kubeconfig",
                                                option_text(s->options, "data-dir"))));
    notify_ready();
    loop_run(s->loops[0]);
    for (size_t i = 0; i < s->n_threads; i++)
        (void) pthread_join(s->threads[i], NULL);
}

/* The first loop last: the others report to it. */
static void settle_loops(struct server *s)
{
    for (size_t i = s->n_loops; i-- > 0;)
        loop_settle(s->loops[i]);
}

/* After everything else: with them go the handlers of signals, and one that comes without would end
 * us before all is written. */
static void free_loops(struct server *s)
{
    for (size_t i = 0; i < s->n_loops; i++)
        loop_free(s->loops[i]);
    (void) signal(SIGHUP, SIG_IGN);
    (void) signal(SIGTERM, SIG_IGN);
    (void) signal(SIGINT, SIG_IGN);
}

/* Nothing goes while a call that refers to it is under way: loops post to each other, the store
 * answers to them. */
static void close_parts(struct server *s)
{
    fetch_client_stop(s->security.fetch); /* who is waited for need not be any longer */
    if (s->metrics)
        api_metrics_set_queues(s->metrics, NULL, NULL); /* a loop that settles may still be asked */
    if (s->controllers)
        controller_runner_free(s->controllers);
    else
        kube_client_free(s->client);
    stop_upkeep(s);
    settle_loops(s);
    listener_free(s->listener);
    loop_timer_free(s->stop_timer);
    api_server_close(s->door);
    workers_settle(s->security.workers); /* their calls write, and answer to loops */
    if (s->store)
        store_settle(s->store);
    settle_loops(s);
    api_server_free(s->door);
    tls_config_free(s->tls);
    pki_cert_free(s->ca_cert);
    pki_key_free(s->ca_key);
    api_metrics_free(s->metrics);
    security_close(&s->security);
    api_free(s->api);
    if (s->store)
        store_close(s->store);
    vault_free(s->vault);
    free_loops(s);
    arena_free(s->arena);
}

int serve(const struct options *o)
{
    if (set_log_level(option_text(o, "log-level")) < 0)
        return EXIT_FAILURE;
    struct server *s = NEW(struct server);
    char *error = NULL;
    s->options = o;
    s->arena = arena_new();
    prepare_process();
    int r = open_parts(s, &error);
    if (r < 0)
        log_error("cannot start", LOG_TEXT("error", error ? error : strerror(-r)));
    else
        run(s);
    close_parts(s);
    if (r == 0)
        log_info("stopped");
    mem_free(error);
    mem_free(s);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
