/* SPDX-License-Identifier: Apache-2.0 */
/* What a message is made from: the topics of all services and what the machine and zedagent know,
 * looked at when they are asked for. Everything lives in one arena, which goes with the message. */
#pragma once

#include "machine/machine.h"
#include "node/items.h"
#include "zedagent/zedagent.h"

enum report_topic {
    REPORT_ZEDAGENT,
    REPORT_NETWORK,
    REPORT_PORT_CONFIGS,
    REPORT_NODEAGENT,
    REPORT_BASE_OS,
    REPORT_BASE_OS_MANAGER,
    REPORT_ZBOOT,
    REPORT_APP,
    REPORT_APP_CONFIG,
    REPORT_NETWORK_INSTANCE,
    REPORT_NETWORK_INSTANCE_METRICS,
    REPORT_NETWORK_METRICS,
    REPORT_FLOW,
    REPORT_CONTAINER_METRICS,
    REPORT_ADAPTERS,
    REPORT_DOMAIN_METRIC,
    REPORT_PROCESS_METRIC,
    REPORT_HOST_MEMORY,
    REPORT_CAPABILITIES,
    REPORT_CONTENT,
    REPORT_VOLUME,
    REPORT_BLOB,
    REPORT_DISK_METRIC,
    REPORT_APP_DISK_METRIC,
    REPORT_VAULT,
    REPORT_METADATA,
    REPORT_PATCH_USAGE,
    REPORT_PATCH,
    REPORT_PATCH_LIST,
    REPORT_WWAN_METRICS,
    REPORT_WWAN_LOCATION,
    REPORT_EDGEVIEW,
    REPORT_NEWLOG,
    REPORT_LOGUPLOADER,
    REPORT_POOL,
    REPORT_CERTS,
    REPORT_LOC,
    /* MetricsMap of each service but zedagent, whose own is at hand. */
    REPORT_MAP_CLIENT,
    REPORT_MAP_LOGUPLOADER,
    REPORT_MAP_DOWNLOADER,
    REPORT_MAP_DIAG,
    REPORT_MAP_NIM,
    REPORT_MAP_ZEDROUTER,
    REPORT_MAP_MGMTPROXY,
    /* CipherMetrics. */
    REPORT_CIPHER_DOWNLOADER,
    REPORT_CIPHER_DOMAINMGR,
    REPORT_CIPHER_NIM,
    REPORT_CIPHER_ZEDROUTER,
    REPORT_CIPHER_WWAN,
    REPORT_TOPICS,
};
#define REPORT_FIRST_MAP REPORT_MAP_CLIENT
#define REPORT_LAST_MAP REPORT_MAP_MGMTPROXY
#define REPORT_FIRST_CIPHER REPORT_CIPHER_DOWNLOADER
#define REPORT_LAST_CIPHER REPORT_CIPHER_WWAN

struct report_flow_counts {
    uint64_t messages, flows, requests;
};

/* What no topic tells. */
struct report_ground {
    struct str device; /* UUID, text */
    struct machine *machine;
    struct zedagent_facts facts;
    const struct items *items;
    const char *persist_directory;
    unsigned char root_hash[32]; /* of root-certificate.pem */
    bool has_root_hash, is_remote_access_disabled;
    struct str own_metrics; /* zedagent's MetricsMap, text; empty: none */
    struct {
        struct report_flow_counts delivered, dropped, failed;
    } flowlog;
};

struct world {
    struct arena *arena;
    int64_t now_us; /* wall */
    const struct report_ground *ground;
    /* All values of a topic as an object by key; NULL: none. */
    struct json *(*load)(void *arg, struct arena *a, enum report_topic topic);
    void *arg;

    /* Looked at already. */
    struct json *topics[REPORT_TOPICS];
    bool is_loaded[REPORT_TOPICS];
    struct machine_identity *identity;
    struct machine_load *machine_load;
    struct machine_interface *interfaces;
    size_t n_interfaces;
    bool has_interfaces;
};

/* Never NULL: an empty object where nobody publishes. */
const struct json *world_topic(struct world *w, enum report_topic topic);
/* NULL: no such key. */
const struct json *world_value(struct world *w, enum report_topic topic, struct str key);
/* The value of topics that have one: key `global`, or whatever it is. */
const struct json *world_only(struct world *w, enum report_topic topic);
const struct machine_identity *world_identity(struct world *w);
const struct machine_load *world_load(struct world *w);
const struct machine_interface *world_interfaces(struct world *w, size_t *ret_n);
const struct machine_interface *world_interface(struct world *w, struct str name);
/* Port of DeviceNetworkStatus by its logical label; NULL: none. */
const struct json *world_port(struct world *w, struct str label);
/* Member of AssignableAdapters by the value of one of its fields; NULL: none. */
const struct json *world_adapter(struct world *w, const char *field, struct str value);

struct report;
/* A world over the topics that the reporter reads; ends with its arena. */
struct report_view {
    struct world world;
    struct report_ground ground;
};
void report_view_init(struct report *r, struct arena *a, struct report_view *v);
