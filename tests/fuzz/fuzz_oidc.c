/* SPDX-License-Identifier: Apache-2.0 */
/* What issuers and token webhooks send, and what an administrator writes about them: the first byte
 * says which of it the rest is. */
#include "api/oidc/claims.h"
#include "api/oidc/config.h"
#include "api/oidc/documents.h"
#include "api/oidc/kubeconfig.h"
#include "api/oidc/review.h"
#include "base/alloc.h"
#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_US ((int64_t) 1700000000 * 1000000)

static const struct str audience = STR("me");
static const struct oidc_required required = {STR("hd"), STR("example.com")};

static void read_keys(struct arena *a, struct str text)
{
    static const struct jws t = {
        .signed_text = STR("a.b"),
        .signature = STR("0123456789012345678901234567890123456789012345678901234567890123")};
    struct oidc_keys *keys = NULL;
    char *error = NULL;
    (void) a;
    if (oidc_keys_parse(text, &keys, &error) == 0) {
        if (oidc_keys_count(keys) == 0 || oidc_keys_verify(keys, JWS_ES256, STR_NONE, &t) ||
            oidc_keys_verify(keys, JWS_RS256, STR("a"), &t))
            abort();
    } else if (!error) {
        abort();
    }
    mem_free(error);
    oidc_keys_unref(keys);
}

static void read_discovery(struct arena *a, struct str text)
{
    struct str uri = STR_NONE, error = STR_NONE;
    if (oidc_discovery_parse(a, text, STR("https://i"), &uri, &error) == 0
            ? !str_starts_with(uri, STR("https://"))
            : error.n == 0)
        abort();
}

/* Whoever is let in has a name, the right audience and an end in the future. */
static void check_claims(struct arena *a, const struct json *claims)
{
    const struct oidc_rules rules = {.issuer = STR("https://i"),
                                     .audiences = {&audience, 1},
                                     .username_claim = STR("email"),
                                     .username_prefix = STR("p:"),
                                     .groups_claim = STR("groups"),
                                     .groups_prefix = STR("g:"),
                                     .uid_claim = STR("sub"),
                                     .required = &required,
                                     .n_required = 1};
    struct token_identity i = {0};
    struct str error = STR_NONE;
    if (oidc_claims_check(a, &rules, claims, NOW_US, &i, &error) < 0) {
        if (error.n == 0)
            abort();
        return;
    }
    if (i.user.name.n <= 2 || i.expires_us < NOW_US)
        abort();
    for (size_t k = 0; k < i.user.n_groups; k++)
        if (!str_starts_with(i.user.groups[k], STR("g:")) || i.user.groups[k].n <= 2)
            abort();
}

static void read_claims(struct arena *a, struct str text)
{
    struct json_parse_result parsed = {0};
    if (json_parse(a, text, &parsed) == 0)
        check_claims(a, parsed.value);
}

/* Header and claims, one line each, as a token. */
static void read_token(struct arena *a, struct str text)
{
    struct str header = STR_NONE, rest = text;
    (void) str_split(&rest, '\n', &header);
    struct str parts[] = {base64_encode(a, header, BASE64_URL), STR("."),
                          base64_encode(a, rest, BASE64_URL), STR(".AAAA")};
    const struct oidc_rules rules = {.allows = {true, false}};
    struct oidc_token t;
    enum jws_algorithm alg = JWS_ES256;
    struct str error = STR_NONE;
    (void) oidc_token_parse(a, text, &t);
    if (oidc_token_parse(a, arena_join(a, parts, N_ELEMENTS(parts)), &t) < 0)
        return;
    if (oidc_token_algorithm(a, &rules, &t, &alg, &error) == 0 ? alg != JWS_RS256 : error.n == 0)
        abort();
    check_claims(a, t.claims);
}

static void read_config(struct arena *a, struct str text)
{
    struct oidc_config c = {0};
    struct str error = STR_NONE;
    if (oidc_config_parse(a, text, &c, &error) < 0) {
        if (error.n == 0)
            abort();
        return;
    }
    for (size_t i = 0; i < c.n_rules; i++)
        if (c.rules[i].audiences.n == 0 || c.rules[i].username_claim.n == 0 ||
            oidc_url_fault(c.rules[i].issuer))
            abort();
}

static void read_kubeconfig(struct arena *a, struct str text)
{
    struct kubeconfig k = {0};
    struct str error = STR_NONE;
    if (kubeconfig_parse(a, text, STR("/nonexistent"), &k, &error) == 0
            ? !str_starts_with(k.server, STR("https://"))
            : error.n == 0)
        abort();
}

static void read_review(struct arena *a, struct str text)
{
    const struct audiences wanted = {&audience, 1};
    struct token_identity i = {0};
    struct str error = STR_NONE;
    if (review_read(a, text, wanted, wanted, &i, &error) == 0
            ? i.user.name.n == 0 || i.n_audiences == 0
            : error.n == 0)
        abort();
    if (str_is_utf8(text) && !json_parse_quick(a, review_write(a, text, wanted)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct arena * a, struct str text) = {
        read_keys,   read_discovery,  read_claims, read_token,
        read_config, read_kubeconfig, read_review};
    static const char letters[] = "jdctaKr";
    if (size == 0)
        return 0;
    const char *letter = strchr(letters, data[0]);
    if (!letter || !*letter)
        return 0;
    ARENA_AUTO a = arena_new();
    readers[letter - letters](a, str_range((const char *) data + 1, size - 1));
    return 0;
}
