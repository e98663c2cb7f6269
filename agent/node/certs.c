/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the device believes: the controller's certificates, and the envelopes they vouch for. */
#include <errno.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "eve/certs.pb-c.h"
#include "eve/envelope.h"
#include "node/node_internal.h"
#include "pki/chain.h"
#include "protobuf/message.h"

#define CHECKPOINT STR("checkpoint/controllercerts")
#define CHECKPOINT_BACKUP STR("checkpoint/controllercerts.bak")
#define ROOT STR("root-certificate.pem")
#define ARENA_SLACK_BYTES ((size_t) 256) /* for what aligns the strings of a set */

/* HashAlgorithm */
enum { HASH_SHA256_16BYTES = 1, HASH_SHA256_32BYTES = 2 };

void node_certs_free(struct node_certs *c)
{
    if (!c)
        return;
    pki_public_free(c->signing);
    arena_free(c->arena);
    mem_free(c);
}
DEFINE_CLEANUP(struct node_certs *, node_certs_free)

/* ---- verifying ----------------------------------------------------------------------------- */

static int reject(const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -EKEYREJECTED;
}

static bool is_leaf(int type)
{
    return type == EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING ||
           type == EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE;
}

/* A set while it is verified: parsed certificates take too much memory to be kept. */
struct candidate {
    struct node_certs *set;
    struct pki_chain parsed; /* in the order of the set */
};

static void candidate_done(struct candidate *c)
{
    pki_chain_done(&c->parsed);
    node_certs_free(c->set);
}

static int add_cert(struct candidate *c, const Eve__Certs__ZCert *from, const char **ret_reason)
{
    const int type = (int) from->type;
    struct node_certs *set = c->set;
    if (!is_leaf(type) && type != EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE)
        return reject("a certificate of a type that controllers do not have", ret_reason);
    if (set->n >= PKI_CHAIN_MAX)
        return reject("there are too many certificates", ret_reason);
    if (pki_cert_parse(pb_bytes(from->cert), &c->parsed.certs[set->n]) < 0)
        return reject("a certificate is damaged", ret_reason);
    c->parsed.n++;
    set->items[set->n++] =
        (struct node_controller_cert){.hash_algo = (int) from->hashalgo,
                                      .type = type,
                                      .pem = arena_str(set->arena, pb_bytes(from->cert)),
                                      .hash = arena_str(set->arena, pb_bytes(from->certhash))};
    return 0;
}

static size_t count_type(const struct node_certs *c, int type)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->items[i].type == type;
    return n;
}

/* Borrows the certificates: the leaf, then all that may stand between. */
static struct pki_chain chain_of(const struct candidate *c, size_t leaf)
{
    struct pki_chain chain = {.certs = {c->parsed.certs[leaf]}, .n = 1};
    for (size_t i = 0; i < c->set->n && chain.n < PKI_CHAIN_MAX; i++)
        if (!is_leaf(c->set->items[i].type))
            chain.certs[chain.n++] = c->parsed.certs[i];
    return chain;
}

static int verify_chains(const struct node *n, const struct candidate *c, const char **ret_reason)
{
    BUF_AUTO pem = {0};
    PKI_CHAIN_AUTO roots = {0};
    if (node_file_read(n, NODE_CONFIG, ROOT, &pem) < 0 ||
        pki_chain_parse(buf_str(&pem), &roots) < 0)
        return reject("root-certificate.pem is absent or damaged", ret_reason);
    const int64_t now_s = n->clock->wall_us(n->clock) / 1000000;
    for (size_t i = 0; i < c->set->n; i++) {
        if (!is_leaf(c->set->items[i].type))
            continue;
        const struct pki_chain chain = chain_of(c, i);
        PKI_CHAIN_AUTO between = {0};
        const int r = pki_chain_verify(&chain, &roots, now_s, &between, ret_reason);
        if (r < 0)
            return r;
    }
    return 0;
}

static void find_signing(struct candidate *c)
{
    for (size_t i = 0; i < c->set->n; i++)
        if (c->set->items[i].type == EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING) {
            c->set->signing = pki_cert_public(c->parsed.certs[i]);
            pki_sha256(c->set->items[i].pem, c->set->signing_hash);
        }
}

static int check_set(const struct node *n, struct candidate *c, bool needs_ecdh,
                     const char **ret_reason)
{
    const struct node_certs *set = c->set;
    if (count_type(set, EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING) != 1)
        return reject("there is not exactly one signing certificate", ret_reason);
    if (needs_ecdh &&
        count_type(set, EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE) < 1)
        return reject("there is no certificate for key exchange", ret_reason);
    const int r = verify_chains(n, c, ret_reason);
    if (r == 0)
        find_signing(c);
    return r;
}

static int parse_set(const struct node *n, struct str message, bool needs_ecdh,
                     struct node_certs **ret, const char **ret_reason)
{
    ARENA_AUTO scratch = arena_new();
    const Eve__Certs__ZControllerCert *from =
        PB_UNPACK(scratch, eve__certs__zcontroller_cert, message);
    if (!from) {
        *ret_reason = "it is no list of certificates";
        return -EBADMSG;
    }
    CLEANUP(candidate_done) struct candidate c = {.set = NEW(struct node_certs)};
    const size_t n_certs = MIN(from->n_certs, (size_t) PKI_CHAIN_MAX);
    c.set->arena = arena_new_with(message.n + n_certs * sizeof(*c.set->items) + ARENA_SLACK_BYTES);
    c.set->items = ARENA_ARRAY(c.set->arena, struct node_controller_cert, n_certs);
    for (size_t i = 0; i < from->n_certs; i++) {
        const int r = add_cert(&c, from->certs[i], ret_reason);
        if (r < 0)
            return r;
    }
    const int r = check_set(n, &c, needs_ecdh, ret_reason);
    if (r == 0)
        *ret = TAKE(c.set);
    return r;
}

/* ---- keeping ------------------------------------------------------------------------------- */

static bool has_hash(const struct node_certs *c, struct str hash)
{
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->items[i].hash, hash))
            return true;
    return false;
}

/* Order does not count. */
static bool have_same_hashes(const struct node_certs *a, const struct node_certs *b)
{
    if (!a || !b || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!has_hash(b, a->items[i].hash))
            return false;
    return true;
}

static void replace_set(struct node *n, struct node_certs *by)
{
    node_certs_free(n->internal->certs);
    n->internal->certs = by;
    node_changed(n, NODE_CONTROLLER);
}

int node_take_controller_certs(struct node *n, struct str message, bool needs_ecdh,
                               const char **ret_reason)
{
    struct node_certs *c = NULL;
    int r = parse_set(n, message, needs_ecdh, &c, ret_reason);
    if (r < 0)
        return r;
    if (have_same_hashes(n->internal->certs, c)) {
        node_certs_free(c);
        return 0;
    }
    r = node_file_replace(n, NODE_PERSIST, CHECKPOINT, message);
    if (r < 0)
        log_warning("the controller's certificates are not saved, using them", LOG_ERRNO(r));
    replace_set(n, c);
    return 0;
}

static int load_set(const struct node *n, struct str name, struct node_certs **ret)
{
    const char *reason = "";
    BUF_AUTO message = {0};
    int r = node_file_read(n, NODE_PERSIST, name, &message);
    if (r == 0)
        r = parse_set(n, buf_str(&message), /* needs_ecdh= */ false, ret, &reason);
    if (r < 0 && r != -ENOENT)
        log_warning("saved certificates of the controller are not usable", LOG_STR("file", name),
                    LOG_TEXT("reason", reason), LOG_ERRNO(r));
    return r;
}

int node_load_controller_certs(struct node *n)
{
    struct node_certs *c = NULL;
    int r = load_set(n, CHECKPOINT, &c);
    if (r < 0 && load_set(n, CHECKPOINT_BACKUP, &c) == 0)
        r = 0;
    if (r == 0)
        replace_set(n, c);
    return r;
}

bool node_has_controller_certs(const struct node *n)
{
    return n->internal->certs != NULL;
}

const struct node_controller_cert *node_controller_certs(const struct node *n, size_t *ret_n)
{
    const struct node_certs *c = n->internal->certs;
    *ret_n = c ? c->n : 0;
    return c ? c->items : NULL;
}

/* ---- envelopes ----------------------------------------------------------------------------- */

static enum uplink_status check_sender(const struct node_certs *c, const struct envelope *e)
{
    if (e->sender_hash.n != ENVELOPE_HASH_BYTES && e->sender_hash.n != ENVELOPE_SHORT_HASH_BYTES)
        return UPLINK_HASH_SIZE_ERROR;
    const size_t n = e->algorithm == HASH_SHA256_32BYTES   ? ENVELOPE_HASH_BYTES
                     : e->algorithm == HASH_SHA256_16BYTES ? ENVELOPE_SHORT_HASH_BYTES
                                                           : 0;
    if (n == 0)
        return UPLINK_ALGO_FAIL;
    const struct str ours = str_range((const char *) c->signing_hash, n);
    return str_eq(ours, e->sender_hash) ? UPLINK_NONE : UPLINK_CERT_MISS;
}

static enum uplink_status check_envelope(const struct node_certs *c, const struct envelope *e)
{
    const enum uplink_status s = check_sender(c, e);
    if (s != UPLINK_NONE)
        return s;
    return envelope_verify(e, c->signing) == 0 ? UPLINK_NONE : UPLINK_SIGN_VERIFY_FAIL;
}

/* What was signed before the certificates were replaced is still the controller's. */
static enum uplink_status check_with_backup(const struct node *n, const struct envelope *e)
{
    CLEANUP(node_certs_freep) struct node_certs *old = NULL;
    if (load_set(n, CHECKPOINT_BACKUP, &old) < 0)
        return UPLINK_CERT_MISS;
    return check_envelope(old, e);
}

int node_open_envelope(struct node *n, struct str body, struct buf *to, enum uplink_status *ret)
{
    struct envelope e;
    *ret = UPLINK_NONE;
    if (envelope_parse(body, &e) < 0)
        return -EBADMSG;
    if (!n->internal->certs && node_load_controller_certs(n) < 0)
        return -EKEYREJECTED;
    enum uplink_status s = check_envelope(n->internal->certs, &e);
    if (s == UPLINK_CERT_MISS)
        s = check_with_backup(n, &e);
    *ret = s;
    if (s != UPLINK_NONE)
        return -EKEYREJECTED;
    buf_append_str(to, e.payload);
    return 0;
}

int node_seal_envelope(struct node *n, bool is_registration, struct str payload, struct buf *to)
{
    const struct node_identity *i = is_registration ? &n->onboarding : &n->identity;
    if (!i->key)
        return -ENOKEY;
    ARENA_AUTO a = arena_new();
    struct envelope_signer signer = {.key = i->key};
    memcpy(signer.cert_hash, i->cert_hash, sizeof(signer.cert_hash));
    if (is_registration)
        signer.sender_cert = base64_encode(a, i->cert_pem, BASE64_STANDARD);
    const struct str sealed = envelope_seal(a, &signer, payload);
    if (!sealed.p)
        return -EIO;
    buf_append_str(to, sealed);
    return 0;
}
