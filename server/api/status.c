/* SPDX-License-Identifier: Apache-2.0 */
#include "api/status.h"

#include <errno.h>
#include <inttypes.h>

#include "store/object.h"

void status_init(struct status *st, struct arena *a)
{
    *st = (struct status){.arena = a};
}

struct str status_resource(struct arena *a, const struct kind *kind)
{
    return kind->group.n ? arena_printf(a, "%.*s.%.*s", STR_ARG(kind->plural), STR_ARG(kind->group))
                         : kind->plural;
}

struct str status_quote(struct arena *a, struct str s)
{
    BUF_AUTO b = {0};
    buf_append_char(&b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        if (c == '"' || c == '\\')
            buf_printf(&b, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            buf_printf(&b, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c < 0x20 || c == 0x7f)
            buf_printf(&b, "\\x%02x", c);
        else
            buf_append_char(&b, (char) c);
    }
    buf_append_char(&b, '"');
    return arena_str(a, buf_str(&b));
}

PRINTF_LIKE(4, 0)
static void fill(struct status *st, int code, const char *reason, const char *format, va_list args)
{
    struct arena *a = st->arena;
    *st = (struct status){.arena = a, .code = code, .reason = str_of(reason)};
    st->message = arena_vprintf(a, format, args);
}

int status_fail(struct status *st, int code, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(st, code, reason, format, args);
    va_end(args);
    return -EINVAL;
}

int status_bad_request(struct status *st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(st, 400, "BadRequest", format, args);
    va_end(args);
    return -EINVAL;
}

static void name_resource(struct status *st, const struct kind *kind, struct str name)
{
    st->has_details = true;
    st->name = name;
    st->group = kind->group;
    st->kind = kind->plural;
}

int status_not_found(struct status *st, const struct kind *kind, struct str name)
{
    struct str resource = status_resource(st->arena, kind);
    (void) status_fail(st, 404, "NotFound", "%.*s %.*s not found", STR_ARG(resource),
                       STR_ARG(status_quote(st->arena, name)));
    name_resource(st, kind, name);
    return -ENOENT;
}

int status_no_resource(struct status *st)
{
    (void) status_fail(st, 404, "NotFound", "the server could not find the requested resource");
    st->has_details = true;
    return -ENOENT;
}

int status_no_method(struct status *st)
{
    (void) status_fail(st, 405, "MethodNotAllowed",
                       "the server does not allow this method on the requested resource");
    st->has_details = true;
    return -ENOTSUP;
}

int status_already_exists(struct status *st, const struct kind *kind, struct str name)
{
    struct str resource = status_resource(st->arena, kind);
    (void) status_fail(st, 409, "AlreadyExists", "%.*s %.*s already exists", STR_ARG(resource),
                       STR_ARG(status_quote(st->arena, name)));
    name_resource(st, kind, name);
    return -EEXIST;
}

int status_conflict(struct status *st, const struct kind *kind, struct str name, const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(st->arena, format, args);
    va_end(args);
    struct str resource = status_resource(st->arena, kind);
    (void) status_fail(st, 409, "Conflict", "Operation cannot be fulfilled on %.*s %.*s: %.*s",
                       STR_ARG(resource), STR_ARG(status_quote(st->arena, name)), STR_ARG(why));
    name_resource(st, kind, name);
    return -ESTALE;
}

int status_modified(struct status *st, const struct kind *kind, struct str name)
{
    return status_conflict(st, kind, name,
                           "the object has been modified; please apply your changes to the latest "
                           "version and try again");
}

int status_forbidden(struct status *st, const struct kind *kind, struct str name,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(st->arena, format, args);
    va_end(args);
    struct str resource = status_resource(st->arena, kind);
    (void) status_fail(st, 403, "Forbidden", "%.*s %.*s is forbidden: %.*s", STR_ARG(resource),
                       STR_ARG(status_quote(st->arena, name)), STR_ARG(why));
    name_resource(st, kind, name);
    return -EPERM;
}

/* "field: message", or just the message for a cause without a field. */
static void append_cause_text(struct buf *b, const struct cause *c)
{
    if (c->field.n)
        buf_printf(b, "%.*s: ", STR_ARG(c->field));
    buf_append_str(b, c->message);
}

static bool is_repeated(const struct cause *first, const struct cause *c)
{
    for (; first != c; first = first->next)
        if (str_eq(first->field, c->field) && str_eq(first->message, c->message))
            return true;
    return false;
}

/* The aggregate of Go: one error stands alone, several are bracketed, the same text counts once. */
static void append_causes_text(struct buf *b, const struct causes *causes)
{
    size_t n_distinct = 0;
    for (const struct cause *c = causes->first; c; c = c->next)
        n_distinct += !is_repeated(causes->first, c);
    if (n_distinct > 1)
        buf_append_char(b, '[');
    bool is_first = true;
    for (const struct cause *c = causes->first; c; c = c->next) {
        if (is_repeated(causes->first, c))
            continue;
        if (!is_first)
            buf_append_str(b, STR(", "));
        append_cause_text(b, c);
        is_first = false;
    }
    if (n_distinct > 1)
        buf_append_char(b, ']');
}

int status_invalid(struct status *st, struct str group, struct str kind, struct str name,
                   const struct causes *causes)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, kind);
    if (group.n)
        buf_printf(&b, ".%.*s", STR_ARG(group));
    buf_printf(&b, " %.*s is invalid: ", STR_ARG(status_quote(st->arena, name)));
    append_causes_text(&b, causes);
    (void) status_fail(st, 422, "Invalid", "%.*s", STR_ARG(buf_str(&b)));
    st->has_details = true;
    st->group = group;
    st->kind = kind;
    st->name = name;
    st->causes = causes->first;
    return -EINVAL;
}

int status_unauthorized(struct status *st)
{
    (void) status_fail(st, 401, "Unauthorized", "Unauthorized");
    return -EACCES;
}

int status_expired(struct status *st, const char *message)
{
    (void) status_fail(st, 410, "Expired", "%s", message);
    return -ERANGE;
}

int status_too_large_version(struct status *st, int64_t asked, int64_t current)
{
    (void) status_fail(st, 504, "Timeout",
                       "Timeout: Too large resource version: %" PRId64 ", current: %" PRId64, asked,
                       current);
    st->has_details = true;
    st->cause_reason = STR("ResourceVersionTooLarge");
    st->cause_message = STR("Too large resource version");
    st->retry_after_s = 1;
    return -EAGAIN;
}

int status_from_store(struct status *st, const struct kind *kind, struct str name, int error)
{
    switch (error) {
    case -EEXIST:
        return status_already_exists(st, kind, name);
    case -ENOENT:
        return status_not_found(st, kind, name);
    case -ESTALE:
        return status_modified(st, kind, name);
    case -ENOSPC:
        return status_fail(
            st, 507, "InsufficientStorage",
            "the disk of the server is full; free space in its data directory, reads go on");
    case -E2BIG:
        return status_fail(st, 413, "RequestEntityTooLarge",
                           "Request entity too large: the stored object would exceed %d bytes",
                           OBJECT_MAX_BYTES);
    default:
        return status_fail(st, 500, "InternalError", "the store could not write %.*s: %s",
                           STR_ARG(name), strerror(-error));
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void write_member(struct buf *b, const char *key, struct str value, bool *is_first)
{
    if (!value.n)
        return;
    buf_printf(b, "%s\"%s\":", *is_first ? "" : ",", key);
    json_write_str(b, value);
    *is_first = false;
}

static void write_cause(struct buf *b, struct str reason, struct str message, struct str field)
{
    bool is_first = true;
    buf_append_char(b, '{');
    write_member(b, "reason", reason, &is_first);
    write_member(b, "message", message, &is_first);
    write_member(b, "field", field, &is_first);
    buf_append_char(b, '}');
}

static void write_causes(struct buf *b, const struct status *st)
{
    buf_append_str(b, STR("\"causes\":["));
    for (const struct cause *c = st->causes; c; c = c->next) {
        write_cause(b, cause_reason(c->type), c->message, c->field);
        if (c->next)
            buf_append_char(b, ',');
    }
    if (st->cause_message.n)
        write_cause(b, st->cause_reason, st->cause_message, st->cause_field);
    buf_append_char(b, ']');
}

static void write_details(struct buf *b, const struct status *st)
{
    bool is_first = true;
    buf_append_str(b, STR(",\"details\":{"));
    write_member(b, "name", st->name, &is_first);
    write_member(b, "group", st->group, &is_first);
    write_member(b, "kind", st->kind, &is_first);
    write_member(b, "uid", st->uid, &is_first);
    if (st->causes || st->cause_message.n) {
        buf_append_str(b, is_first ? STR("") : STR(","));
        write_causes(b, st);
        is_first = false;
    }
    if (st->retry_after_s)
        buf_printf(b, "%s\"retryAfterSeconds\":%d", is_first ? "" : ",", st->retry_after_s);
    buf_append_char(b, '}');
}

void status_write(struct buf *b, const struct status *st)
{
    buf_append_str(b, STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{"));
    bool is_first = true;
    write_member(b, "continue", st->continue_token, &is_first);
    buf_append_str(b, STR("},\"status\":\"Failure\""));
    is_first = false;
    write_member(b, "message", st->message, &is_first);
    write_member(b, "reason", st->reason, &is_first);
    if (st->has_details)
        write_details(b, st);
    buf_printf(b, ",\"code\":%d}\n", st->code);
}

void status_write_deleted(struct buf *b, const struct kind *kind, struct str name, struct str uid)
{
    struct status details = {.name = name, .group = kind->group, .kind = kind->plural, .uid = uid};
    buf_append_str(
        b,
        STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\""));
    write_details(b, &details);
    buf_append_str(b, STR("}\n"));
}
