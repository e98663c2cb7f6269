/* SPDX-License-Identifier: Apache-2.0 */
/* Info messages from topics. Each fills one member of the message and returns it whole. */
#pragma once

#include "report/make.h"

/* What a message is about: which kind, and the key of its topic. */
enum report_kind {
    KIND_DEVICE,
    KIND_APP,
    KIND_NETWORK_INSTANCE,
    KIND_VOLUME,
    KIND_CONTENT,
    KIND_BLOB,
    KIND_METADATA,
    KIND_HARDWARE,
    KIND_PATCH,
    KIND_EDGEVIEW,
    KIND_LOCATION,
    KIND_NTP,
    KINDS,
};

/* A source of time, as chrony lists it. */
struct ntp_source {
    char mode, state; /* its letters */
    struct str name;
    unsigned stratum, reach;
    int poll;
    double offset_s;
};

/* What an info message needs beside the world. */
struct info_subject {
    enum report_kind kind;
    struct str key;
    const struct json *last; /* of something that is gone: its last value; NULL: it is there */
    const struct ntp_source *ntp_sources;
    size_t n_ntp_sources;
};

/* NULL: there is nothing to say (it is gone, or belongs to another device). */
Eve__Info__ZInfoMsg *info_make(struct world *w, const struct info_subject *s);
/* Under which key of the queue, in the arena. */
struct str info_queue_key(struct world *w, const struct info_subject *s);

Eve__Info__ZInfoDevice *info_device(struct world *w);
void info_device_software(struct world *w, Eve__Info__ZInfoDevice *d); /* info_software.c */
void info_device_ports(struct world *w, Eve__Info__ZInfoDevice *d);    /* info_ports.c */
Eve__Info__ZCellularModuleInfo *info_cellular_module(struct world *w, const struct json *cellular);
Eve__Info__ZSimcardInfo *info_sim_card(struct world *w, const struct json *card, char *module_name);
Eve__Info__ZCellularProvider *info_provider(struct world *w, const struct json *item);
/* NULL: nobody says who made the configuration. */
Eve__Common__PortConfigSource *info_source(struct world *w, const struct json *source);
void info_device_adapters(struct world *w, Eve__Info__ZInfoDevice *d); /* info_adapters.c */
/* Into the bundle: members and addresses of a group of adapters, or of one. */
void info_adapter_members(struct world *w, Eve__Info__ZioBundle *to, struct str name);
Eve__Info__ProxyStatus *info_proxy(struct world *w, const struct json *port);
/* NULL: the port is no bond. */
Eve__Info__BondStatus *info_bond(struct world *w, const struct json *port);

Eve__Info__ZInfoApp *info_app(struct world *w, struct str key, const struct json *status);
Eve__Info__ZInfoNetworkInstance *info_network_instance(struct world *w, const struct json *status,
                                                       bool is_gone);
Eve__Info__ZInfoVolume *info_volume(struct world *w, const struct json *status, bool is_gone);
Eve__Info__ZInfoContentTree *info_content(struct world *w, const struct json *status, bool is_gone);
Eve__Info__ZInfoBlobList *info_blob(struct world *w, const struct json *status, bool is_gone);
Eve__Info__ZInfoHardware *info_hardware(struct world *w);
