/* SPDX-License-Identifier: Apache-2.0 */
/* From a device's configuration to what its services are told: a table of sections, each a pure
 * function from some fields of EdgeDevConfig to the values of one topic. No I/O, no clock. */
#pragma once

#include "base/arena.h"
#include "eve/config.pb-c.h"
#include "pki/pki.h"
#include "json/json.h"

/* Of lists that are compared with each other. What is beyond is left out. */
#define PARSE_MAX_PORTS 256
#define PARSE_MAX_VFS 255

enum parse_source {
    PARSE_NOWHERE,
    PARSE_CONTROLLER,
    PARSE_SAVED,
    PARSE_BOOTSTRAP,
    PARSE_LOC,
    PARSE_LPS, /* a local profile server, ports alone */
};

/* A file that goes with what is published, under its name in the cache of patch envelopes. */
struct parse_file {
    struct str name, content;
    struct parse_file *next;
};

struct parse {
    struct arena *arena;
    const Eve__Config__EdgeDevConfig *config;
    enum parse_source source;
    int64_t now_us;              /* of errors */
    int64_t received_us;         /* of the configuration: its own time, or ours */
    const char *cache_directory; /* where files go, as others will read them */
    struct parse_file *files;
};

enum section_id {
    SECTION_CIPHER_CONTEXTS,
    SECTION_DATASTORES,
    SECTION_PHYSICAL_IO,
    SECTION_SCEP,
    SECTION_NETWORKS,
    SECTION_PORTS,
    SECTION_BASE_OS,
    SECTION_CLUSTER,
    SECTION_NETWORK_INSTANCES,
    SECTION_CONTENT_TREES,
    SECTION_VOLUMES,
    SECTION_NODE_INFO,
    SECTION_APPS,
    SECTION_DISKS,
    SECTION_PATCH_ENVELOPES,
    SECTIONS,
};

#define SECTION_MAX_FIELDS 9
struct section {
    const char *topic;
    /* An object: what is published under each key. NULL: what is there stays. */
    struct json *(*parse)(struct parse *p);
    bool is_for_bootstrap;               /* needed to reach the controller */
    bool is_persistent;                  /* the topic */
    bool signals_restarted;              /* once it was gone through */
    bool depends_on_source;              /* parsed again when the source is another */
    bool deletes_nothing_in_departure;   /* while the device leaves its cluster */
    unsigned fields[SECTION_MAX_FIELDS]; /* of EdgeDevConfig, all that it looks at */
};
extern const struct section parse_sections[SECTIONS];

/* Of the section's fields as they are packed. */
void parse_hash(const struct section *s, const Eve__Config__EdgeDevConfig *config,
                unsigned char ret[SHA256_BYTES]);
/* Of some messages alone, for commands. NULL: of nothing. */
void parse_hash_message(const ProtobufCMessage *m, unsigned char ret[SHA256_BYTES]);
/* 0: absent or out of range. */
int64_t parse_timestamp_us(const Eve__Config__EdgeDevConfig *config);

/* An application that does not fit a packet, without what is large and with an error that says so.
 */
struct json *parse_shrink_app(struct arena *a, const struct json *app);
