/* SPDX-License-Identifier: Apache-2.0 */
/* What is posted to serviceaccounts/<name>/token: a token of that account, for a while, perhaps
 * bound to another object. */
#include <errno.h>

#include "api/call.h"
#include "api/token/token_issuer.h"
#include "resources/resources.h"

#define GROUP STR("authentication.k8s.io")
#define KIND STR("TokenRequest")
#define MIN_EXPIRATION_S 600
#define MAX_EXPIRATION_S ((int64_t) 1 << 32)
#define US_PER_S ((int64_t) 1000 * 1000)

static struct object *get(struct call *c, const char *collection, struct str namespace,
                          struct str name)
{
    const struct str parts[] = {str_of(collection), STR("/"), namespace, STR("/"), name};
    return store_get(api_store(c->api), arena_join(c->arena, parts, N_ELEMENTS(parts)));
}

static int refuse_not_found(struct call *c, const char *plural, struct str name)
{
    return status_not_found(&c->status, &(struct kind){.plural = str_of(plural)}, name);
}

/* ---- rules -------------------------------------------------------------------------------- */

static int check_name(struct call *c, const struct json *object)
{
    const struct json *name = json_at(object, "metadata", "name", NULL);
    const struct field_path at = FIELD_NAME(NULL, STR("metadata"));
    struct causes causes;
    if (!json_str(name).n || str_eq(json_str(name), c->in.path.name))
        return 0;
    causes_init(&causes, c->arena);
    causes_add(&causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("name")), name,
               "must match the service account name if specified");
    return status_invalid(&c->status, GROUP, KIND, c->in.path.name, &causes);
}

static int check_expiration(struct call *c, const struct json *spec)
{
    const struct json *value = json_get(spec, STR("expirationSeconds"));
    const struct field_path in_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at = FIELD_NAME(&in_spec, STR("expirationSeconds"));
    const int64_t seconds = json_get_int(spec, STR("expirationSeconds"), 0);
    struct causes causes;
    causes_init(&causes, c->arena);
    if (seconds < MIN_EXPIRATION_S)
        causes_add(&causes, CAUSE_INVALID, &at, value,
                   "may not specify a duration less than 10 minutes");
    if (seconds > MAX_EXPIRATION_S)
        causes_add(&causes, CAUSE_INVALID, &at, value,
                   "may not specify a duration larger than 2^32 seconds");
    return causes.n ? status_invalid(&c->status, GROUP, KIND, STR(""), &causes) : 0;
}

/* ---- what it is bound to ------------------------------------------------------------------ */

struct bindable {
    const char *kind, *plural;
    bool is_namespaced;
    size_t offset; /* of its place among the claims */
};

static const struct bindable bindables[] = {
    {"Pod", "pods", true, offsetof(struct account_claims, pod)},
    {"Node", "nodes", false, offsetof(struct account_claims, node)},
    {"Secret", "secrets", true, offsetof(struct account_claims, secret)},
};

static const struct bindable *find_bindable(const struct json *ref)
{
    for (size_t i = 0; i < N_ELEMENTS(bindables); i++)
        if (str_is(json_get_str(ref, STR("kind")), bindables[i].kind) &&
            str_find(json_get_str(ref, STR("apiVersion")), '/') < 0)
            return &bindables[i];
    return NULL;
}

/* Go's GroupVersionKind.String(). */
static int refuse_kind(struct call *c, const struct json *ref)
{
    const struct str version = json_get_str(ref, STR("apiVersion"));
    const struct str kind = json_get_str(ref, STR("kind"));
    const char *slash = str_find(version, '/') < 0 ? "/" : "";
    return status_bad_request(&c->status, "cannot bind token to object of type %s%.*s, Kind=%.*s",
                              slash, STR_ARG(version), STR_ARG(kind));
}

static int bind_token(struct call *c, const struct json *ref, struct account_claims *claims)
{
    if (!json_is(ref, JSON_OBJECT))
        return 0;
    const struct bindable *b = find_bindable(ref);
    if (!b)
        return refuse_kind(c, ref);
    const struct str name = json_get_str(ref, STR("name")), uid = json_get_str(ref, STR("uid"));
    CLEANUP(object_unrefp)
    struct object *o =
        name.n ? get(c, b->plural, b->is_namespaced ? claims->namespace : STR(""), name) : NULL;
    if (!o)
        return refuse_not_found(c, b->plural, name);
    const struct str there = arena_str(c->arena, object_span(o, o->head.uid));
    if (uid.n && !str_eq(uid, there))
        return status_conflict(
            &c->status, &(struct kind){.plural = str_of(b->kind)}, name,
            "the UID in the bound object reference (%.*s) does not match the UID in record. The "
            "object might have been deleted and then recreated",
            STR_ARG(uid));
    *(struct account_reference *) ((char *) claims + b->offset) =
        (struct account_reference){name, there};
    return 0;
}

/* ---- the answer --------------------------------------------------------------------------- */

static struct json time_of(struct call *c, int64_t wall_us)
{
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(wall_us, text);
    return json_string(arena_str(c->arena, str_of(text)));
}

/* Named after the account, whose uid it shows. */
static void set_metadata(struct call *c, struct json *object, const struct account_claims *claims,
                         int64_t now_us)
{
    const struct json *given = json_get(object, STR("metadata"));
    const struct json *managed = json_get(given, STR("managedFields"));
    struct json meta = json_object();
    (void) json_append_member(c->arena, &meta, STR("name"), json_string(claims->account.name));
    (void) json_append_member(c->arena, &meta, STR("namespace"), json_string(claims->namespace));
    (void) json_append_member(c->arena, &meta, STR("uid"), json_string(claims->account.uid));
    (void) json_append_member(c->arena, &meta, STR("creationTimestamp"), time_of(c, now_us));
    if (managed)
        (void) json_append_member(c->arena, &meta, STR("managedFields"), *managed);
    (void) json_set(c->arena, object, STR("metadata"), meta);
}

/* Without a wish the token is for this server. */
static struct audiences choose_audiences(struct call *c, const struct token_issuer *issuer,
                                         struct json *spec)
{
    const struct json *given = json_get(spec, STR("audiences"));
    struct str *items = ARENA_ARRAY(c->arena, struct str, json_count(given) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (given, item)
        items[n++] = json_str(item);
    if (n)
        return (struct audiences){items, n};
    const struct audiences own = token_issuer_audiences(issuer);
    struct json list = json_array();
    for (size_t i = 0; i < own.n; i++)
        (void) json_push(c->arena, &list, json_string(own.items[i]));
    (void) json_set(c->arena, spec, STR("audiences"), list);
    return own;
}

/* What the operator allows. */
static int64_t choose_expiration(struct call *c, const struct token_issuer *issuer,
                                 struct json *spec)
{
    const int64_t asked = json_get_int(spec, STR("expirationSeconds"), 0);
    const int64_t max = token_issuer_max_expiration_s(issuer);
    if (!max || asked <= max)
        return asked;
    call_warn(c, arena_printf(c->arena,
                              "requested expiration of %lld seconds shortened to %lld seconds",
                              (long long) asked, (long long) max));
    (void) json_set(c->arena, spec, STR("expirationSeconds"), json_int(max));
    return max;
}

static void answer(struct call *c, struct json *object, struct account_claims *claims)
{
    const struct token_issuer *issuer = api_token_issuer(c->api);
    const int64_t now_us = api_clock(c->api)->wall_us(api_clock(c->api));
    struct json *spec = json_ensure_object(c->arena, object, STR("spec"));
    const int64_t seconds = choose_expiration(c, issuer, spec);
    claims->issued_s = claims->not_before_s = now_us / US_PER_S;
    claims->expires_s = claims->issued_s + seconds;
    struct json status = json_object();
    (void) json_append_member(c->arena, &status, STR("token"),
                              json_string(token_issuer_sign(issuer, c->arena, claims)));
    (void) json_append_member(c->arena, &status, STR("expirationTimestamp"),
                              time_of(c, claims->expires_s * US_PER_S));
    (void) json_set(c->arena, object, STR("status"), status);
    set_metadata(c, object, claims, now_us);
}

static int review(struct call *c, struct json *object)
{
    const struct request_path *p = &c->in.path;
    int r = check_name(c, object);
    if (r < 0)
        return r;
    CLEANUP(object_unrefp)
    struct object *account = get(c, "serviceaccounts", p->namespace, p->name);
    if (!account)
        return refuse_not_found(c, "serviceaccounts", p->name);
    struct json *spec = json_ensure_object(c->arena, object, STR("spec"));
    struct account_claims claims = {
        .namespace = p->namespace,
        .account = {p->name, arena_str(c->arena, object_span(account, account->head.uid))},
        .audiences = choose_audiences(c, api_token_issuer(c->api), spec)};
    r = check_expiration(c, spec);
    if (r == 0)
        r = bind_token(c, json_get(spec, STR("boundObjectRef")), &claims);
    if (r == 0)
        answer(c, object, &claims);
    return r;
}

const struct kind_hooks tokenrequest_hooks = {
    .group = STR("authentication.k8s.io"),
    .plural = STR("tokenrequests"),
    .review = review,
};
