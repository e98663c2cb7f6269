/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation that names the DeviceNetworks of an Application: "a,b@eth1", or the JSON list
 * form, as the Network Plumbing Working Group writes it. */
#pragma once

#include "json/json.h"

#define NETWORKS_ANNOTATION STR("k8s.v1.cni.cncf.io/networks")
#define NETWORKS_MAX 64

struct network_choice {
    struct str namespace; /* STR_NONE: the Application's */
    struct str name;
    struct str interface; /* STR_NONE: not said */
};

struct network_choices {
    struct network_choice items[NETWORKS_MAX];
    size_t n;
};

/* NULL, or (static) what is wrong. */
const char *networks_parse(struct arena *a, struct str text, struct network_choices *ret);
