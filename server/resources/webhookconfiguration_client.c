/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/webhookconfiguration.h"

#define FORM "; desired format: https://host[/path]"
#define PORT_MAX 65535

/* ---- URLs --------------------------------------------------------------------------------- */

struct url {
    struct str scheme, user, host, query, fragment; /* STR_NONE: absent */
};

/* Takes what stands behind the first `separator` off *rest. */
static struct str cut(struct str *rest, char separator)
{
    const ptrdiff_t at = str_find(*rest, separator);
    if (at < 0)
        return STR_NONE;
    const struct str behind = str_from(*rest, (size_t) at + 1);
    *rest = str_sub(*rest, 0, (size_t) at);
    return behind;
}

static struct url url_split(struct str text)
{
    struct url u = {.fragment = cut(&text, '#')};
    u.query = cut(&text, '?');
    const ptrdiff_t colon = str_find(text, ':'), slash = str_find(text, '/');
    if (colon > 0 && (slash < 0 || colon < slash)) {
        u.scheme = str_sub(text, 0, (size_t) colon);
        text = str_from(text, (size_t) colon + 1);
    }
    if (!str_starts_with(text, STR("//")))
        return u;
    text = str_from(text, 2);
    (void) cut(&text, '/');
    const ptrdiff_t at = str_find_last(text, '@');
    u.user = at < 0 ? STR_NONE : str_sub(text, 0, (size_t) at);
    u.host = str_from(text, at < 0 ? 0 : (size_t) at + 1);
    return u;
}

/* What no URL can hold, and what would reach another header or shell if somebody trusted it. */
static bool has_bad_byte(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        const unsigned char byte = (unsigned char) text.p[i];
        if (byte <= ' ' || byte == 0x7f || byte == '"' || byte == '<' || byte == '>' ||
            byte == '\\')
            return true;
    }
    return false;
}

static void add(struct causes *causes, const struct field_path *at, struct str part,
                const char *detail)
{
    const struct json value = shown(part);
    causes_add(causes, CAUSE_INVALID, at, &value, "%s", detail);
}

static void check_url(struct causes *causes, const struct field_path *at, struct str text)
{
    if (has_bad_byte(text)) {
        causes_add(causes, CAUSE_REQUIRED, at, NULL,
                   "url must be a valid URL: invalid character in URL" FORM);
        return;
    }
    const struct url u = url_split(text);
    if (!str_eq_nocase(u.scheme, STR("https")))
        add(causes, at, u.scheme, "'https' is the only allowed URL scheme" FORM);
    if (!u.host.n)
        add(causes, at, u.host, "host must be provided" FORM);
    if (u.user.p)
        add(causes, at, u.user, "user information is not permitted in the URL");
    if (u.fragment.n)
        add(causes, at, u.fragment, "fragments are not permitted in the URL");
    if (u.query.n)
        add(causes, at, u.query, "query parameters are not permitted in the URL");
}

/* ---- services ----------------------------------------------------------------------------- */

static void check_segment(struct causes *causes, const struct field_path *at,
                          const struct json *path, struct str segment, size_t number)
{
    if (!segment.n) {
        causes_add(causes, CAUSE_INVALID, at, path, "segment[%zu] may not be empty", number);
        return;
    }
    const struct name_errors errors = name_subdomain(causes->arena, segment);
    for (size_t i = 0; i < errors.n; i++)
        causes_add(causes, CAUSE_INVALID, at, path, "segment[%zu]: %.*s", number,
                   STR_ARG(errors.text[i]));
}

static void check_path(struct causes *causes, const struct field_path *at, const struct json *path)
{
    const struct str text = json_str(path);
    if (!text.n || str_is(text, "/"))
        return;
    if (text.p[0] != '/')
        causes_add(causes, CAUSE_INVALID, at, path, "must start with a '/'");
    /* A slash at the end opens no further segment. */
    struct str rest = str_from(text, 1), segment;
    if (!rest.n || str_is(rest, "/"))
        check_segment(causes, at, path, STR(""), 0);
    else
        for (size_t i = 0; str_split(&rest, '/', &segment); i++)
            check_segment(causes, at, path, segment, i);
}

static void check_service(struct causes *causes, const struct field_path *at,
                          const struct json *service)
{
    const struct json *port = json_get(service, STR("port"));
    check_required(causes, at, service, STR("name"));
    check_required(causes, at, service, STR("namespace"));
    if (json_is(port, JSON_INT) && (port->i < 1 || port->i > PORT_MAX))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("port")), port,
                   "port is not valid: must be between 1 and 65535, inclusive");
    check_path(causes, &FIELD_NAME(at, STR("path")), json_get(service, STR("path")));
}

void webhook_check_client(struct causes *causes, const struct field_path *at,
                          const struct json *client)
{
    const struct json *url = json_get(client, STR("url")),
                      *service = json_get(client, STR("service"));
    if (!url == !service)
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "exactly one of url or service is required");
    else if (url)
        check_url(causes, &FIELD_NAME(at, STR("url")), json_str(url));
    else
        check_service(causes, &FIELD_NAME(at, STR("service")), service);
}
