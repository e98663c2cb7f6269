/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/delivery.h"
#include "device/sealer.h"
#include "fleet/composing.h"
#include "net/stream.h"
#include "roster/last_seen.h"

/* Threads for registrations, attestation and configurations to be made, and requests that may wait
 * for one. */
#define DEVICE_THREADS 16
#define DEVICE_MAX_WAITING 4096
/* Threads for uploads of logs, and those that may wait; more are turned away. */
#define LOG_THREADS 4
#define LOG_MAX_WAITING 512
#define DEVICE_HANDSHAKE_TIMEOUT_MS 10000
#define TELEMETRY_MAX_QUEUED_BYTES ((size_t) 64 * 1024 * 1024)
#define RENEW_MS ((int64_t) 3600 * 1000)

/* ---- keeping it true ------------------------------------------------------------------------ */

/* The roster first: who else is told of a Device finds it there. */
static void on_event(void *ctx, const struct kube_event *e)
{
    struct devices *d = ctx;
    roster_on_event(d->api.roster, e);
    onboarding_on_event(d->api.onboarding, e);
    reports_on_event(d->api.reports, e);
    if (e->type == KUBE_SYNCED)
        atomic_store(&d->api.is_ready, true);
}

static void on_device_change(void *ctx, struct device *device)
{
    struct devices *d = ctx;
    if (atomic_load(&device->is_deleted))
        telemetry_forget(d->api.telemetry, &device->uuid);
    else if (!atomic_load(&device->is_gone))
        telemetry_limit(d->api.telemetry, &device->uuid, atomic_load(&device->retention_s));
}

static bool are_ready(void *ctx, char *reason)
{
    struct devices *d = ctx;
    bool is_full = telemetry_is_full(d->api.telemetry);
    if (!atomic_load(&d->api.is_ready))
        (void) snprintf(reason, HEALTH_REASON_BYTES, "the devices are still being read");
    else if (is_full)
        (void) snprintf(reason, HEALTH_REASON_BYTES, "the disk is full");
    return atomic_load(&d->api.is_ready) && !is_full;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_certs(struct devices *d, const struct devices_options *o, char **ret_error)
{
    const struct options *opt = o->options;
    struct controller_certs_options c = {
        .data_dir = option_text(opt, "data-dir"),
        .clock = &clock_system,
        .signing_cert_file = option_text(opt, "device-signing-cert-file"),
        .signing_key_file = option_text(opt, "device-signing-key-file"),
        .ecdh_cert_file = option_text(opt, "device-ecdh-cert-file"),
        .ecdh_key_file = option_text(opt, "device-ecdh-key-file"),
        .lifetime_s = option_int(opt, "device-cert-lifetime-seconds")};
    return controller_certs_open(&c, &d->api.certs, ret_error);
}

static int open_telemetry(struct devices *d, const struct devices_options *o, char **ret_error)
{
    const struct options *opt = o->options;
    struct telemetry_options t = {
        .directory = arena_printf(o->arena, "%s/telemetry", option_text(opt, "data-dir")).p,
        .clock = &clock_system,
        .max_age_s = option_int(opt, "telemetry-retention-seconds"),
        .max_bytes = option_int(opt, "telemetry-bytes"),
        .max_device_bytes = option_int(opt, "telemetry-bytes-per-device"),
        .max_queued_bytes = TELEMETRY_MAX_QUEUED_BYTES};
    return telemetry_open(&t, &d->api.telemetry, ret_error);
}

static int open_reports(struct devices *d, const struct devices_options *o, char **ret_error)
{
    struct reports_options r = {
        .client = d->reporter,
        .roster = d->api.roster,
        .telemetry = d->api.telemetry,
        .clock = &clock_system,
        .checkpoint_path =
            arena_printf(o->arena, "%s/reports.checkpoint", option_text(o->options, "data-dir")).p};
    return reports_new(&r, &d->api.reports, ret_error);
}

/* For a device that asks before its configuration was composed. */
static int compose_now(void *ctx, struct str namespace, struct str name, struct status *st)
{
    struct devices *d = ctx;
    const struct controller_context composing = {
        .client = d->composer, .clock = &clock_system, .fleet = d->fleet};
    return composing_run(&composing, namespace, name, st);
}

static void open_adam(struct devices *d, const struct devices_options *o)
{
    d->adam_client = kube_client_local(o->store_api, "seth-adam");
    d->adam = adam_new(&(struct adam_options){
        .client = d->adam_client,
        .roster = d->api.roster,
        .telemetry = d->api.telemetry,
        .namespace = option_text(o->options, "adam-namespace"),
        .is_open_on_loopback = str_is(str_of(option_text(o->options, "adam-admin-open")), "on"),
        .ensure_config = compose_now,
        .ensure_ctx = d});
    d->annexes[d->n_annexes++] = adam_annex(d->adam);
}

int devices_open(struct devices *d, const struct devices_options *o, char **ret_error)
{
    struct device_api *api = &d->api;
    api->clock = &clock_system;
    api->fetch_client = o->fetch;
    api->client = kube_client_local(o->store_api, "seth-device");
    d->reporter = kube_client_local(o->store_api, "seth-reports");
    api->workers = workers_new(DEVICE_THREADS, DEVICE_MAX_WAITING);
    api->log_workers = workers_new(LOG_THREADS, LOG_MAX_WAITING);
    api->roster = roster_new(
        &(struct roster_options){.clock = &clock_system, .on_change = on_device_change, .ctx = d});
    d->live = (struct table_live){api->roster, roster_last_seen_us};
    api_set_table_live(o->store_api, &d->live);
    int r = open_certs(d, o, ret_error);
    if (r == 0)
        r = open_telemetry(d, o, ret_error);
    if (r == 0)
        r = open_reports(d, o, ret_error);
    if (r < 0)
        return r;
    api->onboarding = onboarding_new(&(struct onboarding_options){.client = api->client,
                                                                  .clock = &clock_system,
                                                                  .roster = api->roster,
                                                                  .workers = api->workers});
    d->reading = (struct reading){.telemetry = api->telemetry, .roster = api->roster};
    d->annexes[d->n_annexes++] = reading_annex(&d->reading);
    open_adam(d, o);
    d->composer = kube_client_local(o->store_api, "seth-composer");
    d->fleet = fleet_new(&(struct fleet_options){.client = d->composer,
                                                 .clock = &clock_system,
                                                 .open_seal = sealer_open,
                                                 .fill_delivery = delivery_fill,
                                                 .devices = api});
    api->ensure_config = compose_now;
    api->ensure_ctx = d;
    d->preview = (struct preview){o->store_api, d->composer, d->fleet, &clock_system};
    d->annexes[d->n_annexes++] = preview_annex(&d->preview);
    d->forecast = preview_forecast(&d->preview);
    api_set_forecast(o->store_api, &d->forecast);
    health_add(o->health, &(struct health_check){STR("devices"), HEALTH_READYZ, are_ready, d});
    return 0;
}

static void renew(void *arg)
{
    struct devices *d = arg;
    char *error = NULL;
    bool is_new = false;
    if (controller_certs_renew(d->api.certs, &is_new, &error) < 0)
        log_error("cannot renew the certificates that devices know us by",
                  LOG_TEXT("error", error));
    else if (is_new)
        roster_forget_configs(d->api.roster);
    mem_free(error);
}

int devices_listen(struct devices *d, const struct devices_options *o, char **ret_error)
{
    const struct options *opt = o->options;
    const bool has_own = option_text(opt, "device-tls-cert-file")[0] != '\0';
    struct tls_files files = {
        .certificate = has_own ? option_text(opt, "device-tls-cert-file") : o->certificate_path,
        .key = has_own ? option_text(opt, "device-tls-private-key-file") : o->key_path,
        .takes_any_client = str_is(str_of(option_text(opt, "device-api-v1")), "on")};
    d->server = device_server_new(&(struct device_server_options){
        .api = &d->api,
        .loops = o->loops,
        .n_loops = o->n_loops,
        .max_inflight = (size_t) option_int(opt, "max-device-requests-inflight"),
        .device_per_second = (uint32_t) option_int(opt, "device-requests-per-second"),
        .metrics = api_metrics_registry(o->metrics)});
    d->watcher = kube_client_local(o->store_api, "seth-device");
    kube_watch(d->watcher, on_event, d);
    int r = tls_config_new(&files, &d->tls, ret_error);
    if (r < 0)
        return r;
    r = listener_new(
        &(struct listener_options){.address = option_text(opt, "bind-address"),
                                   .port = (int) option_int(opt, "device-port"),
                                   .tls = d->tls,
                                   .loops = o->loops,
                                   .n_loops = o->n_loops,
                                   .max_connections =
                                       (size_t) option_int(opt, "max-device-connections"),
                                   .max_handshakes = (size_t) option_int(opt, "max-handshakes"),
                                   .handshake_timeout_ms = DEVICE_HANDSHAKE_TIMEOUT_MS,
                                   .on_accept = device_server_accept,
                                   .arg = d->server},
        &d->listener, ret_error);
    if (r < 0)
        return r;
    d->renew_timer = loop_timer_new(o->loops[0], renew, d);
    loop_timer_start(d->renew_timer, RENEW_MS, RENEW_MS);
    return 0;
}

int devices_port(const struct devices *d)
{
    return listener_port(d->listener);
}

static void reload_tls(struct devices *d)
{
    char *error = NULL;
    if (tls_config_reload(d->tls, &error) < 0)
        log_error("keeping the certificate that devices meet", LOG_TEXT("error", error));
    mem_free(error);
}

void devices_reload(struct devices *d)
{
    char *error = NULL;
    bool is_changed = false;
    reload_tls(d);
    if (controller_certs_reload(d->api.certs, &is_changed, &error) < 0)
        log_error("keeping the certificates that devices know us by", LOG_TEXT("error", error));
    else if (is_changed)
        roster_forget_configs(d->api.roster);
    mem_free(error);
}

/* ---- the end ------------------------------------------------------------------------------- */

void devices_drain(struct devices *d, void (*on_drained)(void *arg), void *arg)
{
    listener_close(d->listener);
    device_server_drain(d->server, on_drained, arg);
}

void devices_stop(struct devices *d)
{
    kube_client_free(TAKE(d->watcher));
    listener_free(TAKE(d->listener));
    loop_timer_free(TAKE(d->renew_timer));
    device_server_close(d->server);
    workers_settle(d->api.workers);
    workers_settle(d->api.log_workers);
    reports_free(TAKE(d->api.reports));
    telemetry_free(TAKE(d->api.telemetry)); /* answers what waits for the disk */
}

void devices_close(struct devices *d)
{
    device_server_free(d->server);
    workers_free(d->api.workers);
    workers_free(d->api.log_workers);
    onboarding_free(d->api.onboarding);
    controller_certs_free(d->api.certs);
    tls_config_free(d->tls);
    roster_free(d->api.roster);
    kube_client_free(d->api.client);
    kube_client_free(d->reporter);
    fleet_free(d->fleet);
    kube_client_free(d->composer);
    adam_free(d->adam);
    kube_client_free(d->adam_client);
}
