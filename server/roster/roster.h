/* SPDX-License-Identifier: Apache-2.0 */
/* Every device that may talk to us, in memory: found by its certificate in a hash look-up, never
 * through the store. Kept true by the events of Devices, their configurations and options. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "api/client.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/uuid.h"
#include "pki/pki.h"

enum attestation {
    ATTESTATION_REPORT, /* quotes are checked and reported, a bad one changes nothing */
    ATTESTATION_OFF,
    ATTESTATION_ENFORCE /* no configuration without a good quote */
};

/* What a configuration is made of: the DeviceConfig's generation, and of its status the version and
 * time that the device is told. All zero: nothing. */
struct config_mark {
    int64_t generation, version, rendered_s;
};

/* What a device is told. Immutable, shared by reference count. */
struct device_config {
    struct bytes bytes; /* its life */
    struct config_mark mark;
    struct str hash;
    struct str envelope; /* the signed ConfigResponse */
};

#define DEVICE_NONCE_BYTES 32
/* Base64 of a SHA-256, for URLs: never empty, changes whenever the configuration does. */
#define DEVICE_CONFIG_HASH_BYTES 43

/* A device in the roster. What never changes is read freely; what changes is atomic or under lock.
 * One whose certificate changes becomes another entry. */
struct device {
    struct bytes bytes; /* its life */
    struct uuid uuid;
    char uuid_text[UUID_TEXT_BYTES];
    struct str namespace, name, uid;
    _Atomic int64_t revision; /* of the Device it was read from */
    bool has_certificate;
    unsigned char certificate_hash[SHA256_BYTES]; /* of its DER */
    unsigned char text_hash[SHA256_BYTES];        /* of spec.certificate as it was last seen */
    struct pki_public *key;                       /* NULL: no certificate yet */
    atomic_bool is_active;                        /* false: refused everywhere with 403 */
    atomic_bool is_gone;          /* deleted, or another certificate took its place */
    atomic_bool is_deleted;       /* its uuid is nobody's any more */
    atomic_uint attestation;      /* enum attestation */
    _Atomic int64_t poll_s;       /* how often it asks for its configuration, at the most */
    _Atomic int64_t retention_s;  /* of what it sends; 0: as the server says */
    _Atomic int64_t last_seen_us; /* wall clock; 0: never since the server began to count */

    pthread_mutex_t attest_lock; /* it attests one step at a time, the store included */
    pthread_mutex_t lock;        /* of what follows */
    struct str annotations;      /* heap: those of ours, JSON; what its options are read from */
    unsigned config_generation;  /* counts what makes the configuration another */
    bool is_config_known;        /* config_hash is that of the present generation */
    bool is_config_given;        /* it was sent */
    bool is_config_confirmed;    /* the device has said that it has it */
    bool is_hash_looked_at;      /* the one it asked with first since the server began */
    char config_hash[DEVICE_CONFIG_HASH_BYTES + 1];
    struct config_mark config_mark; /* the newest that is known of */
    /* Nothing with a smaller version or an earlier time may follow: what the device was given. */
    int64_t floor_version, floor_rendered_s;
    struct device_config *config; /* until the device has it; NULL: made again when asked for */
    struct str integrity_token;   /* heap; empty: has not attested */
    unsigned char nonce[DEVICE_NONCE_BYTES];
    size_t nonce_n;         /* 0: none outstanding */
    int64_t nonce_made_us;  /* monotonic */
    int64_t attest_told_us; /* monotonic: when users were told of its bad quotes; 0: they are not */
    bool has_tpm;           /* it once quoted with one */
    uint32_t n_tokens;      /* of its own limit on requests */
    int64_t tokens_at_ms;
};

/* With one reference. Copies. */
struct device_config *device_config_new(const struct config_mark *mark, struct str hash,
                                        struct str envelope);

struct roster;
struct roster_options {
    const struct clock *clock;
    /* A device came, went (is_gone) or has other options; on the thread of the event, the roster
     * locked. NULL: nobody wants to know. */
    void (*on_change)(void *ctx, struct device *d);
    void *ctx;
};
struct roster *roster_new(const struct roster_options *o);
void roster_free(struct roster *r);

/* Each with a reference, or NULL. From any thread. */
/* By the first 16 bytes of its hash, or all 32. */
struct device *roster_by_certificate(struct roster *r, struct str hash);
struct device *roster_by_uuid(struct roster *r, const struct uuid *u);
struct device *roster_by_name(struct roster *r, struct str namespace, struct str name);
struct device *device_ref(struct device *d);
void device_unref(struct device *d); /* NULL allowed */
DEFINE_CLEANUP(struct device *, device_unref)
size_t roster_count(struct roster *r);
/* Calls fn for each device with the roster locked: short, no calls back. */
void roster_each(struct roster *r, void (*fn)(void *ctx, struct device *d), void *ctx);

/* An object changed (from kube_watch): Devices, DeviceConfigs, the Secrets that hold device state,
 * ConfigMaps of options. */
void roster_on_event(void *roster, const struct kube_event *e);
/* A Device just written, so that the device is known before its registration is answered: the
 * object's text. Returns it with a reference; NULL when it cannot be a device (no UUID yet). */
struct device *roster_take(struct roster *r, struct str device_text);
/* Of versions that are counted on from. */
#define CONFIG_MAX_VERSION ((int64_t) 1000000000000000)
/* status.version and status.renderedAt (seconds), of DeviceConfigs and of a Device's status.config;
 * 0: none, or none of ours. */
int64_t roster_config_version(const struct json *version);
int64_t roster_config_time(const struct json *rendered_at);
struct config_mark roster_config_mark(const struct json *device_config);
/* The device was told this, or is about to be. From any thread. */
void device_raise_floor(struct device *d, int64_t version, int64_t rendered_s);
/* When the roster was made, by the wall clock. */
int64_t roster_started_us(const struct roster *r);
/* Everything devices were told is to be made anew: the controller's certificates have changed. */
void roster_forget_configs(struct roster *r);
