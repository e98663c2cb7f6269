/* SPDX-License-Identifier: Apache-2.0 */
/* The device's keys at work for others. What topics tell of certificates and contexts is copied at
 * the end of a turn in which it changed, for threads that have no part in the loop. */
#include "attest/keys.h"

#include <errno.h>
#include <pthread.h>

#include "attest/messages.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "eve/cipher.h"
#include "eve/envelope.h"
#include "loop/loop.h"
#include "pki/file.h"
#include "protobuf/message.h"

#define SNAPSHOT_BYTES ((size_t) 2048)
/* Of each kind; a controller has a handful. */
#define MAX_KNOWN ((size_t) 4096)

enum topic { CONTEXTS, CONTROLLER_CERTS, OWN_CERTS, TOPICS };

struct known_cert {
    struct str hash, pem;
    bool is_tpm; /* its key is in the TPM */
};
struct known_context {
    struct str id, controller_hash, device_hash;
};

struct snapshot {
    struct known_context *contexts;
    struct known_cert *controllers, *own;
    size_t n_contexts, n_controllers, n_own;
};

struct node_keys {
    struct node *node;
    struct tpm *tpm;
    struct subscription *topics[TOPICS];
    struct loop_deferred refresh;
    pthread_mutex_t lock;
    /* Under the lock. */
    struct arena *arena; /* of the snapshot */
    struct snapshot known;
};

struct tpm *node_keys_tpm(const struct node_keys *k)
{
    return k ? k->tpm : NULL;
}

/* ---- what is known -------------------------------------------------------------------------- */

/* In the arena; empty when it is no base64. */
static struct str bytes_of(struct arena *a, const struct json *object, struct str key)
{
    struct str bytes = STR("");
    const struct str text = json_get_str(object, key);
    return text.n && base64_decode(a, text, BASE64_STANDARD, &bytes, NULL) == 0 ? bytes : STR("");
}

static struct known_context read_context(struct arena *a, const struct json *value)
{
    return (struct known_context){.id = arena_str(a, json_get_str(value, STR("ContextID"))),
                                  .controller_hash = bytes_of(a, value, STR("ControllerCertHash")),
                                  .device_hash = bytes_of(a, value, STR("DeviceCertHash"))};
}

static void add_context(struct arena *a, struct snapshot *s, const struct json *value)
{
    s->contexts = arena_grow(a, s->contexts, s->n_contexts, sizeof(*s->contexts));
    s->contexts[s->n_contexts++] = read_context(a, value);
}

static void add_controller(struct arena *a, struct snapshot *s, const struct json *value)
{
    if (json_get_int(value, STR("Type"), 0) !=
        EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE)
        return;
    s->controllers = arena_grow(a, s->controllers, s->n_controllers, sizeof(*s->controllers));
    s->controllers[s->n_controllers++] = (struct known_cert){
        .hash = bytes_of(a, value, STR("CertHash")), .pem = bytes_of(a, value, STR("Cert"))};
}

static void add_own(struct arena *a, struct snapshot *s, const struct json *value)
{
    if (json_get_int(value, STR("CertType"), 0) != EDGE_NODE_CERT_ECDH)
        return;
    s->own = arena_grow(a, s->own, s->n_own, sizeof(*s->own));
    s->own[s->n_own++] = (struct known_cert){.hash = bytes_of(a, value, STR("CertID")),
                                             .pem = bytes_of(a, value, STR("Cert")),
                                             .is_tpm = json_get_bool(value, STR("IsTpm"), false)};
}

static const struct {
    struct pubsub_name name;
    void (*add)(struct arena *a, struct snapshot *s, const struct json *value);
} topics[TOPICS] = {
    [CONTEXTS] = {{.agent = {"zedagent", 8}, .topic = {"CipherContext", 13}}, add_context},
    [CONTROLLER_CERTS] = {{.agent = {"zedagent", 8}, .topic = {"ControllerCert", 14}},
                          add_controller},
    [OWN_CERTS] = {{.agent = {"tpmmgr", 6}, .topic = {"EdgeNodeCert", 12}, .is_persistent = true},
                   add_own},
};

static void on_refresh(struct loop_deferred *d)
{
    struct node_keys *k = CONTAINER_OF(d, struct node_keys, refresh);
    ARENA_AUTO scratch = arena_new();
    struct arena *a = arena_new_with(SNAPSHOT_BYTES);
    struct snapshot s = {0};
    for (size_t i = 0; i < TOPICS; i++) {
        struct str key, text;
        for (size_t at = 0, n = 0;
             n < MAX_KNOWN && subscription_next(k->topics[i], &at, &key, &text); n++)
            topics[i].add(a, &s, json_parse_quick(scratch, text));
    }
    (void) pthread_mutex_lock(&k->lock);
    struct arena *old = k->arena;
    k->arena = a;
    k->known = s;
    (void) pthread_mutex_unlock(&k->lock);
    arena_free(old);
}

static void on_value(void *arg, struct str key, const struct json *value)
{
    (void) key, (void) value;
    struct node_keys *k = arg;
    loop_defer(k->node->loop, &k->refresh);
}

static void on_modify(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) old;
    on_value(arg, key, value);
}

int node_keys_new(struct node *n, const struct node_keys_options *o, struct node_keys **ret)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_value, .on_modify = on_modify, .on_delete = on_value};
    struct node_keys *k = NEW(struct node_keys);
    int r = 0;
    k->node = n;
    k->refresh.fn = on_refresh;
    k->tpm = o && o->tcti ? tpm_new(o->tcti) : NULL;
    (void) pthread_mutex_init(&k->lock, NULL);
    for (size_t i = 0; r == 0 && i < TOPICS; i++)
        r = subscription_new(n->pubsub, &topics[i].name, &handlers, k, &k->topics[i]);
    if (r < 0) {
        node_keys_free(k);
        return r;
    }
    *ret = k;
    return 0;
}

void node_keys_free(struct node_keys *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < TOPICS; i++)
        subscription_free(k->topics[i]);
    loop_undefer(k->node->loop, &k->refresh);
    tpm_unref(k->tpm);
    arena_free(k->arena);
    (void) pthread_mutex_destroy(&k->lock);
    mem_free(k);
}

/* ---- opening -------------------------------------------------------------------------------- */

static const struct known_cert *find_cert(const struct known_cert *certs, size_t n, struct str hash)
{
    for (size_t i = 0; i < n; i++)
        if (hash.n && str_eq(certs[i].hash, hash))
            return &certs[i];
    return NULL;
}

/* The context that comes with the block, or that has its id. */
static bool find_context(const struct snapshot *s, struct arena *a, const struct json *block,
                         struct known_context *ret)
{
    const struct json *own = json_get(block, STR("CipherContext"));
    const struct str id = json_get_str(block, STR("CipherContextID"));
    if (json_get_str(own, STR("ControllerCertHash")).n) {
        *ret = read_context(a, own);
        return true;
    }
    for (size_t i = 0; i < s->n_contexts; i++)
        if (id.n && str_eq(s->contexts[i].id, id)) {
            *ret = s->contexts[i];
            return true;
        }
    return false;
}

struct parties {
    struct known_cert controller, own;
};

/* Copies into the arena: the snapshot may be another as soon as the lock is gone. */
static int find_parties(struct node_keys *k, struct arena *a, const struct json *block,
                        struct parties *ret)
{
    struct known_context context;
    const struct known_cert *controller = NULL, *own = NULL;
    (void) pthread_mutex_lock(&k->lock);
    if (find_context(&k->known, a, block, &context)) {
        controller =
            find_cert(k->known.controllers, k->known.n_controllers, context.controller_hash);
        own = find_cert(k->known.own, k->known.n_own, context.device_hash);
    }
    if (controller && own)
        *ret =
            (struct parties){{arena_str(a, controller->hash), arena_str(a, controller->pem), false},
                             {arena_str(a, own->hash), arena_str(a, own->pem), own->is_tpm}};
    (void) pthread_mutex_unlock(&k->lock);
    return controller && own ? 0 : -ENOENT;
}

static int agree_in_tpm(struct node_keys *k, struct arena *a, const struct pki_cert *controller,
                        struct cipher_pair *ret)
{
    unsigned char point[TPM_POINT_BYTES];
    const struct str der = pki_cert_public_der(a, controller);
    if (!k->tpm || der.n < sizeof(point))
        return -ENOENT;
    const int r = tpm_ecdh(k->tpm, (const unsigned char *) der.p + (der.n - sizeof(point)), point);
    if (r < 0)
        return r;
    pki_sha256(str_range((const char *) point, sizeof(point)), ret->key);
    explicit_bzero(point, sizeof(point));
    return 0;
}

static int agree_in_software(struct node_keys *k, struct arena *a, const struct pki_public *other,
                             const struct parties *p, struct cipher_pair *ret)
{
    CLEANUP(pki_key_freep) struct pki_key *key = NULL;
    int r = pki_key_load(node_path(a, k->node, NODE_PERSIST, KEYS_ECDH_KEY), &key);
    if (r == 0)
        r = cipher_pair(a, key, p->own.hash, other, p->controller.hash, ret);
    return r;
}

static int agree(struct node_keys *k, struct arena *a, const struct parties *p,
                 struct cipher_pair *ret)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    if (pki_cert_parse(p->controller.pem, &cert) < 0)
        return -EBADMSG;
    CLEANUP(pki_public_freep) struct pki_public *other = pki_cert_public(cert);
    if (!pki_public_is_p256(other))
        return -EBADMSG;
    return p->own.is_tpm ? agree_in_tpm(k, a, cert, ret) : agree_in_software(k, a, other, p, ret);
}

static Eve__Common__CipherBlock read_block(struct arena *a, const struct json *block)
{
    Eve__Common__CipherBlock b = EVE__COMMON__CIPHER_BLOCK__INIT;
    struct str data = bytes_of(a, block, STR("pubsub-large-CipherData"));
    if (!data.n)
        data = bytes_of(a, block, STR("CipherData"));
    b.initialvalue = pb_data(bytes_of(a, block, STR("InitialValue")));
    b.cleartextsha256 = pb_data(bytes_of(a, block, STR("ClearTextHash")));
    b.cipherdata = pb_data(data);
    return b;
}

int node_keys_open(struct node_keys *k, struct arena *a, const struct json *cipher_block_status,
                   struct str *ret_plaintext)
{
    struct parties parties;
    struct cipher_pair pair;
    if (!json_is(cipher_block_status, JSON_OBJECT))
        return -EBADMSG;
    int r = find_parties(k, a, cipher_block_status, &parties);
    if (r == 0)
        r = agree(k, a, &parties, &pair);
    if (r < 0)
        return r;
    const Eve__Common__CipherBlock block = read_block(a, cipher_block_status);
    r = cipher_open(a, &pair, &block, ret_plaintext);
    explicit_bzero(pair.key, sizeof(pair.key));
    return r;
}

/* ---- for the metadata server ---------------------------------------------------------------- */

static int open_block(struct node_keys *k, struct arena *a, const struct json *status,
                      Eve__Common__EncryptionBlock **ret)
{
    struct str plain;
    const int r = node_keys_open(k, a, status, &plain);
    if (r < 0)
        return r;
    *ret = PB_UNPACK(a, eve__common__encryption_block, plain);
    return *ret ? 0 : -EBADMSG;
}

static int decrypt_user_data(void *ctx, struct arena *a, const struct msrv_app *app,
                             struct str *ret)
{
    Eve__Common__EncryptionBlock *block = NULL;
    const int r = open_block(ctx, a, app->user_data_cipher, &block);
    if (r == 0)
        *ret = pb_text(block->protecteduserdata);
    return r;
}

/* EVE keeps the block of a patch in a file; a publisher of ours may put it beside the rest. */
static const struct json *block_of(struct arena *a, const struct json *blob)
{
    struct str path = json_get_str(blob, STR("encURL"));
    path = path.n ? path : json_get_str(blob, STR("EncURL"));
    BUF_AUTO text = {0};
    if (!path.n)
        return blob;
    return pki_file_read(arena_strz(a, path), &text) == 0 ? json_parse_quick(a, buf_str(&text))
                                                          : NULL;
}

static int decrypt(void *ctx, struct arena *a, const struct msrv_patch_file *file,
                   struct str *ret_base64)
{
    Eve__Common__EncryptionBlock *block = NULL;
    const int r = open_block(ctx, a, block_of(a, file->secret), &block);
    if (r == 0)
        *ret_base64 = pb_text(block->encrypted_data);
    return r;
}

static int sign(void *ctx, struct arena *a, struct str payload, struct str *ret)
{
    const struct node_keys *k = ctx;
    struct envelope_signer signer = {.key = k->node->identity.key};
    memcpy(signer.cert_hash, k->node->identity.cert_hash, sizeof(signer.cert_hash));
    if (!signer.key)
        return -ENOKEY;
    *ret = envelope_seal(a, &signer, payload);
    return ret->p ? 0 : -EIO;
}

static int tpm_keys(void *ctx, struct arena *a, struct msrv_tpm_keys *ret)
{
    const struct node_keys *k = ctx;
    struct tpm_public endorsement = {0}, aik = {0};
    if (!k->tpm)
        return -EOPNOTSUPP;
    int r = tpm_public(k->tpm, a, TPM_KEY_ENDORSEMENT, &endorsement);
    if (r == 0)
        r = tpm_public(k->tpm, a, TPM_KEY_AIK, &aik);
    if (r < 0)
        return r;
    const char size[] = {(char) (aik.name.n >> 8), (char) aik.name.n};
    const struct str name[] = {str_range(size, sizeof(size)), aik.name};
    *ret =
        (struct msrv_tpm_keys){endorsement.tpmt, aik.tpmt, arena_join(a, name, N_ELEMENTS(name))};
    return 0;
}

static int tpm_prove(void *ctx, struct arena *a, const struct msrv_tpm_challenge *challenge,
                     struct msrv_tpm_proof *ret)
{
    const struct node_keys *k = ctx;
    const struct tpm_challenge c = {challenge->credential, challenge->secret, challenge->data};
    return k->tpm ? tpm_activate(k->tpm, a, &c, &ret->secret, &ret->signature) : -EOPNOTSUPP;
}

const struct msrv_world node_keys_world = {
    .decrypt_user_data = decrypt_user_data,
    .sign = sign,
    .decrypt = decrypt,
    .tpm_keys = tpm_keys,
    .tpm_activate = tpm_prove,
};
