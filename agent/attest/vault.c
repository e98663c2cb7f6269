/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/vault.h"

#include <errno.h>

#include "attest/jobs.h"
#include "attest/tpm.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/random.h"
#include "eve/attest.pb-c.h"
#include "loop/loop.h"
#include "pki/aead.h"
#include "protobuf/message.h"

#define KEY_BYTES 32
#define SEALED_FILE STR("vault/key.sealed")
#define ESCROW_FILE STR("vault/key.escrow") /* as the controller is given it */
#define ESCROWED_FILE STR("vault/escrowed")
#define BOUND STR("vault key")
#define RETRY_MS 15000
#define RETRY_SPREAD 20

/* VaultStatus.Status and .UnlockMethod */
enum { STATUS_DISABLED = 1, STATUS_ERROR = 4 };
enum { PCR_ENABLED = 1, PCR_DISABLED = 2 };
enum { UNLOCK_NONE = 0, UNLOCK_SEALED = 1, UNLOCK_CONTROLLER = 2, UNLOCK_NO_TPM = 3 };

struct vault {
    struct node *node;
    struct tpm *tpm;
    struct publication *keys, *statuses;
    struct subscription *from_controller;
    struct jobs jobs;
    struct loop_timer *timer;
    bool is_open, is_locked; /* neither: not tried yet */
};

int vault_note_escrowed(struct node *n)
{
    return node_file_write(n, NODE_PERSIST, ESCROWED_FILE, STR("1"));
}

/* ---- publishing ----------------------------------------------------------------------------- */

static void publish_status(struct vault *v, int unlock, const char *problem)
{
    ARENA_AUTO a = arena_new();
    struct json *value = json_new(a, json_object());
    const int64_t now_us = v->node->clock->wall_us(v->node->clock);
    /* No disk is encrypted with the key: that is what "disabled" says. */
    json_append_member(a, value, STR("Name"), json_string(VAULT_NAME));
    json_append_member(a, value, STR("Status"), json_int(problem ? STATUS_ERROR : STATUS_DISABLED));
    json_append_member(a, value, STR("PCRStatus"), json_int(v->tpm ? PCR_ENABLED : PCR_DISABLED));
    json_append_member(a, value, STR("ConversionComplete"), json_bool(true));
    json_append_member(a, value, STR("MismatchingPCRs"), json_null());
    json_append_member(a, value, STR("UnlockMethod"), json_int(unlock));
    json_append_member(a, value, STR("Error"), json_string(str_of(problem ? problem : "")));
    json_append_member(a, value, STR("ErrorTime"), *node_json_time(a, problem ? now_us : 0));
    const int r = publication_publish(v->statuses, VAULT_NAME, value);
    if (r < 0)
        log_warning("VaultStatus is not published, ignoring", LOG_ERRNO(r));
}

static void publish_key(struct vault *v, struct str escrow)
{
    ARENA_AUTO a = arena_new();
    struct json *value = json_new(a, json_object());
    json_append_member(a, value, STR("Name"), json_string(VAULT_NAME));
    json_append_member(a, value, STR("EncryptedVaultKey"),
                       escrow.n ? json_string(base64_encode(a, escrow, BASE64_STANDARD))
                                : json_null());
    json_append_member(a, value, STR("IsTpmEnabled"), json_bool(v->tpm != NULL));
    const int r = publication_publish(v->keys, VAULT_NAME, value);
    if (r < 0)
        log_warning("EncryptedVaultKeyFromDevice is not published, ignoring", LOG_ERRNO(r));
}

/* ---- the key at work ------------------------------------------------------------------------ */

struct open_job {
    struct job job;
    struct tpm *tpm;
    struct str point;      /* of the device's own key */
    struct str sealed;     /* empty: a new key is made */
    struct str escrow;     /* of the file, or of the controller; empty: none */
    bool is_given;         /* by the controller */
    struct str new_sealed; /* absent: as it was */
    struct str new_escrow;
    int result;
};

/* Only this device, with this TPM, has it: the TPM's ECDH key times the device's own. */
static int wrapping_key(const struct open_job *o, unsigned char ret[SHA256_BYTES])
{
    unsigned char point[TPM_POINT_BYTES];
    const int r = tpm_ecdh(o->tpm, (const unsigned char *) o->point.p, point);
    if (r < 0)
        return r;
    pki_sha256(str_range((const char *) point, sizeof(point)), ret);
    explicit_bzero(point, sizeof(point));
    return 0;
}

/* Appends the key that an AttestVolumeKeyData holds. */
static int unwrap(struct arena *a, const unsigned char wrapping[SHA256_BYTES], struct str escrow,
                  struct buf *to)
{
    unsigned char digest[SHA256_BYTES];
    const Eve__Attest__AttestVolumeKeyData *data =
        PB_UNPACK(a, eve__attest__attest_volume_key_data, escrow);
    if (!data)
        return -EBADMSG;
    const int r = aead_open(wrapping, BOUND, pb_bytes(data->encrypted_key), to);
    if (r < 0)
        return r;
    pki_sha256(buf_str(to), digest);
    return to->n == KEY_BYTES && data->digest_sha256.len == sizeof(digest) &&
                   memcmp(digest, data->digest_sha256.data, sizeof(digest)) == 0
               ? 0
               : -EBADMSG;
}

static int wrap(struct arena *a, const unsigned char wrapping[SHA256_BYTES], struct str key,
                struct str *ret)
{
    Eve__Attest__AttestVolumeKeyData data = EVE__ATTEST__ATTEST_VOLUME_KEY_DATA__INIT;
    unsigned char digest[SHA256_BYTES];
    BUF_AUTO encrypted = {0};
    const int r = aead_seal(wrapping, BOUND, key, &encrypted);
    if (r < 0)
        return r;
    pki_sha256(key, digest);
    data.encrypted_key = pb_data(buf_str(&encrypted));
    data.digest_sha256 = pb_data(str_range((const char *) digest, sizeof(digest)));
    data.version = EVE__ATTEST__ATTEST_VOLUME_KEY_VERSION__ATTEST_VOLUME_KEY_VERSION_V1;
    *ret = pb_pack(a, &data.base);
    return 0;
}

/* What the controller keeps stays the same bytes as long as the key does. */
static int wrap_again(struct open_job *o, const unsigned char wrapping[SHA256_BYTES],
                      struct str key)
{
    BUF_AUTO kept = {0};
    const bool is_same = o->escrow.n && unwrap(o->job.arena, wrapping, o->escrow, &kept) == 0 &&
                         str_eq(buf_str(&kept), key);
    if (kept.n)
        explicit_bzero(kept.p, kept.n);
    if (!is_same)
        return wrap(o->job.arena, wrapping, key, &o->new_escrow);
    o->new_escrow = o->escrow;
    return 0;
}

/* From the TPM, or made. */
static int open_own(struct open_job *o, struct buf *to)
{
    struct arena *a = o->job.arena;
    struct str key = STR("");
    if (!o->sealed.n) {
        random_bytes(buf_reserve(to, KEY_BYTES), KEY_BYTES);
        to->n += KEY_BYTES;
        return tpm_seal(o->tpm, a, buf_str(to), &o->new_sealed);
    }
    const int r = tpm_unseal(o->tpm, a, o->sealed, &key);
    if (r < 0)
        return r;
    buf_append_str(to, key);
    explicit_bzero((char *) (uintptr_t) key.p, key.n);
    return key.n == KEY_BYTES ? 0 : -EBADMSG;
}

static int open_given(struct open_job *o, const unsigned char wrapping[SHA256_BYTES],
                      struct buf *to)
{
    const int r = unwrap(o->job.arena, wrapping, o->escrow, to);
    return r < 0 ? r : tpm_seal(o->tpm, o->job.arena, buf_str(to), &o->new_sealed);
}

static int open_key(struct open_job *o)
{
    unsigned char wrapping[SHA256_BYTES];
    BUF_AUTO key = {0};
    int r = tpm_prepare(o->tpm);
    if (r == 0)
        r = wrapping_key(o, wrapping);
    if (r == 0)
        r = o->is_given ? open_given(o, wrapping, &key) : open_own(o, &key);
    if (r == 0)
        r = wrap_again(o, wrapping, buf_str(&key));
    explicit_bzero(wrapping, sizeof(wrapping));
    if (key.n)
        explicit_bzero(key.p, key.n);
    return r;
}

static void work_open(struct job *j)
{
    struct open_job *o = CONTAINER_OF(j, struct open_job, job);
    o->result = open_key(o);
}

static void drop_open(struct job *j)
{
    tpm_unref(CONTAINER_OF(j, struct open_job, job)->tpm);
}

/* ---- what becomes of it --------------------------------------------------------------------- */

static void consider_given(struct vault *v);

static int keep(struct vault *v, const struct open_job *o)
{
    int r = 0;
    if (o->new_sealed.n)
        r = node_file_write(v->node, NODE_PERSIST, SEALED_FILE, o->new_sealed);
    if (r == 0 && (o->is_given || !str_eq(o->new_escrow, o->escrow)))
        r = node_file_write(v->node, NODE_PERSIST, ESCROW_FILE, o->new_escrow);
    return r;
}

static void fail(struct vault *v, int error)
{
    v->is_locked = error == -EPERM || error == -EBADMSG;
    log_warning("the key of the vault cannot be opened", LOG_ERRNO(error));
    publish_status(v, UNLOCK_NONE,
                   v->is_locked ? "the TPM does not open the key of the vault: what has booted is "
                                  "not what it was sealed to"
                                : "the TPM does not answer");
    if (v->is_locked)
        consider_given(v);
    else
        loop_timer_start(v->timer, node_spread_ms(v->node, RETRY_MS, RETRY_SPREAD), 0);
}

static void finish_open(struct job *j)
{
    const struct open_job *o = CONTAINER_OF(j, struct open_job, job);
    struct vault *v = j->owner;
    int r = o->result;
    /* What the controller gave is of no use: it may yet give something else. */
    if (r < 0 && o->is_given) {
        log_warning("the key that the controller keeps cannot be used", LOG_ERRNO(r));
        return;
    }
    if (r == 0)
        r = keep(v, o);
    if (r < 0) {
        fail(v, r);
        return;
    }
    v->is_open = true;
    v->is_locked = false;
    publish_status(v, o->is_given ? UNLOCK_CONTROLLER : UNLOCK_SEALED, NULL);
    publish_key(v, o->new_escrow);
}

static struct str read_file(struct vault *v, struct arena *a, struct str name)
{
    BUF_AUTO content = {0};
    const int r = node_file_read(v->node, NODE_PERSIST, name, &content);
    return r < 0 ? STR("") : arena_str(a, buf_str(&content));
}

/* given absent: with the key that is sealed, or a new one. */
static void open_vault(struct vault *v, bool is_new, struct str given)
{
    struct arena *a = arena_new();
    struct open_job *o = ARENA_NEW(a, struct open_job);
    const struct str der = pki_cert_public_der(a, v->node->identity.cert);
    o->job = (struct job){
        .arena = a, .work = work_open, .finish = finish_open, .drop = drop_open, .owner = v};
    o->tpm = tpm_ref(v->tpm);
    o->point = str_from(der, der.n - MIN(der.n, (size_t) TPM_POINT_BYTES));
    o->is_given = given.p != NULL;
    o->sealed = is_new ? STR("") : read_file(v, a, SEALED_FILE);
    o->escrow = given.p ? arena_str(a, given) : read_file(v, a, ESCROW_FILE);
    job_run(&v->jobs, &o->job);
}

static void on_timer(void *arg)
{
    open_vault(arg, /* is_new= */ false, STR_NONE);
}

/* ---- what the controller keeps -------------------------------------------------------------- */

static void consider_given(struct vault *v)
{
    ARENA_AUTO a = arena_new();
    const struct json *value = subscription_get(a, v->from_controller, VAULT_NAME);
    const struct str text = json_get_str(value, STR("EncryptedVaultKey"));
    struct str key = STR("");
    if (!v->is_locked || !value || jobs_are_running(&v->jobs))
        return;
    if (text.n && base64_decode(a, text, BASE64_STANDARD, &key, NULL) < 0)
        return;
    if (key.n)
        open_vault(v, /* is_new= */ false, key);
    else if (!read_file(v, a, ESCROWED_FILE).n)
        open_vault(v, /* is_new= */ true, STR_NONE); /* it never had one */
}

static void on_given(void *arg, struct str key, const struct json *value)
{
    (void) key, (void) value;
    consider_given(arg);
}

static void on_given_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    (void) old;
    on_given(arg, key, value);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_topics(struct vault *v)
{
    static const struct subscription_handlers handlers = {.on_create = on_given,
                                                          .on_modify = on_given_again};
    const struct pubsub_name keys = {.agent = STR("vaultmgr"),
                                     .topic = STR("EncryptedVaultKeyFromDevice")};
    const struct pubsub_name statuses = {.agent = STR("vaultmgr"), .topic = STR("VaultStatus")};
    const struct pubsub_name given = {.agent = STR("zedagent"),
                                      .topic = STR("EncryptedVaultKeyFromController")};
    struct pubsub *ps = v->node->pubsub;
    int r = publication_new(ps, &keys, &v->keys);
    if (r == 0)
        r = publication_new(ps, &statuses, &v->statuses);
    /* Without a TPM nothing can come back. */
    return r < 0 || !v->tpm ? r : subscription_new(ps, &given, &handlers, v, &v->from_controller);
}

int vault_new(struct node *n, struct tpm *tpm, struct vault **ret)
{
    struct vault *v = NEW(struct vault);
    v->node = n;
    v->tpm = tpm ? tpm_ref(tpm) : NULL;
    jobs_init(&v->jobs, n->loop);
    const int r = open_topics(v);
    if (r < 0) {
        vault_free(v);
        return r;
    }
    if (tpm) {
        v->timer = loop_timer_new(n->loop, on_timer, v);
        open_vault(v, /* is_new= */ false, STR_NONE);
    } else {
        v->is_open = true;
        publish_status(v, UNLOCK_NO_TPM, NULL);
        publish_key(v, STR(""));
    }
    *ret = v;
    return 0;
}

void vault_free(struct vault *v)
{
    if (!v)
        return;
    jobs_done(&v->jobs);
    loop_timer_free(v->timer);
    subscription_free(v->from_controller);
    publication_free(v->keys);
    publication_free(v->statuses);
    tpm_unref(v->tpm);
    mem_free(v);
}
