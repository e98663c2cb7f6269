/* SPDX-License-Identifier: Apache-2.0 */
/* A device port configuration: which ports there are, which of them lead to the controller, how
 * they get their addresses, and what became of it when it was last tested. Its JSON is that of the
 * topic DevicePortConfig, of 2025 or later; what is not understood is kept and handed on. Nothing
 * here touches the network. */
#pragma once

#include "node/node.h"
#include "json/json.h"

#define DPC_MAX_PORTS UPLINK_MAX_PORTS
#define DPC_MAX_CONFIG_BYTES ((size_t) 1024 * 1024) /* of all ports, as JSON */
#define DPC_MAX_KEY_BYTES 128
#define DPC_MAX_WORDS_BYTES 1024 /* of an error or warning */
/* A configuration that has failed is left alone for so long. */
#define DPC_MIN_SINCE_FAILURE_US ((int64_t) 300 * 1000 * 1000)

#define DPC_KEY_LAST_RESORT "lastresort"
#define DPC_KEY_MANUAL "manual"
#define DPC_KEY_LPS "lps"

/* Of the EVE API, as JSON and info carry it. */
enum dpc_origin {
    DPC_ORIGIN_UNSPECIFIED = 0,
    DPC_ORIGIN_CONTROLLER = 1,
    DPC_ORIGIN_BOOTSTRAP = 2,
    DPC_ORIGIN_OVERRIDE = 3,
    DPC_ORIGIN_LAST_RESORT = 4,
    DPC_ORIGIN_MANUAL = 5,
    DPC_ORIGIN_LPS = 7,
};

/* Wall times, 0: never. Words are owned; NULL: none. */
struct dpc_results {
    int64_t failed_us, succeeded_us;
    char *error, *warning;
};

struct dpc_port {
    char *name, *label; /* of the interface; logical */
    bool is_management, is_l3, has_invalid_config;
    bool is_cellular;          /* with something configured */
    bool allows_local_changes; /* AllowLocalModifications */
    int wireless_type;         /* of WirelessCfg; 0: it has a cable */
    int dhcp;                  /* of enum machine_dhcp */
    int link_error; /* negative errno: its interface, a VLAN or bond, could not be made */
    int64_t submitted_us;
    struct dpc_results results;
};

/* Few and long-lived, thousands of devices in a process: what is only handed on is kept as text. */
struct dpc {
    unsigned version;
    char *key;
    int64_t priority_us; /* TimePriority, wall time: the later the better */
    enum node_network_state state;
    struct dpc_results results;
    int64_t ip_and_dns_us;
    char *config; /* the array of ports without results: members sorted, nothing that is zero */
    size_t config_bytes;
    struct dpc_port *ports;
    size_t n_ports;
};

struct dpc_defaults {
    struct str key;      /* where there is none */
    int64_t priority_us; /* the same */
    enum dpc_origin origin;
    int64_t submitted_us;
};

/* -EINVAL: no object, or ports that are none; -E2BIG: beyond the limits. Labels and flags that are
 * missing are filled in. */
int dpc_read(const struct json *v, const struct dpc_defaults *or_else, struct dpc **ret);
struct json *dpc_write(struct arena *a, const struct dpc *d);
/* The ports as they are configured: objects in their order. */
struct json *dpc_config(struct arena *a, const struct dpc *d);
/* All that may be said nearby of the one is as the other has it: a unit, so that what the other
 * does not say is not said. */
void dpc_cover_port(struct arena *a, struct json *port, const struct json *by);
/* NULL allowed. */
void dpc_free(struct dpc *d);
DEFINE_CLEANUP(struct dpc *, dpc_free)

/* RFC 3339 as Go writes it, trailing zeros of the fraction dropped. */
struct json dpc_time(struct arena *a, int64_t wall_us);
/* 0 is Go's zero time. */
struct json dpc_time_or_never(struct arena *a, int64_t wall_us);

bool dpc_is_from_controller(const struct dpc *d);
bool dpc_is_manual(const struct dpc *d);
bool dpc_is_last_resort(const struct dpc *d);
/* Same key and ports, whatever was tested and whenever it was made. */
bool dpc_has_same_content(const struct dpc *d, const struct dpc *other);
/* Leads to the controller, in a version that says so for each port, or in one that does not. */
bool dpc_port_is_management(const struct dpc *d, const struct dpc_port *p);
struct dpc_port *dpc_find_port(const struct dpc *d, struct str name);

/* Some management port that can be used. */
bool dpc_is_usable(const struct dpc *d);
/* Usable, and not known to have failed a short while ago. */
bool dpc_is_testable(const struct dpc *d, int64_t wall_us);
bool dpc_is_untested(const struct dpc *d);
/* Succeeded after it had last failed. */
bool dpc_was_working(const struct dpc *d);

void dpc_results_succeed(struct dpc_results *r, int64_t wall_us, struct str warning);
void dpc_results_fail(struct dpc_results *r, int64_t wall_us, struct str error);
void dpc_results_clear(struct dpc_results *r);
/* It was found of something else. */
void dpc_results_forgive(struct dpc_results *r);
/* Takes over what another configuration of the same content has been through. */
void dpc_take_results(struct dpc *d, struct dpc *from);
