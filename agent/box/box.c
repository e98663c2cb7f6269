/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <errno.h>

#include "attest/attest.h"
#include "base/alloc.h"
#include "base/log.h"
#include "client/client.h"
#include "diag/diag.h"
#include "loop/loop.h"
#include "lps/lps.h"
#include "nim/nim.h"
#include "nodeagent/nodeagent.h"
#include "zedagent/zedagent.h"

static const char *const service_names[BOX_SERVICES + 1] = {
    [BOX_CLIENT] = "client",
    [BOX_ZEDAGENT] = "zedagent",
    [BOX_NODEAGENT] = "nodeagent",
    [BOX_NIM] = "nim",
    [BOX_LOGUPLOADER] = "loguploader",
    [BOX_COLLECTOR] = "collector",
    [BOX_APPS] = "apps",
    [BOX_DIAG] = "diag",
};

struct box {
    struct box_options options;
    struct node *node;
    struct node_watch watch; /* for the UUID, where no client of ours finds it */
    struct loop_deferred onboarded;
    bool has_second_half;
    struct collector *collector;
    struct zedagent *zedagent;
    struct nodeagent *nodeagent;
    struct nim *nim;
    struct client *client;
    struct node_keys *keys;
    struct attest *attest;
    struct report *report;
    struct lps *lps;
    struct loguploader *loguploader;
    struct apps_network *network;
    struct apps *apps;
    struct diag *diag;
};

const char *box_service_name(enum box_service s)
{
    return service_names[s];
}

static bool has(const struct box *b, enum box_service s)
{
    return b->options.services & 1U << s;
}

/* ---- services, each with how it is started ------------------------------------------------- */

static int start_collector(struct box *b)
{
    return collector_new(b->node, &b->options.collector, &b->collector);
}

static int start_zedagent(struct box *b)
{
    return zedagent_new(b->node, &(struct zedagent_options){0}, &b->zedagent);
}

static int start_nodeagent(struct box *b)
{
    return nodeagent_new(b->node, &b->nodeagent);
}

static int start_nim(struct box *b)
{
    const struct nim_options o = {.starts_with_machine = b->options.starts_with_machine,
                                  .geo_url = b->options.geo_url};
    return nim_new(b->node, &o, &b->nim);
}

static int start_diag(struct box *b)
{
    ARENA_AUTO a = arena_new();
    const char *path = node_path(a, b->node, NODE_RUN, STR("diag.out"));
    const struct diag_options o = {.runs_forever = true, .output = "/dev/null", .state_file = path};
    return diag_new(b->node, &o, &b->diag);
}

static void on_client_done(void *arg, int exit_code)
{
    struct box *b = arg;
    client_free(TAKE(b->client));
    if (exit_code == 0)
        loop_defer(b->node->loop, &b->onboarded);
}

static int start_client(struct box *b)
{
    const struct client_options o = {.registers = b->node->onboarding.tls != NULL,
                                     .asks_uuid = true,
                                     .on_done = on_client_done,
                                     .arg = b};
    return client_new(b->node, &o, &b->client);
}

static int start_attest(struct box *b)
{
    return attest_new(b->zedagent, b->node, &(struct attest_options){b->keys}, &b->attest);
}

static int start_report(struct box *b)
{
    return report_new(b->zedagent, b->node, &b->report);
}

static int start_lps(struct box *b)
{
    return b->report ? lps_new(b->zedagent, b->node, b->report, &b->lps) : 0;
}

static int start_loguploader(struct box *b)
{
    return loguploader_new(b->node, &b->loguploader);
}

static int start_apps(struct box *b)
{
    int r = 0;
    if (b->options.makes_networks)
        r = apps_network_linux_new(&(struct apps_network_options){.node = b->node}, &b->network);
    if (r < 0)
        return r;
    const struct apps_options o = {
        .make_runtime = b->options.make_runtime,
        .make_arg = b->options.make_arg,
        .network = b->network,
        .keys = b->keys,
        .collector = b->collector,
    };
    return apps_new(b->node, &o, &b->apps);
}

struct step {
    enum box_service service;
    const char *what;
    int (*start)(struct box *b);
};

/* As EVE's boot script has it: what needs no UUID, and the client; when that is done the rest. What
 * was logged before is put in order first. */
static const struct step first_half[] = {
    {BOX_COLLECTOR, "collector", start_collector},
    {BOX_ZEDAGENT, "zedagent", start_zedagent},
    {BOX_NODEAGENT, "nodeagent", start_nodeagent},
    {BOX_NIM, "nim", start_nim},
    {BOX_DIAG, "diag", start_diag},
    {BOX_CLIENT, "client", start_client},
};
static const struct step second_half[] = {
    {BOX_ZEDAGENT, "attestation", start_attest},
    {BOX_ZEDAGENT, "reports", start_report},
    {BOX_ZEDAGENT, "local profile server", start_lps},
    {BOX_LOGUPLOADER, "loguploader", start_loguploader},
    {BOX_APPS, "applications", start_apps},
};

static int run_steps(struct box *b, const struct step *steps, size_t n, char **ret_error)
{
    for (size_t i = 0; i < n; i++) {
        int r = has(b, steps[i].service) ? steps[i].start(b) : 0;
        if (r < 0) {
            BUF_AUTO words = {0};
            buf_printf(&words, "%s does not start: %s", steps[i].what, log_errno_text(r));
            *ret_error = mem_strdup(words.p);
            return r;
        }
    }
    return 0;
}

/* A part that does not start is no reason to lose the others: the device must stay reachable. */
static void start_second_half(struct box *b)
{
    if (b->has_second_half)
        return;
    b->has_second_half = true;
    for (size_t i = 0; i < N_ELEMENTS(second_half); i++) {
        char *error = NULL;
        if (run_steps(b, &second_half[i], 1, &error) < 0)
            log_error("a service does not start", LOG_TEXT("error", error));
        mem_free(error);
    }
}

static void on_onboarded(struct loop_deferred *d)
{
    start_second_half(CONTAINER_OF(d, struct box, onboarded));
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct box *b = CONTAINER_OF(w, struct box, watch);
    if (changes & NODE_ONBOARDED && !has(b, BOX_CLIENT) && !uuid_is_zero(&b->node->device))
        start_second_half(b);
}

/* ---- the whole ------------------------------------------------------------------------------ */

int box_new(const struct box_options *o, struct box **ret, char **ret_error)
{
    struct box *b = NEW(struct box);
    b->options = *o;
    b->onboarded.fn = on_onboarded;
    b->watch.on_change = on_change;
    int r = node_new(&o->node, &b->node, ret_error);
    if (r < 0) {
        mem_free(b);
        return r;
    }
    node_watch(b->node, &b->watch);
    r = node_keys_new(b->node, &(struct node_keys_options){.tcti = o->tcti}, &b->keys);
    if (r == 0)
        r = run_steps(b, first_half, N_ELEMENTS(first_half), ret_error);
    if (r < 0) {
        box_free(b);
        return r;
    }
    *ret = b;
    return 0;
}

void box_stop(struct box *b)
{
    loop_undefer(b->node->loop, &b->onboarded);
    diag_free(TAKE(b->diag));
    apps_free(TAKE(b->apps));
    apps_network_free(TAKE(b->network));
    loguploader_free(TAKE(b->loguploader));
    lps_free(TAKE(b->lps));
    report_free(TAKE(b->report));
    attest_free(TAKE(b->attest));
    client_free(TAKE(b->client));
    nim_free(TAKE(b->nim));
    nodeagent_free(TAKE(b->nodeagent));
    zedagent_free(TAKE(b->zedagent));
    collector_free(TAKE(b->collector));
}

void box_free(struct box *b)
{
    if (!b)
        return;
    box_stop(b);
    node_keys_free(b->keys);
    node_unwatch(&b->watch);
    node_free(b->node);
    mem_free(b);
}

struct node *box_node(struct box *b)
{
    return b->node;
}

struct collector *box_collector(struct box *b)
{
    return b->collector;
}

struct box_counts box_counts(const struct box *b)
{
    struct box_counts c = {
        .is_onboarded = b->has_second_half,
        .is_configured = b->zedagent && zedagent_facts(b->zedagent)->is_configured,
    };
    if (b->report)
        c.report = report_counts(b->report);
    if (b->loguploader)
        c.logs = loguploader_counts(b->loguploader);
    if (b->apps)
        c.apps = apps_counts(b->apps);
    return c;
}
