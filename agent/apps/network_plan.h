/* SPDX-License-Identifier: Apache-2.0 */
/* What programs are run to make networks on Linux: iproute2 for bridges, namespaces and interfaces,
 * nft for translation and rules. Pure functions: nothing is run here. */
#pragma once

#include "apps/network.h"
#include "apps/network_hosts.h"
#include "base/buf.h"

#define PLAN_MAX_WORDS 16
#define PLAN_PREFIX_BYTES 7 /* with its NUL */
#define PLAN_OWN_BYTES 7    /* of a bridge's name, behind the prefix */

struct plan_step {
    const char *words[PLAN_MAX_WORDS + 1]; /* NULL at the end */
    bool may_fail;                         /* it may be so already */
};

struct plan {
    struct arena *arena;
    const char *prefix;
    struct plan_step *steps;
    size_t n_steps;
};

void plan_bridge_name(const char *prefix, struct str instance, char out[NETWORK_NAME_BYTES]);
void plan_interface_name(const char *prefix, struct str app, unsigned index,
                         char out[NETWORK_NAME_BYTES]);
struct str plan_namespace(struct arena *a, const char *prefix, struct str app);

/* Each adds its steps; all may be repeated. */
void plan_open_instance(struct plan *p, const struct network_instance *i);
void plan_close_instance(struct plan *p, struct str id);
/* The networks of its interfaces, in their order; NULL: one that is not there. */
void plan_open_app(struct plan *p, const struct network_app *app,
                   const struct network_instance *const *networks);
void plan_close_app(struct plan *p, struct str id, size_t n_interfaces);
void plan_remove_link(struct plan *p, const char *name);
void plan_remove_namespace(struct plan *p, const char *name);

struct plan_wishes {
    const struct network_instance *const *networks;
    size_t n_networks;
    const struct network_app *const *apps;
    size_t n_apps;
    const struct hosts *hosts; /* all that rules name; NULL: none */
};
/* The whole rule set of one agent, replacing what it had. What cannot be said to nft (a port's name
 * with odd characters) is left out. */
void plan_rules(struct buf *to, const char *prefix, const struct plan_wishes *wishes);
/* Only this: the addresses of a host, added to those that rules have. */
void plan_host(struct buf *to, const char *prefix, const struct hosts_host *host);
/* "10.0.0.0/8" or an address; no network of IPv4 otherwise. */
bool plan_is_network(struct str text);
