/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/url.h"

#include <errno.h>

static bool has_scheme(struct str url)
{
    return str_starts_with(url, STR("http:")) || str_starts_with(url, STR("https:")) ||
           str_starts_with(url, STR("ws:")) || str_starts_with(url, STR("wss:"));
}

struct str uplink_url_complete(struct arena *a, struct str url)
{
    url = str_trim(url);
    return has_scheme(url) ? arena_str(a, url)
                           : arena_join(a, (const struct str[]){STR("https://"), url}, 2);
}

struct str uplink_url_build(struct arena *a, enum uplink_api api, struct str server,
                            const struct uuid *device, struct str action)
{
    server = str_trim(server);
    if (api == UPLINK_API_V1)
        return uplink_url_complete(
            a, arena_printf(a, "%.*s/api/v1/edgedevice/%.*s", STR_ARG(server), STR_ARG(action)));
    if (!device || uuid_is_zero(device))
        return uplink_url_complete(
            a, arena_printf(a, "%.*s/api/v2/edgedevice/%.*s", STR_ARG(server), STR_ARG(action)));
    char text[UUID_TEXT_BYTES];
    uuid_text(device, text);
    return uplink_url_complete(a, arena_printf(a, "%.*s/api/v2/edgedevice/id/%s/%.*s",
                                               STR_ARG(server), text, STR_ARG(action)));
}

static const struct scheme {
    struct str name;
    unsigned port;
} schemes[] = {{{"https", 5}, 443}, {{"http", 4}, 80}, {{"wss", 3}, 443}, {{"ws", 2}, 80}};

static bool has_forbidden_byte(struct str url)
{
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char) url.p[i] <= ' ' || url.p[i] == 0x7f)
            return true;
    return false;
}

static int parse_port(struct str text, unsigned *port)
{
    int64_t value = 0;
    if (text.n == 0)
        return 0; /* "host:" is the scheme's port, as RFC 3986 3.2.3 has it */
    if (text.p[0] == '+' || text.p[0] == '-' || str_to_i64(text, &value) < 0 || value < 1 ||
        value > 65535)
        return -EINVAL;
    *port = (unsigned) value;
    return 0;
}

static int parse_authority(struct str authority, struct uplink_url *u)
{
    if (str_find(authority, '\\') >= 0)
        return -EINVAL;
    /* A proxy may want a name and a password. */
    authority = str_from(authority, (size_t) (str_find_last(authority, '@') + 1));
    if (authority.n > 0 && authority.p[0] == '[') {
        const ptrdiff_t end = str_find(authority, ']');
        if (end < 2)
            return -EINVAL;
        u->host = str_sub(authority, 1, (size_t) end);
        const struct str rest = str_from(authority, (size_t) end + 1);
        if (rest.n > 0 && rest.p[0] != ':')
            return -EINVAL;
        return rest.n > 0 ? parse_port(str_from(rest, 1), &u->port) : 0;
    }
    const ptrdiff_t colon = str_find(authority, ':');
    u->host = colon < 0 ? authority : str_sub(authority, 0, (size_t) colon);
    if (u->host.n == 0)
        return -EINVAL;
    return colon < 0 ? 0 : parse_port(str_from(authority, (size_t) colon + 1), &u->port);
}

int uplink_url_parse(struct str url, struct uplink_url *ret)
{
    if (url.n > UPLINK_MAX_URL_BYTES)
        return -EMSGSIZE;
    const ptrdiff_t colon = str_find_str(url, STR("://"));
    if (colon < 0 || has_forbidden_byte(url))
        return -EINVAL;
    struct uplink_url u = {0};
    for (size_t i = 0; i < N_ELEMENTS(schemes); i++)
        if (str_eq_nocase(schemes[i].name, str_sub(url, 0, (size_t) colon))) {
            u.scheme = schemes[i].name;
            u.port = schemes[i].port;
        }
    if (!u.scheme.p)
        return -EINVAL;
    const struct str rest = str_from(url, (size_t) colon + 3);
    size_t n = 0;
    while (n < rest.n && !memchr("/?#", rest.p[n], 3))
        n++;
    if (parse_authority(str_sub(rest, 0, n), &u) < 0)
        return -EINVAL;
    *ret = u;
    return 0;
}

bool uplink_url_is_secure(const struct uplink_url *u)
{
    return str_is(u->scheme, "https") || str_is(u->scheme, "wss");
}

bool uplink_url_is_wrapped(struct str url)
{
    return str_find_str(url, STR("/edgedevice/")) >= 0;
}

bool uplink_url_is_registration(struct str url)
{
    return uplink_url_is_wrapped(url) && str_find_str(url, STR("/register")) >= 0;
}
