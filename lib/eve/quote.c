/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/quote.h"

#include <errno.h>

/* TPM 2.0 Library, part 2: 6.2, 6.3, 6.9. */
#define TPM_GENERATED_VALUE 0xff544347u
#define TPM_ST_ATTEST_QUOTE 0x8018
#define TPM_ALG_SHA256 0x000b
#define MAX_SELECT_BYTES (QUOTE_PCRS / 8)

/* ---- reading -------------------------------------------------------------------------------- */

struct cursor {
    struct str rest;
    bool failed;
};

static struct str take(struct cursor *c, size_t n)
{
    if (c->failed || n > c->rest.n) {
        c->failed = true;
        return STR("");
    }
    struct str taken = str_range(c->rest.p, n);
    c->rest = str_from(c->rest, n);
    return taken;
}

/* Big-endian, of n bytes. */
static uint64_t take_number(struct cursor *c, size_t n)
{
    struct str bytes = take(c, n);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.n; i++)
        value = value << 8 | (unsigned char) bytes.p[i];
    return value;
}

/* A TPM2B: two bytes of length and so many bytes. */
static struct str take_sized(struct cursor *c)
{
    return take(c, take_number(c, 2));
}

/* A TPML_PCR_SELECTION of one bank, SHA-256 (10.6.2 and 10.9.7): the other banks prove less, and
 * a digest over two could not be told from another over one. */
static uint32_t take_selection(struct cursor *c)
{
    uint64_t n_banks = take_number(c, 4), bank = take_number(c, 2);
    struct str select = take(c, take_number(c, 1));
    if (n_banks != 1 || bank != TPM_ALG_SHA256 || select.n > MAX_SELECT_BYTES)
        c->failed = true;
    uint32_t mask = 0;
    for (size_t i = 0; !c->failed && i < select.n; i++)
        mask |= (uint32_t) (unsigned char) select.p[i] << 8 * i;
    return mask;
}

/* TPMS_ATTEST (10.12.8) with the TPMS_QUOTE_INFO of its type. */
int quote_parse(struct str attest_data, struct quote_statement *ret)
{
    struct cursor c = {.rest = attest_data};
    struct quote_statement s = {0};
    if (take_number(&c, 4) != TPM_GENERATED_VALUE || take_number(&c, 2) != TPM_ST_ATTEST_QUOTE)
        return -EBADMSG;
    (void) take_sized(&c); /* qualifiedSigner: the key's name is vouched for by its certificate */
    s.extra_data = take_sized(&c);
    s.clock = take_number(&c, 8);
    s.reset_count = (uint32_t) take_number(&c, 4);
    s.restart_count = (uint32_t) take_number(&c, 4);
    (void) take_number(&c, 1); /* safe */
    (void) take_number(&c, 8); /* firmwareVersion */
    s.pcr_mask = take_selection(&c);
    s.pcr_digest = take_sized(&c);
    if (c.failed || c.rest.n > 0)
        return -EBADMSG;
    *ret = s;
    return 0;
}

/* ---- verifying ------------------------------------------------------------------------------ */

/* Every value is a whole one of the SHA-256 bank, and no register has two. */
static bool gather_values(const struct quote *q, const struct quote_pcr *by_index[QUOTE_PCRS])
{
    for (size_t i = 0; i < q->n_pcrs; i++) {
        const struct quote_pcr *p = &q->pcrs[i];
        if (p->index >= QUOTE_PCRS || !p->is_sha256 || p->value.n != QUOTE_PCR_BYTES ||
            by_index[p->index])
            return false;
        by_index[p->index] = p;
    }
    return true;
}

/* The digest over the values of the registers selected, in the order of their numbers; false: one
 * of them was not sent. */
static bool digest_values(const struct quote_pcr *const by_index[QUOTE_PCRS], uint32_t mask,
                          unsigned char ret_digest[SHA256_BYTES])
{
    char values[QUOTE_PCRS * QUOTE_PCR_BYTES];
    size_t n = 0;
    for (unsigned i = 0; i < QUOTE_PCRS; i++) {
        if (!(mask & 1u << i))
            continue;
        if (!by_index[i])
            return false;
        memcpy(values + n, by_index[i]->value.p, QUOTE_PCR_BYTES);
        n += QUOTE_PCR_BYTES;
    }
    pki_sha256(str_range(values, n), ret_digest);
    return true;
}

enum quote_result quote_verify(const struct quote *q, const struct pki_public *key,
                               struct str nonce)
{
    struct quote_statement s;
    const struct quote_pcr *by_index[QUOTE_PCRS] = {NULL};
    unsigned char digest[SHA256_BYTES];
    if (quote_parse(q->attest_data, &s) < 0 || !gather_values(q, by_index))
        return QUOTE_MALFORMED;
    if (pki_verify_der(key, q->attest_data, q->signature) < 0)
        return QUOTE_BAD_SIGNATURE;
    if (nonce.n < QUOTE_MIN_NONCE_BYTES || !str_eq(s.extra_data, nonce))
        return QUOTE_WRONG_NONCE;
    /* Nothing selected is nothing proved. */
    if (s.pcr_mask == 0 || !digest_values(by_index, s.pcr_mask, digest) ||
        !str_eq(s.pcr_digest, str_range((char *) digest, sizeof(digest))))
        return QUOTE_WRONG_DIGEST;
    return QUOTE_GOOD;
}

const char *quote_result_text(enum quote_result r)
{
    static const char *const texts[] = {
        [QUOTE_GOOD] = "good",
        [QUOTE_MALFORMED] = "the quote is malformed",
        [QUOTE_BAD_SIGNATURE] = "the quote is not signed by the device's attestation key",
        [QUOTE_WRONG_NONCE] = "the quote answers another nonce",
        [QUOTE_WRONG_DIGEST] = "the register values are not those the TPM signed",
    };
    return (unsigned) r < N_ELEMENTS(texts) ? texts[r] : "unknown";
}
