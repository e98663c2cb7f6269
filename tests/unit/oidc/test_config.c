/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/config.h"

#include <errno.h>

#include "test.h"

#define HEAD "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
#define ISSUER "jwt:\n- issuer:\n    url: https://i\n    audiences: [me]\n"
#define NAME "  claimMappings:\n    username: {claim: sub, prefix: 'x:'}\n"

TEST(a_configuration_of_two_issuers)
{
    ARENA_AUTO a = arena_new();
    struct oidc_config c = {0};
    struct str error = STR_NONE;
    int r = oidc_config_parse(a,
                              STR(HEAD ISSUER NAME "- issuer:\n"
                                                   "    url: https://j/path/\n"
                                                   "    discoveryURL: https://elsewhere/doc\n"
                                                   "    audiences: [a, b]\n"
                                                   "    audienceMatchPolicy: MatchAny\n"
                                                   "  claimValidationRules:\n"
                                                   "  - claim: hd\n"
                                                   "    requiredValue: example.com\n"
                                                   "  claimMappings:\n"
                                                   "    username: {claim: email, prefix: ''}\n"
                                                   "    groups: {claim: roles, prefix: 'g:'}\n"
                                                   "    uid: {claim: oid}\n"),
                              &c, &error);
    if (r < 0)
        fail_msg("%.*s", STR_ARG(error));
    assert_int_equal(c.n_rules, 2);
    const struct oidc_rules *first = &c.rules[0], *second = &c.rules[1];
    assert_str(first->issuer, "https://i");
    assert_str(first->discovery_url, "https://i/.well-known/openid-configuration");
    assert_null(first->ca_pem.p);
    assert_true(first->allows[JWS_RS256] && first->allows[JWS_ES256]);
    assert_str(first->username_prefix, "x:");
    assert_null(first->groups_claim.p);
    assert_str(second->issuer, "https://j/path/");
    assert_str(second->discovery_url, "https://elsewhere/doc");
    assert_int_equal(second->audiences.n, 2);
    assert_str(second->username_claim, "email");
    assert_str(second->username_prefix, "");
    assert_str(second->groups_claim, "roles");
    assert_str(second->groups_prefix, "g:");
    assert_str(second->uid_claim, "oid");
    assert_int_equal(second->n_required, 1);
    assert_str(second->required[0].value, "example.com");
    assert_int_equal(oidc_config_parse(a, STR(HEAD), &c, &error), 0);
    assert_int_equal(c.n_rules, 0);
}

TEST(what_is_wrong_or_needs_expressions_is_named)
{
#define NO_CEL "CEL expressions are not supported by this server; use claim instead"
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"a: [", "yaml: line 1: did not find expected node content"},
        {"- x", "no AuthenticationConfiguration"},
        {"kind: Config\napiVersion: v1",
         "expected apiVersion apiserver.config.k8s.io/v1 and kind AuthenticationConfiguration"},
        {HEAD "jwt: {}", "jwt: must be a list"},
        {HEAD "jwt: [7]", "jwt[0]: must be an object"},
        {HEAD "anonymous: {enabled: true}",
         "anonymous: is not supported by this server: without credentials only health and version "
         "can be asked for"},
        {HEAD "jwts: []", "strict decoding error: unknown field \"jwts\""},
        {HEAD "jwt: [{issuer: {}}]", "jwt[0].issuer.url: Required value: URL is required"},
        {HEAD "jwt: [{issuer: {url: 7}}]", "jwt[0].issuer.url: must be a string"},
        {HEAD "jwt: [{issuer: {url: 'http://i'}}]",
         "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https"},
        {HEAD "jwt: [{issuer: {url: 'https://'}}]",
         "jwt[0].issuer.url: Invalid value: \"https://\": URL must have a host"},
        {HEAD "jwt: [{issuer: {url: 'https://u@i'}}]",
         "jwt[0].issuer.url: Invalid value: \"https://u@i\": URL must not contain a username or "
         "password"},
        {HEAD "jwt: [{issuer: {url: 'https://i?a'}}]",
         "jwt[0].issuer.url: Invalid value: \"https://i?a\": URL must not contain a query"},
        {HEAD "jwt: [{issuer: {url: 'https://i#a'}}]",
         "jwt[0].issuer.url: Invalid value: \"https://i#a\": URL must not contain a fragment"},
        {HEAD "jwt: [{issuer: {url: 'https://i', discoveryURL: 'https://i'}}]",
         "jwt[0].issuer.discoveryURL: Invalid value: \"https://i\": discoveryURL must be different "
         "from URL"},
        {HEAD "jwt: [{issuer: {url: 'https://i', egressSelectorType: cluster}}]",
         "strict decoding error: unknown field \"jwt[0].issuer.egressSelectorType\""},
        {HEAD "jwt: [{issuer: {url: 'https://i'}}]",
         "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is "
         "required"},
        {HEAD "jwt: [{issuer: {url: 'https://i', audiences: ['']}}]",
         "jwt[0].issuer.audiences[0]: Required value: audience can't be empty"},
        {HEAD "jwt: [{issuer: {url: 'https://i', audiences: [a, a]}}]",
         "jwt[0].issuer.audiences[1]: Duplicate value: \"a\""},
        {HEAD "jwt: [{issuer: {url: 'https://i', audiences: [a, b]}}]",
         "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be "
         "MatchAny for multiple audiences"},
        {HEAD "jwt: [{issuer: {url: 'https://i', audiences: [a], audienceMatchPolicy: MatchAll}}]",
         "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"MatchAll\": audienceMatchPolicy must "
         "be empty or MatchAny for single audience"},
        {HEAD "jwt: [{issuer: {url: 'https://i', audiences: [a], certificateAuthority: x}}]",
         "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain "
         "any valid RSA or ECDSA certificates"},
        {HEAD ISSUER "  claimMappings: {}",
         "jwt[0].claimMappings.username: Required value: claim or expression is required"},
        {HEAD ISSUER "  claimMappings: {username: {claim: sub}}",
         "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is "
         "set. It can be set to an empty string to disable prefixing"},
        {HEAD ISSUER "  claimMappings: {username: {expression: claims.sub}}",
         "jwt[0].claimMappings.username.expression: " NO_CEL},
        {HEAD ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, groups: {expression: "
                     "claims.g}}",
         "jwt[0].claimMappings.groups.expression: " NO_CEL},
        {HEAD ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, groups: {prefix: g}}",
         "jwt[0].claimMappings.groups.prefix: Invalid value: \"g\": non-empty prefix is only "
         "allowed when claim is set"},
        {HEAD ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, uid: {expression: "
                     "claims.u}}",
         "jwt[0].claimMappings.uid.expression: " NO_CEL},
        {HEAD ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: a.b/c, "
                     "valueExpression: x}]}",
         "jwt[0].claimMappings.extra: CEL expressions are not supported by this server; leave "
         "extra out"},
        {HEAD ISSUER NAME "  claimValidationRules: [{expression: 'true'}]",
         "jwt[0].claimValidationRules[0].expression: " NO_CEL},
        {HEAD ISSUER NAME "  claimValidationRules: [{requiredValue: a}]",
         "jwt[0].claimValidationRules[0]: Required value: claim or expression is required"},
        {HEAD ISSUER NAME "  claimValidationRules: [{claim: a}, {claim: a}]",
         "jwt[0].claimValidationRules[1].claim: Duplicate value: \"a\""},
        {HEAD ISSUER NAME "  userValidationRules: [{expression: 'true'}]",
         "jwt[0].userValidationRules: CEL expressions are not supported by this server; leave "
         "userValidationRules out"},
        {HEAD ISSUER NAME "- issuer: {url: 'https://i', audiences: [x]}\n" NAME,
         "jwt[1].issuer.url: Duplicate value: \"https://i\""},
        {HEAD ISSUER NAME "- issuer: {url: 'https://j', audiences: [x], discoveryURL: "
                          "'https://i/.well-known/openid-configuration'}\n" NAME,
         "jwt[1].issuer.discoveryURL: Duplicate value: "
         "\"https://i/.well-known/openid-configuration\""},
        {HEAD "jwt: []\njwt: []", "strict decoding error: duplicate field \"jwt\""},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_config c = {0};
        struct str error = STR_NONE;
        if (oidc_config_parse(a, str_of(cases[i].text), &c, &error) != -EINVAL)
            fail_msg("taken: %s", cases[i].text);
        assert_str(error, cases[i].words);
    }
}

TEST(flags_have_the_prefixes_of_kube_apiserver)
{
    static const struct {
        struct oidc_flags flags;
        const char *prefix;
    } cases[] = {
        {{.issuer_url = "https://i", .client_id = "me"}, "https://i#"},
        {{.issuer_url = "https://i", .client_id = "me", .username_claim = "email"}, ""},
        {{.issuer_url = "https://i", .client_id = "me", .username_prefix = "-"}, ""},
        {{.issuer_url = "https://i", .client_id = "me", .username_prefix = "u:"}, "u:"},
        {{.issuer_url = "https://i",
          .client_id = "me",
          .username_claim = "email",
          .username_prefix = "u:"},
         "u:"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_config c = {0};
        struct str error = STR_NONE;
        assert_int_equal(oidc_config_of_flags(a, &cases[i].flags, STR_NONE, &c, &error), 0);
        assert_int_equal(c.n_rules, 1);
        assert_str(c.rules[0].username_prefix, cases[i].prefix);
        assert_true(c.rules[0].allows[JWS_RS256]);
        assert_false(c.rules[0].allows[JWS_ES256]);
        assert_null(c.rules[0].groups_claim.p);
    }
}

TEST(flags_that_say_nothing_sensible_are_refused)
{
    static const struct {
        struct oidc_flags flags;
        const char *words;
    } cases[] = {
        {{.issuer_url = "https://i"},
         "--oidc-issuer-url and --oidc-client-id must be specified together"},
        {{.issuer_url = "http://i", .client_id = "me"},
         "--oidc-issuer-url: \"http://i\": URL scheme must be https"},
        {{.issuer_url = "https://i", .client_id = "me", .signing_algs = "RS256,HS256"},
         "--oidc-signing-algs: unsupported signing alg: \"HS256\"; RS256 and ES256 are supported"},
        {{.issuer_url = "https://i", .client_id = "me", .required_claims = "a=b,c"},
         "--oidc-required-claim: \"c\" is not key=value"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct oidc_config c = {0};
        struct str error = STR_NONE;
        assert_int_equal(oidc_config_of_flags(a, &cases[i].flags, STR_NONE, &c, &error), -EINVAL);
        assert_str(error, cases[i].words);
    }
    ARENA_AUTO a = arena_new();
    struct oidc_config c = {0};
    struct str error = STR_NONE;
    const struct oidc_flags full = {.issuer_url = "https://i",
                                    .client_id = "me",
                                    .groups_claim = "groups",
                                    .required_claims = "a=b,c=d=e",
                                    .signing_algs = "ES256",
                                    .ca_file = "x.pem"};
    assert_int_equal(oidc_config_of_flags(a, &full, STR("no pem"), &c, &error), -EINVAL);
    assert_str(error, "--oidc-ca-file: x.pem holds no PEM certificate");
    assert_int_equal(oidc_config_of_flags(a, &full, STR_NONE, &c, &error), 0);
    assert_int_equal(c.rules[0].n_required, 2);
    assert_str(c.rules[0].required[1].value, "d=e");
    assert_false(c.rules[0].allows[JWS_RS256]);
    assert_str(c.rules[0].groups_prefix, "");
}
