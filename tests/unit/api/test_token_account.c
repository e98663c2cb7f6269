/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/service_account_tokens.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "pki/jws.h"
#include "test.h"
#include "token_fixture.h"
#include "json/json.h"

#define ACCOUNT "serviceaccounts/ns/robot"
#define SECRET "secrets/ns/robot-token"

struct setup {
    struct token_fixture f;
    struct token_source *s;
};

static void setup_init(struct setup *t)
{
    assert_true(token_fixture_init(&t->f));
    assert_true(token_fixture_put(&t->f, ACCOUNT, "u1", "", ""));
    t->s = service_account_tokens_new(t->f.store, &t->f.clock.clock, t->f.issuer);
}

static void setup_done(struct setup *t)
{
    t->s->free(t->s);
    token_fixture_done(&t->f);
}

static int ask(struct setup *t, struct str token, struct token_identity *ret)
{
    *ret = (struct token_identity){0};
    return t->s->verify(t->s, t->f.arena, token, NULL, 0, false, ret);
}

static struct str sign(struct setup *t, struct account_claims c)
{
    return token_issuer_sign(t->f.issuer, t->f.arena, &c);
}

static struct str payload_of(struct setup *t, struct str token)
{
    struct jws parts;
    assert_int_equal(jws_split(t->f.arena, token, &parts), 0);
    return parts.payload;
}

/* ---- good ones ---------------------------------------------------------------------------- */

TEST(a_token_is_its_account)
{
    struct setup t;
    struct token_identity i;
    setup_init(&t);
    assert_int_equal(ask(&t, sign(&t, token_fixture_claims(&t.f)), &i), 0);
    assert_str(i.user.name, "system:serviceaccount:ns:robot");
    assert_str(i.user.uid, "u1");
    assert_int_equal(i.user.n_groups, 3);
    assert_str(i.user.groups[0], "system:serviceaccounts");
    assert_str(i.user.groups[1], "system:serviceaccounts:ns");
    assert_str(i.user.groups[2], "system:authenticated");
    assert_int_equal(i.user.n_extra, 1);
    assert_str(i.user.extra[0].key, "authentication.kubernetes.io/credential-id");
    assert_true(str_starts_with(i.user.extra[0].values[0], STR("JTI=")));
    assert_str(i.audiences[0], ISSUER);
    assert_int_equal(i.expires_us, NOW_US + (int64_t) 600 * 1000000);
    assert_true(t.s->still_valid(t.s, &i));
    setup_done(&t);
}

TEST(claims_are_as_kube_apiserver_writes_them)
{
    struct setup t;
    setup_init(&t);
    struct account_claims c = token_fixture_claims(&t.f);
    c.secret = (struct account_reference){STR("s"), STR("u2")};
    const struct str payload = payload_of(&t, sign(&t, c));
    const struct json *o = json_parse_quick(t.f.arena, payload);
    const struct str id = json_get_str(o, STR("jti"));
    assert_int_equal(id.n, 36);
    assert_str(payload,
               arena_printf(t.f.arena,
                            "{\"aud\":[\"" ISSUER "\"],\"exp\":1800000600,\"iat\":1800000000,"
                            "\"iss\":\"" ISSUER "\",\"jti\":\"%.*s\",\"kubernetes.io\":{"
                            "\"namespace\":\"ns\",\"secret\":{\"name\":\"s\",\"uid\":\"u2\"},"
                            "\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}},"
                            "\"nbf\":1800000000,\"sub\":\"system:serviceaccount:ns:robot\"}",
                            STR_ARG(id))
                   .p);
    setup_done(&t);
}

TEST(times_have_no_leeway)
{
    struct setup t;
    struct token_identity i;
    setup_init(&t);
    const struct str token = sign(&t, token_fixture_claims(&t.f));
    t.f.clock.now_us = NOW_US + (int64_t) 600 * 1000000 - 1;
    assert_int_equal(ask(&t, token, &i), 0);
    t.f.clock.now_us++;
    assert_int_equal(ask(&t, token, &i), -EACCES);
    assert_str(i.error, "service account token has expired");
    t.f.clock.now_us = NOW_US - 1;
    assert_int_equal(ask(&t, token, &i), -EACCES);
    assert_str(i.error, "service account token is not valid yet");
    setup_done(&t);
}

TEST(a_token_is_for_its_audiences)
{
    struct setup t;
    struct token_identity i = {0};
    const struct str other[] = {{"other", 5}}, both[] = {{"vault", 5}, {ISSUER, 30}};
    setup_init(&t);
    const struct str token = sign(&t, token_fixture_claims(&t.f));
    assert_int_equal(t.s->verify(t.s, t.f.arena, token, other, 1, false, &i), -EACCES);
    assert_str(i.error, "token audiences [\"" ISSUER "\"] is invalid for the target audiences "
                        "[\"other\"]");
    assert_int_equal(t.s->verify(t.s, t.f.arena, token, both, 2, false, &i), 0);
    assert_int_equal(i.n_audiences, 1);
    struct account_claims c = token_fixture_claims(&t.f);
    c.audiences = (struct audiences){other, 1};
    assert_int_equal(ask(&t, sign(&t, c), &i), -EACCES);
    assert_int_equal(t.s->verify(t.s, t.f.arena, sign(&t, c), other, 1, false, &i), 0);
    setup_done(&t);
}

/* ---- revoked ------------------------------------------------------------------------------ */

TEST(a_token_ends_with_its_account)
{
    struct setup t;
    struct token_identity i, before;
    setup_init(&t);
    const struct str token = sign(&t, token_fixture_claims(&t.f));
    assert_int_equal(ask(&t, token, &before), 0);
    assert_true(token_fixture_put(&t.f, ACCOUNT, "u1", ",\"labels\":{\"a\":\"b\"}", ""));
    assert_true(t.s->still_valid(t.s, &before));
    assert_true(token_fixture_put(&t.f, ACCOUNT, "u1",
                                  ",\"deletionTimestamp\":\"2027-01-01T00:00:00Z\"", ""));
    assert_false(t.s->still_valid(t.s, &before));
    token_fixture_remove(&t.f, ACCOUNT);
    assert_false(t.s->still_valid(t.s, &before));
    assert_int_equal(ask(&t, token, &i), -EACCES);
    assert_true(token_fixture_put(&t.f, ACCOUNT, "u9", "", "")); /* a namesake */
    assert_false(t.s->still_valid(t.s, &before));
    assert_int_equal(ask(&t, token, &i), -EACCES);
    setup_done(&t);
}

TEST(a_token_ends_with_the_object_it_is_bound_to)
{
    static const struct {
        const char *key;
        size_t offset;
    } bound[] = {{"secrets/ns/it", offsetof(struct account_claims, secret)},
                 {"pods/ns/it", offsetof(struct account_claims, pod)},
                 {"nodes//it", offsetof(struct account_claims, node)}};
    struct setup t;
    struct token_identity i, before;
    setup_init(&t);
    for (size_t n = 0; n < N_ELEMENTS(bound); n++) {
        struct account_claims c = token_fixture_claims(&t.f);
        *(struct account_reference *) ((char *) &c + bound[n].offset) =
            (struct account_reference){STR("it"), STR("u2")};
        const struct str token = sign(&t, c);
        assert_int_equal(ask(&t, token, &i), -EACCES);
        assert_true(token_fixture_put(&t.f, bound[n].key, "u2", "", ""));
        assert_int_equal(ask(&t, token, &before), 0);
        assert_true(t.s->still_valid(t.s, &before));
        assert_true(token_fixture_put(&t.f, bound[n].key, "u3", "", ""));
        assert_false(t.s->still_valid(t.s, &before));
        token_fixture_remove(&t.f, bound[n].key);
        assert_false(t.s->still_valid(t.s, &before));
        assert_int_equal(ask(&t, token, &i), -EACCES);
    }
    setup_done(&t);
}

static void put_secret(struct setup *t, struct str token, const char *meta)
{
    const struct str text = base64_encode(t->f.arena, token, BASE64_STANDARD);
    assert_true(token_fixture_put(
        &t->f, SECRET, "u2", meta,
        arena_printf(t->f.arena, ",\"data\":{\"token\":\"%.*s\"}", STR_ARG(text)).p));
}

TEST(a_legacy_token_lives_in_its_secret)
{
    struct setup t;
    struct token_identity i, before;
    setup_init(&t);
    const struct account_claims c = {.is_legacy = true,
                                     .namespace = STR("ns"),
                                     .account = {STR("robot"), STR("u1")},
                                     .secret = {.name = STR("robot-token")}};
    const struct str token = sign(&t, c);
    assert_str(payload_of(&t, token),
               "{\"iss\":\"kubernetes/serviceaccount\","
               "\"kubernetes.io/serviceaccount/namespace\":\"ns\","
               "\"kubernetes.io/serviceaccount/secret.name\":\"robot-token\","
               "\"kubernetes.io/serviceaccount/service-account.name\":\"robot\","
               "\"kubernetes.io/serviceaccount/service-account.uid\":\"u1\","
               "\"sub\":\"system:serviceaccount:ns:robot\"}");
    assert_int_equal(ask(&t, token, &i), -EACCES); /* no Secret */
    put_secret(&t, token, "");
    assert_int_equal(ask(&t, token, &before), 0);
    assert_int_equal(before.user.n_extra, 0);
    assert_true(t.s->still_valid(t.s, &before));
    put_secret(&t, STR("another"), "");
    assert_false(t.s->still_valid(t.s, &before));
    assert_int_equal(ask(&t, token, &i), -EACCES);
    put_secret(&t, token,
               ",\"labels\":{\"kubernetes.io/legacy-token-invalid-since\":\"2027-01-01\"}");
    assert_int_equal(ask(&t, token, &i), -EACCES);
    put_secret(&t, token, ",\"deletionTimestamp\":\"2027-01-01T00:00:00Z\"");
    assert_int_equal(ask(&t, token, &i), -EACCES);
    token_fixture_remove(&t.f, SECRET);
    assert_int_equal(ask(&t, token, &i), -EACCES);
    setup_done(&t);
}

/* ---- forged ------------------------------------------------------------------------------- */

static struct str forge(struct setup *t, const struct pki_key *k, const char *header,
                        struct str payload)
{
    return jws_sign(t->f.arena, k, str_of(header), payload);
}

TEST(forgeries_are_refused)
{
    struct setup t;
    struct token_identity i;
    setup_init(&t);
    struct arena *a = t.f.arena;
    const struct str token = sign(&t, token_fixture_claims(&t.f));
    const struct str payload = payload_of(&t, token);
    struct pki_key *mine = NULL, *theirs = pki_key_new();
    assert_int_equal(pki_key_load(token_fixture_path(&t.f, "key.pem"), &mine), 0);
    assert_int_equal(ask(&t, forge(&t, mine, "{\"alg\":\"ES256\"}", payload), &i), 0);

    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"es256\"}",
        "{}",
        "[]",
        "",
        "{\"alg\":\"ES256\",\"kid\":\"another\"}",
        "{\"alg\":\"ES256\",\"kid\":null}",
        "{\"alg\":\"ES256\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"ES256\",\"alg\":\"ES256\"}",
    };
    for (size_t n = 0; n < N_ELEMENTS(headers); n++)
        assert_int_equal(ask(&t, forge(&t, mine, headers[n], payload), &i), -EACCES);
    assert_int_equal(ask(&t, forge(&t, theirs, "{\"alg\":\"ES256\"}", payload), &i), -EACCES);

    const ptrdiff_t last = str_find_last(token, '.');
    assert_int_equal(ask(&t, str_sub(token, 0, (size_t) last + 1), &i), -EACCES); /* stripped */
    assert_int_equal(ask(&t, str_sub(token, 0, (size_t) last), &i), -ENOENT);
    const struct str none = arena_printf(
        a, "%.*s.%.*s.", STR_ARG(base64_encode(a, STR("{\"alg\":\"none\"}"), BASE64_URL)),
        STR_ARG(base64_encode(a, payload, BASE64_URL)));
    assert_int_equal(ask(&t, none, &i), -EACCES);
    assert_int_equal(ask(&t, STR("garbage"), &i), -ENOENT);
    pki_key_free(mine);
    pki_key_free(theirs);
    setup_done(&t);
}

TEST(payloads_that_are_signed_but_not_sound_are_refused)
{
    static const char *const payloads[] = {
        "{\"iss\":\"" ISSUER "\"}",
        /* no exp */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:robot\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}}}",
        /* exp is no whole number */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"exp\":1e300,\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:robot\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}}}",
        /* another subject */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"exp\":1900000000,\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:other\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}}}",
        /* no uid */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"exp\":1900000000,\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:robot\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"serviceaccount\":{\"name\":\"robot\"}}}",
        /* a claim twice */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"exp\":1900000000,\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:robot\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}},\"exp\":1900000001}",
        /* bound to something without a name */
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"exp\":1900000000,\"iat\":1,\"nbf\":1,"
        "\"sub\":\"system:serviceaccount:ns:robot\",\"kubernetes.io\":{\"namespace\":\"ns\","
        "\"secret\":{},\"serviceaccount\":{\"name\":\"robot\",\"uid\":\"u1\"}}}",
        "{\"iss\":\"kubernetes/serviceaccount\",\"sub\":\"system:serviceaccount:ns:robot\"}",
    };
    struct setup t;
    struct token_identity i;
    struct pki_key *k = NULL;
    setup_init(&t);
    assert_int_equal(pki_key_load(token_fixture_path(&t.f, "key.pem"), &k), 0);
    for (size_t n = 0; n < N_ELEMENTS(payloads); n++) {
        const struct str token = forge(&t, k, "{\"alg\":\"ES256\"}", str_of(payloads[n]));
        const int r = ask(&t, token, &i);
        /* With a claim twice it is nobody's word at all. */
        assert_int_equal(r, n == 5 ? -ENOENT : -EACCES);
    }
    assert_int_equal(
        ask(&t, forge(&t, k, "{\"alg\":\"ES256\"}", STR("{\"iss\":\"https://x\"}")), &i), -ENOENT);
    pki_key_free(k);
    setup_done(&t);
}

/* ---- keys --------------------------------------------------------------------------------- */

static struct token_issuer_options options_of(struct token_fixture *f)
{
    return (struct token_issuer_options){.own_key_path = token_fixture_path(f, "second.pem"),
                                         .signing_key_file = "",
                                         .key_files = "",
                                         .issuers = "https://new.example.org, " ISSUER,
                                         .api_audiences = "",
                                         .jwks_uri = "https://127.0.0.1/openid/v1/jwks"};
}

TEST(after_a_rotation_tokens_of_the_old_key_and_issuer_are_known)
{
    struct token_fixture f;
    char *error = NULL;
    struct account_claims read;
    struct token_issuer *next = NULL;
    assert_true(token_fixture_init(&f));
    struct account_claims c = token_fixture_claims(&f);
    const struct str old = token_issuer_sign(f.issuer, f.arena, &c);
    struct token_issuer_options o = options_of(&f);
    assert_int_equal(token_issuer_open(&o, &next, &error), 0);
    assert_int_equal(token_issuer_verify(next, f.arena, old, &read), -EACCES);
    token_issuer_free(next);
    o.key_files = token_fixture_path(&f, "key.pem");
    assert_int_equal(token_issuer_open(&o, &next, &error), 0);
    assert_int_equal(token_issuer_verify(next, f.arena, old, &read), 0);
    assert_str(read.account.name, "robot");
    const struct str fresh = token_issuer_sign(next, f.arena, &c);
    assert_str(c.issuer, "https://new.example.org");
    assert_int_equal(token_issuer_verify(next, f.arena, fresh, &read), 0);
    assert_int_equal(token_issuer_verify(f.issuer, f.arena, fresh, &read), -ENOENT);
    assert_int_equal(token_issuer_audiences(next).n, 1);
    token_issuer_free(next);
    token_fixture_done(&f);
}

TEST(a_key_that_cannot_be_used_is_named_and_never_replaced)
{
    struct token_fixture f;
    char *error = NULL;
    struct token_issuer *next = NULL;
    assert_true(token_fixture_init(&f));
    struct token_issuer_options o = options_of(&f);
    assert_true(token_fixture_write(&f, "second.pem", "no key"));
    assert_true(token_issuer_open(&o, &next, &error) < 0);
    assert_non_null(strstr(error, "second.pem"));
    mem_free(TAKE(error));
    o.signing_key_file = "/nonexistent/key.pem";
    assert_int_equal(token_issuer_open(&o, &next, &error), -ENOENT);
    assert_non_null(strstr(error, "/nonexistent/key.pem"));
    mem_free(TAKE(error));
    o = options_of(&f);
    o.own_key_path = token_fixture_path(&f, "key.pem");
    o.key_files = token_fixture_path(&f, "second.pem");
    assert_int_equal(token_issuer_open(&o, &next, &error), -EINVAL);
    assert_non_null(strstr(error, "second.pem"));
    mem_free(TAKE(error));
    token_fixture_done(&f);
}

/* ---- documents ---------------------------------------------------------------------------- */

static struct str document(struct token_fixture *f, const char *path, struct document_reply *ret)
{
    struct status st;
    status_init(&st, f->arena);
    const struct document_request q = {.method = HTTP_GET, .path = str_of(path)};
    assert_true(token_issuer_has_document(f->issuer, q.path));
    assert_int_equal(token_issuer_document(f->issuer, &q, ret, &st), 0);
    const struct str body = arena_str(f->arena, ret->body.s);
    slice_unref(ret->body);
    return body;
}

TEST(others_can_check_our_tokens_with_what_we_publish)
{
    struct token_fixture f;
    struct document_reply reply;
    assert_true(token_fixture_init(&f));
    assert_str(document(&f, "/.well-known/openid-configuration", &reply),
               "{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://127.0.0.1/openid/v1/jwks\","
               "\"response_types_supported\":[\"id_token\"],\"subject_types_supported\":"
               "[\"public\"],\"id_token_signing_alg_values_supported\":[\"ES256\"]}");
    assert_str(reply.content_type, "application/json");
    const struct json *jwks = json_parse_quick(f.arena, document(&f, "/openid/v1/jwks", &reply));
    assert_str(reply.content_type, "application/jwk-set+json");
    const struct json *key = &json_get(jwks, STR("keys"))->items[0];
    struct jws_key *k = jws_key_p256(json_get_str(key, STR("x")), json_get_str(key, STR("y")));
    assert_non_null(k);
    struct account_claims c = token_fixture_claims(&f);
    struct jws t;
    assert_int_equal(jws_split(f.arena, token_issuer_sign(f.issuer, f.arena, &c), &t), 0);
    assert_true(jws_verify(k, &t));
    const struct json *header = json_parse_quick(f.arena, t.header);
    assert_true(str_eq(json_get_str(header, STR("kid")), json_get_str(key, STR("kid"))));
    jws_key_free(k);
    assert_false(token_issuer_has_document(f.issuer, STR("/openid")));
    token_fixture_done(&f);
}
