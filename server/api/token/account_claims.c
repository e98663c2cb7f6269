/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/account_claims.h"

#include <errno.h>

#include "json/json.h"

#define BOUND_CLAIM STR("kubernetes.io")
#define LEGACY_PREFIX "kubernetes.io/serviceaccount/"

struct str account_user_name(struct arena *a, struct str namespace, struct str name)
{
    const struct str parts[] = {STR(ACCOUNT_USER_PREFIX), namespace, STR(":"), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

static void put_reference(struct arena *a, struct json *object, const char *key,
                          const struct account_reference *r)
{
    if (!r->name.n)
        return;
    struct json reference = json_object();
    put(a, &reference, "name", r->name);
    put(a, &reference, "uid", r->uid);
    (void) json_append_member(a, object, str_of(key), reference);
}

static struct json audience_list(struct arena *a, struct audiences list)
{
    struct json array = json_array();
    for (size_t i = 0; i < list.n; i++)
        (void) json_push(a, &array, json_string(list.items[i]));
    return array;
}

static void write_bound(struct arena *a, const struct account_claims *c, struct json *o)
{
    struct json bound = json_object();
    put(a, &bound, "namespace", c->namespace);
    put_reference(a, &bound, "node", &c->node);
    put_reference(a, &bound, "pod", &c->pod);
    put_reference(a, &bound, "secret", &c->secret);
    put_reference(a, &bound, "serviceaccount", &c->account);
    (void) json_append_member(a, o, STR("aud"), audience_list(a, c->audiences));
    (void) json_append_member(a, o, STR("exp"), json_int(c->expires_s));
    (void) json_append_member(a, o, STR("iat"), json_int(c->issued_s));
    put(a, o, "iss", c->issuer);
    put(a, o, "jti", c->id);
    (void) json_append_member(a, o, BOUND_CLAIM, bound);
    (void) json_append_member(a, o, STR("nbf"), json_int(c->not_before_s));
}

struct str account_claims_write(struct arena *a, const struct account_claims *c)
{
    struct json o = json_object();
    if (c->is_legacy) {
        put(a, &o, "iss", STR(ACCOUNT_LEGACY_ISSUER));
        put(a, &o, LEGACY_PREFIX "namespace", c->namespace);
        put(a, &o, LEGACY_PREFIX "secret.name", c->secret.name);
        put(a, &o, LEGACY_PREFIX "service-account.name", c->account.name);
        put(a, &o, LEGACY_PREFIX "service-account.uid", c->account.uid);
    } else {
        write_bound(a, c, &o);
    }
    put(a, &o, "sub", account_user_name(a, c->namespace, c->account.name));
    return json_text(a, &o);
}

/* ---- reading ------------------------------------------------------------------------------ */

/* A claim that stands twice means one thing to one reader and another to the next. */
static const struct json *parse(struct arena *a, struct str payload)
{
    struct json_parse_result r = {0};
    if (json_parse(a, payload, &r) < 0 || r.duplicates || !json_is(r.value, JSON_OBJECT))
        return NULL;
    return r.value;
}

struct str account_claims_issuer(struct arena *a, struct str payload)
{
    return json_get_str(parse(a, payload), STR("iss"));
}

static struct account_reference reference_of(const struct json *bound, const char *key)
{
    const struct json *r = json_get(bound, str_of(key));
    return (struct account_reference){json_get_str(r, STR("name")), json_get_str(r, STR("uid"))};
}

/* One that is there names an object and its uid. */
static bool is_whole(const struct json *bound, const char *key, const struct account_reference *r)
{
    return !json_get(bound, str_of(key)) || (r->name.n && r->uid.n);
}

static bool read_time(const struct json *o, const char *key, int64_t *ret)
{
    const struct json *v = json_get(o, str_of(key));
    if (!json_is(v, JSON_INT) || v->i < 0)
        return false;
    *ret = v->i;
    return true;
}

/* A list, or for one audience its name (RFC 7519 4.1.3). */
static bool read_audiences(struct arena *a, const struct json *v, struct audiences *ret)
{
    const size_t n = json_is(v, JSON_STRING) ? 1 : json_count(v);
    if (!n || json_is(v, JSON_OBJECT))
        return false;
    struct str *items = ARENA_ARRAY(a, struct str, n);
    for (size_t i = 0; i < n; i++) {
        items[i] = json_str(json_is(v, JSON_STRING) ? v : &v->items[i]);
        if (!items[i].n)
            return false;
    }
    *ret = (struct audiences){items, n};
    return true;
}

static bool read_bound(struct arena *a, const struct json *o, struct account_claims *c)
{
    const struct json *bound = json_get(o, BOUND_CLAIM);
    c->namespace = json_get_str(bound, STR("namespace"));
    c->account = reference_of(bound, "serviceaccount");
    c->secret = reference_of(bound, "secret");
    c->pod = reference_of(bound, "pod");
    c->node = reference_of(bound, "node");
    c->id = json_get_str(o, STR("jti"));
    return is_whole(bound, "secret", &c->secret) && is_whole(bound, "pod", &c->pod) &&
           is_whole(bound, "node", &c->node) && read_time(o, "exp", &c->expires_s) &&
           read_time(o, "iat", &c->issued_s) && read_time(o, "nbf", &c->not_before_s) &&
           read_audiences(a, json_get(o, STR("aud")), &c->audiences);
}

static bool read_legacy(const struct json *o, struct account_claims *c)
{
    c->namespace = json_get_str(o, STR(LEGACY_PREFIX "namespace"));
    c->secret.name = json_get_str(o, STR(LEGACY_PREFIX "secret.name"));
    c->account.name = json_get_str(o, STR(LEGACY_PREFIX "service-account.name"));
    c->account.uid = json_get_str(o, STR(LEGACY_PREFIX "service-account.uid"));
    return c->secret.name.n > 0;
}

int account_claims_read(struct arena *a, struct str payload, struct account_claims *ret)
{
    const struct json *o = parse(a, payload);
    struct account_claims c = {.issuer = json_get_str(o, STR("iss"))};
    c.is_legacy = str_is(c.issuer, ACCOUNT_LEGACY_ISSUER);
    if (!o || !(c.is_legacy ? read_legacy(o, &c) : read_bound(a, o, &c)))
        return -EINVAL;
    if (!c.issuer.n || !c.namespace.n || !c.account.name.n || !c.account.uid.n ||
        !str_eq(json_get_str(o, STR("sub")), account_user_name(a, c.namespace, c.account.name)))
        return -EINVAL;
    *ret = c;
    return 0;
}
