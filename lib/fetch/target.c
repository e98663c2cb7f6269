/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "fetch/fetch_internal.h"

/* One part of the URL in the arena; NULL when it has none. */
static const char *part(struct arena *a, CURLU *u, CURLUPart what, unsigned flags)
{
    char *text = NULL;
    if (libcurl.url_get(u, what, &text, flags) != CURLUE_OK)
        return NULL;
    const char *copy = arena_strz(a, str_of(text));
    libcurl.free(text);
    return copy;
}

static int refuse(struct arena *a, struct str url, const char *why, struct str *ret_error)
{
    *ret_error = arena_printf(a, "parse \"%.*s\": %s", STR_ARG(url), why);
    return -EINVAL;
}

/* The real place goes beside the URL when another name than its own is to be verified. */
static int use_server_name(struct arena *a, CURLU *u, struct str name, struct fetch_target *t)
{
    t->connect_to = arena_printf(a, "::%s:%s", t->host, t->port).p;
    if (libcurl.url_set(u, CURLUPART_HOST, arena_strz(a, name), 0) != CURLUE_OK)
        return -EINVAL;
    t->url = part(a, u, CURLUPART_URL, 0);
    return t->url ? 0 : -EINVAL;
}

static int fill(struct arena *a, CURLU *u, const struct fetch_request *r, struct fetch_target *t,
                struct str *ret_error)
{
    const char *scheme = part(a, u, CURLUPART_SCHEME, 0);
    const bool is_plain = scheme && strcmp(scheme, "http") == 0;
    if (!scheme || !(strcmp(scheme, "https") == 0 || (is_plain && r->allows_http)))
        return refuse(a, r->url,
                      r->allows_http ? "the scheme must be http or https"
                                     : "the scheme must be https",
                      ret_error);
    if (part(a, u, CURLUPART_USER, 0) || part(a, u, CURLUPART_PASSWORD, 0))
        return refuse(a, r->url, "user information is not allowed", ret_error);
    const char *port = part(a, u, CURLUPART_PORT, 0);
    t->host = part(a, u, CURLUPART_HOST, 0);
    t->port = part(a, u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    t->url = part(a, u, CURLUPART_URL, 0);
    if (!t->host || !t->port || !t->url)
        return refuse(a, r->url, "invalid URL", ret_error);
    t->authority = port ? arena_printf(a, "%s:%s", t->host, port).p : t->host;
    if (r->server_name.n > 0 && use_server_name(a, u, r->server_name, t) < 0)
        return refuse(a, r->server_name, "invalid server name", ret_error);
    return 0;
}

int fetch_target_parse(struct arena *a, const struct fetch_request *r, struct fetch_target *ret,
                       struct str *ret_error)
{
    *ret = (struct fetch_target){0};
    if (memchr(r->url.p ? r->url.p : "", '\0', r->url.n))
        return refuse(a, r->url, "invalid URL", ret_error);
    CURLU *u = libcurl.url();
    CURLUcode code = libcurl.url_set(u, CURLUPART_URL, arena_strz(a, r->url), 0);
    int result = code == CURLUE_OK || code == CURLUE_UNSUPPORTED_SCHEME
                     ? fill(a, u, r, ret, ret_error)
                     : refuse(a, r->url, libcurl.url_strerror(code), ret_error);
    libcurl.url_cleanup(u);
    return result;
}

bool fetch_target_is_local(const struct fetch_target *t)
{
    struct str host = str_of(t->host);
    return str_eq_nocase(host, STR("localhost")) || str_is(host, "[::1]") ||
           str_starts_with(host, STR("127."));
}
