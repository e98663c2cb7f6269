/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the device's configuration, keeps it for the day nobody answers, and publishes its parts
 * to the services that carry them out. Also the certificates of the controller, commands (reboot,
 * shutdown), maintenance mode. What the device says about itself is report/, its attestation
 * attest/; on EVE the three are one process, and here they share this one object. */
#pragma once

#include "node/link.h"

/* ZedAgentStatus.ConfigGetStatus */
enum zedagent_config_status {
    ZEDAGENT_CONFIG_SUCCESS = 1,
    ZEDAGENT_CONFIG_FAIL = 2,
    ZEDAGENT_CONFIG_TEMPORARY_FAIL = 3,
    ZEDAGENT_CONFIG_READ_SAVED = 4,
};
/* ZedAgentStatus.DeviceState and info's ZDeviceState */
enum zedagent_device_state {
    ZEDAGENT_UNSPECIFIED = 0,
    ZEDAGENT_ONLINE = 1,
    ZEDAGENT_REBOOTING = 2,
    ZEDAGENT_MAINTENANCE = 3,
    ZEDAGENT_UPDATING = 4,
    ZEDAGENT_BOOTING = 5,
    ZEDAGENT_PREPARING_POWEROFF = 6,
    ZEDAGENT_POWERING_OFF = 7,
    ZEDAGENT_PREPARED_POWEROFF = 8,
};

/* What report/ and attest/ need and no topic tells. Strings live until the next event. */
struct zedagent_facts {
    enum zedagent_config_status config_status;
    enum zedagent_device_state device_state;
    int64_t config_received_us, config_processed_us; /* wall time; 0: never */
    uint32_t reboot_counter, shutdown_counter;       /* of the last command that was acted on */
    int64_t controller_epoch;
    bool is_maintenance;
    unsigned maintenance_reasons; /* bits 1 << MaintenanceModeReason */
    bool is_rebooting;            /* a reboot, shutdown or power-off is under way */
    struct str device_name, project_name, project_id, enterprise_name, enterprise_id;
    struct str local_profile; /* in force: of a local profile server, else the controller's */
    bool is_configured;       /* a configuration is in force */
};

enum zedagent_event {
    ZEDAGENT_FACTS,       /* something of the facts or of the items is another */
    ZEDAGENT_EPOCH,       /* the controller wants everything reported again */
    ZEDAGENT_FORBIDDEN,   /* config was answered 403: attest anew */
    ZEDAGENT_NEEDS_CERTS, /* the controller has other certificates than we know */
    ZEDAGENT_CONFIGURED,  /* a configuration was applied, or was found unchanged */
    ZEDAGENT_ASKS_LOC,    /* the controller is not reached, the operator console is asked */
    ZEDAGENT_LOCAL,       /* the configuration names another local profile server */
};
struct zedagent_listener {
    void (*on_event)(struct zedagent_listener *l, enum zedagent_event e);
    struct list link;
};

struct zedagent_options {
    bool must_not_fetch; /* only what is saved: for tests */
};

struct zedagent;
/* Publishes ConfigItemValueMap before it returns; waits for OnboardingStatus with everything that
 * needs the UUID. */
int zedagent_new(struct node *n, const struct zedagent_options *o, struct zedagent **ret);
/* NULL allowed. */
void zedagent_free(struct zedagent *z);

const struct zedagent_facts *zedagent_facts(const struct zedagent *z);
/* The items with their errors, for the report. */
const struct items *zedagent_items(const struct zedagent *z);
void zedagent_listen(struct zedagent *z, struct zedagent_listener *l);
void zedagent_unlisten(struct zedagent_listener *l);
/* Its uplink, for all of agent `zedagent`: one MetricsMap. */
struct node_link *zedagent_link(struct zedagent *z);

/* Fetches now: the network is back, or attestation has succeeded. */
void zedagent_hurry(struct zedagent *z);
/* For ZedAgentStatus; words may be absent. */
void zedagent_set_attest(struct zedagent *z, int attest_state, struct str error);
void zedagent_set_certs_refused(struct zedagent *z, bool are_refused);
