/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include <errno.h>

#include "base/alloc.h"

#define FIELDS_CAPACITY 32
/* What is kept for the next request; more than this was an exception and goes back. */
#define KEPT_TEXT_BYTES ((size_t) 8 * 1024)
#define KEPT_BODY_BYTES ((size_t) 16 * 1024)
#define KEPT_FIELDS 128

void message_done(struct message *m)
{
    buf_done(&m->text);
    buf_done(&m->body);
    mem_free(m->fields);
    *m = (struct message){0};
}

static void keep_or_free(struct buf *b, size_t kept_bytes)
{
    if (b->capacity > kept_bytes)
        buf_done(b);
    else
        buf_reset(b);
}

void message_reset(struct message *m)
{
    keep_or_free(&m->text, KEPT_TEXT_BYTES);
    keep_or_free(&m->body, KEPT_BODY_BYTES);
    if (m->fields_capacity > KEPT_FIELDS) {
        mem_free(TAKE(m->fields));
        m->fields_capacity = 0;
    }
    *m = (struct message){
        .arena = m->arena,
        .text = m->text,
        .body = m->body,
        .fields = m->fields,
        .fields_capacity = m->fields_capacity,
    };
}

struct message_span message_open_span(const struct message *m)
{
    return (struct message_span){.begin = (uint32_t) m->text.n};
}

void message_extend(struct message *m, struct message_span *span, struct str bytes)
{
    buf_append_str(&m->text, bytes);
    span->length += (uint32_t) bytes.n;
}

struct message_span message_add_span(struct message *m, struct str bytes)
{
    struct message_span span = message_open_span(m);
    message_extend(m, &span, bytes);
    return span;
}

struct message_field *message_add_field(struct message *m)
{
    if (m->n_fields == m->fields_capacity) {
        m->fields_capacity = MAX(m->fields_capacity * 2, (size_t) FIELDS_CAPACITY);
        m->fields = mem_realloc_array(m->fields, m->fields_capacity, sizeof(*m->fields));
    }
    struct message_field *f = &m->fields[m->n_fields++];
    f->name = f->value = message_open_span(m);
    return f;
}

void message_add_header(struct message *m, struct str lower_name, struct str value)
{
    struct message_field *f = message_add_field(m);
    f->name = message_add_span(m, lower_name);
    f->value = message_add_span(m, value);
}

int message_charge(struct message *m, size_t n_bytes, size_t limit_bytes)
{
    m->head_bytes += n_bytes;
    return m->head_bytes > limit_bytes ? -EMSGSIZE : 0;
}

static struct str resolve(const struct message *m, struct message_span span)
{
    return str_range((m->text.p ? m->text.p : "") + span.begin, span.length);
}

/* HTTP/2 clients may send one cookie header per pair; everybody else expects one header. */
static void join_cookies(struct message *m)
{
    struct buf joined = {0};
    size_t first = SIZE_MAX, n_kept = 0;
    for (size_t i = 0; i < m->n_headers; i++) {
        struct http_header h = m->headers[i];
        if (!str_eq(h.name, STR("cookie"))) {
            m->headers[n_kept++] = h;
            continue;
        }
        if (first == SIZE_MAX) {
            first = n_kept;
            m->headers[n_kept++] = h;
        } else {
            buf_append_str(&joined, STR("; "));
        }
        buf_append_str(&joined, h.value);
    }
    m->headers[first].value = arena_str(m->arena, buf_str(&joined));
    m->n_headers = n_kept;
    buf_done(&joined);
}

void message_finish(struct message *m)
{
    m->method = resolve(m, m->method_span);
    m->target = resolve(m, m->target_span);
    m->authority = resolve(m, m->authority_span);
    m->headers = arena_alloc(m->arena, m->n_fields * sizeof(*m->headers));
    m->n_headers = m->n_fields;
    size_t n_cookies = 0;
    for (size_t i = 0; i < m->n_fields; i++) {
        struct http_header h = {resolve(m, m->fields[i].name), resolve(m, m->fields[i].value)};
        n_cookies += str_eq(h.name, STR("cookie"));
        m->headers[i] = h;
    }
    if (n_cookies > 1)
        join_cookies(m);
}

struct str message_header(const struct message *m, struct str lower_name)
{
    for (size_t i = 0; i < m->n_headers; i++)
        if (str_eq(m->headers[i].name, lower_name))
            return m->headers[i].value;
    return STR_NONE;
}

size_t message_count_header(const struct message *m, struct str lower_name)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_headers; i++)
        n += str_eq(m->headers[i].name, lower_name);
    return n;
}

bool message_has_token(struct str list, struct str token)
{
    struct str part;
    while (str_split(&list, ',', &part))
        if (str_eq_nocase(str_trim(part), token))
            return true;
    return false;
}

bool message_is_framing_header(struct str name)
{
    /* By length first: this is asked of every header of every answer. */
    switch (name.n) {
    case 7:
        return str_eq_nocase(name, STR("upgrade"));
    case 10:
        return str_eq_nocase(name, STR("connection")) || str_eq_nocase(name, STR("keep-alive"));
    case 14:
        return str_eq_nocase(name, STR("content-length"));
    case 16:
        return str_eq_nocase(name, STR("proxy-connection"));
    case 17:
        return str_eq_nocase(name, STR("transfer-encoding"));
    default:
        return false;
    }
}

/* "scheme://authority/path": the part from the path on, or STR_NONE when the target is not
 * absolute. */
static struct str strip_authority(struct message *m)
{
    ptrdiff_t at = str_find_str(m->target, STR("://"));
    if (at <= 0)
        return STR_NONE;
    struct str rest = str_from(m->target, (size_t) at + 3);
    size_t n_authority = 0;
    while (n_authority < rest.n && rest.p[n_authority] != '/' && rest.p[n_authority] != '?')
        n_authority++;
    m->authority = str_sub(rest, 0, n_authority);
    rest = str_from(rest, n_authority);
    return rest.n ? rest : STR("/");
}

int message_split_target(struct message *m, struct str *ret_path, struct str *ret_query)
{
    struct str target = m->target;
    bool is_origin = target.n > 0 && target.p[0] == '/';
    bool is_star = str_eq(target, STR("*")) && str_eq(m->method, STR("OPTIONS"));
    if (!is_origin && !is_star)
        target = strip_authority(m);
    if (target.n == 0)
        return -EINVAL;
    ptrdiff_t mark = str_find(target, '?');
    *ret_path = mark < 0 ? target : str_sub(target, 0, (size_t) mark);
    *ret_query = mark < 0 ? STR("") : str_from(target, (size_t) mark + 1);
    return 0;
}
