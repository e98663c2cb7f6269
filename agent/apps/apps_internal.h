/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this directory share. Configurations stay in the subscriptions: what decisions
 * need of them is kept small, the rest is read again when something is started or reported. */
#pragma once

#include "apps/apps.h"
#include "apps/network.h"
#include "base/list.h"
#include "base/map.h"
#include "loop/loop.h"
#include "json/json.h"

/* What one configuration may name. */
#define APPS_MAX_VOLUMES 32
#define APPS_MAX_ADAPTERS 16
#define APPS_MAX_ENV 128
#define APPS_MAX_ARGS 128
/* Between attempts of what has failed: from the first to the last. */
#define APPS_FIRST_WAIT_S 10
/* After so long a life the next end of an instance counts as its first. */
#define APPS_STABLE_S 600
/* What an earlier life has left and no configuration names is kept so long. */
#define APPS_SWEEP_S 60

/* Internal states of EVE's services (types.SwState), which topics carry. */
enum sw_state {
    SW_INITIAL = 100,
    SW_RESOLVING_TAG = 101,
    SW_RESOLVED_TAG = 102,
    SW_DOWNLOADING = 103,
    SW_DOWNLOADED = 104,
    SW_VERIFYING = 105,
    SW_VERIFIED = 106,
    SW_LOADING = 107,
    SW_LOADED = 108,
    SW_CREATING_VOLUME = 109,
    SW_CREATED_VOLUME = 110,
    SW_INSTALLED = 111,
    SW_AWAIT_NETWORK_INSTANCE = 112,
    SW_START_DELAYED = 113,
    SW_BOOTING = 114,
    SW_RUNNING = 115,
    SW_HALTING = 118,
    SW_HALTED = 119,
};
enum sw_state sw_state_of(enum runtime_state s);

/* EVE's enums. */
enum {
    FORMAT_RAW = 1,
    FORMAT_QCOW2 = 3,
    FORMAT_VHD = 4,
    FORMAT_VMDK = 5,
    FORMAT_VHDX = 7,
    FORMAT_CONTAINER = 8,
    FORMAT_ISO = 9,
    FORMATS = 11
};
enum { METADATA_DRIVE = 0, METADATA_DRIVE_MULTIPART = 3 };
enum { ORIGIN_BLANK = 1, ORIGIN_DOWNLOAD = 2 };
enum { TARGET_APP_CUSTOM = 5 };
enum { NETWORK_SWITCH = 1, NETWORK_LOCAL = 2 };
enum in_progress { NOT_IN_PROGRESS, DOWNLOAD_AND_VERIFY, BRING_DOWN, RECREATE_VOLUMES, BRING_UP };

enum apps_in {
    IN_APP,
    IN_VOLUME,
    IN_CONTENT,
    IN_DATASTORE,
    IN_NETWORK,
    IN_AGENT,
    IN_PORTS, /* not of a simulated device without networks */
    IN_IO,    /* not of a simulated device */
    N_IN,
};
enum apps_out {
    OUT_APP,
    OUT_SUMMARY,
    OUT_APP_NETWORK_CONFIG,
    OUT_CONTENT,
    OUT_VOLUME,
    OUT_BLOB,
    OUT_DOWNLOAD,
    OUT_APP_DISK,
    OUT_DOMAIN,
    OUT_DOMAIN_METRIC,
    OUT_HOST_MEMORY,
    OUT_ADAPTERS,
    OUT_NETWORK,
    OUT_APP_NETWORK,
    OUT_NETWORK_METRIC,
    OUT_PORT_METRIC,
    N_OUT,
};

/* What went wrong with something, since when, and when it is tried again. */
struct trouble {
    char *text; /* heap; NULL: none */
    int64_t since_us;
    unsigned n_times;
    int64_t retry_us; /* monotonic; 0: not by time */
};

struct content {
    struct list link;
    char *id;
    char *sha; /* hex, of what its blobs hang on; NULL: not known before it is there */
    bool is_configured;
    int format;
    uint64_t asked; /* hash of what the configuration says of it; 0: not known */
    uint64_t held;  /* of what is on the machine */
    enum runtime_state state;
    int percent;
    struct trouble trouble;
    int64_t created_us;
    uint64_t published;
};

struct volume {
    struct list link;
    char *key;     /* uuid#generation */
    char *id;      /* the same as the runtime's id */
    char *content; /* NULL: blank */
    bool is_configured;
    int origin, target;
    enum runtime_state state;
    struct trouble trouble;
    int64_t created_us;
    uint64_t published;
};

struct network {
    struct list link;
    char *id;
    bool is_configured, is_active, is_open;
    char *config_error; /* what zedagent has found wrong with it; NULL: nothing */
    int type;
    struct network_subnet subnet;
    char *port_label; /* "": none */
    unsigned mtu;
    uint64_t asked; /* hash of what the machine was told to make */
    struct trouble trouble;
    uint64_t published;
};

struct adapter {
    char *network;
    uint32_t address; /* host order; 0: none */
    uint32_t fixed;   /* by the configuration; 0: any of the range */
    unsigned char mac[6];
};

struct application {
    struct apps *apps;
    struct list link;
    char *id, *name;
    /* Of the configuration. */
    bool is_configured, has_config_errors, wants_active, hides_logs;
    char *version;
    uint32_t restart, purge;
    uint64_t volumes_hash, resources_hash;
    int64_t delay_s;
    struct volume_ref {
        char *key, *mount;
    } * volumes;
    size_t n_volumes;
    struct adapter *adapters;
    size_t n_adapters;
    /* Of its record on disk: what was carried out. */
    bool has_record, was_started;
    uint32_t done_restart, done_purge;
    uint64_t started_volumes, started_resources;
    char *taken_version;
    int number;
    /* Of its life. */
    enum in_progress restarting, purging;
    int64_t restart_us, purge_us; /* wall */
    enum runtime_state state;     /* of the instance; RUNTIME_INVALID: none */
    bool is_stopping;             /* we have asked for its end */
    bool is_adopted, is_introduced;
    int exit_code;
    int64_t started_us; /* wall */
    struct trouble trouble;
    struct trouble network_trouble;
    struct trouble staged; /* what only a command may bring */
    enum { CLOSED, OPENING, OPEN } network;
    bool is_machine; /* as its interfaces were made: a virtual machine, by its first volume */
    uint64_t network_asked, network_opened; /* hash of the rules */
    uint64_t published;
};

struct metadata;
struct input;
struct scan;

struct apps {
    struct node *node;
    struct apps_options options;
    struct runtime *runtime;
    bool is_sim;
    struct subscription *in[N_IN];
    struct input *inputs[N_IN]; /* the arguments of their handlers */
    struct publication *out[N_OUT];
    struct list contents, volumes, networks, applications;
    struct loop_deferred reconcile;
    struct loop_timer *timer;
    int64_t wake_us; /* the earliest that this reconciliation has asked for */
    struct node_watch watch;
    uint64_t summary;      /* hash of what is published */
    char *profile;         /* ZedAgentStatus.CurrentProfile */
    bool has_config;       /* zedagent has one in force */
    int64_t delay_base_us; /* monotonic: applications begin to wait for their turn then */
    int64_t sweep_us;      /* monotonic; 0: not yet decided */
    bool is_swept, is_network_swept;
    struct loop_timer *metrics_timer;
    int64_t disks_us;  /* monotonic time of the last look at volumes */
    struct scan *scan; /* of volumes, under way */
    struct metadata *metadata;
    struct list desks; /* where virtual machines ask for their addresses, one for each bridge */
};

/* ---- apps.c -------------------------------------------------------------------------------- */

int64_t apps_now_us(const struct apps *a); /* monotonic */
int64_t apps_wall_us(const struct apps *a);
/* At the end of this turn. */
void apps_reconcile_soon(struct apps *a);
/* Reconciles now; returns when it wants to again (monotonic), -1: never by itself. For tests on a
 * virtual clock; otherwise a timer does it. */
int64_t apps_turn(struct apps *a);
/* Reconciliation comes again then. */
void apps_wake_at(struct apps *a, int64_t monotonic_us);

/* FNV-1a, the same in every process. Never 0. */
uint64_t apps_hash(uint64_t of, struct str s);
#define APPS_HASH ((uint64_t) 0xcbf29ce484222325ULL)
uint64_t apps_hash_int(uint64_t of, uint64_t value);

/* Keeps the time when it is the same again; text absent clears it. */
void trouble_set(struct trouble *t, const struct apps *a, struct str text);
/* One more failure: waits longer, up to the limit, then it is tried again. */
void trouble_retry(struct trouble *t, const struct apps *a, int64_t max_wait_s);
/* Whether it may be tried now; asks to be woken otherwise. */
bool trouble_is_due(const struct trouble *t, struct apps *a);
void trouble_done(struct trouble *t);

/* ---- topics.c ------------------------------------------------------------------------------ */

int apps_topics_open(struct apps *a);
void apps_topics_close(struct apps *a);
void topics_publish(struct apps *a, enum apps_out which, struct str key, const struct json *value);
void topics_unpublish(struct apps *a, enum apps_out which, struct str key);
/* Unpublishes what an earlier life has left. */
void topics_keep(struct apps *a, enum apps_out which,
                 bool (*is_known)(struct apps *a, struct str key));
/* NULL: not there. */
struct json *topics_get(struct arena *arena, const struct apps *a, enum apps_in which,
                        struct str key);

void put(struct arena *a, struct json *o, const char *name, struct json value);
void put_str(struct arena *a, struct json *o, const char *name, struct str value);
void put_int(struct arena *a, struct json *o, const char *name, int64_t value);
void put_bool(struct arena *a, struct json *o, const char *name, bool value);
void put_time(struct arena *a, struct json *o, const char *name, int64_t wall_us);
/* The same member as in another object; absent there: not put. */
void put_copy(struct arena *a, struct json *o, const struct json *from, const char *name);
/* {"UUID", "Version"} */
void put_uuid_and_version(struct arena *a, struct json *o, struct str uuid, struct str version);
/* ErrorDescription, with ErrorSourceType unless source is NULL. */
void put_trouble(struct arena *a, struct json *o, const struct trouble *t, const char *source);
struct json json_ipv4(struct arena *a, uint32_t address);
struct json json_mac(struct arena *a, const unsigned char mac[6]);

/* ---- content.c, volume.c ------------------------------------------------------------------- */

void content_configure(struct apps *a, struct str id, const struct json *config);
void content_changed(struct apps *a, const struct runtime_status *s);
void content_reconcile(struct apps *a, struct content *c);
struct content *content_find(const struct apps *a, struct str id);
/* Some content hangs on it. */
bool content_has_blob(const struct apps *a, struct str sha);
void content_free(struct content *c);

void volume_configure(struct apps *a, struct str key, const struct json *config);
void volume_changed(struct apps *a, const struct runtime_status *s);
void volume_reconcile(struct apps *a, struct volume *v);
struct volume *volume_find(const struct apps *a, struct str key);
/* As reported: of its content until that is there. */
enum sw_state volume_sw_state(const struct apps *a, const struct volume *v);
const struct trouble *volume_trouble(const struct apps *a, const struct volume *v);
int volume_format(const struct apps *a, const struct volume *v);
int volume_percent(const struct apps *a, const struct volume *v);
/* Its path once it is there, or where nothing is on disk its id; "" before. */
struct str volume_location(struct arena *arena, const struct apps *a, const struct volume *v);
/* uuid#generation of anything that names VolumeID and its counters. */
struct str volume_key(struct arena *arena, const struct json *names_it);
void volume_free(struct volume *v);

/* ---- application.c, application_config.c --------------------------------------------------- */

struct application *application_new(struct apps *a, struct str id);
/* Its interfaces as they are now wanted. */
void application_read_adapters(struct application *p, struct arena *arena,
                               const struct json *config);
void application_configure(struct apps *a, struct str id, const struct json *config);
/* The profile in force may be another. */
void application_set_activity(struct application *p, const struct json *config);
void application_changed(struct apps *a, const struct runtime_status *s);
void application_reconcile(struct apps *a, struct application *p);
struct application *application_find(const struct apps *a, struct str id);
bool application_lives(const struct application *p);
/* Whether its first volume, which must be there, is a disk. */
bool application_is_machine(const struct application *p);
enum sw_state application_sw_state(const struct application *p);
void application_free(struct application *p);
/* What is wrong with it, of all that may be; NULL: nothing. */
const struct trouble *application_trouble(const struct application *p);

/* ---- assignable.c -------------------------------------------------------------------------- */

void assignable_publish(struct apps *a);

/* ---- record.c: what must outlive the agent ------------------------------------------------- */

void record_load(struct application *p);
void record_save(struct application *p);
void record_remove(const struct application *p);
uint64_t record_load_content(const struct apps *a, struct str id);
void record_save_content(const struct apps *a, struct str id, uint64_t hash);

/* ---- instance.c: from configuration to what the runtime is asked for ----------------------- */

/* -EAGAIN: secrets cannot be read yet. *ret_error, in the arena. */
int instance_build(struct arena *arena, const struct application *p, struct runtime_instance *ret,
                   struct str *ret_error);
/* Environment and command of user data: NAME=value lines or #cloud-config. Pure. */
struct instance_words {
    struct str *env;
    size_t n_env;
    struct str *args; /* EVE_ECO_CMD */
    size_t n_args;
};
int instance_read_user_data(struct arena *arena, struct str text, struct instance_words *ret,
                            struct str *ret_error);
/* An EncryptionBlock of a configuration, which has it as its own members or under
 * CipherBlockStatus. *ret NULL: nothing is encrypted. -ENOENT: not yet readable. */
struct Eve__Common__EncryptionBlock;
int instance_open_secrets(struct arena *arena, const struct apps *a, const struct json *config,
                          struct Eve__Common__EncryptionBlock **ret);

/* ---- networks.c, adapters.c ---------------------------------------------------------------- */

void network_configure(struct apps *a, struct str id, const struct json *config);
void network_reconcile(struct apps *a, struct network *n);
struct network *network_find(const struct apps *a, struct str id);
void network_free(struct network *n);
/* Whether applications may use it. */
bool network_is_ready(const struct apps *a, const struct network *n);
void network_publish_all(struct apps *a);

/* Addresses of those that its applications ask, an array of texts. */
struct json network_resolvers(struct arena *arena, const struct apps *a, struct str id);

/* Addresses and hardware addresses for all adapters that have none. -ENOSPC with *ret_error. */
int addresses_assign(struct arena *arena, struct application *p, struct str *ret_error);

/* "": nothing is made here. */
struct str network_bridge(struct arena *arena, const struct apps *a, const char *id);
/* Parts of statuses: the name on the device, AssignedAddrs, AppNetAdapterStatus. */
struct str adapter_vif(struct arena *arena, const struct application *p, size_t i);
struct json adapter_addresses(struct arena *arena, const struct adapter *d);
struct json adapter_status(struct arena *arena, const struct application *p, size_t i,
                           const struct json *config);

/* Its interfaces, made or adopted; answers come by events. */
void application_open_network(struct application *p);
void application_close_network(struct application *p);
/* Events of the network. */
void network_on_instance(void *arg, struct str id, struct str error);
void network_on_app(void *arg, struct str id, struct str error);

/* ---- leases.c: addresses for virtual machines ------------------------------------------------ */

void leases_open(struct apps *a, const char *network, const char *interface);
void leases_close(struct apps *a, const char *network);
void leases_free(struct apps *a);

/* ---- status.c, metrics.c, disks.c, metadata.c ---------------------------------------------- */

void status_publish_app(struct application *p);
void status_unpublish_app(struct application *p);
void status_publish_summary(struct apps *a);

void metrics_start(struct apps *a);
void metrics_hurry(struct apps *a);
void metrics_stop(struct apps *a);
/* At once, for tests. */
void metrics_publish(struct apps *a);

/* Begins when it is time; the answer is published later. */
void disks_scan(struct apps *a);
void disks_stop(struct apps *a);
/* Of a path, as EVE makes keys of paths. */
struct str disks_key(struct arena *arena, struct str path);

int metadata_new(struct apps *a, struct metadata **ret);
void metadata_free(struct metadata *m);
void metadata_open(struct metadata *m, const char *network, const char *interface);
void metadata_close(struct metadata *m, const char *network);
