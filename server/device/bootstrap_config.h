/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration a device finds on its medium (bootstrap-config.pb): one port for management,
 * signed by the controller, so that a device without DHCP reaches it at all. */
#pragma once

#include "device/controller_certs.h"

#define BOOTSTRAP_MAX_SERVERS 16

struct bootstrap_port {
    struct str port;    /* "eth0" */
    struct str address; /* with the length of its prefix, "192.0.2.7/24"; empty: DHCP */
    struct str gateway; /* of a static address */
    struct str dns;     /* comma-separated, of a static address */
    struct str ntp, domain;
};

/* -EINVAL with *ret_error (heap): the options do not make a network. */
int bootstrap_config(struct arena *a, const struct bootstrap_port *p,
                     const struct controller_set *set, int64_t now_s, struct str *ret_message,
                     char **ret_error);
