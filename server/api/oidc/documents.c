/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/documents.h"

#include <errno.h>
#include <stdatomic.h>

#include "api/oidc/config.h"
#include "api/status.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "json/json.h"

struct named_key {
    struct str kid; /* STR_NONE: without */
    struct jws_key *key;
};

struct oidc_keys {
    atomic_int n_refs;
    struct arena *arena; /* of the names */
    size_t n;
    struct named_key items[OIDC_MAX_KEYS];
};

struct oidc_keys *oidc_keys_ref(struct oidc_keys *k)
{
    atomic_fetch_add_explicit(&k->n_refs, 1, memory_order_relaxed);
    return k;
}

void oidc_keys_unref(struct oidc_keys *k)
{
    if (!k || atomic_fetch_sub_explicit(&k->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < k->n; i++)
        jws_key_free(k->items[i].key);
    arena_free(k->arena);
    mem_free(k);
}

size_t oidc_keys_count(const struct oidc_keys *k)
{
    return k->n;
}

/* ---- one key (RFC 7517) ---------------------------------------------------------------------- */

static bool allows_verifying(const struct json *jwk)
{
    const struct json *use = json_get(jwk, STR("use")), *operations = json_get(jwk, STR("key_ops"));
    if (use && !str_is(json_str(use), "sig"))
        return false;
    if (!operations)
        return true;
    JSON_FOR_EACH_ITEM (operations, one)
        if (str_is(json_str(one), "verify"))
            return true;
    return false;
}

static struct jws_key *make_key(const struct json *jwk)
{
    struct str type = json_get_str(jwk, STR("kty"));
    if (str_is(type, "RSA"))
        return jws_key_rsa(json_get_str(jwk, STR("n")), json_get_str(jwk, STR("e")));
    if (str_is(type, "EC") && str_is(json_get_str(jwk, STR("crv")), "P-256"))
        return jws_key_p256(json_get_str(jwk, STR("x")), json_get_str(jwk, STR("y")));
    return NULL;
}

/* NULL: not for us. A key that names another algorithm than its type's here (PS256, RS512) must not
 * verify ours. */
static struct jws_key *read_key(const struct json *jwk)
{
    if (!json_is(jwk, JSON_OBJECT) || !allows_verifying(jwk))
        return NULL;
    struct jws_key *key = make_key(jwk);
    const struct json *alg = json_get(jwk, STR("alg"));
    if (key && alg && !str_eq(json_str(alg), jws_algorithm_name(jws_key_algorithm(key)))) {
        jws_key_free(key);
        return NULL;
    }
    return key;
}

static void add_key(struct oidc_keys *k, const struct json *jwk)
{
    const struct json *kid = json_get(jwk, STR("kid"));
    if (k->n == OIDC_MAX_KEYS || json_str(kid).n > OIDC_KID_MAX_BYTES)
        return;
    struct jws_key *key = read_key(jwk);
    if (!key)
        return;
    struct str name = json_is(kid, JSON_STRING) ? arena_str(k->arena, json_str(kid)) : STR_NONE;
    k->items[k->n++] = (struct named_key){name, key};
}

/* ---- the set --------------------------------------------------------------------------------- */

static int fail(char **ret_error, const char *format, ...) PRINTF_LIKE(2, 3);
static int fail(char **ret_error, const char *format, ...)
{
    struct buf b = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&b, format, args);
    va_end(args);
    *ret_error = buf_take(&b);
    return -EINVAL;
}

int oidc_keys_parse(struct str text, struct oidc_keys **ret_keys, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed = {0};
    if (text.n > OIDC_DOCUMENT_MAX_BYTES)
        return fail(ret_error, "oidc: the keys are larger than %zu bytes", OIDC_DOCUMENT_MAX_BYTES);
    if (json_parse(a, text, &parsed) < 0)
        return fail(ret_error, "oidc: failed to decode keys: %.*s", STR_ARG(parsed.error));
    const struct json *list = json_get(parsed.value, STR("keys"));
    if (!json_is(list, JSON_ARRAY))
        return fail(ret_error, "oidc: failed to decode keys: no list of keys");
    struct oidc_keys *k = NEW(struct oidc_keys);
    atomic_init(&k->n_refs, 1);
    k->arena = arena_new();
    JSON_FOR_EACH_ITEM (list, jwk)
        add_key(k, jwk);
    if (k->n == 0) {
        oidc_keys_unref(k);
        return fail(ret_error, "oidc: none of the %zu keys is a sound RS256 or ES256 key",
                    json_count(list));
    }
    *ret_keys = k;
    return 0;
}

bool oidc_keys_verify(const struct oidc_keys *k, enum jws_algorithm alg, struct str kid,
                      const struct jws *t)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct named_key *one = &k->items[i];
        if (kid.p && !(one->kid.p && str_eq(one->kid, kid)))
            continue;
        if (jws_key_algorithm(one->key) == alg && jws_verify(one->key, t))
            return true;
    }
    return false;
}

/* ---- discovery (OpenID Connect Discovery 1.0, 4.3) ------------------------------------------- */

int oidc_discovery_parse(struct arena *a, struct str text, struct str issuer,
                         struct str *ret_jwks_uri, struct str *ret_error)
{
    struct json_parse_result parsed = {0};
    *ret_error = STR("oidc: failed to decode provider discovery object: no object");
    if (text.n > OIDC_DOCUMENT_MAX_BYTES)
        return -EINVAL;
    if (json_parse(a, text, &parsed) < 0) {
        *ret_error = arena_printf(a, "oidc: failed to decode provider discovery object: %.*s",
                                  STR_ARG(parsed.error));
        return -EINVAL;
    }
    if (!json_is(parsed.value, JSON_OBJECT))
        return -EINVAL;
    struct str says = json_get_str(parsed.value, STR("issuer"));
    if (!str_eq(says, issuer)) {
        *ret_error = arena_printf(
            a, "oidc: issuer did not match the issuer returned by provider, expected %.*s got %.*s",
            STR_ARG(status_quote(a, issuer)), STR_ARG(status_quote(a, says)));
        return -EINVAL;
    }
    struct str uri = json_get_str(parsed.value, STR("jwks_uri"));
    if (!str_starts_with(uri, STR("https://"))) {
        *ret_error =
            arena_printf(a, "oidc: jwks_uri %.*s is no https URL", STR_ARG(status_quote(a, uri)));
        return -EINVAL;
    }
    *ret_jwks_uri = arena_str(a, uri);
    return 0;
}
