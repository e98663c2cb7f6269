/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the composer. */
#pragma once

#include "composer/composer.h"
#include "protobuf/message.h"
#include "settings/settings.h"

#define LABEL_UPLINK "uplink" /* EVE's name for every port for management */
#define DEFAULT_PORT "eth0"

/* The lists of a configuration, in the order in which sources are told. */
enum section {
    SECTION_APPS,
    SECTION_NETWORKS,
    SECTION_DATASTORES,
    SECTION_ITEMS,
    SECTION_ADAPTERS,
    SECTION_PORTS,
    SECTION_INSTANCES,
    SECTION_CONTEXTS,
    SECTION_TREES,
    SECTION_VOLUMES,
    SECTIONS
};

/* One message of a list with what it comes from. */
struct part_source {
    const char *below; /* the part of the message, "" for all of it */
    const struct json *object;
    struct str field;
    struct part_source *next;
};
struct part {
    struct str key; /* its place in the list */
    ProtobufCMessage *message;
    struct part_source *sources; /* newest first */
};
struct parts {
    struct part *items;
    size_t n;
};

struct composition {
    struct arena *arena;
    const struct compose_inputs *in;
    struct compose_result *result;
    Eve__Config__EdgeDevConfig *config;
    struct str namespace, device_name;
    const struct json *annotations; /* of the Device */
    struct parts sections[SECTIONS];
    struct port_plan *ports;
    struct net_plan *nets; /* oldest first */
    size_t n_ports, n_nets;
    struct json *lent; /* groups of adapters and device ports that applications have: by whom */
};

/* ---- objects.c: reading objects ------------------------------------------------------------- */

struct str object_name(const struct json *object);
struct str object_annotation(const struct json *object, const char *name);
/* STR_NONE when it has none that is one. */
struct str object_uuid(const struct json *object);
const struct json *set_find(const struct compose_set *set, struct str name);
/* The objects by name; equal names cannot be. */
const struct json **set_sorted(struct arena *a, const struct compose_set *set);
/* Those first that are in the configuration already (group: where they are kept), so that who
 * comes later takes nothing from them. */
const struct json **set_by_age(struct composition *c, const struct compose_set *set,
                               const char *group);
/* The value of a ConfigMap's or Secret's key, decoded. False: there is none. */
bool object_data(struct arena *a, const struct json *object, struct str key, struct str *ret);
/* The amount rounded up to whole units of `unit`; 0 when absent, -EINVAL when it is none. */
int object_amount(const struct json *value, int64_t unit, int64_t *ret);
/* A UUID made of names, always the same: for what has no object of its own. */
struct str uuid_of_names(struct arena *a, struct str scope, struct str name);

/* ---- provenance.c: parts, sources, problems -------------------------------------------------- */

struct part *part_add(struct composition *c, enum section section, struct str key,
                      ProtobufCMessage *message);
struct part *part_find(struct composition *c, enum section section, struct str key);
void part_source(struct composition *c, struct part *p, const char *below,
                 const struct json *object, struct str field);
void problem_add(struct composition *c, const struct json *object, struct str field,
                 const char *format, ...) PRINTF_LIKE(4, 5);
void source_add(struct composition *c, struct str path, const struct json *object,
                struct str field);
/* Sorts everything and puts the parts into the configuration. */
void parts_finish(struct composition *c);

/* ---- counters.c: what is derived and kept ---------------------------------------------------- */

/* A counter that begins at `first` and steps whenever `content` is another than the last time.
 * group/owner/name say which. */
int64_t counter_of_content(struct composition *c, const char *group, struct str owner,
                           const char *name, struct str content, int64_t first);
/* A counter that steps whenever an annotation of the Device is given another value, but neither
 * when it is taken away nor when a device is seen for the first time. */
int64_t counter_of_command(struct composition *c, const char *annotation);
bool has_counted(struct composition *c, const char *annotation);
/* What was kept under group/owner, and keeping it. */
bool was_there(struct composition *c, const char *group, struct str owner);
struct str kept_text(struct composition *c, const char *group, struct str owner);
int64_t kept_int(struct composition *c, const char *group, struct str owner, int64_t or_else);
void keep(struct composition *c, const char *group, struct str owner, struct json value);
/* Whoever came first, the text is the same. */
void derived_finish(struct composition *c);
/* Keeps what was known of an owner that is still there but cannot be composed now. */
void keep_previous(struct composition *c, const char *group, struct str owner);

/* ---- addresses.c ------------------------------------------------------------------------------
 */

struct subnet {
    uint32_t first; /* host order */
    unsigned length;
};
/* IPv4 alone; host bits are given apart. -EINVAL. */
int subnet_parse(struct str text, struct subnet *ret, uint32_t *ret_host);
int address_parse(struct str text, uint32_t *ret);
bool address_is_valid(struct str text, bool *ret_is_v6);
char *address_text(struct arena *a, uint32_t address);
char *subnet_text(struct arena *a, const struct subnet *s);
bool subnet_overlaps(const struct subnet *a, const struct subnet *b);
bool subnet_has(const struct subnet *s, uint32_t address);
uint32_t subnet_last(const struct subnet *s);

/* ---- ciphers.c ---------------------------------------------------------------------------------
 */

/* Seals the block; *ret_why says why it cannot be. */
int cipher_part(struct composition *c, const char *what, struct str owner,
                const Eve__Common__EncryptionBlock *block, struct compose_sealed *ret,
                struct str *ret_why);
/* To be called when the part is taken: its context goes into the configuration. */
void cipher_use(struct composition *c, const struct compose_sealed *sealed);
/* username and password of a Secret; *ret_secret is it. */
struct credentials {
    const struct json *secret;
    char *username, *password, *token;
};
int credentials_find(struct composition *c, struct str name, struct credentials *ret,
                     struct str *ret_why);

/* ---- ports.c, networks.c, instances.c -----------------------------------------------------------
 */

/* A port of the device. */
struct port_plan {
    struct str label, group, interface;
    Eve__Common__PhyIoType type;
    bool is_reported;
    struct net_plan *owner; /* whose adapter is on it; NULL: none */
    bool is_default;        /* for management, for want of another */
};
struct net_plan {
    const struct json *object; /* DeviceNetwork */
    const struct json *network_config;
    struct str name, uuid;
    struct str *ports;
    size_t n_ports;
    bool has_own_ports; /* else it is on the shared label uplink */
    bool is_management, is_switch, is_out;
    Eve__Config__NetworkConfig *network;
    struct compose_sealed sealed; /* block NULL: nothing secret */
    const struct json *secret;
    char **addresses;     /* of the ports, NULL for those by DHCP */
    struct subnet subnet; /* of a local network */
    struct str label;     /* that the network instance names */
};
void ports_load(struct composition *c);
struct port_plan *port_find(struct composition *c, struct str label);
/* By label or group; only what the device reports. */
struct port_plan *port_find_adapter(struct composition *c, struct str name);
/* The port that is for management when nothing else is; NULL: all are taken. */
struct port_plan *port_find_default(struct composition *c);
struct port_plan *port_assume(struct composition *c, struct str label, Eve__Common__PhyIoType type);
bool port_is_network(const struct port_plan *p);
void ports_emit(struct composition *c);

/* Plans every DeviceNetwork, then writes the plans that hold. */
void networks_plan(struct composition *c);
void networks_emit(struct composition *c);
struct net_plan *network_find(struct composition *c, struct str name);
/* The EVE network of the plan; 0, or a problem was added. */
int network_config_make(struct composition *c, struct net_plan *n);
/* Gives local networks their subnets: those that are asked for, then the others. */
void subnets_choose(struct composition *c);
/* Whether no network that is composed has any of it. */
bool subnet_is_free(struct composition *c, const struct subnet *s);
void instances_emit(struct composition *c);
/* Dynamic addresses of a local network. */
void subnet_range(const struct subnet *s, uint32_t *ret_start, uint32_t *ret_end);

/* ---- storage.c, volumes.c
 * ------------------------------------------------------------------------ */

/* A content tree with its datastore, ready but not yet in the configuration. */
struct tree {
    const struct json *image, *class;
    Eve__Config__ContentTree *message;
    Eve__Config__DatastoreConfig *datastore;
    struct compose_sealed sealed;
    const struct json *secret;
};
int tree_make(struct composition *c, struct str image_name, struct tree *ret, struct str *ret_why);
int tree_make_of(struct composition *c, const struct json *image, struct tree *ret,
                 struct str *ret_why);
void tree_use(struct composition *c, const struct tree *t);
/* The tree as far as a volume made of it depends on it. */
struct str tree_content(struct arena *a, const struct tree *t);

/* Every Volume object of the device whose claim can be composed. */
void volumes_emit(struct composition *c);
/* The volume of a claim that is in the configuration; NULL: none. */
const Eve__Config__Volume *volume_of_claim(struct composition *c, struct str claim);
/* The disk that an application boots; not yet in the configuration. */
Eve__Config__Volume *volume_of_boot(struct composition *c, struct str uuid, const struct tree *t,
                                    int64_t size_bytes, struct str name);
void volume_keep_boot(struct composition *c, struct str uuid);

/* ---- applications.c, app_*.c
 * ----------------------------------------------------------------------- */

/* An application under way. */
struct app {
    const struct json *object, *spec;
    struct str name, uuid;
    Eve__Config__AppInstanceConfig *message;
    struct tree tree;
    Eve__Config__Volume *boot;
    struct compose_sealed sealed;
    struct str user_data; /* in the clear, never to be sent so */
    const struct json *user_data_source;
    struct str user_data_field; /* of it */
    struct json taken;          /* adapters and device ports: by whom */
    int32_t last_rule;
};
void applications_emit(struct composition *c);
int app_volumes(struct composition *c, struct app *app);
int app_interfaces(struct composition *c, struct app *app);
int app_adapters(struct composition *c, struct app *app);
int app_user_data(struct composition *c, struct app *app);
/* Puts it into the configuration as it was in the last; false: it was not there, or cannot be. When
 * all others have been composed. */
bool app_retain(struct composition *c, struct app *app);

/* ---- base_os.c, options.c
 * -------------------------------------------------------------------------- */

void base_os_emit(struct composition *c);
void options_emit(struct composition *c);

/* ---- building messages
 * ------------------------------------------------------------------------------ */

static inline void *message_new(struct arena *a, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = arena_zalloc(a, d->sizeof_message);
    d->message_init(m);
    return m;
}
/* MESSAGE_NEW(a, eve__config__volume) */
#define MESSAGE_NEW(a, prefix) (message_new((a), &prefix##__descriptor))
/* Appends to a repeated field that grows by arena_grow(). */
#define REPEATED_ADD(a, array, n, value) \
    do { \
        (array) = arena_grow((a), (array), (n), sizeof(*(array))); \
        (array)[(n)++] = (value); \
    } while (0)
