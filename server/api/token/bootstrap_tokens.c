/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/bootstrap_tokens.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "pki/pki.h"
#include "json/json.h"

#define SECRET_TYPE "bootstrap.kubernetes.io/token"
#define KEY_PREFIX "secrets/kube-system/bootstrap-token-"
#define GROUP_PREFIX "system:bootstrappers:"
#define GROUP "system:bootstrappers"
#define ID_CHARACTERS 6
#define SECRET_CHARACTERS 16
#define MAX_EXTRA_GROUPS 64
#define MAX_GROUP_TAIL 256

struct bootstrap_tokens {
    struct token_source source;
    struct arena *arena;
    struct store *store;
    const struct clock *clock;
    struct audiences audiences;
};

/* What a remembered identity rests on. */
struct basis {
    struct str key;
    int64_t revision;
};

static bool is_word(struct str s, size_t n)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.n == n;
}

/* <id>.<secret>: six and sixteen letters and digits. */
static bool split_token(struct str token, struct str *ret_id, struct str *ret_secret)
{
    if (token.n != ID_CHARACTERS + 1 + SECRET_CHARACTERS || token.p[ID_CHARACTERS] != '.')
        return false;
    *ret_id = str_sub(token, 0, ID_CHARACTERS);
    *ret_secret = str_from(token, ID_CHARACTERS + 1);
    return is_word(*ret_id, ID_CHARACTERS) && is_word(*ret_secret, SECRET_CHARACTERS);
}

/* One value of the Secret, decoded; STR_NONE when it has none. */
static struct str value_of(struct arena *a, const struct json *secret, const char *key)
{
    struct str bytes = STR_NONE;
    const struct json *value = json_get(json_get(secret, STR("data")), str_of(key));
    if (!value || base64_decode(a, json_str(value), BASE64_STANDARD, &bytes, NULL) < 0)
        return STR_NONE;
    return bytes;
}

/* Digests are compared, so that the time it takes says nothing about the secret. */
static bool is_equal(struct str a, struct str b)
{
    unsigned char of_a[SHA256_BYTES], of_b[SHA256_BYTES];
    pki_sha256(a, of_a);
    pki_sha256(b, of_b);
    return memcmp(of_a, of_b, SHA256_BYTES) == 0;
}

/* system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9] */
static bool is_extra_group(struct str group)
{
    if (!str_starts_with(group, STR(GROUP_PREFIX)))
        return false;
    const struct str tail = str_from(group, sizeof(GROUP_PREFIX) - 1);
    for (size_t i = 0; i < tail.n; i++) {
        const bool is_sign = tail.p[i] == ':' || tail.p[i] == '-';
        if (!is_word(str_sub(tail, i, i + 1), 1) && (!is_sign || i + 1 == tail.n))
            return false;
    }
    return tail.n > 0 && tail.n <= MAX_GROUP_TAIL;
}

static int fill_groups(struct arena *a, struct str text, struct user *u)
{
    struct str one = STR_NONE, rest = text;
    struct str *groups = ARENA_ARRAY(a, struct str, MAX_EXTRA_GROUPS + 1);
    size_t n = 0;
    groups[n++] = STR(GROUP);
    while (str_split(&rest, ',', &one)) {
        if (n > MAX_EXTRA_GROUPS || !is_extra_group(one))
            return -EACCES;
        groups[n++] = arena_str(a, one);
    }
    u->groups = groups;
    u->n_groups = n;
    return 0;
}

/* When the Secret ends: never without an expiration, in the past with one that is no time. */
static int64_t expiry_of(struct arena *a, const struct json *secret)
{
    const struct str text = value_of(a, secret, "expiration");
    int64_t expires_us = 0;
    if (!text.n)
        return INT64_MAX;
    return clock_parse(text, &expires_us) < 0 ? 0 : expires_us;
}

static const char *refusal(struct arena *a, const struct json *secret, struct str id,
                           struct str token_secret)
{
    if (!str_is(json_get_str(secret, STR("type")), SECRET_TYPE))
        return "its Secret has another type";
    if (!is_equal(value_of(a, secret, "token-secret"), token_secret))
        return "the secret is another";
    if (!str_eq(value_of(a, secret, "token-id"), id))
        return "its Secret has another token-id";
    if (!str_is(value_of(a, secret, "usage-bootstrap-authentication"), "true"))
        return "it is not for authentication";
    return NULL;
}

/* The text of a Secret that exists may be parsed; everything else is judged here. */
static int judge(struct bootstrap_tokens *b, struct arena *a, const struct object *o, struct str id,
                 struct str token_secret, struct token_identity *ret)
{
    ARENA_AUTO scratch = arena_new();
    const struct json *secret = json_parse_quick(scratch, object_text(o));
    const char *why = o->head.is_deleting ? "its Secret is being deleted"
                                          : refusal(scratch, secret, id, token_secret);
    const int64_t expires_us = expiry_of(scratch, secret);
    if (!why && b->clock->wall_us(b->clock) >= expires_us)
        why = "it has expired";
    struct user u = {0};
    if (!why && fill_groups(a, value_of(scratch, secret, "auth-extra-groups"), &u) < 0)
        why = "auth-extra-groups has a group that does not begin with " GROUP_PREFIX;
    if (why) {
        log_debug("refusing a bootstrap token", LOG_STR("id", id), LOG_TEXT("reason", why));
        return -EACCES;
    }
    u.name = arena_printf(a, "system:bootstrap:%.*s", STR_ARG(id));
    u.uid = STR("");
    ret->user = u;
    ret->expires_us = expires_us;
    return 0;
}

static int verify(struct token_source *s, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    (void) may_block;
    struct bootstrap_tokens *b = CONTAINER_OF(s, struct bootstrap_tokens, source);
    struct str id, token_secret;
    const struct audiences wanted = {audiences, n_audiences};
    const struct audiences common =
        audiences_common(a, b->audiences, n_audiences ? wanted : b->audiences);
    if (!common.n || !split_token(token, &id, &token_secret))
        return -ENOENT;
    const struct str key = arena_printf(a, KEY_PREFIX "%.*s", STR_ARG(id));
    CLEANUP(object_unrefp) struct object *o = store_get(b->store, key);
    if (!o)
        return -ENOENT;
    const int r = judge(b, a, o, id, token_secret, ret);
    if (r < 0)
        return r;
    struct basis *basis = ARENA_NEW(a, struct basis);
    *basis = (struct basis){key, o->revision};
    ret->basis = basis;
    ret->audiences = common.items;
    ret->n_audiences = common.n;
    return 0;
}

static bool still_valid(struct token_source *s, const struct token_identity *i)
{
    struct bootstrap_tokens *b = CONTAINER_OF(s, struct bootstrap_tokens, source);
    const struct basis *basis = i->basis;
    CLEANUP(object_unrefp) struct object *o = store_get(b->store, basis->key);
    return o && o->revision == basis->revision;
}

static void free_source(struct token_source *s)
{
    struct bootstrap_tokens *b = CONTAINER_OF(s, struct bootstrap_tokens, source);
    arena_free(b->arena);
    mem_free(b);
}

struct token_source *bootstrap_tokens_new(struct store *store, const struct clock *clock,
                                          struct audiences audiences)
{
    struct bootstrap_tokens *b = NEW(struct bootstrap_tokens);
    b->source = (struct token_source){.name = "bootstrap-tokens",
                                      .verify = verify,
                                      .still_valid = still_valid,
                                      .free = free_source};
    b->arena = arena_new();
    b->store = store;
    b->clock = clock;
    b->audiences = audiences_copy(b->arena, audiences);
    return &b->source;
}
