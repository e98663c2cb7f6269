/* SPDX-License-Identifier: Apache-2.0 */
#include "msrv/topics.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/alloc.h"
#include "msrv/envelopes.h"
#include "msrv/usage.h"
#include "pubsub/publication.h"
#include "pubsub/subscription.h"

#define GLOBAL STR("global")
#define META_DATA_OPENSTACK 2

enum topic {
    CONFIG_ITEMS,
    EDGE_NODE_INFO,
    CONTROLLER_CERT,
    EDGE_NODE_CERT,
    APP_NETWORK_STATUS,
    APP_NETWORK_CONFIG,
    APP_NETWORK_CONFIG_EARLY, /* before zedmanager has passed it on */
    NETWORK_INSTANCE_STATUS,
    DEVICE_NETWORK_STATUS,
    NETWORK_METRICS,
    WWAN_STATUS,
    WWAN_METRICS,
    WWAN_LOCATION,
    DOMAIN_STATUS,
    PATCH_ENVELOPES,
    N_TOPICS,
};

/* clang-format off */
static const struct {
    const char *agent, *topic;
    bool is_persistent;
} topics[N_TOPICS] = {
    [CONFIG_ITEMS]             = {"zedagent",   "ConfigItemValueMap", false},
    [EDGE_NODE_INFO]           = {"zedagent",   "EdgeNodeInfo", false},
    [CONTROLLER_CERT]          = {"zedagent",   "ControllerCert", false},
    [EDGE_NODE_CERT]           = {"tpmmgr",     "EdgeNodeCert", true},
    [APP_NETWORK_STATUS]       = {"zedrouter",  "AppNetworkStatus", false},
    [APP_NETWORK_CONFIG]       = {"zedmanager", "AppNetworkConfig", false},
    [APP_NETWORK_CONFIG_EARLY] = {"zedagent",   "AppNetworkConfig", false},
    [NETWORK_INSTANCE_STATUS]  = {"zedrouter",  "NetworkInstanceStatus", false},
    [DEVICE_NETWORK_STATUS]    = {"nim",        "DeviceNetworkStatus", false},
    [NETWORK_METRICS]          = {"zedrouter",  "NetworkMetrics", false},
    [WWAN_STATUS]              = {"wwan",       "WwanStatus", false},
    [WWAN_METRICS]             = {"wwan",       "WwanMetrics", false},
    [WWAN_LOCATION]            = {"wwan",       "WwanLocationInfo", false},
    [DOMAIN_STATUS]            = {"domainmgr",  "DomainStatus", false},
    [PATCH_ENVELOPES]          = {"zedagent",   "PatchEnvelopeInfoList", true},
};
/* clang-format on */

struct msrv_topics {
    struct msrv_topics_options options;
    struct subscription *subscriptions[N_TOPICS];
    struct publication *metadata;
    struct usage *usage;
    struct msrv *msrv;
    struct msrv_rate rate;
};

/* ---- config items --------------------------------------------------------------------------- */

static uint32_t read_item(const struct json *settings, const char *name, uint32_t or_else)
{
    const struct json *item = json_get(settings, str_of(name));
    int64_t value = json_get_int(item, STR("IntValue"), or_else);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t) value : or_else;
}

static void take_items(struct msrv_topics *t, const struct json *items)
{
    const struct json *settings = json_get(items, STR("GlobalSettings"));
    const struct msrv_rate *d = &msrv_default_rate;
    t->rate = (struct msrv_rate){
        .per_second = read_item(settings, "msrv.prometheus.metrics.rps", d->per_second),
        .burst = read_item(settings, "msrv.prometheus.metrics.burst", d->burst),
        .idle_timeout_s =
            read_item(settings, "msrv.prometheus.metrics.idletimeout.seconds", d->idle_timeout_s),
    };
    if (t->msrv)
        msrv_set_rate(t->msrv, &t->rate);
}

static void on_items(void *arg, struct str key, const struct json *value)
{
    if (str_eq(key, GLOBAL))
        take_items(arg, value);
}

static void on_items_changed(void *arg, struct str key, const struct json *value,
                             const struct json *old)
{
    (void) old;
    on_items(arg, key, value);
}

static void on_items_gone(void *arg, struct str key, const struct json *last)
{
    (void) last;
    on_items(arg, key, NULL);
}

void msrv_topics_follow(struct msrv_topics *t, struct msrv *m)
{
    t->msrv = m;
    if (m)
        msrv_set_rate(m, &t->rate);
}

/* ---- applications --------------------------------------------------------------------------- */

static bool has_address(const struct json *list, struct str address)
{
    JSON_FOR_EACH_ITEM (list, item) {
        if (str_eq(json_get_str(item, STR("Address")), address))
            return true;
    }
    return false;
}

/* The adapter that has the address; one of the network before others. */
static const struct json *find_adapter(const struct json *status, struct str network,
                                       struct str address)
{
    const struct json *found = NULL;
    JSON_FOR_EACH_ITEM (json_get(status, STR("AppNetAdapterList")), adapter) {
        const struct json *assigned = json_get(adapter, STR("AssignedAddresses"));
        if (!has_address(json_get(assigned, STR("IPv4Addrs")), address) &&
            !has_address(json_get(assigned, STR("IPv6Addrs")), address))
            continue;
        if (str_eq(json_get_str(adapter, STR("Network")), network))
            return adapter;
        found = found ? found : adapter;
    }
    return found;
}

/* Only what has the address somewhere in its text is worth parsing: applications ask often. */
static const struct json *find_status(const struct msrv_topics *t, struct arena *a,
                                      struct str network, struct str address,
                                      const struct json **ret_adapter)
{
    const struct json *found = NULL;
    size_t position = 0;
    struct str key, text;
    while (subscription_next(t->subscriptions[APP_NETWORK_STATUS], &position, &key, &text)) {
        if (str_find_str(text, address) < 0)
            continue;
        const struct json *status = json_parse_quick(a, text);
        const struct json *adapter = status ? find_adapter(status, network, address) : NULL;
        if (!adapter || (found && !str_eq(json_get_str(adapter, STR("Network")), network)))
            continue;
        found = status;
        *ret_adapter = adapter;
        if (str_eq(json_get_str(adapter, STR("Network")), network))
            break;
    }
    return found;
}

static void read_config(const struct msrv_topics *t, struct arena *a, struct msrv_app *app)
{
    const struct json *config =
        subscription_get(a, t->subscriptions[APP_NETWORK_CONFIG], app->uuid);
    if (!config)
        config = subscription_get(a, t->subscriptions[APP_NETWORK_CONFIG_EARLY], app->uuid);
    if (!config)
        return;
    const struct json *cipher = json_get(config, STR("CipherBlockStatus"));
    app->has_config = true;
    app->is_openstack = json_get_int(config, STR("MetaDataType"), 0) == META_DATA_OPENSTACK;
    app->user_data = json_get_str(config, STR("pubsub-large-CloudInitUserData"));
    if (json_get_bool(cipher, STR("IsCipher"), false))
        app->user_data_cipher = cipher;
}

static int find_app(void *ctx, struct arena *a, struct str network, struct str address,
                    struct msrv_app *ret)
{
    const struct msrv_topics *t = ctx;
    const struct json *adapter = NULL;
    const struct json *status = find_status(t, a, network, address, &adapter);
    struct str uuid = json_get_str(json_get(status, STR("UUIDandVersion")), STR("UUID"));
    if (!uuid.n)
        return -ENOENT;
    *ret = (struct msrv_app){
        .uuid = uuid,
        .name = json_get_str(status, STR("DisplayName")),
        .network = json_get_str(adapter, STR("Network")),
        .can_discover = json_get_bool(adapter, STR("AllowToDiscover"), false),
    };
    read_config(t, a, ret);
    return 0;
}

/* ---- its network ---------------------------------------------------------------------------- */

static bool has_label(const struct json *labels, struct str label)
{
    JSON_FOR_EACH_ITEM (labels, item) {
        if (label.n && str_eq(json_str(item), label))
            return true;
    }
    return false;
}

/* 169.254.0.0/16 is no address that others could reach. */
static bool is_external_ipv4(struct arena *a, struct str address)
{
    struct in_addr parsed;
    return address.n && inet_pton(AF_INET, arena_strz(a, address), &parsed) == 1 &&
           (ntohl(parsed.s_addr) >> 16) != 0xa9fe && parsed.s_addr != 0;
}

struct addresses {
    struct str *items;
    size_t n;
};

static void add_addresses(struct arena *a, struct addresses *out, const struct json *port)
{
    JSON_FOR_EACH_ITEM (json_get(port, STR("AddrInfoList")), info) {
        struct str address = json_get_str(info, STR("Addr"));
        if (!is_external_ipv4(a, address))
            continue;
        out->items = arena_grow(a, out->items, out->n, sizeof(*out->items));
        out->items[out->n++] = address;
    }
}

static int external_ipv4(void *ctx, struct arena *a, const struct msrv_app *app,
                         struct str **ret_addresses, size_t *ret_n)
{
    const struct msrv_topics *t = ctx;
    struct addresses found = {0};
    const struct json *network =
        app->network.n
            ? subscription_get(a, t->subscriptions[NETWORK_INSTANCE_STATUS], app->network)
            : NULL;
    const struct json *labels = json_get(network, STR("Ports"));
    if (json_count(labels) == 0)
        return -ENOENT;
    const struct json *status =
        subscription_get(a, t->subscriptions[DEVICE_NETWORK_STATUS], GLOBAL);
    if (!status)
        return -ENODEV;
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port) {
        if (has_label(labels, json_get_str(port, STR("Logicallabel"))))
            add_addresses(a, &found, port);
    }
    *ret_addresses = found.items;
    *ret_n = found.n;
    return 0;
}

/* ---- neighbours ----------------------------------------------------------------------------- */

struct neighbours {
    struct msrv_neighbour *items;
    size_t n;
};

static void add_neighbour(struct arena *a, struct neighbours *out, const struct msrv_neighbour *one)
{
    out->items = arena_grow(a, out->items, out->n, sizeof(*out->items));
    out->items[out->n++] = *one;
}

static void add_list(struct arena *a, struct neighbours *out, const struct msrv_neighbour *app,
                     const struct json *list)
{
    JSON_FOR_EACH_ITEM (list, item) {
        struct msrv_neighbour one = *app;
        one.address = json_get_str(item, STR("Address"));
        if (one.address.n)
            add_neighbour(a, out, &one);
    }
}

static void add_app(struct arena *a, struct neighbours *out, const struct json *status)
{
    struct msrv_neighbour app = {
        .app_uuid = json_get_str(json_get(status, STR("UUIDandVersion")), STR("UUID"))};
    if (!app.app_uuid.n)
        return;
    add_neighbour(a, out, &app);
    JSON_FOR_EACH_ITEM (json_get(status, STR("AppNetAdapterList")), adapter) {
        const struct json *assigned = json_get(adapter, STR("AssignedAddresses"));
        app.port = json_get_str(adapter, STR("Vif"));
        add_list(a, out, &app, json_get(assigned, STR("IPv4Addrs")));
        add_list(a, out, &app, json_get(assigned, STR("IPv6Addrs")));
    }
}

static int neighbours(void *ctx, struct arena *a, struct msrv_neighbour **ret, size_t *ret_n)
{
    const struct msrv_topics *t = ctx;
    struct neighbours found = {0};
    size_t position = 0;
    struct str key, text;
    while (subscription_next(t->subscriptions[APP_NETWORK_STATUS], &position, &key, &text))
        add_app(a, &found, json_parse_quick(a, text));
    *ret = found.items;
    *ret_n = found.n;
    return 0;
}

/* ---- blobs ---------------------------------------------------------------------------------- */

static int blobs(void *ctx, struct arena *a, const struct msrv_app *app, struct msrv_blob **ret,
                 size_t *ret_n)
{
    const struct msrv_topics *t = ctx;
    const struct json *status = subscription_get(a, t->subscriptions[DOMAIN_STATUS], app->uuid);
    const struct json *disks = json_get(status, STR("DiskStatusList"));
    struct msrv_blob *list = ARENA_ARRAY(a, struct msrv_blob, json_count(disks) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (disks, disk) {
        struct str path = json_get_str(disk, STR("FileLocation"));
        if (!str_is(json_get_str(disk, STR("Devtype")), "AppCustom"))
            continue;
        list[n++] = (struct msrv_blob){
            .name = json_get_str(disk, STR("DisplayName")),
            .custom_meta = json_get_str(disk, STR("CustomMeta")),
            .path = path.n ? arena_strz(a, path) : NULL,
        };
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

/* ---- the rest of what topics tell ----------------------------------------------------------- */

static bool is_ready(void *ctx)
{
    const struct msrv_topics *t = ctx;
    return subscription_count(t->subscriptions[EDGE_NODE_CERT]).n_keys > 0 &&
           subscription_count(t->subscriptions[CONTROLLER_CERT]).n_keys > 0 &&
           subscription_count(t->subscriptions[EDGE_NODE_INFO]).n_keys > 0;
}

static const struct json *document(void *ctx, struct arena *a, enum msrv_document which)
{
    static const enum topic of[] = {
        [MSRV_EDGE_NODE_INFO] = EDGE_NODE_INFO,
        [MSRV_LOCATION] = WWAN_LOCATION,
        [MSRV_WWAN_STATUS] = WWAN_STATUS,
        [MSRV_WWAN_METRICS] = WWAN_METRICS,
        [MSRV_DEVICE_NETWORK_STATUS] = DEVICE_NETWORK_STATUS,
        [MSRV_NETWORK_METRICS] = NETWORK_METRICS,
    };
    const struct msrv_topics *t = ctx;
    return subscription_get(a, t->subscriptions[of[which]], GLOBAL);
}

static int publish_metadata(void *ctx, struct str key, const struct json *value)
{
    struct msrv_topics *t = ctx;
    return publication_publish(t->metadata, key, value);
}

/* ---- patch envelopes ------------------------------------------------------------------------ */

static int envelopes(void *ctx, struct arena *a, const struct msrv_app *app,
                     struct msrv_envelope **ret, size_t *ret_n)
{
    const struct msrv_topics *t = ctx;
    *ret_n = envelopes_read(a, subscription_get(a, t->subscriptions[PATCH_ENVELOPES], GLOBAL),
                            app->uuid, ret);
    return 0;
}

static void count_patch(void *ctx, const struct msrv_app *app, const struct msrv_envelope *e,
                        enum msrv_patch_use use)
{
    struct msrv_topics *t = ctx;
    usage_count(t->usage, app, e, use);
}

/* ---- what no topic tells -------------------------------------------------------------------- */

static int decrypt_user_data(void *ctx, struct arena *a, const struct msrv_app *app,
                             struct str *ret)
{
    const struct msrv_topics_options *o = &((struct msrv_topics *) ctx)->options;
    return o->rest->decrypt_user_data ? o->rest->decrypt_user_data(o->rest_ctx, a, app, ret)
                                      : -EOPNOTSUPP;
}

static int sign(void *ctx, struct arena *a, struct str payload, struct str *ret)
{
    const struct msrv_topics_options *o = &((struct msrv_topics *) ctx)->options;
    return o->rest->sign ? o->rest->sign(o->rest_ctx, a, payload, ret) : -EOPNOTSUPP;
}

static int decrypt(void *ctx, struct arena *a, const struct msrv_patch_file *file, struct str *ret)
{
    const struct msrv_topics_options *o = &((struct msrv_topics *) ctx)->options;
    return o->rest->decrypt ? o->rest->decrypt(o->rest_ctx, a, file, ret) : -EOPNOTSUPP;
}

static int tpm_keys(void *ctx, struct arena *a, struct msrv_tpm_keys *ret)
{
    const struct msrv_topics_options *o = &((struct msrv_topics *) ctx)->options;
    return o->rest->tpm_keys ? o->rest->tpm_keys(o->rest_ctx, a, ret) : -EOPNOTSUPP;
}

static int tpm_activate(void *ctx, struct arena *a, const struct msrv_tpm_challenge *challenge,
                        struct msrv_tpm_proof *ret)
{
    const struct msrv_topics_options *o = &((struct msrv_topics *) ctx)->options;
    return o->rest->tpm_activate ? o->rest->tpm_activate(o->rest_ctx, a, challenge, ret)
                                 : -EOPNOTSUPP;
}

const struct msrv_world msrv_topics_world = {
    .is_ready = is_ready,
    .find_app = find_app,
    .external_ipv4 = external_ipv4,
    .document = document,
    .neighbours = neighbours,
    .blobs = blobs,
    .envelopes = envelopes,
    .count_patch = count_patch,
    .publish_metadata = publish_metadata,
    .decrypt_user_data = decrypt_user_data,
    .sign = sign,
    .decrypt = decrypt,
    .tpm_keys = tpm_keys,
    .tpm_activate = tpm_activate,
};

/* ---- life ----------------------------------------------------------------------------------- */

static int subscribe(struct msrv_topics *t, enum topic which)
{
    static const struct subscription_handlers none = {0};
    static const struct subscription_handlers items = {
        .on_create = on_items, .on_modify = on_items_changed, .on_delete = on_items_gone};
    struct pubsub_name name = {
        .agent = str_of(topics[which].agent),
        .topic = str_of(topics[which].topic),
        .is_persistent = topics[which].is_persistent,
    };
    return subscription_new(t->options.pubsub, &name, which == CONFIG_ITEMS ? &items : &none, t,
                            &t->subscriptions[which]);
}

int msrv_topics_new(const struct msrv_topics_options *o, struct msrv_topics **ret)
{
    static const struct msrv_world nothing = {0};
    struct msrv_topics *t = NEW(struct msrv_topics);
    t->options = *o;
    t->rate = msrv_default_rate;
    if (!t->options.rest)
        t->options.rest = &nothing;
    struct pubsub_name name = {
        .agent = STR("msrv"), .topic = STR("AppInstMetaData"), .is_persistent = true};
    int r = publication_new(o->pubsub, &name, &t->metadata);
    if (r >= 0)
        r = usage_new(o->pubsub, o->loop, o->usage_delay_ms, &t->usage);
    for (int i = 0; r >= 0 && i < N_TOPICS; i++)
        r = subscribe(t, (enum topic) i);
    if (r < 0) {
        msrv_topics_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void msrv_topics_close(struct msrv_topics *t)
{
    for (int i = 0; i < N_TOPICS; i++)
        subscription_free(TAKE(t->subscriptions[i]));
    usage_free(TAKE(t->usage));
    publication_free(TAKE(t->metadata));
}

void msrv_topics_free(struct msrv_topics *t)
{
    if (!t)
        return;
    msrv_topics_close(t);
    mem_free(t);
}
