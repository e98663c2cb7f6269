/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/quote.h"

#include <errno.h>

#include "hex.h"
#include "quote_vector.h"
#include "test.h"

struct vector {
    struct arena *arena;
    struct pki_public *key;
    struct quote_pcr pcrs[QUOTE_PCRS + 1];
    struct quote quote;
};

static void vector_init(struct vector *v)
{
    struct pki_cert *cert = NULL;
    assert_int_equal(pki_cert_parse(STR(VECTOR_CERT), &cert), 0);
    *v = (struct vector){.arena = arena_new(), .key = pki_cert_public(cert)};
    pki_cert_free(cert);
    for (uint32_t i = 0; i < QUOTE_PCRS; i++)
        v->pcrs[i] = (struct quote_pcr){i, true, from_hex(v->arena, vector_pcrs[i])};
    v->quote.attest_data = from_hex(v->arena, VECTOR_ATTEST);
    v->quote.signature = from_hex(v->arena, VECTOR_SIGNATURE);
    v->quote.pcrs = v->pcrs;
    v->quote.n_pcrs = QUOTE_PCRS;
}

static void vector_done(struct vector *v)
{
    pki_public_free(v->key);
    arena_free(v->arena);
}

#define VECTOR_AUTO CLEANUP(vector_done) struct vector

static enum quote_result verdict(const struct vector *v)
{
    return quote_verify(&v->quote, v->key, STR(VECTOR_NONCE));
}

/* A byte of a string in the arena, to be changed. */
static char *at(struct str s, size_t i)
{
    return (char *) (uintptr_t) s.p + i;
}

/* ---- a TPM's own ---------------------------------------------------------------------------- */

TEST(a_quote_of_a_tpm_is_read)
{
    VECTOR_AUTO v;
    vector_init(&v);
    struct quote_statement s;
    assert_int_equal(quote_parse(v.quote.attest_data, &s), 0);
    assert_str(s.extra_data, VECTOR_NONCE);
    assert_int_equal(s.pcr_mask, 0xffff);
    assert_int_equal(s.pcr_digest.n, 32);
    assert_int_equal(s.clock, 0x483);
    assert_int_equal(s.reset_count, 3);
    assert_int_equal(s.restart_count, 0);
}

TEST(a_quote_of_a_tpm_is_good)
{
    VECTOR_AUTO v;
    vector_init(&v);
    assert_int_equal(verdict(&v), QUOTE_GOOD);
    v.quote.n_pcrs = 16; /* what was not selected need not be sent */
    assert_int_equal(verdict(&v), QUOTE_GOOD);
    v.pcrs[0] = v.pcrs[15]; /* nor is there an order */
    v.pcrs[15] = (struct quote_pcr){0, true, from_hex(v.arena, vector_pcrs[0])};
    assert_int_equal(verdict(&v), QUOTE_GOOD);
}

TEST(a_changed_register_is_noticed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    for (size_t i = 0; i < QUOTE_PCRS; i++) {
        *at(v.pcrs[i].value, i) ^= 1;
        assert_int_equal(verdict(&v), i < 16 ? QUOTE_WRONG_DIGEST : QUOTE_GOOD);
        *at(v.pcrs[i].value, i) ^= 1;
    }
    v.pcrs[0].index = 2; /* two registers exchanged */
    v.pcrs[2].index = 0;
    assert_int_equal(verdict(&v), QUOTE_WRONG_DIGEST);
}

TEST(registers_that_are_missing_double_or_foreign_are_noticed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    v.quote.n_pcrs = 15;
    assert_int_equal(verdict(&v), QUOTE_WRONG_DIGEST);
    v.quote.n_pcrs = 0;
    assert_int_equal(verdict(&v), QUOTE_WRONG_DIGEST);
    v.quote.n_pcrs = QUOTE_PCRS + 1;
    v.pcrs[QUOTE_PCRS] = v.pcrs[3];
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
    v.pcrs[QUOTE_PCRS] = (struct quote_pcr){QUOTE_PCRS, true, v.pcrs[3].value};
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
    v.quote.n_pcrs = QUOTE_PCRS;
    v.pcrs[20].is_sha256 = false;
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
    v.pcrs[20].is_sha256 = true;
    v.pcrs[20].value.n = 20;
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
}

TEST(another_nonce_is_noticed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    static const char *const nonces[] = {"3f9a0c71d2e5", "3f9a0c71d2e", "3f9a0c71d2e4x", ""};
    for (size_t i = 0; i < N_ELEMENTS(nonces); i++)
        assert_int_equal(quote_verify(&v.quote, v.key, str_of(nonces[i])), QUOTE_WRONG_NONCE);
    assert_int_equal(quote_verify(&v.quote, v.key, STR_NONE), QUOTE_WRONG_NONCE);
}

TEST(a_changed_statement_or_signature_is_noticed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    for (size_t i = 0; i < v.quote.attest_data.n; i++) {
        *at(v.quote.attest_data, i) ^= 1;
        enum quote_result r = verdict(&v);
        assert_true(r == QUOTE_BAD_SIGNATURE || r == QUOTE_MALFORMED);
        *at(v.quote.attest_data, i) ^= 1;
    }
    for (size_t i = 0; i < v.quote.signature.n; i++) {
        *at(v.quote.signature, i) ^= 1;
        assert_int_equal(verdict(&v), QUOTE_BAD_SIGNATURE);
        *at(v.quote.signature, i) ^= 1;
    }
    v.quote.signature.n--;
    assert_int_equal(verdict(&v), QUOTE_BAD_SIGNATURE);
    v.quote.signature = STR("");
    assert_int_equal(verdict(&v), QUOTE_BAD_SIGNATURE);
}

TEST(another_key_is_noticed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    CLEANUP(pki_key_freep) struct pki_key *other = pki_key_new();
    CLEANUP(pki_public_freep) struct pki_public *wrong = pki_public_of_key(other);
    assert_int_equal(quote_verify(&v.quote, wrong, STR(VECTOR_NONCE)), QUOTE_BAD_SIGNATURE);
    assert_int_equal(quote_verify(&v.quote, NULL, STR(VECTOR_NONCE)), QUOTE_BAD_SIGNATURE);
}

TEST(a_statement_cut_or_prolonged_anywhere_is_malformed)
{
    VECTOR_AUTO v;
    vector_init(&v);
    struct str whole = v.quote.attest_data;
    for (size_t n = 0; n < whole.n; n++) {
        /* In memory of its own, so that reading beyond it is seen. */
        ARENA_AUTO a = arena_new_with(n);
        struct quote_statement s = {.clock = 99};
        char *copy = arena_alloc(a, n);
        memcpy(copy, whole.p, n);
        assert_int_equal(quote_parse(str_range(copy, n), &s), -EBADMSG);
        assert_int_equal(s.clock, 99);
    }
    v.quote.attest_data = from_hex(v.arena, VECTOR_ATTEST "00");
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
    v.quote.attest_data = STR_NONE;
    assert_int_equal(verdict(&v), QUOTE_MALFORMED);
}

/* ---- made by hand --------------------------------------------------------------------------- */

#define MAGIC "ff544347"
#define BEFORE_SELECTION \
    "0001ff" \
    "000161" \
    "0000000000000001" \
    "00000002" \
    "00000003" \
    "01" \
    "0000000000000004"
#define DIGEST "000164"

TEST(only_one_selection_of_the_sha256_bank_is_taken)
{
    static const struct {
        const char *hex;
        int result;
        uint32_t mask;
    } cases[] = {
        {MAGIC "8018" BEFORE_SELECTION "00000001"
               "000b"
               "03"
               "010080" DIGEST,
         0, 0x800001},
        {MAGIC "8018" BEFORE_SELECTION "00000001"
               "000b"
               "01"
               "05" DIGEST,
         0, 5},
        {MAGIC "8018" BEFORE_SELECTION "00000001"
               "000b"
               "00" DIGEST,
         0, 0},
        {MAGIC "8018" BEFORE_SELECTION "00000001"
               "000b"
               "04"
               "01000000" DIGEST,
         -EBADMSG, 0},
        {MAGIC "8018" BEFORE_SELECTION "00000001"
               "0004"
               "03"
               "010000" DIGEST,
         -EBADMSG, 0},
        {MAGIC "8018" BEFORE_SELECTION "00000000" DIGEST, -EBADMSG, 0},
        {MAGIC "8018" BEFORE_SELECTION "00000002"
               "000b"
               "03"
               "010000"
               "0004"
               "03"
               "010000" DIGEST,
         -EBADMSG, 0},
        {MAGIC "8018" BEFORE_SELECTION "00000002"
               "000b"
               "03"
               "010000"
               "000b"
               "03"
               "010000" DIGEST,
         -EBADMSG, 0},
        {MAGIC "8018" BEFORE_SELECTION "ffffffff"
               "000b"
               "03"
               "010000" DIGEST,
         -EBADMSG, 0},
        {MAGIC "8017" BEFORE_SELECTION "00000001"
               "000b"
               "03"
               "010000" DIGEST,
         -EBADMSG, 0},
        {"ff544346"
         "8018" BEFORE_SELECTION "00000001"
         "000b"
         "03"
         "010000" DIGEST,
         -EBADMSG, 0},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quote_statement s = {0};
        assert_int_equal(quote_parse(from_hex(a, cases[i].hex), &s), cases[i].result);
        assert_int_equal(s.pcr_mask, cases[i].mask);
    }
}

TEST(every_result_has_its_words)
{
    for (int i = QUOTE_GOOD; i <= QUOTE_WRONG_DIGEST; i++)
        assert_true(strlen(quote_result_text((enum quote_result) i)) > 3);
}
