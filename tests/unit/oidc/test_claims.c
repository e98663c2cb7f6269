/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/claims.h"

#include <errno.h>

#include "test.h"

#define NOW_S 1700000000
#define NOW_US ((int64_t) NOW_S * 1000000)

static const struct str audiences[] = {STR("me"), STR("also-me")};

static struct oidc_rules rules(void)
{
    return (struct oidc_rules){
        .issuer = STR("https://i"),
        .audiences = {audiences, 2},
        .allows = {true, true},
        .username_claim = STR("sub"),
        .username_prefix = STR("oidc:"),
        .groups_claim = STR("groups"),
        .groups_prefix = STR("g:"),
    };
}

static int check(struct arena *a, const struct oidc_rules *r, const char *claims,
                 struct token_identity *ret, struct str *ret_error)
{
    struct json *v = json_parse_quick(a, str_of(claims));
    assert_non_null(v);
    return oidc_claims_check(a, r, v, NOW_US, ret, ret_error);
}

#define GOOD "\"iss\":\"https://i\",\"aud\":\"me\",\"exp\":1700000100"

TEST(claims_name_the_user)
{
    ARENA_AUTO a = arena_new();
    struct oidc_rules r = rules();
    r.uid_claim = STR("id");
    struct token_identity i = {0};
    struct str error = STR_NONE;
    assert_int_equal(check(a, &r,
                           "{" GOOD ",\"sub\":\"jane\",\"id\":\"7\",\"groups\":[\"a\",\"\",\"b\"],"
                           "\"nbf\":1700000299,\"iat\":1.7e9}",
                           &i, &error),
                     0);
    assert_str(i.user.name, "oidc:jane");
    assert_str(i.user.uid, "7");
    assert_int_equal(i.user.n_groups, 2);
    assert_str(i.user.groups[0], "g:a");
    assert_str(i.user.groups[1], "g:b");
    assert_int_equal(i.expires_us, (int64_t) 1700000100 * 1000000);
    assert_int_equal(
        check(a, &r, "{" GOOD ",\"sub\":\"jane\",\"id\":\"7\",\"groups\":\"one\"}", &i, &error), 0);
    assert_int_equal(i.user.n_groups, 1);
    assert_str(i.user.groups[0], "g:one");
    assert_int_equal(
        check(a, &r, "{" GOOD ",\"sub\":\"jane\",\"id\":\"7\",\"groups\":null}", &i, &error), 0);
    assert_int_equal(i.user.n_groups, 0);
}

TEST(claims_that_do_not_hold_are_refused_in_words)
{
    static const struct {
        const char *claims, *words;
    } cases[] = {
        {"{\"iss\":\"https://i/\",\"aud\":\"me\",\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: id token issued by a different provider"},
        {"{\"iss\":\"https://i\",\"aud\":\"you\",\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: expected audience in [\"me\" \"also-me\"] got [\"you\"]"},
        {"{\"iss\":\"https://i\",\"aud\":[],\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: expected audience in [\"me\" \"also-me\"] got []"},
        {"{\"iss\":\"https://i\",\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: expected audience in [\"me\" \"also-me\"] got []"},
        {"{\"iss\":\"https://i\",\"aud\":{\"me\":1},\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: failed to unmarshal claims: aud is no list of strings"},
        {"{\"iss\":\"https://i\",\"aud\":[\"me\",1],\"exp\":1700000100,\"sub\":\"x\"}",
         "oidc: failed to unmarshal claims: aud is no list of strings"},
        {"{\"iss\":\"https://i\",\"aud\":\"me\",\"exp\":1699999999,\"sub\":\"x\"}",
         "oidc: token is expired (Token Expiry: 2023-11-14T22:13:19Z)"},
        {"{\"iss\":\"https://i\",\"aud\":\"me\",\"exp\":-1e300,\"sub\":\"x\"}",
         "oidc: token is expired (Token Expiry: 1970-01-01T00:00:00Z)"},
        {"{\"iss\":\"https://i\",\"aud\":\"me\",\"sub\":\"x\"}",
         "oidc: failed to unmarshal claims: exp is no number"},
        {"{\"iss\":\"https://i\",\"aud\":\"me\",\"exp\":\"1700000100\",\"sub\":\"x\"}",
         "oidc: failed to unmarshal claims: exp is no number"},
        {"{" GOOD ",\"sub\":\"x\",\"nbf\":1700000301}",
         "oidc: current time 2023-11-14T22:13:20Z before the nbf (not before) time: "
         "2023-11-14T22:18:21Z"},
        {"{" GOOD ",\"sub\":\"x\",\"iat\":1800000000}",
         "oidc: current time 2023-11-14T22:13:20Z before the iat (issued at) time: "
         "2027-01-15T08:00:00Z"},
        {"{" GOOD ",\"sub\":\"x\",\"nbf\":\"soon\"}",
         "oidc: failed to unmarshal claims: nbf is no number"},
        {"{" GOOD "}", "oidc: parse username claims \"sub\": claim not present"},
        {"{" GOOD ",\"sub\":7}", "oidc: parse username claims \"sub\": it is no text"},
        {"{" GOOD ",\"sub\":\"\"}", "oidc: parse username claims \"sub\": it is no text"},
        {"{" GOOD ",\"sub\":\"x\",\"groups\":{}}",
         "oidc: parse groups claim \"groups\": it is no list of strings"},
        {"{" GOOD ",\"sub\":\"x\",\"groups\":[\"a\",1]}",
         "oidc: parse groups claim \"groups\": it is no list of strings"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_rules r = rules();
        struct token_identity identity = {0};
        struct str error = STR_NONE;
        if (check(a, &r, cases[i].claims, &identity, &error) != -EACCES)
            fail_msg("%s: let in", cases[i].claims);
        assert_str(error, cases[i].words);
    }
}

TEST(mail_addresses_are_verified_when_the_issuer_says_so)
{
    static const struct {
        const char *claims;
        const char *words; /* NULL: fine */
    } cases[] = {
        {"{" GOOD ",\"email\":\"a@b\"}", NULL},
        {"{" GOOD ",\"email\":\"a@b\",\"email_verified\":true}", NULL},
        {"{" GOOD ",\"email\":\"a@b\",\"email_verified\":false}", "oidc: email not verified"},
        {"{" GOOD ",\"email\":\"a@b\",\"email_verified\":\"true\"}",
         "oidc: parse 'email_verified' claim: it is no boolean"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_rules r = rules();
        r.username_claim = STR("email");
        r.username_prefix = STR("");
        struct token_identity identity = {0};
        struct str error = STR_NONE;
        int result = check(a, &r, cases[i].claims, &identity, &error);
        assert_int_equal(result, cases[i].words ? -EACCES : 0);
        if (cases[i].words)
            assert_str(error, cases[i].words);
        else
            assert_str(identity.user.name, "a@b");
    }
}

TEST(required_claims_are_required)
{
    static const struct oidc_required required[] = {{STR("hd"), STR("example.com")}};
    ARENA_AUTO a = arena_new();
    struct oidc_rules r = rules();
    r.required = required;
    r.n_required = 1;
    struct token_identity i = {0};
    struct str error = STR_NONE;
    assert_int_equal(check(a, &r, "{" GOOD ",\"sub\":\"x\",\"hd\":\"example.com\"}", &i, &error),
                     0);
    assert_int_equal(check(a, &r, "{" GOOD ",\"sub\":\"x\"}", &i, &error), -EACCES);
    assert_str(error, "oidc: required claim hd not present in ID token");
    assert_int_equal(check(a, &r, "{" GOOD ",\"sub\":\"x\",\"hd\":\"other\"}", &i, &error),
                     -EACCES);
    assert_int_equal(check(a, &r, "{" GOOD ",\"sub\":\"x\",\"hd\":[\"example.com\"]}", &i, &error),
                     -EACCES);
    assert_str(error, "oidc: required claim hd value does not match");
}

/* base64url of the texts, joined. */
static struct str token_of(struct arena *a, const char *header, const char *payload)
{
    struct pki_key *k = pki_key_new();
    struct str t = jws_sign(a, k, str_of(header), str_of(payload));
    pki_key_free(k);
    return t;
}

TEST(what_is_no_token_of_an_issuer_is_for_others)
{
    static const struct {
        const char *header, *payload;
    } cases[] = {
        {"{}", "{}"},
        {"{}", "{\"iss\":7}"},
        {"{}", "{\"iss\":\"\"}"},
        {"[]", "{\"iss\":\"https://i\"}"},
        {"{", "{\"iss\":\"https://i\"}"},
        {"{\"alg\":\"ES256\",\"alg\":\"none\"}", "{\"iss\":\"https://i\"}"},
        {"{}", "{\"iss\":\"https://i\",\"iss\":\"https://j\"}"},
    };
    ARENA_AUTO a = arena_new();
    struct oidc_token t;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(oidc_token_parse(a, token_of(a, cases[i].header, cases[i].payload), &t),
                         -ENOENT);
    assert_int_equal(oidc_token_parse(a, STR("07401b.f395accd246ae52d"), &t), -ENOENT);
    assert_int_equal(oidc_token_parse(a, STR(""), &t), -ENOENT);
    assert_int_equal(oidc_token_parse(a, token_of(a, "{}", "{\"iss\":\"https://i\"}"), &t), 0);
    assert_str(t.issuer, "https://i");
    assert_null(t.kid.p);
}

TEST(the_algorithm_is_one_that_the_rules_allow)
{
    static const struct {
        const char *header;
        bool allows_es256;
        int result;
    } cases[] = {
        {"{\"alg\":\"RS256\"}", false, 0},
        {"{\"alg\":\"ES256\"}", false, -EACCES},
        {"{\"alg\":\"ES256\",\"kid\":\"a\"}", true, 0},
        {"{\"alg\":\"none\"}", true, -EACCES},
        {"{\"alg\":\"None\"}", true, -EACCES},
        {"{\"alg\":\"HS256\"}", true, -EACCES},
        {"{\"alg\":\"rs256\"}", true, -EACCES},
        {"{\"alg\":\"PS256\"}", true, -EACCES},
        {"{\"alg\":null}", true, -EACCES},
        {"{\"alg\":[\"RS256\"]}", true, -EACCES},
        {"{}", true, -EACCES},
        {"{\"alg\":\"RS256\",\"crit\":[\"b64\"],\"b64\":false}", true, -EACCES},
        {"{\"alg\":\"RS256\",\"kid\":7}", true, -EACCES},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_rules r = rules();
        r.allows[JWS_ES256] = cases[i].allows_es256;
        struct oidc_token t;
        enum jws_algorithm alg = JWS_RS256;
        struct str error = STR_NONE;
        assert_int_equal(
            oidc_token_parse(a, token_of(a, cases[i].header, "{\"iss\":\"https://i\"}"), &t), 0);
        int result = oidc_token_algorithm(a, &r, &t, &alg, &error);
        if (result != cases[i].result)
            fail_msg("%s: %d", cases[i].header, result);
        assert_int_equal(result<0, error.n> 0);
    }
}
