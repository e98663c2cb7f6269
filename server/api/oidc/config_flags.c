/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/oidc/config.h"

static struct str given(const char *text)
{
    return text && text[0] ? str_of(text) : STR_NONE;
}

bool oidc_flags_are_set(const struct oidc_flags *f)
{
    return given(f->issuer_url).p || given(f->client_id).p;
}

const char *oidc_url_fault(struct str url)
{
    static const struct str scheme = STR("https://");
    if (!str_starts_with(url, scheme))
        return "URL scheme must be https";
    struct str rest = str_from(url, scheme.n);
    ptrdiff_t slash = str_find(rest, '/');
    struct str authority = slash < 0 ? rest : str_sub(rest, 0, (size_t) slash);
    if (authority.n == 0 || authority.p[0] == ':')
        return "URL must have a host";
    if (str_find(authority, '@') >= 0)
        return "URL must not contain a username or password";
    if (str_find(url, '?') >= 0)
        return "URL must not contain a query";
    if (str_find(url, '#') >= 0)
        return "URL must not contain a fragment";
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char) url.p[i] <= ' ' || url.p[i] == 0x7f)
            return "URL must not contain blanks or control characters";
    return NULL;
}

struct str oidc_discovery_url(struct arena *a, struct str issuer)
{
    while (issuer.n > 0 && issuer.p[issuer.n - 1] == '/')
        issuer.n--;
    return arena_printf(a, "%.*s/.well-known/openid-configuration", STR_ARG(issuer));
}

bool oidc_is_ca(struct str pem)
{
    struct pki_cert *c = NULL;
    if (pki_cert_parse(pem, &c) < 0)
        return false;
    pki_cert_free(c);
    return true;
}

static int fail(struct arena *a, struct str *ret_error, const char *format, ...) PRINTF_LIKE(3, 4);
static int fail(struct arena *a, struct str *ret_error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *ret_error = arena_vprintf(a, format, args);
    va_end(args);
    return -EINVAL;
}

static int read_algorithms(struct arena *a, const char *text, struct oidc_rules *r,
                           struct str *ret_error)
{
    struct str rest = given(text).p ? str_of(text) : STR("RS256"), one = STR_NONE;
    while (str_split(&rest, ',', &one)) {
        one = str_trim(one);
        bool is_known = false;
        for (size_t i = 0; i < OIDC_N_ALGORITHMS; i++) {
            if (!str_eq(one, jws_algorithm_name((enum jws_algorithm) i)))
                continue;
            is_known = r->allows[i] = true;
        }
        if (!is_known)
            return fail(a, ret_error,
                        "--oidc-signing-algs: unsupported signing alg: \"%.*s\"; RS256 and ES256 "
                        "are supported",
                        STR_ARG(one));
    }
    return 0;
}

static int read_required(struct arena *a, const char *text, struct oidc_rules *r,
                         struct str *ret_error)
{
    struct str rest = given(text), one = STR_NONE;
    struct oidc_required *items = NULL;
    size_t n = 0;
    while (str_split(&rest, ',', &one)) {
        ptrdiff_t equals = str_find(one, '=');
        if (equals <= 0)
            return fail(a, ret_error, "--oidc-required-claim: \"%.*s\" is not key=value",
                        STR_ARG(one));
        if (n == OIDC_MAX_REQUIRED)
            return fail(a, ret_error, "--oidc-required-claim: at most %d", OIDC_MAX_REQUIRED);
        items = arena_grow(a, items, n, sizeof(*items));
        items[n++] = (struct oidc_required){arena_str(a, str_sub(one, 0, (size_t) equals)),
                                            arena_str(a, str_from(one, (size_t) equals + 1))};
    }
    r->required = items;
    r->n_required = n;
    return 0;
}

/* Without a prefix names of an issuer must not meet others': its URL stands before them, except for
 * addresses of mail. "-" asks for none. */
static struct str username_prefix(struct arena *a, const struct oidc_flags *f, struct str claim)
{
    struct str prefix = given(f->username_prefix);
    if (str_is(prefix, "-"))
        return STR("");
    if (prefix.p)
        return arena_str(a, prefix);
    return str_is(claim, "email") ? STR("") : arena_printf(a, "%s#", f->issuer_url);
}

int oidc_config_of_flags(struct arena *a, const struct oidc_flags *f, struct str ca_pem,
                         struct oidc_config *ret, struct str *ret_error)
{
    struct oidc_rules *r = ARENA_NEW(a, struct oidc_rules);
    if (!given(f->issuer_url).p || !given(f->client_id).p)
        return fail(a, ret_error,
                    "--oidc-issuer-url and --oidc-client-id must be specified together");
    const char *fault = oidc_url_fault(str_of(f->issuer_url));
    if (fault)
        return fail(a, ret_error, "--oidc-issuer-url: \"%s\": %s", f->issuer_url, fault);
    if (ca_pem.p && !oidc_is_ca(ca_pem))
        return fail(a, ret_error, "--oidc-ca-file: %s holds no PEM certificate", f->ca_file);
    if (read_algorithms(a, f->signing_algs, r, ret_error) < 0 ||
        read_required(a, f->required_claims, r, ret_error) < 0)
        return -EINVAL;
    const struct str audience = str_of(f->client_id);
    r->issuer = arena_str(a, str_of(f->issuer_url));
    r->discovery_url = oidc_discovery_url(a, r->issuer);
    r->ca_pem = ca_pem.p ? arena_str(a, ca_pem) : STR_NONE;
    r->audiences = audiences_copy(a, (struct audiences){&audience, 1});
    r->username_claim =
        arena_str(a, given(f->username_claim).p ? str_of(f->username_claim) : STR("sub"));
    r->username_prefix = username_prefix(a, f, r->username_claim);
    if (given(f->groups_claim).p) {
        r->groups_claim = arena_str(a, str_of(f->groups_claim));
        r->groups_prefix = arena_str(a, f->groups_prefix ? str_of(f->groups_prefix) : STR(""));
    }
    *ret = (struct oidc_config){r, 1};
    return 0;
}
