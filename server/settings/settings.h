/* SPDX-License-Identifier: Apache-2.0 */
/* Options of devices: what ConfigMaps and annotations may say, and which of them counts. Pure
 * functions over the parts of objects; who holds the objects is somebody else's affair.
 *
 * Options stand in the data of ConfigMap eve-system/global-options for all devices, in that of
 * <namespace>/eve-options for a namespace's, and as annotations `eve.lfedge.org/<option>` on one
 * Device; the nearest wins. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

#define SETTINGS_PREFIX "eve.lfedge.org/" /* of annotations */
#define SETTINGS_ITEM_PREFIX "config."    /* of options that are EVE configItems */
#define SETTINGS_GLOBAL_NAMESPACE "eve-system"
#define SETTINGS_GLOBAL_NAME "global-options"
#define SETTINGS_NAMESPACE_NAME "eve-options"

/* The annotations of Devices that are no options. */
#define SETTINGS_ACTIVATE SETTINGS_PREFIX "activate"         /* "true" or "false" */
#define SETTINGS_ONBOARDED_BY SETTINGS_PREFIX "onboarded-by" /* <Kind>/<name> of what let it in */

/* Of a DeviceConfig: "false" means that all of it is its writer's, and nothing is composed. */
#define SETTINGS_COMPOSED SETTINGS_PREFIX "composed"

/* ---- judging ------------------------------------------------------------------------------- */

enum settings_verdict { SETTINGS_GOOD, SETTINGS_UNKNOWN, SETTINGS_BAD };

/* Judges one option ("config.timer.config.interval", "attestation") and its value. SETTINGS_BAD:
 * *ret_reason says what the value must be. SETTINGS_UNKNOWN: nobody knows the option, so anything
 * goes. */
enum settings_verdict settings_judge(struct arena *a, struct str option, struct str value,
                                     struct str *ret_reason);
/* The option that an annotation sets; STR_NONE when it sets none. */
struct str settings_of_annotation(struct str annotation);
/* Whether a ConfigMap holds options. */
bool settings_is_options(struct str namespace, struct str name);
/* Options that only eve-system/global-options can set. */
bool settings_is_global(struct str option);
/* "90s", "1h30m", "30d", "2w": whole seconds, more than zero. -EINVAL otherwise. */
int settings_parse_duration(struct str text, int64_t *ret_s);

/* ---- reading ------------------------------------------------------------------------------- */

/* Where the options of one device are looked for, nearest first; any may be NULL. */
struct settings_sources {
    const struct json *annotations; /* metadata.annotations of the Device */
    const struct json *namespace;   /* data of <namespace>/eve-options */
    const struct json *global;      /* data of eve-system/global-options */
};
enum settings_level { SETTINGS_DEVICE, SETTINGS_NAMESPACE, SETTINGS_GLOBAL, SETTINGS_LEVELS };

/* The nearest value that is not bad; STR_NONE when there is none. */
struct str settings_find(const struct settings_sources *s, struct str option);

struct settings_item {
    struct str name; /* "timer.config.interval" */
    struct str value;
    enum settings_level from;
};
/* The EVE configItems that are set, by name, each once. Returns how many. */
size_t settings_items(struct arena *a, const struct settings_sources *s,
                      struct settings_item **ret_items);

/* In the order of enum attestation. */
enum settings_attestation {
    SETTINGS_ATTESTATION_REPORT, /* unless set otherwise */
    SETTINGS_ATTESTATION_OFF,
    SETTINGS_ATTESTATION_ENFORCE
};
enum settings_attestation settings_attestation(const struct settings_sources *s);
/* How long what the device sends is kept; or_else_s when nothing says so. */
int64_t settings_retention_s(const struct settings_sources *s, int64_t or_else_s);
/* How often the device asks for its configuration, at the most. */
int64_t settings_poll_interval_s(const struct settings_sources *s);

/* Whether devices that nothing else lets in may register, and the namespace of their Devices. */
struct settings_registration {
    bool is_open;
    struct str namespace;
};
/* From the data of eve-system/global-options: `registration` is `open` or `closed`,
 * `registration.namespace` names the namespace (default). */
struct settings_registration settings_registration(const struct json *global);
