/* SPDX-License-Identifier: Apache-2.0 */
/* zedagent as its own files see it. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "zedagent/local.h"
#include "zedagent/parse.h"
#include "zedagent/zedagent.h"

struct client;

/* ---- what is published ------------------------------------------------------------------------
 */

struct topics {
    struct publication *sections[SECTIONS];
    struct publication *items, *status, *controller_certs, *loc;
    struct publication *collect_info;             /* NULL: nobody asked for it */
    unsigned char hashes[SECTIONS][SHA256_BYTES]; /* of what was parsed last */
    enum parse_source sources[SECTIONS];          /* PARSE_NOWHERE: nothing was */
};
int topics_open(struct zedagent *z);
void topics_close(struct zedagent *z);
/* Parses and publishes the section unless it was parsed from the same fields before. */
void topics_apply(struct zedagent *z, enum section_id id, struct parse *p);
/* Port configurations but for when they were made; old NULL: there is none. */
bool topics_is_same_ports(struct arena *a, const struct json *value, const struct json *old);
/* It is parsed again next time, whatever it says. */
void topics_forget(struct zedagent *z, enum section_id id);
/* Every application is to stop. */
void topics_stop_apps(struct zedagent *z);

/* ---- commands to the device --------------------------------------------------------------------
 */

/* The controller counts the first two; nobody but who is near orders the last. */
enum command_kind { COMMAND_REBOOT, COMMAND_SHUTDOWN, COMMAND_POWEROFF, COMMANDS };

struct command {
    unsigned char hash[SHA256_BYTES]; /* of the command that was looked at last */
    bool has_hash;
    bool is_acted_on;  /* that one */
    bool is_deferred;  /* until the test of an update is over */
    bool is_commanded; /* in this life */
    bool is_local;     /* by who is near */
};
/* What was acted on in earlier lives. */
void command_load(struct zedagent *z);
/* True: the device is about to go down. */
bool command_take(struct zedagent *z, enum command_kind kind, const Eve__Config__DeviceOpsCmd *c);
/* By who is near: false when it is under way, or waits for the test of an update. */
bool command_can_obey(struct zedagent *z, enum command_kind kind);
void command_obey(struct zedagent *z, enum command_kind kind);
void command_run_deferred(struct zedagent *z);

/* ---- what is ordered nearby --------------------------------------------------------------------
 */

/* Strings are of the heap. */
struct local {
    struct str server, token, global_profile; /* of the configuration */
    struct str profile;                       /* of the server; empty: none */
    struct str commands;                      /* LocalCommands, JSON; empty: never any */
    struct str boot_orders;                   /* AppBootConfigList, packed */
    struct str ports;                         /* DevicePortConfig, as it is kept; empty: none */
    struct local_radio radio;
    uint64_t device_timestamp, compound_timestamp;
    struct subscription *apps, *network; /* while somebody waits for what they say */
};
void local_load(struct zedagent *z);
void local_done(struct zedagent *z);
void local_follow_config(struct zedagent *z, const Eve__Config__EdgeDevConfig *config);
/* What is published of a section, with what was ordered here. */
struct json *local_amend(struct zedagent *z, enum section_id id, struct arena *a, struct json *all);
/* Applications and volumes that are gone are forgotten. */
void local_prune(struct zedagent *z);
struct str local_current_profile(const struct zedagent *z);

/* Of local_commands.c, local_boot.c and local_network.c. */
void commands_load(struct zedagent *z);
void commands_amend_app(struct arena *a, const struct json *commands, struct json *app);
const struct json *commands_read(const struct zedagent *z, struct arena *a);
struct json *commands_amend_volumes(struct arena *a, const struct json *commands, struct json *all);
void boot_load(struct zedagent *z);
void network_load(struct zedagent *z);
/* Without the server, or with another one, its ports are the controller's. */
void network_follow_config(struct zedagent *z);
void boot_amend_app(const struct zedagent *z, struct arena *a, struct json *app);
/* An application by UUID, name or both; NULL: there is none. */
struct local_app {
    struct str id, name;
    struct local_app *next;
};
struct local_app *local_list_apps(const struct zedagent *z, struct arena *a);
const struct local_app *local_find_app(const struct local_app *list, struct str id,
                                       struct str name);

/* ---- the rest ---------------------------------------------------------------------------------
 */

/* What nodeagent and baseosmgr say. */
struct neighbours {
    struct subscription *nodeagent, *partitions, *images;
    bool has_nodeagent;
    int boot_reason;
    bool is_testing_update; /* UpdateInprogress */
    bool is_rebooting, is_shutting_down, is_powering_off, are_domains_halted;
    bool is_maintenance;
    unsigned maintenance_reasons;
};
int neighbours_open(struct zedagent *z);
void neighbours_close(struct zedagent *z);
/* The configured base OS is another than the one that runs, and is to be activated. */
bool neighbours_is_updating(const struct zedagent *z, const Eve__Config__EdgeDevConfig *config);

/* The configuration that is kept. */
struct checkpoint {
    int64_t changed_ms; /* loop's time of the last change; 0: nothing was saved or read */
    bool is_proven;     /* .bak is the same */
};

enum apply_result {
    APPLY_OK,
    APPLY_OBSOLETE,       /* older than what is in force */
    APPLY_SKIPPED_REBOOT, /* the device goes down */
    APPLY_SKIPPED_UPDATE, /* another base OS is about to be started */
    APPLY_INVALID,
};

struct cycle {
    struct loop_timer *timer;
    struct uplink_call *call;
    struct uplink_trace *trace; /* of it; NULL: none is kept */
    char hash[128]; /* configHash of what was received last; longer ones are not remembered */
    int64_t interval_s;
    int64_t began_ms, started_ms;
    int64_t client_ms; /* when one was last started, or we were */
    struct client *client;
    bool is_started, is_hurried, is_working; /* the last fetch succeeded */
    bool has_read_saved;
};

struct certs_task {
    struct loop_timer *timer;
    struct uplink_call *call;
    int64_t interval_s;
    bool is_again, has_failed;
    bool is_from_loc; /* what is asked for now */
};

struct zedagent {
    struct node *node;
    struct node_link *link;
    struct zedagent_options o;
    struct items *items;
    unsigned char items_hash[SHA256_BYTES];
    enum parse_source items_source;
    struct zedagent_facts facts;
    struct arena *names; /* of the facts */
    struct list listeners;
    struct node_watch watch;
    struct topics topics;
    struct command commands[COMMANDS];
    struct local local;
    struct neighbours neighbours;
    struct checkpoint checkpoint;
    struct cycle cycle;
    struct certs_task certs;
    int64_t config_timestamp_us; /* of what is in force */
    bool has_api_maintenance;    /* the configuration says so */
    bool is_kube, was_in_cluster, is_departing;
    uint32_t fallback_counter;
    int attest_state;
    struct str attest_error; /* heap */
    bool are_certs_refused;
    struct str loc_url;           /* heap */
    struct str certs_config_hash; /* heap: what the controller says of its certificates */
    unsigned char status_hash[SHA256_BYTES]; /* of ZedAgentStatus as published last */
    enum node_network_state network_state;
    bool has_network; /* nim has spoken */
};

void zedagent_emit(struct zedagent *z, enum zedagent_event e);
/* Heap: true when it was another. */
bool zedagent_keep(struct str *at, struct str by);

/* Facts that follow from others, ZedAgentStatus, and word to listeners when it is another. */
void status_update(struct zedagent *z);
/* When one of its reasons may have changed. */
void status_merge_maintenance(struct zedagent *z);

/* Items of a configuration; publishes them. */
void apply_items(struct zedagent *z, const Eve__Config__EdgeDevConfig *config,
                 enum parse_source source);
void apply_publish_items(struct zedagent *z);
enum apply_result apply_config(struct zedagent *z, const Eve__Config__EdgeDevConfig *config,
                               enum parse_source source);

/* The first items, and the ports of a bootstrap configuration. */
void start_items(struct zedagent *z);
/* No file of an earlier life: what the installer left. */
void start_bootstrap(struct zedagent *z);

/* As received: the envelope. */
void checkpoint_save(struct zedagent *z, struct str envelope);
/* The configuration is still the same: after a while .bak is made of it. */
void checkpoint_prove(struct zedagent *z);
bool checkpoint_exists(const struct zedagent *z);
/* The believed configuration of the file that the boot reason points to, or of the other. NULL:
 * neither. */
const Eve__Config__EdgeDevConfig *checkpoint_read(struct zedagent *z, struct arena *a);
/* The EdgeDevConfig of a ConfigResponse in an envelope; NULL with a status: not believed, or
 * nonsense. */
const Eve__Config__ConfigResponse *checkpoint_open(struct zedagent *z, struct arena *a,
                                                   struct str envelope, int *ret_error,
                                                   enum uplink_status *ret_status);

int cycle_open(struct zedagent *z);
void cycle_close(struct zedagent *z);
/* The UUID is known: begins, or begins anew. */
void cycle_start(struct zedagent *z);
void cycle_hurry(struct zedagent *z);
/* What was received last counts for nothing: all of it is fetched again. */
void cycle_forget(struct zedagent *z);
/* timer.config.interval may be another. */
void cycle_follow_items(struct zedagent *z);

int certs_open(struct zedagent *z);
void certs_close(struct zedagent *z);
void certs_start(struct zedagent *z);
/* Fetches them now. */
void certs_hurry(struct zedagent *z);
void certs_follow_items(struct zedagent *z);
/* It is better than before. */
void certs_follow_network(struct zedagent *z);
/* What the node has. */
void certs_publish(struct zedagent *z);
