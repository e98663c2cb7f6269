/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/config.h"

#include <errno.h>

#include "api/status.h"
#include "json/yaml.h"

#define GROUP "apiserver.config.k8s.io/"

struct reader {
    struct arena *arena;
    struct str error;
};

static int fail(struct reader *r, struct str field, const char *format, ...) PRINTF_LIKE(3, 4);
static int fail(struct reader *r, struct str field, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(r->arena, format, args);
    va_end(args);
    r->error = field.n ? arena_printf(r->arena, "%.*s: %.*s", STR_ARG(field), STR_ARG(why)) : why;
    return -EINVAL;
}

static int fail_invalid(struct reader *r, struct str field, struct str value, const char *why)
{
    return fail(r, field, "Invalid value: %.*s: %s", STR_ARG(status_quote(r->arena, value)), why);
}

static struct str under(struct reader *r, struct str field, const char *name)
{
    return field.n ? arena_printf(r->arena, "%.*s.%s", STR_ARG(field), name) : str_of(name);
}

static struct str item_of(struct reader *r, struct str field, size_t i)
{
    return arena_printf(r->arena, "%.*s[%zu]", STR_ARG(field), i);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* An object with none but these members. Absent is fine and reads as an empty one. */
static int check_object(struct reader *r, const struct json *v, struct str field,
                        const char *const *known)
{
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_OBJECT))
        return fail(r, field, "must be an object");
    JSON_FOR_EACH_MEMBER (v, m) {
        const char *const *k = known;
        while (*k && !str_is(json_str(&m->key), *k))
            k++;
        if (!*k)
            return fail(r, STR(""), "strict decoding error: unknown field \"%.*s\"",
                        STR_ARG(under(r, field, arena_strz(r->arena, json_str(&m->key)))));
    }
    return 0;
}

/* STR_NONE when absent. */
static int read_text(struct reader *r, const struct json *object, struct str field,
                     const char *name, struct str *ret)
{
    const struct json *v = json_get(object, str_of(name));
    *ret = STR_NONE;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_STRING))
        return fail(r, under(r, field, name), "must be a string");
    *ret = arena_str(r->arena, json_str(v));
    return 0;
}

static int read_array(struct reader *r, const struct json *object, struct str field,
                      const char *name, const struct json **ret)
{
    const struct json *v = json_get(object, str_of(name));
    *ret = NULL;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY))
        return fail(r, under(r, field, name), "must be a list");
    *ret = v;
    return 0;
}

/* What only an expression could say is refused by name. */
static int refuse_expression(struct reader *r, const struct json *object, struct str field,
                             const char *name)
{
    struct str text = STR_NONE;
    if (read_text(r, object, field, name, &text) < 0)
        return -EINVAL;
    if (text.n == 0)
        return 0;
    return fail(r, under(r, field, name),
                "CEL expressions are not supported by this server; use claim instead");
}

/* ---- issuer ---------------------------------------------------------------------------------- */

static int read_url(struct reader *r, const struct json *issuer, struct str field,
                    struct oidc_rules *ret)
{
    struct str at = under(r, field, "url");
    if (read_text(r, issuer, field, "url", &ret->issuer) < 0)
        return -EINVAL;
    if (ret->issuer.n == 0)
        return fail(r, at, "Required value: URL is required");
    const char *fault = oidc_url_fault(ret->issuer);
    if (fault)
        return fail_invalid(r, at, ret->issuer, fault);
    at = under(r, field, "discoveryURL");
    if (read_text(r, issuer, field, "discoveryURL", &ret->discovery_url) < 0)
        return -EINVAL;
    if (ret->discovery_url.n == 0) {
        ret->discovery_url = oidc_discovery_url(r->arena, ret->issuer);
        return 0;
    }
    if (str_eq(ret->discovery_url, ret->issuer))
        return fail_invalid(r, at, ret->discovery_url, "discoveryURL must be different from URL");
    fault = oidc_url_fault(ret->discovery_url);
    return fault ? fail_invalid(r, at, ret->discovery_url, fault) : 0;
}

static int read_audiences(struct reader *r, const struct json *issuer, struct str field,
                          struct oidc_rules *ret)
{
    struct str at = under(r, field, "audiences");
    const struct json *list = NULL;
    if (read_array(r, issuer, field, "audiences", &list) < 0)
        return -EINVAL;
    if (json_count(list) == 0)
        return fail(r, at, "Required value: at least one %.*s is required", STR_ARG(at));
    if (json_count(list) > OIDC_MAX_AUDIENCES)
        return fail(r, at, "Too many: must have at most %d items", OIDC_MAX_AUDIENCES);
    struct str *items = ARENA_ARRAY(r->arena, struct str, json_count(list));
    for (size_t i = 0; i < json_count(list); i++) {
        struct str one = json_str(&list->items[i]);
        if (one.n == 0)
            return fail(r, item_of(r, at, i), "Required value: audience can't be empty");
        if (audiences_have((struct audiences){items, i}, one))
            return fail(r, item_of(r, at, i), "Duplicate value: %.*s",
                        STR_ARG(status_quote(r->arena, one)));
        items[i] = arena_str(r->arena, one);
    }
    ret->audiences = (struct audiences){items, json_count(list)};
    return 0;
}

static int read_match_policy(struct reader *r, const struct json *issuer, struct str field,
                             const struct oidc_rules *rules)
{
    struct str policy = STR_NONE, at = under(r, field, "audienceMatchPolicy");
    if (read_text(r, issuer, field, "audienceMatchPolicy", &policy) < 0)
        return -EINVAL;
    if (policy.n == 0 && rules->audiences.n > 1)
        return fail_invalid(r, at, STR(""),
                            "audienceMatchPolicy must be MatchAny for multiple audiences");
    if (policy.n > 0 && !str_is(policy, "MatchAny"))
        return fail_invalid(r, at, policy,
                            "audienceMatchPolicy must be empty or MatchAny for single audience");
    return 0;
}

static int read_issuer(struct reader *r, const struct json *jwt, struct str field,
                       struct oidc_rules *ret)
{
    static const char *const known[] = {"url",       "discoveryURL",        "certificateAuthority",
                                        "audiences", "audienceMatchPolicy", NULL};
    const struct json *issuer = json_get(jwt, STR("issuer"));
    struct str at = under(r, field, "issuer");
    if (check_object(r, issuer, at, known) < 0 || read_url(r, issuer, at, ret) < 0 ||
        read_audiences(r, issuer, at, ret) < 0 || read_match_policy(r, issuer, at, ret) < 0 ||
        read_text(r, issuer, at, "certificateAuthority", &ret->ca_pem) < 0)
        return -EINVAL;
    if (ret->ca_pem.n == 0)
        ret->ca_pem = STR_NONE;
    else if (!oidc_is_ca(ret->ca_pem))
        return fail_invalid(r, under(r, at, "certificateAuthority"), STR("<omitted>"),
                            "data does not contain any valid RSA or ECDSA certificates");
    return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static int read_prefixed(struct reader *r, const struct json *mapping, struct str field,
                         struct str *ret_claim, struct str *ret_prefix)
{
    static const char *const known[] = {"claim", "prefix", "expression", NULL};
    if (check_object(r, mapping, field, known) < 0 ||
        refuse_expression(r, mapping, field, "expression") < 0 ||
        read_text(r, mapping, field, "claim", ret_claim) < 0 ||
        read_text(r, mapping, field, "prefix", ret_prefix) < 0)
        return -EINVAL;
    if (ret_claim->n > 0 && !ret_prefix->p)
        return fail(r, under(r, field, "prefix"),
                    "Required value: prefix is required when claim is set. It can be set to an "
                    "empty string to disable prefixing");
    if (ret_claim->n == 0 && ret_prefix->n > 0)
        return fail_invalid(r, under(r, field, "prefix"), *ret_prefix,
                            "non-empty prefix is only allowed when claim is set");
    return 0;
}

static int read_uid(struct reader *r, const struct json *mappings, struct str field,
                    struct oidc_rules *ret)
{
    static const char *const known[] = {"claim", "expression", NULL};
    const struct json *uid = json_get(mappings, STR("uid"));
    struct str at = under(r, field, "uid");
    return check_object(r, uid, at, known) < 0 || refuse_expression(r, uid, at, "expression") < 0 ||
                   read_text(r, uid, at, "claim", &ret->uid_claim) < 0
               ? -EINVAL
               : 0;
}

static int read_mappings(struct reader *r, const struct json *jwt, struct str field,
                         struct oidc_rules *ret)
{
    static const char *const known[] = {"username", "groups", "uid", "extra", NULL};
    const struct json *mappings = json_get(jwt, STR("claimMappings")), *extra = NULL;
    struct str at = under(r, field, "claimMappings");
    if (check_object(r, mappings, at, known) < 0 ||
        read_prefixed(r, json_get(mappings, STR("username")), under(r, at, "username"),
                      &ret->username_claim, &ret->username_prefix) < 0)
        return -EINVAL;
    if (ret->username_claim.n == 0)
        return fail(r, under(r, at, "username"), "Required value: claim or expression is required");
    if (read_prefixed(r, json_get(mappings, STR("groups")), under(r, at, "groups"),
                      &ret->groups_claim, &ret->groups_prefix) < 0 ||
        read_uid(r, mappings, at, ret) < 0 || read_array(r, mappings, at, "extra", &extra) < 0)
        return -EINVAL;
    if (json_count(extra) > 0)
        return fail(r, under(r, at, "extra"),
                    "CEL expressions are not supported by this server; leave extra out");
    return 0;
}

static int read_rule(struct reader *r, const struct json *rule, struct str at,
                     struct oidc_required *ret)
{
    static const char *const known[] = {"claim", "requiredValue", "expression", "message", NULL};
    if (!json_is(rule, JSON_OBJECT))
        return fail(r, at, "must be an object");
    if (check_object(r, rule, at, known) < 0 || refuse_expression(r, rule, at, "expression") < 0 ||
        read_text(r, rule, at, "claim", &ret->claim) < 0 ||
        read_text(r, rule, at, "requiredValue", &ret->value) < 0)
        return -EINVAL;
    if (ret->claim.n == 0)
        return fail(r, at, "Required value: claim or expression is required");
    if (!ret->value.p)
        ret->value = STR("");
    return 0;
}

static int read_validation(struct reader *r, const struct json *jwt, struct str field,
                           struct oidc_rules *ret)
{
    const struct json *list = NULL, *of_user = NULL;
    struct str at = under(r, field, "claimValidationRules");
    if (read_array(r, jwt, field, "claimValidationRules", &list) < 0 ||
        read_array(r, jwt, field, "userValidationRules", &of_user) < 0)
        return -EINVAL;
    if (json_count(of_user) > 0)
        return fail(r, under(r, field, "userValidationRules"),
                    "CEL expressions are not supported by this server; leave "
                    "userValidationRules out");
    if (json_count(list) > OIDC_MAX_REQUIRED)
        return fail(r, at, "Too many: must have at most %d items", OIDC_MAX_REQUIRED);
    struct oidc_required *items = ARENA_ARRAY(r->arena, struct oidc_required, json_count(list));
    for (size_t i = 0; i < json_count(list); i++) {
        if (read_rule(r, &list->items[i], item_of(r, at, i), &items[i]) < 0)
            return -EINVAL;
        for (size_t k = 0; k < i; k++)
            if (str_eq(items[k].claim, items[i].claim))
                return fail(r, under(r, item_of(r, at, i), "claim"), "Duplicate value: %.*s",
                            STR_ARG(status_quote(r->arena, items[i].claim)));
    }
    ret->required = items;
    ret->n_required = json_count(list);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_jwt(struct reader *r, const struct json *jwt, struct str field,
                    struct oidc_rules *ret)
{
    static const char *const known[] = {"issuer", "claimValidationRules", "claimMappings",
                                        "userValidationRules", NULL};
    if (!json_is(jwt, JSON_OBJECT))
        return fail(r, field, "must be an object");
    for (size_t i = 0; i < OIDC_N_ALGORITHMS; i++)
        ret->allows[i] = true;
    return check_object(r, jwt, field, known) < 0 || read_issuer(r, jwt, field, ret) < 0 ||
                   read_validation(r, jwt, field, ret) < 0 || read_mappings(r, jwt, field, ret) < 0
               ? -EINVAL
               : 0;
}

/* Tokens find their rules by their issuer, so each has one set of them. */
static int check_unique(struct reader *r, const struct oidc_rules *rules, size_t n,
                        struct str field)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(rules[i].issuer, rules[n].issuer))
            return fail(r, under(r, field, "issuer.url"), "Duplicate value: %.*s",
                        STR_ARG(status_quote(r->arena, rules[n].issuer)));
        if (str_eq(rules[i].discovery_url, rules[n].discovery_url))
            return fail(r, under(r, field, "issuer.discoveryURL"), "Duplicate value: %.*s",
                        STR_ARG(status_quote(r->arena, rules[n].discovery_url)));
    }
    return 0;
}

static int check_kind(struct reader *r, const struct json *root)
{
    static const char *const known[] = {"apiVersion", "kind", "jwt", "anonymous", NULL};
    struct str version = json_get_str(root, STR("apiVersion"));
    if (!json_is(root, JSON_OBJECT))
        return fail(r, STR(""), "no AuthenticationConfiguration");
    if (!str_is(json_get_str(root, STR("kind")), "AuthenticationConfiguration") ||
        (!str_is(version, GROUP "v1") && !str_is(version, GROUP "v1beta1")))
        return fail(r, STR(""),
                    "expected apiVersion " GROUP "v1 and kind AuthenticationConfiguration");
    if (check_object(r, root, STR(""), known) < 0)
        return -EINVAL;
    const struct json *anonymous = json_get(root, STR("anonymous"));
    if (anonymous && !json_is(anonymous, JSON_NULL))
        return fail(r, STR("anonymous"),
                    "is not supported by this server: without credentials only health and version "
                    "can be asked for");
    return 0;
}

static int read_all(struct reader *r, const struct json *root, struct oidc_config *ret)
{
    const struct json *list = NULL;
    if (check_kind(r, root) < 0 || read_array(r, root, STR(""), "jwt", &list) < 0)
        return -EINVAL;
    size_t n = json_count(list);
    if (n > OIDC_MAX_ISSUERS)
        return fail(r, STR("jwt"), "Too many: %zu: must have at most %d items", n,
                    OIDC_MAX_ISSUERS);
    struct oidc_rules *rules = ARENA_ARRAY(r->arena, struct oidc_rules, n);
    for (size_t i = 0; i < n; i++) {
        struct str at = item_of(r, STR("jwt"), i);
        if (read_jwt(r, &list->items[i], at, &rules[i]) < 0 || check_unique(r, rules, i, at) < 0)
            return -EINVAL;
    }
    *ret = (struct oidc_config){rules, n};
    return 0;
}

int oidc_config_parse(struct arena *a, struct str text, struct oidc_config *ret,
                      struct str *ret_error)
{
    struct reader r = {.arena = a};
    struct json_parse_result parsed = {0};
    int result = 0;
    if (yaml_parse(a, text, &parsed) < 0)
        result = fail(&r, STR(""), "%.*s", STR_ARG(parsed.error));
    else if (parsed.duplicates)
        result = fail(&r, STR(""), "strict decoding error: duplicate field \"%.*s\"",
                      STR_ARG(parsed.duplicates->path));
    else
        result = read_all(&r, parsed.value, ret);
    if (result < 0)
        *ret_error = r.error;
    return result;
}
