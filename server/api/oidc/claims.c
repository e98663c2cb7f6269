/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/claims.h"

#include <errno.h>

#include "api/oidc/documents.h"
#include "api/status.h"

/* ---- taking apart ---------------------------------------------------------------------------- */

/* NULL also when a key stands twice: another reader might take the other one. */
static struct json *parse_object(struct arena *a, struct str text)
{
    struct json_parse_result parsed = {0};
    if (json_parse(a, text, &parsed) < 0 || parsed.duplicates ||
        !json_is(parsed.value, JSON_OBJECT))
        return NULL;
    return parsed.value;
}

int oidc_token_parse(struct arena *a, struct str token, struct oidc_token *ret)
{
    struct oidc_token t = {0};
    if (jws_split(a, token, &t.jws) < 0)
        return -ENOENT;
    t.header = parse_object(a, t.jws.header);
    t.claims = parse_object(a, t.jws.payload);
    if (!t.header || !t.claims)
        return -ENOENT;
    t.issuer = json_get_str(t.claims, STR("iss"));
    t.kid = json_get_str(t.header, STR("kid"));
    if (t.issuer.n == 0)
        return -ENOENT;
    *ret = t;
    return 0;
}

static int refuse(struct arena *a, struct str *ret_error, const char *format, ...)
    PRINTF_LIKE(3, 4);
static int refuse(struct arena *a, struct str *ret_error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *ret_error = arena_vprintf(a, format, args);
    va_end(args);
    return -EACCES;
}

int oidc_token_algorithm(struct arena *a, const struct oidc_rules *rules,
                         const struct oidc_token *t, enum jws_algorithm *ret_alg,
                         struct str *ret_error)
{
    const struct json *kid = json_get(t->header, STR("kid"));
    struct str alg = json_get_str(t->header, STR("alg"));
    /* Extensions that must be understood (RFC 7515 4.1.11): we know none. */
    if (json_get(t->header, STR("crit")))
        return refuse(a, ret_error, "oidc: malformed jwt: unsupported crit header");
    if (kid && (!json_is(kid, JSON_STRING) || kid->n > OIDC_KID_MAX_BYTES))
        return refuse(a, ret_error, "oidc: malformed jwt: kid is no string of a sound size");
    for (size_t i = 0; i < OIDC_N_ALGORITHMS; i++) {
        if (!rules->allows[i] || !str_eq(alg, jws_algorithm_name((enum jws_algorithm) i)))
            continue;
        *ret_alg = (enum jws_algorithm) i;
        return 0;
    }
    return refuse(a, ret_error, "oidc: id token signed with unsupported algorithm %.*s",
                  STR_ARG(status_quote(a, alg)));
}

/* ---- whom it is for -------------------------------------------------------------------------- */

static int read_audiences(struct arena *a, const struct json *claims, struct audiences *ret,
                          struct str *ret_error)
{
    const struct json *aud = json_get(claims, STR("aud"));
    struct str *items = ARENA_ARRAY(a, struct str, json_is(aud, JSON_ARRAY) ? aud->n : 1);
    *ret = (struct audiences){items, 0};
    if (json_is(aud, JSON_STRING))
        items[ret->n++] = json_str(aud);
    else if (aud && !json_is(aud, JSON_ARRAY))
        return refuse(a, ret_error, "oidc: failed to unmarshal claims: aud is no list of strings");
    JSON_FOR_EACH_ITEM (aud, one) {
        if (!json_is(one, JSON_STRING))
            return refuse(a, ret_error,
                          "oidc: failed to unmarshal claims: aud is no list of strings");
        items[ret->n++] = json_str(one);
    }
    return 0;
}

static int check_audiences(struct arena *a, const struct oidc_rules *rules,
                           const struct json *claims, struct str *ret_error)
{
    struct audiences got = {0};
    if (read_audiences(a, claims, &got, ret_error) < 0)
        return -EACCES;
    for (size_t i = 0; i < got.n; i++)
        if (audiences_have(rules->audiences, got.items[i]))
            return 0;
    return refuse(a, ret_error, "oidc: expected audience in %.*s got %.*s",
                  STR_ARG(audiences_text(a, rules->audiences)), STR_ARG(audiences_text(a, got)));
}

/* ---- when ------------------------------------------------------------------------------------ */

/* A NumericDate (RFC 7519 2) in microseconds; false when it is none. What lies beyond what we can
 * count is as far away as we can say. */
static bool read_date(const struct json *v, int64_t *ret_us)
{
    static const int64_t most_s = INT64_MAX / 1000000 - 1;
    if (json_is(v, JSON_INT))
        *ret_us = MAX(MIN(v->i, most_s), -most_s) * 1000000;
    else if (json_is(v, JSON_DOUBLE))
        *ret_us = v->d >= (double) most_s    ? most_s * 1000000
                  : v->d <= -(double) most_s ? -most_s * 1000000
                                             : (int64_t) (v->d * 1e6);
    return json_is_number(v);
}

static struct str date_text(struct arena *a, int64_t us)
{
    char text[CLOCK_SECONDS_BYTES];
    static const int64_t least_us = 0, most_us = (int64_t) 253402300799 * 1000000; /* year 9999 */
    clock_format_seconds(MAX(MIN(us, most_us), least_us), text);
    return arena_str(a, str_of(text));
}

static int check_not_ahead(struct arena *a, const struct json *claims, const char *name,
                           int64_t now_us, struct str *ret_error)
{
    const struct json *v = json_get(claims, str_of(name));
    int64_t from_us = 0;
    if (!v)
        return 0;
    if (!read_date(v, &from_us))
        return refuse(a, ret_error, "oidc: failed to unmarshal claims: %s is no number", name);
    if (now_us + OIDC_LEEWAY_US >= from_us)
        return 0;
    return refuse(a, ret_error, "oidc: current time %.*s before the %s time: %.*s",
                  STR_ARG(date_text(a, now_us)),
                  strcmp(name, "nbf") == 0 ? "nbf (not before)" : "iat (issued at)",
                  STR_ARG(date_text(a, from_us)));
}

static int check_times(struct arena *a, const struct json *claims, int64_t now_us,
                       int64_t *ret_expires_us, struct str *ret_error)
{
    int64_t expires_us = 0;
    if (!read_date(json_get(claims, STR("exp")), &expires_us))
        return refuse(a, ret_error, "oidc: failed to unmarshal claims: exp is no number");
    if (now_us > expires_us)
        return refuse(a, ret_error, "oidc: token is expired (Token Expiry: %.*s)",
                      STR_ARG(date_text(a, expires_us)));
    *ret_expires_us = expires_us;
    return check_not_ahead(a, claims, "nbf", now_us, ret_error) < 0 ||
                   check_not_ahead(a, claims, "iat", now_us, ret_error) < 0
               ? -EACCES
               : 0;
}

/* ---- who ------------------------------------------------------------------------------------- */

static int check_email(struct arena *a, const struct json *claims, struct str *ret_error)
{
    const struct json *verified = json_get(claims, STR("email_verified"));
    if (!verified)
        return 0;
    if (!json_is(verified, JSON_BOOL))
        return refuse(a, ret_error, "oidc: parse 'email_verified' claim: it is no boolean");
    return verified->b ? 0 : refuse(a, ret_error, "oidc: email not verified");
}

static int read_username(struct arena *a, const struct oidc_rules *rules, const struct json *claims,
                         struct str *ret_name, struct str *ret_error)
{
    const struct json *v = json_get(claims, rules->username_claim);
    struct str claim = status_quote(a, rules->username_claim);
    if (str_is(rules->username_claim, "email") && check_email(a, claims, ret_error) < 0)
        return -EACCES;
    if (!v)
        return refuse(a, ret_error, "oidc: parse username claims %.*s: claim not present",
                      STR_ARG(claim));
    if (!json_is(v, JSON_STRING) || v->n == 0)
        return refuse(a, ret_error, "oidc: parse username claims %.*s: it is no text",
                      STR_ARG(claim));
    *ret_name = arena_printf(a, "%.*s%.*s", STR_ARG(rules->username_prefix), STR_ARG(json_str(v)));
    return 0;
}

/* A string is one group; an empty name is none of them. */
static int read_groups(struct arena *a, const struct oidc_rules *rules, const struct json *claims,
                       struct user *ret_user, struct str *ret_error)
{
    if (rules->groups_claim.n == 0)
        return 0;
    const struct json *v = json_get(claims, rules->groups_claim);
    struct str claim = status_quote(a, rules->groups_claim);
    if (!v || json_is(v, JSON_NULL))
        return 0;
    size_t n = json_is(v, JSON_ARRAY) ? v->n : 1;
    const struct json *items = json_is(v, JSON_ARRAY) ? v->items : v;
    if (n > OIDC_MAX_GROUPS)
        return refuse(a, ret_error, "oidc: parse groups claim %.*s: more than %d groups",
                      STR_ARG(claim), OIDC_MAX_GROUPS);
    struct str *groups = ARENA_ARRAY(a, struct str, n);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(&items[i], JSON_STRING))
            return refuse(a, ret_error, "oidc: parse groups claim %.*s: it is no list of strings",
                          STR_ARG(claim));
        if (items[i].n == 0)
            continue;
        groups[ret_user->n_groups++] = arena_printf(a, "%.*s%.*s", STR_ARG(rules->groups_prefix),
                                                    STR_ARG(json_str(&items[i])));
    }
    ret_user->groups = groups;
    return 0;
}

static int read_uid(struct arena *a, const struct oidc_rules *rules, const struct json *claims,
                    struct str *ret_uid, struct str *ret_error)
{
    if (rules->uid_claim.n == 0)
        return 0;
    const struct json *v = json_get(claims, rules->uid_claim);
    if (!json_is(v, JSON_STRING))
        return refuse(a, ret_error, "oidc: parse uid claim %.*s: it is no text",
                      STR_ARG(status_quote(a, rules->uid_claim)));
    *ret_uid = arena_str(a, json_str(v));
    return 0;
}

static int check_required(struct arena *a, const struct oidc_rules *rules,
                          const struct json *claims, struct str *ret_error)
{
    for (size_t i = 0; i < rules->n_required; i++) {
        const struct oidc_required *want = &rules->required[i];
        const struct json *got = json_get(claims, want->claim);
        if (!got)
            return refuse(a, ret_error, "oidc: required claim %.*s not present in ID token",
                          STR_ARG(want->claim));
        if (!json_is(got, JSON_STRING) || !str_eq(json_str(got), want->value))
            return refuse(a, ret_error, "oidc: required claim %.*s value does not match",
                          STR_ARG(want->claim));
    }
    return 0;
}

int oidc_claims_check(struct arena *a, const struct oidc_rules *rules, const struct json *claims,
                      int64_t now_us, struct token_identity *ret, struct str *ret_error)
{
    struct token_identity i = {0};
    if (!str_eq(json_get_str(claims, STR("iss")), rules->issuer))
        return refuse(a, ret_error, "oidc: id token issued by a different provider");
    if (check_audiences(a, rules, claims, ret_error) < 0 ||
        check_times(a, claims, now_us, &i.expires_us, ret_error) < 0 ||
        check_required(a, rules, claims, ret_error) < 0 ||
        read_username(a, rules, claims, &i.user.name, ret_error) < 0 ||
        read_groups(a, rules, claims, &i.user, ret_error) < 0 ||
        read_uid(a, rules, claims, &i.user.uid, ret_error) < 0)
        return -EACCES;
    *ret = i;
    return 0;
}
