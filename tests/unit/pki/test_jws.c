/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/jws.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"
#include "test.h"

/* RFC 7515 A.2 and A.3: the same payload under RS256 and ES256. */
#define PAYLOAD \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl" \
    "fQ"
#define RSA_N \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4" \
    "d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re" \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX" \
    "FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
#define RSA_TOKEN \
    "eyJhbGciOiJSUzI1NiJ9." PAYLOAD \
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2F" \
    "p5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBM" \
    "Hlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2" \
    "w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define EC_X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define EC_Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define EC_TOKEN \
    "eyJhbGciOiJFUzI1NiJ9." PAYLOAD \
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
/* As openssl dgst -sha256 of its DER has it. */
#define EC_PEM \
    "-----BEGIN PUBLIC KEY-----\n" \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n" \
    "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n" \
    "-----END PUBLIC KEY-----\n"
#define EC_ID "K9G7DESol8MKeqCZHN442AYv5EHeUNoPRoJTRPYC6Cc"

DEFINE_CLEANUP(struct jws_key *, jws_key_free)
#define KEY_AUTO CLEANUP(jws_key_freep) struct jws_key *

static bool verifies(const struct jws_key *k, struct str token)
{
    ARENA_AUTO a = arena_new();
    struct jws t;
    assert_int_equal(jws_split(a, token, &t), 0);
    const bool ok = jws_verify(k, &t);
    assert_int_equal(ERR_peek_error(), 0);
    return ok;
}

TEST(vectors_of_the_standard_verify)
{
    KEY_AUTO rsa = jws_key_rsa(STR(RSA_N), STR("AQAB"));
    KEY_AUTO ec = jws_key_p256(STR(EC_X), STR(EC_Y));
    assert_int_equal(jws_key_algorithm(rsa), JWS_RS256);
    assert_int_equal(jws_key_algorithm(ec), JWS_ES256);
    assert_true(verifies(rsa, STR(RSA_TOKEN)));
    assert_true(verifies(ec, STR(EC_TOKEN)));
}

TEST(one_flipped_bit_anywhere_in_the_signed_text_or_signature_is_refused)
{
    KEY_AUTO ec = jws_key_p256(STR(EC_X), STR(EC_Y));
    ARENA_AUTO a = arena_new();
    struct jws t;
    assert_int_equal(jws_split(a, STR(EC_TOKEN), &t), 0);
    struct str *const parts[] = {&t.signed_text, &t.signature};
    for (size_t p = 0; p < N_ELEMENTS(parts); p++) {
        char *copy = arena_strz(a, *parts[p]);
        const struct str before = *parts[p];
        *parts[p] = str_range(copy, before.n);
        for (size_t i = 0; i < before.n; i++) {
            copy[i] ^= 1;
            assert_false(jws_verify(ec, &t));
            copy[i] ^= 1;
        }
        assert_true(jws_verify(ec, &t));
    }
}

TEST(a_key_verifies_by_its_own_algorithm_only)
{
    KEY_AUTO rsa = jws_key_rsa(STR(RSA_N), STR("AQAB"));
    KEY_AUTO ec = jws_key_p256(STR(EC_X), STR(EC_Y));
    assert_false(verifies(ec, STR(RSA_TOKEN)));
    assert_false(verifies(rsa, STR(EC_TOKEN)));
}

TEST(signatures_of_odd_sizes_are_refused)
{
    KEY_AUTO rsa = jws_key_rsa(STR(RSA_N), STR("AQAB"));
    KEY_AUTO ec = jws_key_p256(STR(EC_X), STR(EC_Y));
    static const char zeros[1024];
    for (size_t n = 0; n < sizeof(zeros); n += n < 80 ? 1 : 37) {
        struct jws t = {.signed_text = STR("a.b"), .signature = str_range(zeros, n)};
        assert_false(jws_verify(rsa, &t));
        assert_false(jws_verify(ec, &t));
    }
}

static struct pki_key *rsa_key(unsigned bits)
{
    struct pki_key *k = mem_zalloc(sizeof(*k));
    k->pkey = EVP_RSA_gen(bits);
    assert_non_null(k->pkey);
    return k;
}

TEST(what_is_signed_verifies)
{
    ARENA_AUTO a = arena_new();
    struct pki_key *const both[] = {pki_key_new(), rsa_key(2048)};
    for (size_t i = 0; i < N_ELEMENTS(both); i++) {
        KEY_AUTO public = jws_key_of(both[i]);
        assert_non_null(public);
        for (int n = 0; n < 20; n++) {
            const struct str payload = arena_printf(a, "{\"n\":%d}", n);
            const struct str token = jws_sign(a, both[i], STR("{}"), payload);
            struct jws t;
            assert_int_equal(jws_split(a, token, &t), 0);
            assert_str(t.header, "{}");
            assert_true(str_eq(t.payload, payload));
            assert_true(jws_verify(public, &t));
        }
        pki_key_free(both[i]);
    }
}

TEST(what_is_no_compact_token_is_refused)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "a",
        "e30.e30",
        "e30.e30.",
        "e30.e30.AA.AA",
        "e30..AA.AA",
        "e30.e30.A",    /* no whole byte */
        "e30.e30.AA==", /* padding */
        "e30.e30.AB",   /* bits left over */
        "e31.e30.AA",   /* likewise */
        "e30.e3\n0.AA", /* line break */
        "e30.e30.AA\n",
        "e30.e30.A+",
        "e30.e30.A/",
        "e30.e30. AA",
        "e30.e30.A\xc3",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct jws t;
        const bool is_stripped = i == 2 || i == 5;
        const int r = jws_split(a, str_of(bad[i]), &t);
        if (is_stripped)
            assert_true(r == 0 && t.signature.n == 0);
        else
            assert_int_equal(r, -EINVAL);
    }
}

TEST(tokens_above_the_limit_are_refused)
{
    ARENA_AUTO a = arena_new();
    char *p = arena_alloc(a, JWS_MAX_BYTES + 4);
    memset(p, 'A', JWS_MAX_BYTES + 4);
    p[4] = p[9] = '.';
    struct jws t;
    assert_int_equal(jws_split(a, str_range(p, JWS_MAX_BYTES - 2), &t), 0);
    assert_int_equal(jws_split(a, str_range(p, JWS_MAX_BYTES + 2), &t), -EINVAL);
}

TEST(unsound_keys_are_refused)
{
    const struct str n = STR(RSA_N);
    assert_null(jws_key_rsa(n, STR("")));
    assert_null(jws_key_rsa(n, STR("AQ")));   /* 1 */
    assert_null(jws_key_rsa(n, STR("AQAA"))); /* 65536 */
    assert_null(jws_key_rsa(n, n));           /* costs as much as a private operation */
    assert_null(jws_key_rsa(n, STR("AQAB=")));
    assert_null(jws_key_rsa(STR("AQAB"), STR("AQAB")));
    assert_null(jws_key_rsa(str_sub(n, 0, n.n / 2), STR("AQAB")));
    assert_null(jws_key_rsa(STR_NONE, STR("AQAB")));
    char huge[1030 * 4 / 3 + 4];
    memset(huge, '_', sizeof(huge));
    assert_null(jws_key_rsa(str_range(huge, 1028 / 3 * 4), STR("AQAB")));
    assert_null(jws_key_p256(STR(EC_Y), STR(EC_X))); /* not on the curve */
    assert_null(jws_key_p256(STR(EC_X), STR("AAAA")));
    assert_null(jws_key_p256(STR_NONE, STR_NONE));
    struct pki_key *weak = rsa_key(1024);
    assert_null(jws_key_of(weak));
    pki_key_free(weak);
    assert_int_equal(ERR_peek_error(), 0);
}

TEST(members_of_a_key_make_the_same_key)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO rsa = jws_key_rsa(STR(RSA_N), STR("AQAB"));
    KEY_AUTO ec = jws_key_p256(STR(EC_X), STR(EC_Y));
    const struct jws_key_members m = jws_key_describe(a, rsa), p = jws_key_describe(a, ec);
    assert_str(m.kty, "RSA");
    assert_str(m.n, RSA_N);
    assert_str(m.e, "AQAB");
    assert_str(p.kty, "EC");
    assert_str(p.crv, "P-256");
    assert_str(p.x, EC_X);
    assert_str(p.y, EC_Y);
}

TEST(pem_of_a_public_key_a_private_key_and_a_certificate)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO public = jws_key_pem(STR(EC_PEM));
    assert_non_null(public);
    assert_true(verifies(public, STR(EC_TOKEN)));
    assert_str(jws_key_id(a, public), EC_ID);

    struct pki_key *k = pki_key_new();
    KEY_AUTO from_private = jws_key_pem(pki_key_pem(a, k));
    const struct pki_cert_options o = {.common_name = STR("x"), .valid_days = 1};
    struct pki_cert *c = pki_cert_new(&o, k, NULL, NULL);
    KEY_AUTO from_certificate = jws_key_pem(pki_cert_pem(a, c));
    KEY_AUTO direct = jws_key_of(k);
    assert_non_null(from_private);
    assert_non_null(from_certificate);
    const struct str id = jws_key_id(a, direct);
    assert_true(str_eq(jws_key_id(a, from_private), id));
    assert_true(str_eq(jws_key_id(a, from_certificate), id));
    pki_cert_free(c);
    pki_key_free(k);

    assert_null(jws_key_pem(STR("")));
    assert_null(jws_key_pem(STR("no key")));
    assert_null(jws_key_pem(STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")));
}
