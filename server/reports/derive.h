/* SPDX-License-Identifier: Apache-2.0 */
/* What a report makes of an object's status. Pure: a message and the object in, a status out; no
 * I/O, no clock. Every text of a device is cleaned and bounded on its way. */
#pragma once

#include "eve/info.pb-c.h"
#include "eve/metrics.pb-c.h"
#include "json/json.h"

#define DERIVE_MAX_ADDRESSES 32
#define DERIVE_MAX_STATUSES 32 /* changes of state that an Application remembers */
#define DERIVE_MAX_KUBECONFIG_BYTES ((size_t) 32 * 1024)
#define DERIVE_HEARTBEAT_US ((int64_t) 30 * 60 * 1000000)
#define DERIVE_MAX_EVENTS 16 /* of one report */

/* Something to tell about the object. */
struct derived_event {
    bool is_warning;
    const char *reason;
    struct str message;
    struct str key; /* tells events of one reason apart; STR_NONE: the object has one */
};

struct derivation {
    struct arena *arena;
    const struct json *object; /* as it is stored */
    struct json *status;       /* a copy of its status, changed in place */
    int64_t now_us;            /* by our clock */
    int64_t at_us;             /* of the report, by the device's */
    struct derived_event events[DERIVE_MAX_EVENTS];
    size_t n_events;
};
/* now_us and at_us are set by the caller. */
void derivation_init(struct derivation *d, struct arena *a, const struct json *object);
/* Whether the status is another than the object's. */
bool derivation_has_changed(const struct derivation *d);
void derive_event(struct derivation *d, bool is_warning, const char *reason, struct str message);

struct condition {
    const char *type, *status; /* "True", "False", "Unknown" */
    struct str reason, message;
};
/* The transition time moves only when the status does. True when anything changed. */
bool derive_condition(struct derivation *d, const struct condition *c);
/* NULL when it has none of that type. */
struct json *derive_find_condition(const struct json *status, const char *type);
struct str derive_condition_text(const struct json *status, const char *type, const char *key);
/* Sets a text, or removes the member when the text is empty. */
void derive_text(struct arena *a, struct json *object, const char *key, struct str text);

/* ---- Device ------------------------------------------------------------------------------- */

/* What a device says of itself that decides about Ready. */
struct device_word {
    uint8_t state;    /* ZDeviceState */
    uint16_t reasons; /* of maintenance mode: 1 << MaintenanceModeReason */
};
/* device.c: addresses, capacity, nodeInfo, version, what it rejects and applies, its health. */
struct device_word derive_device(struct derivation *d, const Eve__Info__ZInfoDevice *m);
void derive_base_os(struct derivation *d, const Eve__Info__ZInfoDevice *m); /* base_os.c */
/* base_os.c: the wanted version is another than that which the last report was judged by. */
void derive_base_os_target(struct derivation *d);
void derive_ports(struct derivation *d, const Eve__Info__ZInfoDevice *m);       /* ports.c */
void derive_health(struct derivation *d, const Eve__Info__ZInfoDevice *m);      /* health.c */
void derive_config_word(struct derivation *d, const Eve__Info__ZInfoDevice *m); /* config.c */
void derive_hardware(struct derivation *d, const Eve__Info__ZInfoHardware *m);  /* hardware.c */
/* hardware.c: what applications may use; whether the configuration was worked in. */
void derive_metrics(struct derivation *d, const Eve__Metrics__DeviceMetric *m);

enum contact_state { CONTACT_NEVER, CONTACT_SILENT, CONTACT_HEARD };
struct contact_view {
    enum contact_state contact;
    int64_t last_seen_us;
    struct device_word word;
};
/* ready.c. The heartbeat's time is left to derive_heartbeat(). */
void derive_ready(struct derivation *d, const struct contact_view *v);
/* Sets the heartbeat when the status changes anyway or the last one is too old. */
void derive_heartbeat(struct derivation *d, int64_t last_seen_us);

/* config.c: the configuration that the device was given; for the Device and for its DeviceConfig.
 */
struct delivery {
    struct str hash;
    int64_t at_us;               /* ours */
    int64_t version, rendered_s; /* of the DeviceConfig's status; 0: not known */
    bool is_confirmed;           /* the device has asked with this hash: it has it */
};
/* The metrics' last_received_config and last_processed_config. */
void derive_processed(struct derivation *d, int64_t received_us, int64_t processed_us);
void derive_delivery(struct derivation *d, const struct delivery *v);
void derive_delivered(struct derivation *d, const struct delivery *v); /* of the DeviceConfig */
void derive_attested(struct derivation *d, bool is_good, struct str message);
void derive_app_counts(struct derivation *d, size_t n_running, size_t n_wanted);

/* ---- others ------------------------------------------------------------------------------- */

/* application.c. A message that has only AppID says that the device has it no more. */
void derive_application(struct derivation *d, const Eve__Info__ZInfoApp *m);
/* What the device has of an Application. */
#define APP_GENERATION_ANY (-1) /* it has it; nobody says which */
struct app_delivery {
    bool is_current;    /* the device has the configuration that its DeviceConfig says */
    int64_t generation; /* of the Application in that configuration; 0: it does not have it */
};
void derive_app_delivery(struct derivation *d, const struct app_delivery *v);
/* The report that status.state comes from: older ones have nothing to add. */
int64_t derive_application_newest(const struct json *application);
void derive_volume(struct derivation *d, const Eve__Info__ZInfoVolume *m); /* volume.c */

/* What one device says of an object that several share. */
enum fact_state { FACT_GONE, FACT_PREPARING, FACT_READY, FACT_ERROR };
struct fact {
    enum fact_state state;
    struct str message; /* of an error */
    struct str device;  /* its name */
};
struct fact fact_of_content(struct arena *a, const Eve__Info__ZInfoContentTree *m); /* content.c */
struct fact fact_of_network(struct arena *a, const Eve__Info__ZInfoNetworkInstance *m);
/* shared.c: condition Ready over what all devices say. */
void derive_shared(struct derivation *d, const struct fact *facts, size_t n);

/* metadata.c: the Secret that holds what an application posted as its kubeconfig. */
struct str derive_kubeconfig_name(struct arena *a, struct str application);
struct json *derive_kubeconfig(struct arena *a, const struct json *application, struct str data);
/* Whether the Secret was made for this Application. */
bool derive_kubeconfig_is_ours(const struct json *secret, const struct json *application);

/* Appends the good ones as {type, address}. */
void derive_addresses(struct arena *a, struct json *to, char *const *texts, size_t n);
