/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/cipher.h"

#include <assert.h>
#include <errno.h>

#include "base/random.h"
#include "base/uuid.h"
#include "protobuf/message.h"

/* Of certificate hashes, which is all a context's hash scheme speaks of. */
#define SHORT_HASH_BYTES 16

/* ---- pairs ---------------------------------------------------------------------------------- */

/* A UUID of version 8 (RFC 9562 5.8): its bits are those of a hash we choose. */
static struct str context_id(struct arena *a, struct str device_hash, struct str controller_hash)
{
    /* With the length, so that no byte can move from one hash to the other. */
    const struct str parts[] = {arena_printf(a, "%zu:", device_hash.n), device_hash,
                                controller_hash};
    unsigned char digest[SHA256_BYTES];
    pki_sha256(arena_join(a, parts, N_ELEMENTS(parts)), digest);
    struct uuid id;
    memcpy(id.bytes, digest, sizeof(id.bytes));
    id.bytes[6] = (unsigned char) ((id.bytes[6] & 0x0f) | 0x80);
    id.bytes[8] = (unsigned char) ((id.bytes[8] & 0x3f) | 0x80);
    char text[UUID_TEXT_BYTES];
    uuid_text(&id, text);
    return arena_str(a, str_of(text));
}

int cipher_pair(struct arena *a, const struct pki_key *controller_key,
                struct str controller_cert_hash, const struct pki_public *device_key,
                struct str device_cert_hash, struct cipher_pair *ret)
{
    unsigned char point[64];
    int r = pki_ecdh_point(controller_key, device_key, point);
    if (r < 0)
        return r;
    pki_sha256(str_range((char *) point, sizeof(point)), ret->key);
    explicit_bzero(point, sizeof(point));
    ret->context_id = context_id(a, device_cert_hash, controller_cert_hash);
    ret->device_cert_hash = arena_str(a, device_cert_hash);
    ret->controller_cert_hash = arena_str(a, controller_cert_hash);
    return 0;
}

Eve__Common__CipherContext *cipher_context(struct arena *a, const struct cipher_pair *p)
{
    Eve__Common__CipherContext *c = ARENA_NEW(a, Eve__Common__CipherContext);
    eve__common__cipher_context__init(c);
    c->contextid = arena_strz(a, p->context_id);
    c->hashscheme = p->device_cert_hash.n == SHORT_HASH_BYTES
                        ? EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_16BYTES
                        : EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_32BYTES;
    c->keyexchangescheme = EVE__COMMON__KEY_EXCHANGE_SCHEME__KEA_ECDH;
    c->encryptionscheme = EVE__COMMON__ENCRYPTION_SCHEME__SA_AES_256_CFB;
    c->devicecerthash = pb_data(arena_str(a, p->device_cert_hash));
    c->controllercerthash = pb_data(arena_str(a, p->controller_cert_hash));
    return c;
}

/* ---- blocks --------------------------------------------------------------------------------- */

void cipher_synthetic_iv(struct arena *a, const struct cipher_pair *p, struct str identity,
                         struct str plaintext, unsigned char ret[CIPHER_IV_BYTES])
{
    /* A key of its own: that of the cipher is used for nothing else. */
    unsigned char key[SHA256_BYTES], digest[SHA256_BYTES], content[SHA256_BYTES];
    pki_hmac_sha256(str_range((const char *) p->key, sizeof(p->key)), STR("seth cipher iv"), key);
    /* The plaintext's digest rather than itself, so that no copy of a secret is left behind. */
    pki_sha256(plaintext, content);
    const struct str parts[] = {arena_printf(a, "%zu:", identity.n), identity,
                                str_range((const char *) content, sizeof(content))};
    pki_hmac_sha256(str_range((const char *) key, sizeof(key)),
                    arena_join(a, parts, N_ELEMENTS(parts)), digest);
    memcpy(ret, digest, CIPHER_IV_BYTES);
    explicit_bzero(key, sizeof(key));
}

static void seal_into(struct arena *a, const struct cipher_pair *p, struct str plaintext,
                      const unsigned char *iv, Eve__Common__CipherBlock *block)
{
    assert(plaintext.n > 0); /* devices refuse an empty block */
    unsigned char *vector = arena_alloc(a, CIPHER_IV_BYTES);
    unsigned char *digest = arena_alloc(a, SHA256_BYTES), *data = arena_alloc(a, plaintext.n);
    /* Never the same for two contents: all blocks of a pair have one key. */
    if (iv)
        memcpy(vector, iv, CIPHER_IV_BYTES);
    else
        random_bytes(vector, CIPHER_IV_BYTES);
    pki_sha256(plaintext, digest);
    pki_aes256_cfb(/* encrypt= */ true, p->key, vector, plaintext.p, plaintext.n, data);
    block->ciphercontextid = arena_strz(a, p->context_id);
    block->initialvalue = (ProtobufCBinaryData){CIPHER_IV_BYTES, vector};
    block->cipherdata = (ProtobufCBinaryData){plaintext.n, data};
    block->cleartextsha256 = (ProtobufCBinaryData){SHA256_BYTES, digest};
}

Eve__Common__CipherBlock *cipher_seal(struct arena *a, const struct cipher_pair *p,
                                      struct str plaintext, const unsigned char *iv)
{
    Eve__Common__CipherBlock *block = ARENA_NEW(a, Eve__Common__CipherBlock);
    eve__common__cipher_block__init(block);
    seal_into(a, p, plaintext, iv, block);
    return block;
}

int cipher_open(struct arena *a, const struct cipher_pair *p, const Eve__Common__CipherBlock *block,
                struct str *ret_plaintext)
{
    size_t n = block->cipherdata.len;
    if (n == 0 || block->initialvalue.len != CIPHER_IV_BYTES ||
        block->cleartextsha256.len != SHA256_BYTES)
        return -EBADMSG;
    char *plaintext = arena_alloc(a, n + 1);
    unsigned char digest[SHA256_BYTES];
    pki_aes256_cfb(/* encrypt= */ false, p->key, block->initialvalue.data, block->cipherdata.data,
                   n, plaintext);
    pki_sha256(str_range(plaintext, n), digest);
    if (memcmp(digest, block->cleartextsha256.data, sizeof(digest)) != 0) {
        explicit_bzero(plaintext, n);
        return -EBADMSG;
    }
    plaintext[n] = '\0';
    *ret_plaintext = str_range(plaintext, n);
    return 0;
}

/* ---- rotation ------------------------------------------------------------------------------- */

struct opened {
    Eve__Common__CipherBlock *block;
    struct str plaintext;
};

struct reseal {
    struct arena *arena;
    const Eve__Config__EdgeDevConfig *config;
    const struct cipher_pair *from;
    struct opened *opened;
    size_t n_opened;
    int result;
};

/* Whoever composed the configuration may have given the context another id: the certificates tell
 * whose it is. */
static bool is_context_of(const Eve__Common__CipherContext *c, const struct cipher_pair *p)
{
    return str_eq(pb_text(c->contextid), p->context_id) ||
           (str_eq(pb_bytes(c->devicecerthash), p->device_cert_hash) &&
            str_eq(pb_bytes(c->controllercerthash), p->controller_cert_hash));
}

static bool is_block_of(const Eve__Common__CipherBlock *block,
                        const Eve__Config__EdgeDevConfig *config, const struct cipher_pair *p)
{
    struct str id = pb_text(block->ciphercontextid);
    if (str_eq(id, p->context_id))
        return true;
    for (size_t i = 0; i < config->n_ciphercontexts; i++)
        if (str_eq(id, pb_text(config->ciphercontexts[i]->contextid)))
            return is_context_of(config->ciphercontexts[i], p);
    return false;
}

static void open_block(void *ctx, ProtobufCMessage *found)
{
    struct reseal *r = ctx;
    struct opened o = {.block = (Eve__Common__CipherBlock *) found};
    if (r->result < 0 || !is_block_of(o.block, r->config, r->from))
        return;
    r->result = cipher_open(r->arena, r->from, o.block, &o.plaintext);
    if (r->result < 0)
        return;
    r->opened = arena_grow(r->arena, r->opened, r->n_opened, sizeof(o));
    r->opened[r->n_opened++] = o;
}

/* All contexts of `from` go, and that of `to` comes, once. */
static void replace_contexts(struct arena *a, Eve__Config__EdgeDevConfig *config,
                             const struct cipher_pair *from, const struct cipher_pair *to)
{
    Eve__Common__CipherContext **kept =
        ARENA_ARRAY(a, Eve__Common__CipherContext *, config->n_ciphercontexts + 1);
    size_t n_kept = 0;
    for (size_t i = 0; i < config->n_ciphercontexts; i++) {
        Eve__Common__CipherContext *c = config->ciphercontexts[i];
        if (!is_context_of(c, from) && !str_eq(pb_text(c->contextid), to->context_id))
            kept[n_kept++] = c;
    }
    kept[n_kept++] = cipher_context(a, to);
    config->ciphercontexts = kept;
    config->n_ciphercontexts = n_kept;
}

int cipher_reseal(struct arena *a, Eve__Config__EdgeDevConfig *config,
                  const struct cipher_pair *from, const struct cipher_pair *to)
{
    /* All are opened before the first is changed: the configuration stays whole when one fails. */
    struct reseal r = {.arena = a, .config = config, .from = from};
    pb_visit((ProtobufCMessage *) config, &eve__common__cipher_block__descriptor, open_block, &r);
    for (size_t i = 0; i < r.n_opened; i++) {
        struct str plaintext = r.opened[i].plaintext;
        if (r.result == 0) {
            unsigned char iv[CIPHER_IV_BYTES];
            cipher_synthetic_iv(a, to, /* identity= */ STR(""), plaintext, iv);
            seal_into(a, to, plaintext, iv, r.opened[i].block);
        }
        explicit_bzero((char *) (uintptr_t) plaintext.p, plaintext.n);
    }
    if (r.result < 0)
        return r.result;
    if (r.n_opened > 0)
        replace_contexts(a, config, from, to);
    return (int) r.n_opened;
}
