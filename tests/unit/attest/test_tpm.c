/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/tpm.h"

#include <errno.h>
#include <pthread.h>

#include "chip.h"
#include "eve/quote.h"
#include "pki/file.h"
#include "pki/pki.h"
#include "test.h"

/* A certificate for a key of the TPM, for its public key. */
static struct pki_public *public_of(struct str der)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    const struct pki_cert_options o = {.common_name = STR("any"), .is_ca = true, .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *issuer = pki_cert_new(&o, key, NULL, NULL);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new_for(&o, der, issuer, key);
    assert_non_null(cert);
    return pki_cert_public(cert);
}

TEST(who_is_not_there_says_nothing)
{
    ARENA_AUTO a = arena_new();
    struct tpm *t = tpm_new("swtpm:path=/nowhere/tpm");
    struct tpm_public public;
    assert_int_equal(tpm_prepare(t), -ENODEV);
    assert_int_equal(tpm_public(t, a, TPM_KEY_QUOTE, &public), -ENODEV);
    tpm_unref(t);
}

TEST(keys_are_made_once)
{
    ARENA_AUTO a = arena_new();
    struct chip c;
    struct tpm_public before[TPM_KEYS], after[TPM_KEYS];
    chip_init(&c);
    struct tpm *t = tpm_new(c.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    for (enum tpm_key k = 0; k < TPM_KEYS; k++)
        assert_int_equal(tpm_public(t, a, k, &before[k]), 0);
    assert_int_equal(tpm_prepare(t), 0);
    for (enum tpm_key k = 0; k < TPM_KEYS; k++) {
        assert_int_equal(tpm_public(t, a, k, &after[k]), 0);
        assert_true(str_eq(before[k].der, after[k].der));
        assert_int_equal(after[k].name.n, 2 + 32);
    }
    assert_false(str_eq(before[TPM_KEY_QUOTE].der, before[TPM_KEY_ECDH].der));
    chip_tool(&c, "tpm2_readpublic -c 0x81000004 -f pem -o quote.pem");
    tpm_unref(t);
    chip_done(&c);
}

static enum quote_result judge(struct arena *a, const struct tpm_quote *q,
                               const struct pki_public *key, struct str nonce)
{
    struct quote_pcr *pcrs = ARENA_ARRAY(a, struct quote_pcr, TPM_PCRS);
    for (uint32_t i = 0; i < TPM_PCRS; i++)
        pcrs[i] =
            (struct quote_pcr){i, true, str_range((const char *) q->pcrs[i], sizeof(q->pcrs[i]))};
    const struct quote quote = {q->statement, q->signature, pcrs, TPM_PCRS};
    return quote_verify(&quote, key, nonce);
}

TEST(a_quote_is_what_a_controller_believes)
{
    ARENA_AUTO a = arena_new();
    struct chip c;
    struct tpm_public public;
    struct tpm_quote q = {0};
    chip_init(&c);
    struct tpm *t = tpm_new(c.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    assert_int_equal(tpm_public(t, a, TPM_KEY_QUOTE, &public), 0);
    CLEANUP(pki_public_freep) struct pki_public *key = public_of(public.der);
    /* Some signatures have short numbers. */
    for (int i = 0; i < 20; i++) {
        const struct str nonce = arena_printf(a, "nonce %015d", i);
        assert_int_equal(tpm_quote(t, a, nonce, &q), 0);
        assert_int_equal(judge(a, &q, key, nonce), QUOTE_GOOD);
        assert_int_equal(judge(a, &q, key, STR("another nonce")), QUOTE_WRONG_NONCE);
    }
    struct tpm_quote later = {0};
    chip_extend(&c, 9);
    assert_int_equal(tpm_quote(t, a, STR("0123456789ab"), &later), 0);
    assert_int_equal(judge(a, &later, key, STR("0123456789ab")), QUOTE_GOOD);
    assert_memory_not_equal(later.pcrs[9], q.pcrs[9], TPM_PCR_BYTES);
    assert_memory_equal(later.pcrs[8], q.pcrs[8], TPM_PCR_BYTES);
    assert_int_equal(tpm_quote(t, a, STR("0123456789a"), &q), -EINVAL);
    assert_int_equal(tpm_quote(t, a, STR("0123456789abcdef0123456789abcdefX"), &q), -EINVAL);
    tpm_unref(t);
    chip_done(&c);
}

TEST(both_sides_agree)
{
    ARENA_AUTO a = arena_new();
    struct chip c;
    struct tpm_public public;
    unsigned char theirs[TPM_POINT_BYTES], ours[TPM_POINT_BYTES];
    chip_init(&c);
    struct tpm *t = tpm_new(c.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    assert_int_equal(tpm_public(t, a, TPM_KEY_ECDH, &public), 0);
    CLEANUP(pki_public_freep) struct pki_public *chips = public_of(public.der);
    for (int i = 0; i < 5; i++) {
        CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
        const struct pki_cert_options o = {.common_name = STR("controller"), .valid_days = 1};
        CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&o, key, NULL, NULL);
        const struct str der = pki_cert_public_der(a, cert);
        assert_int_equal(pki_ecdh_point(key, chips, theirs), 0);
        assert_int_equal(
            tpm_ecdh(t, (const unsigned char *) der.p + (der.n - TPM_POINT_BYTES), ours), 0);
        assert_memory_equal(theirs, ours, TPM_POINT_BYTES);
    }
    memset(theirs, 1, sizeof(theirs)); /* not on the curve */
    assert_int_equal(tpm_ecdh(t, theirs, ours), -EIO);
    tpm_unref(t);
    chip_done(&c);
}

TEST(what_is_sealed_opens_while_the_registers_are_the_same)
{
    ARENA_AUTO a = arena_new();
    struct chip c, other;
    struct str blob, plain;
    chip_init(&c);
    chip_init(&other);
    struct tpm *t = tpm_new(c.tcti), *stranger = tpm_new(other.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    assert_int_equal(tpm_prepare(stranger), 0);
    assert_int_equal(tpm_seal(t, a, STR("32 bytes of a key, more or less."), &blob), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tpm_unseal(t, a, blob, &plain), 0);
        assert_str(plain, "32 bytes of a key, more or less.");
    }
    assert_int_equal(tpm_unseal(stranger, a, blob, &plain), -EPERM);
    assert_int_equal(tpm_unseal(t, a, str_sub(blob, 0, blob.n - 1), &plain), -EBADMSG);
    assert_int_equal(tpm_unseal(t, a, STR("nonsense"), &plain), -EBADMSG);
    assert_int_equal(tpm_seal(t, a, STR(""), &blob), -EMSGSIZE);
    chip_extend(&c, 5); /* a partition table may change */
    assert_int_equal(tpm_unseal(t, a, blob, &plain), 0);
    chip_extend(&c, 9);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tpm_unseal(t, a, blob, &plain), -EPERM);
    assert_int_equal(tpm_seal(t, a, STR("again"), &blob), 0);
    assert_int_equal(tpm_unseal(t, a, blob, &plain), 0);
    tpm_unref(t);
    tpm_unref(stranger);
    chip_done(&other);
    chip_done(&c);
}

/* ---- activation ----------------------------------------------------------------------------- */

static struct str sized(struct str *rest)
{
    const unsigned char *p = (const unsigned char *) rest->p;
    assert_true(rest->n >= 2);
    const size_t n = (size_t) p[0] << 8 | p[1];
    const struct str part = str_sub(*rest, 2, 2 + n);
    *rest = str_from(*rest, 2 + n);
    return part;
}

TEST(a_challenge_is_met)
{
    ARENA_AUTO a = arena_new();
    struct chip c;
    struct tpm_public aik;
    struct str secret, signature;
    BUF_AUTO file = {0};
    chip_init(&c);
    struct tpm *t = tpm_new(c.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    assert_int_equal(tpm_public(t, a, TPM_KEY_AIK, &aik), 0);
    const struct str name = pki_hex(a, (const unsigned char *) aik.name.p, aik.name.n);
    chip_tool(&c, "tpm2_readpublic -c 0x81000001 -f tss -o ek.pub");
    chip_run(&c, "printf 'a stranger knows' >secret");
    chip_run(&c, arena_printf(a, "tpm2_makecredential -T none -u ek.pub -s secret -n %.*s -o blob",
                              STR_ARG(name))
                     .p);
    assert_int_equal(pki_file_read(chip_path(&c, "blob"), &file), 0);
    struct str rest = str_from(buf_str(&file), 8); /* the tool's magic and version */
    struct tpm_challenge challenge = {.data = STR("signed")};
    challenge.credential = sized(&rest);
    challenge.secret = sized(&rest);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tpm_activate(t, a, &challenge, &secret, &signature), 0);
        assert_str(secret, "a stranger knows");
        assert_int_equal(signature.n, 256);
    }
    const struct str good = challenge.credential;
    challenge.credential = str_sub(good, 0, good.n - 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tpm_activate(t, a, &challenge, &secret, &signature), -EIO);
    challenge.credential = good;
    challenge.data = str_range(arena_zalloc(a, 2000), 2000);
    assert_int_equal(tpm_activate(t, a, &challenge, &secret, &signature), -EMSGSIZE);
    tpm_unref(t);
    chip_done(&c);
}

/* ---- several threads ------------------------------------------------------------------------ */

static void *quote_often(void *arg)
{
    size_t n_good = 0;
    for (int i = 0; i < 5; i++) {
        ARENA_AUTO a = arena_new();
        struct tpm_quote q = {0};
        n_good += tpm_quote(arg, a, STR("0123456789ab"), &q) == 0;
    }
    return (void *) n_good;
}

TEST(threads_take_turns)
{
    struct chip c;
    pthread_t threads[3];
    chip_init(&c);
    struct tpm *t = tpm_new(c.tcti);
    assert_int_equal(tpm_prepare(t), 0);
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, quote_often, t), 0);
    for (size_t i = 0; i < N_ELEMENTS(threads); i++) {
        void *n_good = NULL;
        assert_int_equal(pthread_join(threads[i], &n_good), 0);
        assert_int_equal((size_t) n_good, 5);
    }
    tpm_unref(t);
    chip_done(&c);
}
