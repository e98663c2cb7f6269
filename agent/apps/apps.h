/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out what zedagent publishes about applications, where EVE's zedmanager, volumemgr,
 * domainmgr and zedrouter are not: content, volumes, network instances, instances, on a runtime
 * behind its table of functions. Publishes what those services would. */
#pragma once

#include "node/node.h"
#include "runtime/runtime.h"

struct apps;
struct apps_network;
struct node_keys;
struct collector;

struct apps_options {
    /* Makes the runtime with these events; the arg is make_arg. */
    int (*make_runtime)(void *arg, const struct runtime_events *events, struct runtime **ret);
    void *make_arg;
    /* How network instances are made; NULL: nothing is made, and instances have only loopback. */
    struct apps_network *network;
    struct node_keys *keys;      /* secrets of datastores and user data; NULL: none can be read */
    struct collector *collector; /* takes what applications write; NULL: dropped */
};
int apps_new(struct node *n, const struct apps_options *o, struct apps **ret);
/* Instances of a process runtime go on. NULL allowed. */
void apps_free(struct apps *a);

struct apps_counts {
    size_t applications, running, halted, failed;
};
struct apps_counts apps_counts(const struct apps *a);

/* A bridge for each network instance with the metadata server at 169.254.169.254, a namespace with
 * an address for each application. -EPERM: it takes root. */
struct apps_network_options {
    struct node *node;
    const char *prefix; /* of names of bridges and namespaces; NULL: of the UUID */
};
int apps_network_linux_new(const struct apps_network_options *o, struct apps_network **ret);
void apps_network_free(struct apps_network *w);
