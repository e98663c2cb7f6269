/* SPDX-License-Identifier: Apache-2.0 */
/* Running applications on a machine: content is fetched, volumes are made of it, instances run on
 * them. What is wanted is said by calls, what is true comes back by events, in the states and the
 * order in which EVE reports them. How it is done stands behind a table of functions
 * (runtime_machine.h) with two implementations: `sim` runs nothing, `process` runs containers.
 *
 * Everything belongs to the loop's thread. Ids are chosen by the caller, usually UUIDs. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"

struct loop;
struct runtime;

/* Numbered as ZSwState of EVE's info messages, so that a report needs no translation. */
enum runtime_state {
    RUNTIME_INVALID = 0, /* purged: the last event of an object */
    RUNTIME_INITIAL = 1, /* accepted, waits for what it needs */
    RUNTIME_DOWNLOAD_STARTED = 2,
    RUNTIME_DOWNLOADED = 3,
    RUNTIME_DELIVERED = 4, /* content: the end */
    RUNTIME_INSTALLED = 5, /* instance: its volumes are there */
    RUNTIME_BOOTING = 6,
    RUNTIME_RUNNING = 7,
    RUNTIME_HALTING = 8,
    RUNTIME_HALTED = 9,
    RUNTIME_RESOLVING_TAG = 12,
    RUNTIME_RESOLVED_TAG = 13,
    RUNTIME_CREATING_VOLUME = 14,
    RUNTIME_CREATED_VOLUME = 15, /* volume: the end */
    RUNTIME_VERIFYING = 16,
    RUNTIME_VERIFIED = 17,
    RUNTIME_LOADING = 18,
};
/* As in the proto: "DOWNLOAD_STARTED". */
const char *runtime_state_name(enum runtime_state s);

enum runtime_kind { RUNTIME_CONTENT, RUNTIME_VOLUME, RUNTIME_INSTANCE, RUNTIME_KINDS };
/* All but the first are disks of virtual machines; an ISO is a medium that is only read. */
enum runtime_format {
    RUNTIME_OCI,
    RUNTIME_QCOW2,
    RUNTIME_RAW,
    RUNTIME_VMDK,
    RUNTIME_VHD,
    RUNTIME_VHDX,
    RUNTIME_ISO,
};
enum runtime_stream { RUNTIME_STDOUT, RUNTIME_STDERR };
enum runtime_network {
    RUNTIME_NETWORK_NONE, /* a namespace of its own with nothing but loopback */
    RUNTIME_NETWORK_JOIN, /* the namespace at network_path */
    RUNTIME_NETWORK_HOST,
};

#define RUNTIME_MAX_ID_BYTES 64
#define RUNTIME_MAX_ITEMS 256                       /* of any array in what a caller asks for */
#define RUNTIME_MAX_TEXT_BYTES ((size_t) 32 * 1024) /* of any string of it */
#define RUNTIME_MAX_USER_DATA_BYTES ((size_t) 1024 * 1024)
#define RUNTIME_DEFAULT_STOP_MS 30000

struct runtime_content {
    struct str id;
    enum runtime_format format;
    /* docker://host[:port]/repository[:tag][@sha256:digest], http(s)://host/tar, or
     * file:///directory-or-tar; of a disk the image itself instead of a tar */
    struct str url;
    struct str sha256;         /* of the manifest or the file, hex; STR_NONE: not known */
    struct str user, password; /* for the registry; STR_NONE: none */
    struct str ca_pem;         /* trusted instead of the machine's; STR_NONE: the machine's */
    int64_t max_bytes;         /* of all blobs together; 0: the implementation's limit */
};

struct runtime_volume {
    struct str id;
    /* STR_NONE: an empty directory for a container, an empty disk for a virtual machine */
    struct str content;
    int64_t size_bytes; /* a disk is made at least so large; 0: as its content is */
};

struct runtime_mount {
    struct str volume;
    struct str target; /* STR_NONE: a disk of a virtual machine, which needs no directory */
    bool is_read_only;
};

/* Of a virtual machine: a tap device of this network namespace. */
struct runtime_interface {
    struct str tap;
    struct str mac; /* "02:16:3e:00:00:01" */
};

/* A virtual machine when its root volume is a disk, otherwise a container. */
struct runtime_instance {
    struct str id;
    struct str root_volume;
    const struct runtime_mount *mounts;
    size_t n_mounts;
    const struct str *args; /* instead of the image's entry point and command */
    size_t n_args;
    const struct str *env; /* "NAME=value", after the image's */
    size_t n_env;
    struct str hostname;      /* STR_NONE: the id */
    int64_t memory_max_bytes; /* 0: no limit */
    int64_t cpu_millis;       /* thousandths of one CPU; 0: no limit */
    int64_t max_processes;    /* 0: the implementation's limit */
    enum runtime_network network;
    struct str network_path;
    struct str resolv_conf; /* its /etc/resolv.conf; STR_NONE: the image's */
    bool is_root_read_only;
    int64_t stop_ms; /* from the asking signal to the killing one; 0: RUNTIME_DEFAULT_STOP_MS */
    /* Of a virtual machine alone. */
    const struct runtime_interface *interfaces;
    size_t n_interfaces;
    struct str user_data, meta_data; /* of a drive for cloud-init; STR_NONE: there is none */
};

#define RUNTIME_EXIT_UNKNOWN (-1)
struct runtime_status {
    enum runtime_kind kind;
    struct str id;
    enum runtime_state state;
    int progress_percent; /* of a download */
    struct str error;     /* for a person; STR_NONE: none. It does not change the state */
    /* Of an instance: 128 + signal when it was killed; RUNTIME_EXIT_UNKNOWN while it runs, or when
     * it was adopted from an earlier agent. */
    int exit_code;
    int64_t started_wall_us; /* 0: never */
    bool is_adopted;         /* ran already when this runtime began */
};

struct runtime_metrics {
    int64_t cpu_ns; /* since it started */
    int64_t memory_bytes, memory_peak_bytes, memory_max_bytes;
    int64_t n_processes;
    int64_t rx_bytes, tx_bytes, rx_packets, tx_packets; /* without loopback */
    /* Of the disks of a virtual machine, as it told last. */
    int64_t disk_read_bytes, disk_written_bytes, disk_reads, disk_writes;
    bool is_simulated; /* invented numbers */
    bool is_whole;     /* of all its processes; otherwise of the first one alone */
};

/* What happens. Strings live for the call. A callback may call the runtime again, but not free it.
 */
struct runtime_events {
    void (*on_change)(void *arg, const struct runtime_status *s);
    void (*on_log)(void *arg, struct str instance, enum runtime_stream stream, struct str line,
                   int64_t wall_us);
    void *arg;
};

/* "sim" or "process". */
const char *runtime_name(const struct runtime *r);
/* Each asks for an object and may be repeated: what is under way or there stays, what failed is
 * tried again. An object waits for what it names, in whatever order they come. -EINVAL: an id,
 * count or text outside the limits; -EBUSY: it is being purged; -ESTALE: it exists and was asked
 * for differently (purge it first; a halted instance takes what is new). */
int runtime_prepare(struct runtime *r, const struct runtime_content *c);
int runtime_create(struct runtime *r, const struct runtime_volume *v);
int runtime_start(struct runtime *r, const struct runtime_instance *i);
/* Asks it to end, and kills it after its time, or at once. One that waits for its volumes no longer
 * starts when they are there. -ENOENT */
int runtime_stop(struct runtime *r, struct str id, bool at_once);
/* Ends and removes it; its last event is RUNTIME_INVALID. -ENOENT; -EBUSY: something uses it (an
 * instance that runs its volume, a volume that is being made of its content). */
int runtime_purge(struct runtime *r, enum runtime_kind kind, struct str id);
/* -ENOENT. The strings live until the object's next event. */
int runtime_status(const struct runtime *r, enum runtime_kind kind, struct str id,
                   struct runtime_status *ret);
/* Every object, also what was found when the runtime began. fn must not change anything. */
void runtime_each(const struct runtime *r, void (*fn)(void *arg, const struct runtime_status *s),
                  void *arg);
/* -ENOENT; -ESRCH: it does not run. */
int runtime_metrics(struct runtime *r, struct str id, struct runtime_metrics *ret);
/* Where the tree of a volume is, in the arena; absent: nothing is on disk. Others may look at it,
 * and must not trust what they find. */
struct str runtime_volume_path(const struct runtime *r, struct arena *a, struct str id);
/* Whether an instance whose root it is is a virtual machine; of a volume that is there. */
bool runtime_volume_is_disk(const struct runtime *r, struct str id);
/* Instances go on running. Work under way is waited for by the loop: call it before the loop ends.
 * NULL allowed. */
void runtime_free(struct runtime *r);
