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
#include "cli/notify.h"
#include "controller_table.h"
#include "devices.h"
#include "identity.h"
#include "kubeconfig.h"
#include "pki/file.h"
#include "pki/pki.h"
#include "reload.h"
#include "security.h"
#include "vault.h"

#define DRAIN_MS 8000
#define HANDSHAKE_TIMEOUT_MS 10000
#define MAX_RENEW_MS ((int64_t) 24 * 3600 * 1000)
#define ADMIN_S ((int64_t) 3650 * 24 * 3600)
#define HEAP_KEPT_BYTES (8 * 1024 * 1024)
#define HEAP_LARGE_BYTES (1024 * 1024)

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
    struct loop *loops[SERVE_MAX_THREADS];
    pthread_t threads[SERVE_MAX_THREADS];
    size_t n_loops, n_threads;
    struct tls_config *tls;
    struct listener *listener;
    struct health health;
    struct api_metrics *metrics;
    struct api_server *door;
    struct kube_client *client;
    struct controller_runner *controllers;
    struct devices devices;
    size_t n_draining;
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
    if (log_set_level_name(str_of(text)) == 0)
        return 0;
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
    s->n_loops = (size_t) MIN(wanted ? wanted : MAX(n_cores, 1L), (int64_t) SERVE_MAX_THREADS);
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

static struct devices_options devices_options(struct server *s)
{
    return (struct devices_options){.options = s->options,
                                    .arena = s->arena,
                                    .store_api = s->api,
                                    .loops = s->loops,
                                    .n_loops = s->n_loops,
                                    .metrics = s->metrics,
                                    .health = &s->health,
                                    .fetch = s->security.fetch,
                                    .certificate_path = s->identity.certificate_path,
                                    .key_path = s->identity.key_path};
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
    struct devices_options devices = devices_options(s);
    r = devices_open(&s->devices, &devices, ret_error);
    if (r < 0)
        return r;
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
                                                          .metrics = s->metrics,
                                                          .annexes = s->devices.annexes,
                                                          .n_annexes = s->devices.n_annexes});
    struct controller_context ctx = {.client = s->client,
                                     .clock = &clock_system,
                                     .root_ca_pem = s->identity.root_pem,
                                     .token_issuer = s->security.token_issuer,
                                     .ca_cert = s->ca_cert,
                                     .ca_key = s->ca_key,
                                     .signing_duration_s =
                                         option_int(s->options, "cluster-signing-duration-seconds"),
                                     .fleet = s->devices.fleet,
                                     .devices = &s->devices.api};
    s->controllers = controller_runner_new(&ctx, controller_table);
    r = open_listener(s, ret_error);
    if (r == 0)
        r = devices_listen(&s->devices, &devices, ret_error);
    if (r < 0)
        return r;
    api_metrics_set_listener(s->metrics, s->listener);
    api_metrics_set_queues(s->metrics, controller_runner_figures, s->controllers);
    /* What was needed to start is not needed to serve. */
    (void) malloc_trim(0);
    return write_admin_kubeconfig(s, ret_error);
}

/* ---- running ------------------------------------------------------------------------------ */

static void stop_loops(void *arg)
{
    struct server *s = arg;
    for (size_t i = 0; i < s->n_loops; i++)
        loop_stop(s->loops[i]);
}

static void on_door_drained(void *arg)
{
    struct server *s = arg;
    if (--s->n_draining == 0)
        stop_loops(s);
}

static void drain(void *arg)
{
    struct server *s = arg;
    loop_timer_free(s->stop_timer);
    listener_close(s->listener);
    s->n_draining = 2;
    api_server_drain(s->door, on_door_drained, s);
    devices_drain(&s->devices, on_door_drained, s);
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
    devices_reload(&s->devices);
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

static const char *pki_file(const struct server *s, const char *name)
{
    return arena_printf(s->arena, "%s/pki/%s", option_text(s->options, "data-dir"), name).p;
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
                                 option_text(o, "audit-policy-file"),
                                 option_text(o, "device-tls-cert-file"),
                                 option_text(o, "device-tls-private-key-file"),
                                 option_text(o, "device-signing-cert-file"),
                                 option_text(o, "device-signing-key-file"),
                                 option_text(o, "device-ecdh-cert-file"),
                                 option_text(o, "device-ecdh-key-file"),
                                 pki_file(s, "server.pem"),
                                 pki_file(s, "signing.pem"),
                                 pki_file(s, "ecdh.pem"),
                                 pki_file(s, "device-roots.pem")};
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
    log_info(
        "serving the Kubernetes API", LOG_TEXT("address", option_text(s->options, "bind-address")),
        LOG_INT("port", listener_port(s->listener)),
        LOG_INT("device_port", devices_port(&s->devices)), LOG_INT("threads", (int64_t) s->n_loops),
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
    settle_loops(
        s); /* streams that were being read are closed now: what they read from goes next */
    api_server_settle(s->door);
    devices_stop(&s->devices);
    workers_settle(s->security.workers); /* their calls write, and answer to loops */
    if (s->store)
        store_settle(s->store);
    settle_loops(s);
    api_server_free(s->door);
    devices_close(&s->devices);
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
