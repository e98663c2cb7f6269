/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata server that applications ask at 169.254.169.254: plain HTTP, one listener for each
 * network instance, the source address tells which application asks. docs/METADATA.md lists the
 * paths. What it must know of the device comes through struct msrv_world; it keeps nothing but
 * connections and the rate of /metrics/. Everything belongs to one loop's thread, but for what
 * struct msrv_world says of workers; there is no global state. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "json/json.h"

struct loop;
struct msrv;
struct msrv_listener;

#define MSRV_PORT 80
#define MSRV_EXPORTER_PORT 9100
/* The address that applications are told in URLs. */
#define MSRV_ADDRESS "169.254.169.254"

/* Of a kubeconfig or custom status: travels base64 in JSON in base64 in a packet of pubsub. */
#define MSRV_MAX_METADATA_BYTES 32768
/* Of what an application lets the device sign or prove, and of the diagnosis it reads. */
#define MSRV_MAX_SIGNED_BYTES 65535
#define MSRV_MAX_DIAG_BYTES 65535
/* Of a request. A body of one byte more than the largest limit above is still read whole. */
#define MSRV_MAX_HEADER_BYTES ((size_t) 16 * 1024)
#define MSRV_MAX_HEADERS 100
#define MSRV_MAX_BODY_BYTES ((size_t) 64 * 1024)
/* Of all listeners, and of one address. Beyond them the oldest that has not asked yet goes. */
#define MSRV_MAX_CONNECTIONS 1024
#define MSRV_MAX_CONNECTIONS_PER_ADDRESS 32
/* From the connection to the whole request. */
#define MSRV_READ_TIMEOUT_MS 5000
/* An answer that waits must move on by so much in this time. */
#define MSRV_WRITE_TIMEOUT_MS 5000
#define MSRV_WRITE_LEAST_BYTES ((size_t) 32 * 1024)
/* What comes behind a request is dropped so long, for the answer to be read before the end. */
#define MSRV_LINGER_MS 1000
#define MSRV_LINGER_BYTES ((size_t) 256 * 1024)
/* Addresses whose rate of /metrics/ is remembered. */
#define MSRV_MAX_VISITORS 1024
/* An archive without the 64-bit extension of the format. */
#define MSRV_MAX_ZIP_BYTES ((uint64_t) 0xffff0000)
#define MSRV_MAX_ZIP_FILES 1024

enum msrv_data_type { MSRV_DATA_KUBECONFIG = 1, MSRV_DATA_CUSTOM_STATUS = 2 };

struct msrv_app {
    struct str uuid;
    struct str name;                     /* to display */
    bool can_discover;                   /* the adapter that has the caller's address allows it */
    bool has_config;                     /* its AppNetworkConfig is known */
    bool is_openstack;                   /* by its MetaDataType */
    struct str network;                  /* of the adapter that has the caller's address */
    struct str user_data;                /* base64; empty: none */
    const struct json *user_data_cipher; /* CipherBlockStatus that has it instead; NULL: none */
};

/* Values of topics with one key, "global", as they are published. */
enum msrv_document {
    MSRV_EDGE_NODE_INFO,
    MSRV_LOCATION,
    MSRV_WWAN_STATUS,
    MSRV_WWAN_METRICS,
    MSRV_DEVICE_NETWORK_STATUS,
    MSRV_NETWORK_METRICS,
};

/* An address of some application. */
struct msrv_neighbour {
    struct str app_uuid;
    struct str port;    /* name of the interface */
    struct str address; /* empty: the application has none, and is named all the same */
};

/* A disk of kind "AppCustom". */
struct msrv_blob {
    struct str name;
    struct str custom_meta;
    const char *path;
};

enum msrv_patch_kind {
    MSRV_PATCH_BINARY,           /* a file, or a block device of which `size` bytes are it */
    MSRV_PATCH_ENCRYPTED_INLINE, /* decrypted when it is asked for */
    MSRV_PATCH_VOLUME,           /* only described */
};

struct msrv_patch_file {
    enum msrv_patch_kind kind;
    struct str name, sha, metadata, artifact_metadata;
    int64_t size;
    const char *path;                /* of a binary */
    struct str image_name, image_id; /* of a volume */
    const struct json *secret;       /* the world's own, of an encrypted one */
};

/* An envelope that is active for the application. */
struct msrv_envelope {
    struct str id, version;
    const struct msrv_patch_file *files;
    size_t n_files;
};

enum msrv_patch_use { MSRV_PATCH_DESCRIBED, MSRV_PATCH_DOWNLOADED };

struct msrv_tpm_keys {
    struct str ek, aik_public, aik_name; /* the name with its two bytes of length */
};

struct msrv_tpm_challenge {
    struct str data, credential, secret; /* the last two without their two bytes of size */
};

struct msrv_tpm_proof {
    struct str secret, signature;
};

/* What the rest of the agent knows. Results live in the arena; a document only until the loop's
 * turn ends. The functions of the second group may take long and are called on a worker thread,
 * several at once, also while msrv_free() waits for them: the world lives until the loop has
 * settled. A function that is NULL has nothing to tell: -ENOENT, or -EOPNOTSUPP of the TPM's. */
struct msrv_world {
    /* Certificates and names of the device have been heard of; until then everything is 503. */
    bool (*is_ready)(void *ctx);
    /* Of the network that the listener was made for. -ENOENT: nobody has this address. */
    int (*find_app)(void *ctx, struct arena *a, struct str network, struct str address,
                    struct msrv_app *ret);
    /* Of the ports that the application's network uses, link-local ones left out. -ENOENT: no such
     * port; -ENODEV: the device has no network status. */
    int (*external_ipv4)(void *ctx, struct arena *a, const struct msrv_app *app,
                         struct str **ret_addresses, size_t *ret_n);
    /* NULL: there is none. */
    const struct json *(*document)(void *ctx, struct arena *a, enum msrv_document which);
    /* Of every application, by UUID. */
    int (*neighbours)(void *ctx, struct arena *a, struct msrv_neighbour **ret, size_t *ret_n);
    int (*blobs)(void *ctx, struct arena *a, const struct msrv_app *app, struct msrv_blob **ret,
                 size_t *ret_n);
    int (*envelopes)(void *ctx, struct arena *a, const struct msrv_app *app,
                     struct msrv_envelope **ret, size_t *ret_n);
    void (*count_patch)(void *ctx, const struct msrv_app *app, const struct msrv_envelope *e,
                        enum msrv_patch_use use);
    /* Topic AppInstMetaData. */
    int (*publish_metadata)(void *ctx, struct str key, const struct json *value);

    /* On a worker. */
    /* What user_data_cipher holds: base64; empty: none. */
    int (*decrypt_user_data)(void *ctx, struct arena *a, const struct msrv_app *app,
                             struct str *ret);
    /* An AuthContainer of the payload by the device's key. */
    int (*sign)(void *ctx, struct arena *a, struct str payload, struct str *ret);
    int (*decrypt)(void *ctx, struct arena *a, const struct msrv_patch_file *file,
                   struct str *ret_base64);
    int (*tpm_keys)(void *ctx, struct arena *a, struct msrv_tpm_keys *ret);
    int (*tpm_activate)(void *ctx, struct arena *a, const struct msrv_tpm_challenge *challenge,
                        struct msrv_tpm_proof *ret);
};

/* Config items msrv.prometheus.metrics.*: of one address. */
struct msrv_rate {
    uint32_t per_second;     /* 1 */
    uint32_t burst;          /* 10 */
    uint32_t idle_timeout_s; /* 240 */
};
extern const struct msrv_rate msrv_default_rate;

struct msrv_options {
    struct loop *loop;
    const struct clock *clock;
    const struct msrv_world *world;
    void *ctx;                    /* of the world's functions */
    const char *diag_path;        /* /run/diag.out on a device */
    const char *exporter_address; /* numeric IPv4; NULL: 127.0.0.1 */
    int exporter_port;            /* 0: MSRV_EXPORTER_PORT */
    /* After msrv_free(): nobody asks the world any more, on workers either; NULL: nothing. */
    void (*on_freed)(void *ctx);
};

struct msrv *msrv_new(const struct msrv_options *options);
/* Closes every listener and connection; memory goes with the last of them. NULL allowed. */
void msrv_free(struct msrv *m);
/* Takes effect at once. */
void msrv_set_rate(struct msrv *m, const struct msrv_rate *rate);

/* Where applications of a network instance ask. */
struct msrv_place {
    const char *network;   /* is passed to find_app */
    const char *interface; /* takes only what comes through it, so that bridges may share the
                            * address; NULL: any */
    const char *address;   /* numeric IPv4 */
    int port;              /* 0: any free */
};
/* Negative errno of the socket's calls; -EINVAL for another address. */
int msrv_listen(struct msrv *m, const struct msrv_place *at, struct msrv_listener **ret);
int msrv_listener_port(const struct msrv_listener *l);
/* With its connections. NULL allowed. */
void msrv_unlisten(struct msrv_listener *l);

struct msrv_count {
    size_t n_connections;
    uint64_t n_accepted, n_answered;
    uint64_t n_evicted; /* made room for others */
    uint64_t n_timeouts;
};
struct msrv_count msrv_count(const struct msrv *m);
