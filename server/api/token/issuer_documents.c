/* SPDX-License-Identifier: Apache-2.0 */
/* How others check our tokens: OpenID Connect discovery and the public keys (RFC 7517). */
#include "api/token/token_issuer_internal.h"
#include "base/log.h"
#include "json/json.h"

#define CONFIGURATION_PATH "/.well-known/openid-configuration"
#define JWKS_PATH "/openid/v1/jwks"

static void put(struct arena *a, struct json *object, const char *key, struct str value)
{
    if (value.p)
        (void) json_append_member(a, object, str_of(key), json_string(value));
}

static struct json list_of(struct arena *a, struct str one)
{
    struct json list = json_array();
    (void) json_push(a, &list, json_string(one));
    return list;
}

/* Without repetition, in the order of the keys. */
static struct json algorithms_of(const struct token_issuer *i)
{
    bool has[] = {[JWS_RS256] = false, [JWS_ES256] = false};
    struct json list = json_array();
    for (size_t n = 0; n < i->n_keys; n++) {
        const enum jws_algorithm one = jws_key_algorithm(i->keys[n]);
        if (!has[one])
            (void) json_push(i->arena, &list, json_string(jws_algorithm_name(one)));
        has[one] = true;
    }
    return list;
}

static struct str describe_issuer(const struct token_issuer *i, struct str jwks_uri)
{
    struct arena *a = i->arena;
    struct json o = json_object();
    put(a, &o, "issuer", i->issuers.items[0]);
    put(a, &o, "jwks_uri", jwks_uri);
    (void) json_append_member(a, &o, STR("response_types_supported"), list_of(a, STR("id_token")));
    (void) json_append_member(a, &o, STR("subject_types_supported"), list_of(a, STR("public")));
    (void) json_append_member(a, &o, STR("id_token_signing_alg_values_supported"),
                              algorithms_of(i));
    return json_text(a, &o);
}

static struct str describe_keys(const struct token_issuer *i)
{
    struct arena *a = i->arena;
    struct json keys = json_array(), o = json_object();
    for (size_t n = 0; n < i->n_keys; n++) {
        const struct jws_key_members m = jws_key_describe(a, i->keys[n]);
        struct json key = json_object();
        put(a, &key, "use", STR("sig"));
        put(a, &key, "kty", m.kty);
        put(a, &key, "kid", i->key_ids[n]);
        put(a, &key, "crv", m.crv);
        put(a, &key, "alg", jws_algorithm_name(jws_key_algorithm(i->keys[n])));
        put(a, &key, "x", m.x);
        put(a, &key, "y", m.y);
        put(a, &key, "n", m.n);
        put(a, &key, "e", m.e);
        (void) json_push(a, &keys, key);
    }
    (void) json_append_member(a, &o, STR("keys"), keys);
    return json_text(a, &o);
}

/* OpenID Connect Discovery 3: an issuer is an https URL without query and fragment. */
static bool is_discoverable(struct str issuer)
{
    return str_starts_with(issuer, STR("https://")) && str_find(issuer, '?') < 0 &&
           str_find(issuer, '#') < 0;
}

void token_issuer_describe(struct token_issuer *i, const char *jwks_uri)
{
    i->jwks = describe_keys(i);
    if (is_discoverable(i->issuers.items[0]))
        i->configuration = describe_issuer(i, str_of(jwks_uri));
    else
        log_warning("serving no issuer discovery: the issuer is no https URL",
                    LOG_STR("issuer", i->issuers.items[0]));
}

bool token_issuer_has_document(const struct token_issuer *i, struct str path)
{
    return i->configuration.p && (str_is(path, CONFIGURATION_PATH) || str_is(path, JWKS_PATH));
}

int token_issuer_document(const struct token_issuer *i, const struct document_request *q,
                          struct document_reply *ret_reply, struct status *st)
{
    if (q->method != HTTP_GET && q->method != HTTP_HEAD)
        return status_no_method(st);
    const bool is_keys = str_is(q->path, JWKS_PATH);
    *ret_reply = (struct document_reply){
        .status = 200,
        .content_type = is_keys ? STR("application/jwk-set+json") : STR("application/json"),
        .cache_control = STR("public, max-age=3600"),
        .body = slice_copy(is_keys ? i->jwks : i->configuration),
    };
    return 0;
}
