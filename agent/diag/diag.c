/* SPDX-License-Identifier: Apache-2.0 */
#include "diag/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "diag/diag_internal.h"
#include "pki/file.h"

#define METRICS_S 30
#define CONSOLE_ROWS 40
#define CONSOLE_COLUMNS 80
#define STATE_MODE 0644

static const struct pubsub_name topic_names[DIAG_TOPICS] = {
    [DIAG_LED] = {.agent = STR(""), .topic = STR("LedBlinkCounter")},
    [DIAG_NETWORK] = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")},
    [DIAG_PORT_CONFIGS] = {.agent = STR("nim"),
                           .topic = STR("DevicePortConfigList"),
                           .is_persistent = true},
    [DIAG_ZEDAGENT] = {.agent = STR("zedagent"), .topic = STR("ZedAgentStatus")},
    [DIAG_VAULTS] = {.agent = STR("vaultmgr"), .topic = STR("VaultStatus")},
    [DIAG_SUMMARY] = {.agent = STR("zedmanager"), .topic = STR("AppInstanceSummary")},
    [DIAG_APPS] = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")},
    [DIAG_DOWNLOADS] = {.agent = STR("downloader"), .topic = STR("DownloaderStatus")},
    [DIAG_DRAIN] = {.agent = STR("zedkube"), .topic = STR("NodeDrainStatus")},
};

/* ---- output --------------------------------------------------------------------------------- */

static void put_out(struct diag *d, struct str text)
{
    if (!d->options.output) {
        (void) file_write_all(STDOUT_FILENO, text);
        return;
    }
    /* Not held open: whoever reads a pipe may go and come. */
    int fd = open(d->options.output, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) {
        if (errno != ENXIO)
            log_warning("the report cannot be written", LOG_TEXT("path", d->options.output),
                        LOG_ERRNO(-errno));
        return;
    }
    (void) file_write_all(fd, text);
    (void) close(fd);
}

static void keep_state(struct diag *d, struct str text)
{
    int r = d->options.state_file ? pki_file_write(d->options.state_file, text, STATE_MODE) : 0;
    if (r < 0)
        log_warning("the report cannot be kept", LOG_TEXT("path", d->options.state_file),
                    LOG_ERRNO(r));
}

/* Somebody who asks once wants all of it, unless told otherwise. */
static unsigned limit(const struct diag *d, unsigned given, unsigned of_console)
{
    return given ? given : d->options.runs_forever ? of_console : 0;
}

static void show(struct diag *d)
{
    BUF_AUTO whole = {0}, shown = {0};
    if (d->options.is_json) {
        json_write(&whole, d->report);
        buf_append_char(&whole, '\n');
        put_out(d, buf_str(&whole));
    } else {
        diag_text(&whole, d->report, 0, 0);
        diag_text(&shown, d->report, limit(d, d->options.rows, CONSOLE_ROWS),
                  limit(d, d->options.columns, CONSOLE_COLUMNS));
        put_out(d, buf_str(&shown));
    }
    keep_state(d, buf_str(&whole));
}

/* ---- when ----------------------------------------------------------------------------------- */

static bool has_heard(const struct diag *d, size_t topic)
{
    size_t position = 0;
    struct str key, text;
    return subscription_next(d->topics[topic], &position, &key, &text);
}

static bool is_ready(const struct diag *d)
{
    if (d->has_waited)
        return true;
    return d->node->has_items && d->node->ports && has_heard(d, DIAG_LED) &&
           has_heard(d, DIAG_NETWORK) && has_heard(d, DIAG_PORT_CONFIGS);
}

static void begin_report(struct diag *d)
{
    d->is_due = false;
    d->reported_us = d->node->clock->monotonic_us(d->node->clock);
    d->arena = arena_new();
    d->report = diag_report(d->arena, d);
    /* While nim is content the controller is not asked again and again, as in EVE. */
    bool is_content = d->options.runs_forever && d->node->network_state == NODE_NETWORK_SUCCESS;
    if (!is_content) {
        diag_checks_begin(d);
        return;
    }
    JSON_FOR_EACH_ITEM (json_get(d->report, STR("ports")), port)
        if (json_get_bool(port, STR("isManagement"), false) &&
            json_count(json_get(port, STR("addresses"))) && !json_get_str(port, STR("lastError")).n)
            (void) json_set(d->arena, port, STR("result"), json_string(STR("pass")));
    diag_checked(d);
}

static void schedule(struct diag *d)
{
    if (!d->is_due || d->arena || !is_ready(d))
        return;
    int64_t since_ms = (d->node->clock->monotonic_us(d->node->clock) - d->reported_us) / 1000;
    bool is_soon = d->reported_us && since_ms < DIAG_INTERVAL_MS;
    loop_timer_start(d->timer, is_soon ? DIAG_INTERVAL_MS - since_ms : 0, 0);
}

void diag_checked(struct diag *d)
{
    bool is_reached = diag_report_conclude(d->arena, d->report);
    show(d);
    d->report = NULL;
    arena_free(TAKE(d->arena));
    if (d->options.runs_forever)
        schedule(d);
    else if (d->options.on_done)
        d->options.on_done(d->options.arg, is_reached ? 0 : 1); /* may free it */
}

static void on_timer(void *arg)
{
    struct diag *d = arg;
    if (d->arena && !d->checks.is_running) {
        diag_checked(d);
        return;
    }
    if (d->arena)
        return;
    if (!is_ready(d)) /* it was waited for the others long enough */
        d->has_waited = true;
    if (d->is_due)
        begin_report(d);
}

static void changed(struct diag *d)
{
    /* A single report takes what comes while it is made as it is. */
    if (!d->options.runs_forever && d->reported_us)
        return;
    d->is_due = true;
    schedule(d);
}

static void on_value(void *arg, struct str key, const struct json *value)
{
    (void) key;
    (void) value;
    changed(arg);
}

static void on_modified(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) old;
    on_value(arg, key, value);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    (void) changes;
    changed(CONTAINER_OF(w, struct diag, watch));
}

/* ---- its life ------------------------------------------------------------------------------- */

static int begin(struct diag *d)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_value, .on_modify = on_modified, .on_delete = on_value};
    struct node *n = d->node;
    const struct uplink_tls_options plain = {.trust = n->trust};
    int r = uplink_tls_new(&plain, &d->plain_tls);
    if (r == 0)
        r = node_link_new(
            n,
            &(struct node_link_options){.agent = STR("diag"),
                                        .publishes_no_metrics = !d->options.runs_forever,
                                        .uses_onboarding = true,
                                        .has_nil_device = true,
                                        .metrics_interval_s = METRICS_S},
            &d->link);
    for (size_t i = 0; r == 0 && i < DIAG_TOPICS; i++)
        r = subscription_new(n->pubsub, &topic_names[i], &handlers, d, &d->topics[i]);
    return r;
}

int diag_new(struct node *n, const struct diag_options *o, struct diag **ret)
{
    struct diag *d = NEW(struct diag);
    d->node = n;
    d->options = *o;
    d->options.output = o->output ? mem_strdup(o->output) : NULL;
    d->options.state_file = o->state_file ? mem_strdup(o->state_file) : NULL;
    d->timer = loop_timer_new(n->loop, on_timer, d);
    d->watch.on_change = on_change;
    node_watch(n, &d->watch);
    int r = begin(d);
    if (r < 0) {
        diag_free(d);
        return r;
    }
    d->is_due = true;
    if (!d->options.runs_forever)
        loop_timer_start(d->timer, DIAG_FIRST_WAIT_MS, 0);
    *ret = d;
    return 0;
}

void diag_free(struct diag *d)
{
    if (!d)
        return;
    diag_checks_cancel(d);
    node_unwatch(&d->watch);
    for (size_t i = 0; i < DIAG_TOPICS; i++)
        subscription_free(d->topics[i]);
    node_link_free(d->link);
    if (d->plain_tls)
        uplink_tls_unref(d->plain_tls);
    loop_timer_free(d->timer);
    if (d->arena)
        arena_free(d->arena);
    mem_free((char *) d->options.output);
    mem_free((char *) d->options.state_file);
    mem_free(d);
}
