/* SPDX-License-Identifier: Apache-2.0 */
/* What is read and what is published, and how values of Go's types are written. */
#include <arpa/inet.h>
#include <errno.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"

/* clang-format off */
static const struct {
    const char *agent, *topic;
    void (*configure)(struct apps *a, struct str key, const struct json *config);
} ins[N_IN] = {
    [IN_APP]       = {"zedagent", "AppInstanceConfig", application_configure},
    [IN_VOLUME]    = {"zedagent", "VolumeConfig", volume_configure},
    [IN_CONTENT]   = {"zedagent", "ContentTreeConfig", content_configure},
    [IN_DATASTORE] = {"zedagent", "DatastoreConfig", NULL},
    [IN_NETWORK]   = {"zedagent", "NetworkInstanceConfig", network_configure},
    [IN_AGENT]     = {"zedagent", "ZedAgentStatus", NULL},
    [IN_PORTS]     = {"nim",      "DeviceNetworkStatus", NULL},
    [IN_IO]        = {"zedagent", "PhysicalIOAdapterList", NULL},
};

static const struct {
    const char *agent, *topic;
    bool is_for_others; /* nobody within a simulated device reads it */
} outs[N_OUT] = {
    [OUT_APP]                = {"zedmanager", "AppInstanceStatus", false},
    [OUT_SUMMARY]            = {"zedmanager", "AppInstanceSummary", false},
    [OUT_APP_NETWORK_CONFIG] = {"zedmanager", "AppNetworkConfig", true},
    [OUT_CONTENT]            = {"volumemgr",  "ContentTreeStatus", false},
    [OUT_VOLUME]             = {"volumemgr",  "VolumeStatus", false},
    [OUT_BLOB]               = {"volumemgr",  "BlobStatus", true},
    [OUT_DOWNLOAD]           = {"downloader", "DownloaderStatus", true},
    [OUT_APP_DISK]           = {"volumemgr",  "AppDiskMetric", false},
    [OUT_DOMAIN]             = {"domainmgr",  "DomainStatus", true},
    [OUT_DOMAIN_METRIC]      = {"domainmgr",  "DomainMetric", false},
    [OUT_HOST_MEMORY]        = {"domainmgr",  "HostMemory", false},
    [OUT_ADAPTERS]           = {"domainmgr",  "AssignableAdapters", true},
    [OUT_NETWORK]            = {"zedrouter",  "NetworkInstanceStatus", false},
    [OUT_APP_NETWORK]        = {"zedrouter",  "AppNetworkStatus", false},
    [OUT_NETWORK_METRIC]     = {"zedrouter",  "NetworkInstanceMetrics", false},
    [OUT_PORT_METRIC]        = {"zedrouter",  "NetworkMetrics", false},
};
/* clang-format on */

/* ---- in ------------------------------------------------------------------------------------ */

/* Which topic a handler is called for: subscriptions have one argument, and there is one of these
 * for each. */
struct input {
    struct apps *apps;
    enum apps_in which;
};

static void take_agent(struct apps *a, const struct json *status)
{
    int64_t got = json_get_int(status, STR("ConfigGetStatus"), 0);
    struct str profile = json_get_str(status, STR("CurrentProfile"));
    a->has_config |= got == 1 || got == 4;
    if (!str_eq(profile, str_of(a->profile ? a->profile : ""))) {
        mem_free(a->profile);
        a->profile = str_dup(profile);
        LIST_FOR_EACH (&a->applications, item) {
            struct application *p = CONTAINER_OF(item, struct application, link);
            ARENA_AUTO arena = arena_new();
            application_set_activity(p, topics_get(arena, a, IN_APP, str_of(p->id)));
        }
    }
}

static void on_value(void *arg, struct str key, const struct json *value)
{
    struct input *in = arg;
    if (ins[in->which].configure)
        ins[in->which].configure(in->apps, key, value);
    else if (in->which == IN_AGENT)
        take_agent(in->apps, value);
    else if (in->which == IN_IO || in->which == IN_PORTS)
        assignable_publish(in->apps);
    apps_reconcile_soon(in->apps);
}

static void on_changed(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) old;
    on_value(arg, key, value);
}

static void on_gone(void *arg, struct str key, const struct json *last)
{
    struct input *in = arg;
    (void) last;
    if (ins[in->which].configure)
        ins[in->which].configure(in->apps, key, NULL);
    apps_reconcile_soon(in->apps);
}

static void on_synchronized(void *arg)
{
    apps_reconcile_soon(((struct input *) arg)->apps);
}

static int subscribe(struct apps *a, enum apps_in which)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_value,
        .on_modify = on_changed,
        .on_delete = on_gone,
        .on_synchronized = on_synchronized,
    };
    a->inputs[which] = NEW(struct input);
    *a->inputs[which] = (struct input){a, which};
    struct pubsub_name name = {.agent = str_of(ins[which].agent),
                               .topic = str_of(ins[which].topic)};
    return subscription_new(a->node->pubsub, &name, &handlers, a->inputs[which], &a->in[which]);
}

struct json *topics_get(struct arena *arena, const struct apps *a, enum apps_in which,
                        struct str key)
{
    return a->in[which] ? subscription_get(arena, a->in[which], key) : NULL;
}

/* ---- out ----------------------------------------------------------------------------------- */

static int open_out(struct apps *a, enum apps_out which)
{
    struct pubsub_name name = {.agent = str_of(outs[which].agent),
                               .topic = str_of(outs[which].topic)};
    return publication_new(a->node->pubsub, &name, &a->out[which]);
}

/* A simulated device makes a publication when there is something to tell: those who wait for it are
 * told at once, and most of thousands have little to say. */
static struct publication *out_of(struct apps *a, enum apps_out which)
{
    if (!a->out[which] && a->node->is_simulated && !outs[which].is_for_others)
        (void) open_out(a, which);
    return a->out[which];
}

void topics_publish(struct apps *a, enum apps_out which, struct str key, const struct json *value)
{
    struct publication *p = out_of(a, which);
    int r = p ? publication_publish(p, key, value) : 0;
    if (r < 0)
        log_warning("cannot publish", LOG_TEXT("topic", outs[which].topic), LOG_STR("key", key),
                    LOG_ERRNO(r));
}

void topics_unpublish(struct apps *a, enum apps_out which, struct str key)
{
    if (a->out[which])
        (void) publication_unpublish(a->out[which], key);
}

void topics_keep(struct apps *a, enum apps_out which,
                 bool (*is_known)(struct apps *a, struct str key))
{
    ARENA_AUTO arena = arena_new();
    struct str *gone = NULL, key, text;
    size_t n = 0, position = 0;
    while (a->out[which] && publication_next(a->out[which], &position, &key, &text)) {
        if (is_known(a, key))
            continue;
        gone = arena_grow(arena, gone, n, sizeof(*gone));
        gone[n++] = arena_str(arena, key);
    }
    for (size_t i = 0; i < n; i++)
        topics_unpublish(a, which, gone[i]);
}

static bool is_read(const struct apps *a, int which)
{
    if (which == IN_IO)
        return !a->node->is_simulated;
    return which != IN_PORTS || a->options.network || !a->node->is_simulated;
}

int apps_topics_open(struct apps *a)
{
    int r = 0;
    for (int i = 0; r >= 0 && i < N_OUT && !a->node->is_simulated; i++)
        r = open_out(a, (enum apps_out) i);
    for (int i = 0; r >= 0 && i < N_IN; i++)
        if (is_read(a, i))
            r = subscribe(a, (enum apps_in) i);
    return r;
}

void apps_topics_close(struct apps *a)
{
    for (int i = 0; i < N_IN; i++) {
        subscription_free(a->in[i]);
        mem_free(a->inputs[i]);
    }
    for (int i = 0; i < N_OUT; i++)
        publication_free(a->out[i]);
}

/* ---- values -------------------------------------------------------------------------------- */

void put(struct arena *a, struct json *o, const char *name, struct json value)
{
    (void) json_append_member(a, o, str_of(name), value);
}

void put_str(struct arena *a, struct json *o, const char *name, struct str value)
{
    put(a, o, name, json_string(value.p ? value : STR("")));
}

void put_int(struct arena *a, struct json *o, const char *name, int64_t value)
{
    put(a, o, name, json_int(value));
}

void put_bool(struct arena *a, struct json *o, const char *name, bool value)
{
    put(a, o, name, json_bool(value));
}

void put_time(struct arena *a, struct json *o, const char *name, int64_t wall_us)
{
    put(a, o, name, *node_json_time(a, wall_us));
}

void put_copy(struct arena *a, struct json *o, const struct json *from, const char *name)
{
    const struct json *value = json_get(from, str_of(name));
    if (value)
        put(a, o, name, *value);
}

void put_uuid_and_version(struct arena *a, struct json *o, struct str uuid, struct str version)
{
    struct json both = json_object();
    put_str(a, &both, "UUID", uuid);
    put_str(a, &both, "Version", version);
    put(a, o, "UUIDandVersion", both);
}

#define SEVERITY_ERROR 3

void put_trouble(struct arena *a, struct json *o, const struct trouble *t, const char *source)
{
    bool is_any = t && t->text;
    if (source)
        put_str(a, o, "ErrorSourceType", is_any ? str_of(source) : STR(""));
    put_str(a, o, "Error", is_any ? str_of(t->text) : STR(""));
    put_time(a, o, "ErrorTime", is_any ? t->since_us : 0);
    put_int(a, o, "ErrorSeverity", is_any ? SEVERITY_ERROR : 0);
    put_str(a, o, "ErrorRetryCondition",
            is_any && t->retry_us ? STR("it is tried again by itself") : STR(""));
    put(a, o, "ErrorEntities", json_null());
}

struct json json_ipv4(struct arena *a, uint32_t address)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr in = {htonl(address)};
    if (!address || !inet_ntop(AF_INET, &in, text, sizeof(text)))
        return json_string(STR(""));
    return json_string(arena_str(a, str_of(text)));
}

struct json json_mac(struct arena *a, const unsigned char mac[6])
{
    return json_string(base64_encode(a, str_range((const char *) mac, 6), BASE64_STANDARD));
}
