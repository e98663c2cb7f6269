/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/documents.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "test.h"

/* A JWK of the key with further members (",\"kid\":\"a\""). */
static struct str jwk(struct arena *a, const struct pki_key *key, const char *more)
{
    struct jws_key *k = jws_key_of(key);
    struct jws_key_members m = jws_key_describe(a, k);
    jws_key_free(k);
    return arena_printf(a, "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%.*s\",\"y\":\"%.*s\"%s}",
                        STR_ARG(m.x), STR_ARG(m.y), more);
}

static struct oidc_keys *parse(struct arena *a, struct str jwks)
{
    struct oidc_keys *keys = NULL;
    char *error = NULL;
    struct str text = arena_printf(a, "{\"keys\":[%.*s]}", STR_ARG(jwks));
    if (oidc_keys_parse(text, &keys, &error) < 0) {
        mem_free(error);
        return NULL;
    }
    return keys;
}

TEST(keys_are_used_as_they_say)
{
    static const struct {
        const char *more;
        bool is_used;
    } cases[] = {
        {"", true},
        {",\"kid\":\"a\",\"use\":\"sig\",\"alg\":\"ES256\",\"key_ops\":[\"verify\"]", true},
        {",\"use\":\"enc\"", false},
        {",\"use\":7", false},
        {",\"key_ops\":[\"sign\"]", false},
        {",\"key_ops\":\"verify\"", false},
        {",\"alg\":\"RS256\"", false},
        {",\"alg\":\"ES384\"", false},
        {",\"alg\":null", false},
    };
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_keys *keys = parse(a, jwk(a, key, cases[i].more));
        if (cases[i].is_used != (keys != NULL))
            fail_msg("%s", cases[i].more);
        oidc_keys_unref(keys);
    }
}

TEST(a_key_verifies_by_its_name_and_algorithm)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_key_freep) struct pki_key *one = pki_key_new();
    CLEANUP(pki_key_freep) struct pki_key *other = pki_key_new();
    struct oidc_keys *keys =
        parse(a, arena_printf(a, "%.*s,{\"kty\":\"oct\",\"k\":\"AAAA\"},7,%.*s",
                              STR_ARG(jwk(a, one, ",\"kid\":\"one\"")),
                              STR_ARG(jwk(a, other, ",\"kid\":\"other\""))));
    assert_non_null(keys);
    assert_int_equal(oidc_keys_count(keys), 2);
    struct jws t;
    assert_int_equal(jws_split(a, jws_sign(a, one, STR("{\"alg\":\"ES256\"}"), STR("{}")), &t), 0);
    assert_true(oidc_keys_verify(keys, JWS_ES256, STR("one"), &t));
    assert_true(oidc_keys_verify(keys, JWS_ES256, STR_NONE, &t));
    assert_false(oidc_keys_verify(keys, JWS_ES256, STR("other"), &t));
    assert_false(oidc_keys_verify(keys, JWS_ES256, STR("none"), &t));
    assert_false(oidc_keys_verify(keys, JWS_ES256, STR(""), &t));
    assert_false(oidc_keys_verify(keys, JWS_RS256, STR("one"), &t));
    t.signature.n = 0;
    assert_false(oidc_keys_verify(keys, JWS_ES256, STR_NONE, &t));
    oidc_keys_unref(keys);
}

TEST(no_more_keys_than_the_limit)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    for (int i = 0; i < OIDC_MAX_KEYS + 5; i++)
        buf_printf(&b, "%s%.*s", i ? "," : "", STR_ARG(jwk(a, key, "")));
    struct oidc_keys *keys = parse(a, buf_str(&b));
    assert_int_equal(oidc_keys_count(keys), OIDC_MAX_KEYS);
    oidc_keys_unref(keys);
}

TEST(documents_that_are_none_are_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[{}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\"}]}",
    };
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        struct oidc_keys *keys = NULL;
        char *error = NULL;
        assert_int_equal(oidc_keys_parse(str_of(texts[i]), &keys, &error), -EINVAL);
        assert_non_null(error);
        mem_free(error);
    }
}

TEST(discovery_belongs_to_its_issuer)
{
    static const struct {
        const char *text, *words; /* NULL: fine */
    } cases[] = {
        {"{\"issuer\":\"https://i\",\"jwks_uri\":\"https://k/j\",\"more\":[1]}", NULL},
        {"{\"issuer\":\"https://i/\",\"jwks_uri\":\"https://k/j\"}",
         "oidc: issuer did not match the issuer returned by provider, expected \"https://i\" got "
         "\"https://i/\""},
        {"{\"jwks_uri\":\"https://k/j\"}",
         "oidc: issuer did not match the issuer returned by provider, expected \"https://i\" got "
         "\"\""},
        {"{\"issuer\":\"https://i\"}", "oidc: jwks_uri \"\" is no https URL"},
        {"{\"issuer\":\"https://i\",\"jwks_uri\":\"http://k\"}",
         "oidc: jwks_uri \"http://k\" is no https URL"},
        {"{\"issuer\":\"https://i\",\"jwks_uri\":\"file:///etc/passwd\"}",
         "oidc: jwks_uri \"file:///etc/passwd\" is no https URL"},
        {"[]", "oidc: failed to decode provider discovery object: no object"},
        {"{", "oidc: failed to decode provider discovery object: unexpected end of JSON input"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct str uri = STR_NONE, error = STR_NONE;
        int r = oidc_discovery_parse(a, str_of(cases[i].text), STR("https://i"), &uri, &error);
        assert_int_equal(r, cases[i].words ? -EINVAL : 0);
        if (cases[i].words)
            assert_str(error, cases[i].words);
        else
            assert_str(uri, "https://k/j");
    }
}
