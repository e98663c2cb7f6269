/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/certificates.h"

#include <errno.h>

#include "attest/jobs.h"
#include "attest/keys.h"
#include "attest/messages.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "loop/loop.h"
#include "pki/chain.h"

/* The first bytes of SHA-256 are the name of a certificate; HashAlgo 1. */
#define CERT_ID_BYTES 16
#define HASH_SHA256_16BYTES 1
#define SIGNATURE_ECDSA_SHA256 1
#define PCR_SHA256 2
#define META_DATA_TPM2_PUBLIC 1
#define RETRY_MS 15000
#define RETRY_SPREAD 20
/* Quotes of several requesters at once; more wait for nobody and are dropped. */
#define MAX_NONCES 16

enum kind { ECDH, QUOTE, ENDORSEMENT, KINDS };
static const struct {
    enum edge_node_cert_type type;
    enum tpm_key key;
    struct str cert_file, key_file; /* without a key file: only with a TPM */
    struct str common_name;
} kinds[KINDS] = {
    [ECDH] = {EDGE_NODE_CERT_ECDH,
              TPM_KEY_ECDH,
              {"certs/ecdh.cert.pem", 19},
              {"certs/ecdh.key.pem", 18},
              {"Device ECDH certificate", 23}},
    [QUOTE] = {EDGE_NODE_CERT_QUOTE,
               TPM_KEY_QUOTE,
               {"certs/attest.cert.pem", 21},
               {"certs/attest.key.pem", 20},
               {"Device Attestation certificate", 30}},
    [ENDORSEMENT] = {EDGE_NODE_CERT_ENDORSEMENT,
                     TPM_KEY_ENDORSEMENT,
                     {"certs/ek.cert.pem", 17},
                     {"", 0},
                     {"Device Endorsement Key certificate", 34}},
};

struct certificates {
    struct node *node;
    struct tpm *tpm;
    struct publication *certs, *quotes;
    struct subscription *nonces;
    struct jobs jobs;
    struct loop_timer *timer;
    bool is_prepared; /* the TPM has its keys */
};

/* ---- making --------------------------------------------------------------------------------- */

/* As long as the device's own lives. */
static struct pki_cert_options options_of(const struct certificates *c, enum kind kind)
{
    static const struct str organization = {"The Linux Foundation", 20};
    const struct pki_cert *own = c->node->identity.cert;
    const int64_t now_s = c->node->clock->wall_us(c->node->clock) / 1000000;
    return (struct pki_cert_options){
        .common_name = kinds[kind].common_name,
        .organizations = &organization,
        .n_organizations = 1,
        .for_server = true,
        .backdate_s = MAX(now_s - pki_cert_not_before(own), INT64_C(60)),
        .valid_s = MAX(pki_cert_not_after(own) - now_s, INT64_C(1)),
    };
}

static bool is_ours(const struct certificates *c, const struct pki_cert *cert)
{
    CLEANUP(pki_public_freep) struct pki_public *own = pki_cert_public(c->node->identity.cert);
    return own && pki_cert_is_signed_with(cert, own);
}

/* The text of the certificate that is there, if it is the one for the key. der absent: for the one
 * in the key's file. */
static bool load(const struct certificates *c, struct arena *a, enum kind kind, struct str der,
                 struct str *ret_pem)
{
    BUF_AUTO pem = {0};
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    CLEANUP(pki_key_freep) struct pki_key *key = NULL;
    if (node_file_read(c->node, NODE_PERSIST, kinds[kind].cert_file, &pem) < 0 ||
        pki_cert_parse(buf_str(&pem), &cert) < 0 || !is_ours(c, cert))
        return false;
    const char *key_path = node_path(a, c->node, NODE_PERSIST, kinds[kind].key_file);
    if (der.p ? !str_eq(pki_cert_public_der(a, cert), der)
              : pki_key_load(key_path, &key) < 0 || !pki_key_fits(key, cert))
        return false;
    *ret_pem = arena_str(a, buf_str(&pem));
    return true;
}

static int keep(struct certificates *c, struct arena *a, enum kind kind,
                const struct pki_cert *cert, struct str *ret_pem)
{
    if (!cert)
        return -EIO;
    *ret_pem = pki_cert_pem(a, cert);
    return node_file_write(c->node, NODE_PERSIST, kinds[kind].cert_file, *ret_pem);
}

/* The key first: where its certificate is, it is. */
static int make_in_software(struct certificates *c, struct arena *a, enum kind kind,
                            struct str *ret_pem)
{
    const struct node_identity *own = &c->node->identity;
    const struct pki_cert_options o = options_of(c, kind);
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&o, key, own->cert, own->key);
    const struct str pem = pki_key_pem(a, key);
    int r = node_file_write(c->node, NODE_PERSIST, kinds[kind].key_file, pem);
    explicit_bzero((char *) (uintptr_t) pem.p, pem.n);
    return r < 0 ? r : keep(c, a, kind, cert, ret_pem);
}

static int make_for_tpm(struct certificates *c, struct arena *a, enum kind kind, struct str der,
                        struct str *ret_pem)
{
    const struct node_identity *own = &c->node->identity;
    const struct pki_cert_options o = options_of(c, kind);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new_for(&o, der, own->cert, own->key);
    const int r = keep(c, a, kind, cert, ret_pem);
    if (r == 0 && kinds[kind].key_file.n)
        (void) node_file_remove(c->node, NODE_PERSIST, kinds[kind].key_file);
    return r;
}

/* ---- publishing certificates ---------------------------------------------------------------- */

static struct json bytes_json(struct arena *a, struct str bytes)
{
    return bytes.n ? json_string(base64_encode(a, bytes, BASE64_STANDARD)) : json_null();
}

static struct str cert_id(struct arena *a, struct str pem)
{
    unsigned char *hash = arena_alloc(a, SHA256_BYTES);
    pki_sha256(pem, hash);
    return str_range((const char *) hash, CERT_ID_BYTES);
}

static struct str hex(struct arena *a, struct str bytes)
{
    return pki_hex(a, (const unsigned char *) bytes.p, bytes.n);
}

/* TPM2B_PUBLIC: with its size. */
static struct json meta_data(struct arena *a, struct str tpmt)
{
    if (!tpmt.n)
        return json_null();
    const char size[] = {(char) (tpmt.n >> 8), (char) tpmt.n};
    const struct str parts[] = {str_range(size, sizeof(size)), tpmt};
    struct json list = json_array(), item = json_object();
    json_append_member(a, &item, STR("Type"), json_int(META_DATA_TPM2_PUBLIC));
    json_append_member(a, &item, STR("Data"),
                       bytes_json(a, arena_join(a, parts, N_ELEMENTS(parts))));
    json_push(a, &list, item);
    return list;
}

static int publish_cert(struct certificates *c, struct arena *a, enum kind kind, struct str pem,
                        struct str tpmt)
{
    const struct str id = cert_id(a, pem);
    struct json *value = json_new(a, json_object());
    json_append_member(a, value, STR("HashAlgo"), json_int(HASH_SHA256_16BYTES));
    json_append_member(a, value, STR("CertID"), bytes_json(a, id));
    json_append_member(a, value, STR("CertType"), json_int(kinds[kind].type));
    json_append_member(a, value, STR("Cert"), bytes_json(a, pem));
    json_append_member(a, value, STR("IsTpm"), json_bool(c->tpm != NULL));
    json_append_member(a, value, STR("MetaDataItems"), meta_data(a, tpmt));
    return publication_publish(c->certs, hex(a, id), value);
}

/* Those of an earlier life whose keys are gone. */
static void unpublish_others(struct certificates *c, struct arena *a, const struct str *kept,
                             size_t n_kept)
{
    struct str *gone = NULL, key, text;
    size_t n_gone = 0;
    for (size_t at = 0; publication_next(c->certs, &at, &key, &text);) {
        bool is_kept = false;
        for (size_t i = 0; i < n_kept; i++)
            is_kept |= str_eq(kept[i], key);
        if (is_kept)
            continue;
        gone = arena_grow(a, gone, n_gone, sizeof(*gone));
        gone[n_gone++] = arena_str(a, key);
    }
    for (size_t i = 0; i < n_gone; i++)
        (void) publication_unpublish(c->certs, gone[i]);
}

/* publics NULL: in software. */
static int publish_certs(struct certificates *c, const struct tpm_public *publics)
{
    ARENA_AUTO a = arena_new();
    struct str kept[KINDS];
    size_t n_kept = 0;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct str pem = STR_NONE;
        if (!publics && !kinds[kind].key_file.n)
            continue;
        int r = 0;
        if (!load(c, a, kind, publics ? publics[kind].der : STR_NONE, &pem))
            r = publics ? make_for_tpm(c, a, kind, publics[kind].der, &pem)
                        : make_in_software(c, a, kind, &pem);
        if (r == 0)
            r = publish_cert(c, a, kind, pem,
                             publics && kind == ENDORSEMENT ? publics[kind].tpmt : STR(""));
        if (r < 0)
            return r;
        kept[n_kept++] = hex(a, cert_id(a, pem));
    }
    unpublish_others(c, a, kept, n_kept);
    return 0;
}

/* ---- the TPM's keys ------------------------------------------------------------------------- */

struct prepare_job {
    struct job job;
    struct tpm *tpm;
    struct tpm_public publics[KINDS];
    int result;
};

static void drop_prepare(struct job *j)
{
    tpm_unref(CONTAINER_OF(j, struct prepare_job, job)->tpm);
}

static void work_prepare(struct job *j)
{
    struct prepare_job *p = CONTAINER_OF(j, struct prepare_job, job);
    p->result = tpm_prepare(p->tpm);
    for (enum kind kind = 0; p->result == 0 && kind < KINDS; kind++)
        p->result = tpm_public(p->tpm, j->arena, kinds[kind].key, &p->publics[kind]);
}

static void quote_all(struct certificates *c);

static void finish_prepare(struct job *j)
{
    struct prepare_job *p = CONTAINER_OF(j, struct prepare_job, job);
    struct certificates *c = j->owner;
    int r = p->result;
    if (r == 0)
        r = publish_certs(c, p->publics);
    if (r < 0) {
        log_warning("the TPM's keys cannot be had, trying again", LOG_ERRNO(r));
        loop_timer_start(c->timer, node_spread_ms(c->node, RETRY_MS, RETRY_SPREAD), 0);
        return;
    }
    c->is_prepared = true;
    quote_all(c);
}

static void prepare(void *arg)
{
    struct certificates *c = arg;
    struct arena *a = arena_new();
    struct prepare_job *p = ARENA_NEW(a, struct prepare_job);
    p->job = (struct job){.arena = a,
                          .work = work_prepare,
                          .finish = finish_prepare,
                          .drop = drop_prepare,
                          .owner = c};
    p->tpm = tpm_ref(c->tpm);
    job_run(&c->jobs, &p->job);
}

/* ---- quotes --------------------------------------------------------------------------------- */

struct quote_job {
    struct job job;
    struct tpm *tpm;
    struct str key, nonce;
    struct tpm_quote quote;
    int result;
};

static void drop_quote(struct job *j)
{
    tpm_unref(CONTAINER_OF(j, struct quote_job, job)->tpm);
}

static struct json pcrs_json(struct arena *a, const struct tpm_quote *q)
{
    struct json list = json_array();
    for (size_t i = 0; q && i < TPM_PCRS; i++) {
        struct json pcr = json_object();
        json_append_member(a, &pcr, STR("Index"), json_int((int64_t) i));
        json_append_member(a, &pcr, STR("Algo"), json_int(PCR_SHA256));
        json_append_member(a, &pcr, STR("Digest"),
                           bytes_json(a, str_range((const char *) q->pcrs[i], sizeof(q->pcrs[i]))));
        json_push(a, &list, pcr);
    }
    return q ? list : json_null();
}

/* q NULL: there is no TPM, or it has failed; the controller decides what that means. */
static void publish_quote(struct certificates *c, struct arena *a, struct str key, struct str nonce,
                          const struct tpm_quote *q)
{
    struct json *value = json_new(a, json_object());
    json_append_member(a, value, STR("Nonce"), bytes_json(a, nonce));
    json_append_member(a, value, STR("SigType"), json_int(SIGNATURE_ECDSA_SHA256));
    json_append_member(a, value, STR("Signature"), bytes_json(a, q ? q->signature : STR("")));
    json_append_member(a, value, STR("Quote"), bytes_json(a, q ? q->statement : STR("")));
    json_append_member(a, value, STR("PCRs"), pcrs_json(a, q));
    const int r = publication_publish(c->quotes, key, value);
    if (r < 0)
        log_warning("a quote is not published, ignoring", LOG_ERRNO(r));
}

static void work_quote(struct job *j)
{
    struct quote_job *q = CONTAINER_OF(j, struct quote_job, job);
    q->result = tpm_quote(q->tpm, j->arena, q->nonce, &q->quote);
}

static void finish_quote(struct job *j)
{
    struct quote_job *q = CONTAINER_OF(j, struct quote_job, job);
    struct certificates *c = j->owner;
    /* Nobody wants it any more. */
    if (!subscription_get(j->arena, c->nonces, q->key))
        return;
    if (q->result < 0)
        log_warning("the TPM makes no quote", LOG_ERRNO(q->result));
    publish_quote(c, j->arena, q->key, q->nonce, q->result == 0 ? &q->quote : NULL);
}

static void quote(struct certificates *c, struct str key, const struct json *value)
{
    struct arena *a = arena_new();
    struct quote_job *q = ARENA_NEW(a, struct quote_job);
    q->key = arena_str(a, key);
    if (base64_decode(a, json_get_str(value, STR("Nonce")), BASE64_STANDARD, &q->nonce, NULL) < 0) {
        arena_free(a);
        return;
    }
    if (!c->tpm) {
        publish_quote(c, a, q->key, q->nonce, NULL);
        arena_free(a);
        return;
    }
    q->job = (struct job){
        .arena = a, .work = work_quote, .finish = finish_quote, .drop = drop_quote, .owner = c};
    q->tpm = tpm_ref(c->tpm);
    job_run(&c->jobs, &q->job);
}

/* What was asked for before the keys were there. */
static void quote_all(struct certificates *c)
{
    ARENA_AUTO a = arena_new();
    struct str key, text;
    size_t n = 0;
    for (size_t at = 0; n++ < MAX_NONCES && subscription_next(c->nonces, &at, &key, &text);)
        quote(c, key, json_parse_quick(a, text));
}

static void on_nonce(void *arg, struct str key, const struct json *value)
{
    struct certificates *c = arg;
    if (c->is_prepared && subscription_count(c->nonces).n_keys <= MAX_NONCES)
        quote(c, key, value);
}

static void on_nonce_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    (void) old;
    on_nonce(arg, key, value);
}

static void on_nonce_gone(void *arg, struct str key, const struct json *last)
{
    (void) last;
    struct certificates *c = arg;
    (void) publication_unpublish(c->quotes, key);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_topics(struct certificates *c)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_nonce, .on_modify = on_nonce_again, .on_delete = on_nonce_gone};
    const struct pubsub_name certs = {
        .agent = STR("tpmmgr"), .topic = STR("EdgeNodeCert"), .is_persistent = true};
    const struct pubsub_name quotes = {.agent = STR("tpmmgr"), .topic = STR("AttestQuote")};
    const struct pubsub_name nonces = {.agent = STR("zedagent"), .topic = STR("AttestNonce")};
    struct pubsub *ps = c->node->pubsub;
    int r = publication_new(ps, &certs, &c->certs);
    if (r == 0)
        r = publication_new(ps, &quotes, &c->quotes);
    return r < 0 ? r : subscription_new(ps, &nonces, &handlers, c, &c->nonces);
}

int certificates_new(struct node *n, struct tpm *tpm, struct certificates **ret)
{
    if (!n->identity.key)
        return -ENOKEY;
    struct certificates *c = NEW(struct certificates);
    c->node = n;
    c->tpm = tpm ? tpm_ref(tpm) : NULL;
    jobs_init(&c->jobs, n->loop);
    int r = open_topics(c);
    if (r == 0 && tpm) {
        c->timer = loop_timer_new(n->loop, prepare, c);
        prepare(c);
    } else if (r == 0) {
        c->is_prepared = true;
        r = publish_certs(c, NULL);
    }
    if (r < 0) {
        certificates_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void certificates_free(struct certificates *c)
{
    if (!c)
        return;
    jobs_done(&c->jobs);
    loop_timer_free(c->timer);
    subscription_free(c->nonces);
    publication_free(c->quotes);
    publication_free(c->certs);
    tpm_unref(c->tpm);
    mem_free(c);
}
