/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/review.h"

#include <errno.h>

#include "json/json.h"

#define VERSION "authentication.k8s.io/v1"

struct str review_write(struct arena *a, struct str token, struct audiences wanted)
{
    struct json root = json_object(), spec = json_object(), audiences = json_array();
    for (size_t i = 0; i < wanted.n; i++)
        json_push(a, &audiences, json_string(wanted.items[i]));
    json_set(a, &spec, STR("token"), json_string(token));
    if (wanted.n > 0)
        json_set(a, &spec, STR("audiences"), audiences);
    json_set(a, &root, STR("kind"), json_string(STR("TokenReview")));
    json_set(a, &root, STR("apiVersion"), json_string(STR(VERSION)));
    json_set(a, &root, STR("metadata"), json_object());
    json_set(a, &root, STR("spec"), spec);
    json_set(a, &root, STR("status"), json_object());
    return json_text(a, &root);
}

static int fail(struct arena *a, int result, struct str *ret_error, const char *format, ...)
    PRINTF_LIKE(4, 5);
static int fail(struct arena *a, int result, struct str *ret_error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *ret_error = arena_vprintf(a, format, args);
    va_end(args);
    return result;
}

/* A list of strings, absent or null for none; -EINVAL for anything else. */
static int read_strings(struct arena *a, const struct json *v, size_t max,
                        const struct str **ret_items, size_t *ret_n)
{
    *ret_items = NULL;
    *ret_n = 0;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY) || v->n > max)
        return -EINVAL;
    struct str *items = ARENA_ARRAY(a, struct str, v->n);
    for (size_t i = 0; i < v->n; i++) {
        if (!json_is(&v->items[i], JSON_STRING))
            return -EINVAL;
        items[i] = arena_str(a, json_str(&v->items[i]));
    }
    *ret_items = items;
    *ret_n = v->n;
    return 0;
}

static int read_extra(struct arena *a, const struct json *v, struct user *ret)
{
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_OBJECT) || v->n > REVIEW_MAX_EXTRA)
        return -EINVAL;
    struct user_extra *extra = ARENA_ARRAY(a, struct user_extra, v->n);
    JSON_FOR_EACH_MEMBER (v, m) {
        struct user_extra *e = &extra[ret->n_extra++];
        e->key = arena_str(a, json_str(&m->key));
        if (read_strings(a, &m->value, REVIEW_MAX_GROUPS, &e->values, &e->n_values) < 0)
            return -EINVAL;
    }
    ret->extra = extra;
    return 0;
}

static int read_user(struct arena *a, const struct json *v, struct user *ret)
{
    struct user u = {.name = arena_str(a, json_get_str(v, STR("username"))),
                     .uid = arena_str(a, json_get_str(v, STR("uid")))};
    if (u.name.n == 0 ||
        read_strings(a, json_get(v, STR("groups")), REVIEW_MAX_GROUPS, &u.groups, &u.n_groups) <
            0 ||
        read_extra(a, json_get(v, STR("extra")), &u) < 0)
        return -EINVAL;
    *ret = u;
    return 0;
}

static int read_status(struct arena *a, const struct json *status, struct audiences wanted,
                       struct audiences implicit, struct token_identity *ret, struct str *ret_error)
{
    struct audiences got = {0};
    struct token_identity i = {.expires_us = INT64_MAX};
    if (!json_get_bool(status, STR("authenticated"), false)) {
        struct str why = json_get_str(status, STR("error"));
        *ret_error = why.n > 0 ? arena_str(a, why) : STR("invalid bearer token");
        return -EACCES;
    }
    if (read_strings(a, json_get(status, STR("audiences")), REVIEW_MAX_GROUPS, &got.items, &got.n) <
        0)
        return fail(a, -EINVAL, ret_error, "status.audiences is no list of strings");
    if (wanted.n > 0) {
        struct audiences common = audiences_common(a, got.n > 0 ? got : implicit, wanted);
        if (common.n == 0)
            return fail(a, -EACCES, ret_error,
                        "token audiences %.*s is invalid for the target audiences %.*s",
                        STR_ARG(audiences_text(a, got.n > 0 ? got : implicit)),
                        STR_ARG(audiences_text(a, wanted)));
        i.audiences = common.items;
        i.n_audiences = common.n;
    }
    if (read_user(a, json_get(status, STR("user")), &i.user) < 0)
        return fail(a, -EINVAL, ret_error, "status.user names no user");
    *ret = i;
    return 0;
}

int review_read(struct arena *a, struct str text, struct audiences wanted,
                struct audiences implicit, struct token_identity *ret, struct str *ret_error)
{
    struct json_parse_result parsed = {0};
    if (text.n > REVIEW_MAX_BYTES)
        return fail(a, -EINVAL, ret_error, "the answer is too large");
    if (json_parse(a, text, &parsed) < 0)
        return fail(a, -EINVAL, ret_error, "%.*s", STR_ARG(parsed.error));
    if (!str_is(json_get_str(parsed.value, STR("kind")), "TokenReview") ||
        !str_is(json_get_str(parsed.value, STR("apiVersion")), VERSION))
        return fail(a, -EINVAL, ret_error, "the answer is no TokenReview of " VERSION);
    const struct json *status = json_get(parsed.value, STR("status"));
    if (!json_is(status, JSON_OBJECT))
        return fail(a, -EINVAL, ret_error, "the answer has no status");
    return read_status(a, status, wanted, implicit, ret, ret_error);
}
