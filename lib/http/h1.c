/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/lang.h"
#include "llhttp.h"

/* The method is read here, since llhttp refuses those it has not heard of and what a method means
 * is the handler's business; llhttp is given this one in its place. */
#define H1_STAND_IN_METHOD "POST "
#define H1_METHOD_BYTES 32
/* Chunk extensions mean nothing to us; who sends more than this of them wants to keep us busy. */
#define H1_EXTENSION_BYTES ((size_t) 16 * 1024)

struct h1 {
    llhttp_t parser;
    struct h1_limits limits;
    struct message *m;
    struct message_field *field; /* being read */
    enum h1_progress progress;
    size_t extension_bytes;
    bool has_method;
    bool is_at_target; /* its first byte comes next */
    bool is_in_trailer;
    bool expects_continue;
    bool keeps_alive;
    bool is_http10;
    int refusal;
    struct str refusal_reason;
};

static int refuse(struct h1 *h, int status, struct str reason)
{
    h->progress = H1_REFUSED;
    h->refusal = status;
    h->refusal_reason = reason;
    return HPE_USER;
}

static int charge_head(struct h1 *h, size_t n)
{
    if (message_charge(h->m, n, h->limits.header_bytes) >= 0)
        return 0;
    return refuse(h, 431, STR("request headers too large"));
}

/* ---- what llhttp finds -------------------------------------------------------------------- */

static int on_url(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = p->data;
    if (message_charge(h->m, n, h->limits.header_bytes) < 0)
        return refuse(h, 414, STR("request target too long"));
    if (h->m->target_span.length == 0)
        h->m->target_span = message_open_span(h->m);
    message_extend(h->m, &h->m->target_span, str_range(at, n));
    return 0;
}

static int on_header_field(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = p->data;
    if (h->is_in_trailer)
        return charge_head(h, n);
    if (!h->field && h->m->n_fields >= h->limits.headers)
        return refuse(h, 431, STR("too many request headers"));
    if (!h->field)
        h->field = message_add_field(h->m);
    char *to = buf_reserve(&h->m->text, n);
    for (size_t i = 0; i < n; i++)
        to[i] = at[i] >= 'A' && at[i] <= 'Z' ? (char) (at[i] | 0x20) : at[i];
    h->m->text.n += n;
    h->m->text.p[h->m->text.n] = '\0';
    h->field->name.length += (uint32_t) n;
    return charge_head(h, n);
}

static int on_header_field_complete(llhttp_t *p)
{
    struct h1 *h = p->data;
    if (!h->is_in_trailer)
        h->field->value = message_open_span(h->m);
    return charge_head(h, MESSAGE_HEADER_OVERHEAD);
}

static int on_header_value(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = p->data;
    if (!h->is_in_trailer)
        message_extend(h->m, &h->field->value, str_range(at, n));
    return charge_head(h, n);
}

static int on_header_value_complete(llhttp_t *p)
{
    struct h1 *h = p->data;
    if (!h->is_in_trailer) {
        /* llhttp strips blanks in front of a value only. */
        const char *value = h->m->text.p ? h->m->text.p + h->field->value.begin : "";
        while (h->field->value.length > 0 && (value[h->field->value.length - 1] == ' ' ||
                                              value[h->field->value.length - 1] == '\t'))
            h->field->value.length--;
    }
    h->field = NULL;
    return 0;
}

/* RFC 9112 3.2: one host header, always in HTTP/1.1. */
static int check_host(struct h1 *h)
{
    size_t n_hosts = message_count_header(h->m, STR("host"));
    if (n_hosts > 1)
        return refuse(h, 400, STR("too many host headers"));
    if (n_hosts == 0 && !h->is_http10)
        return refuse(h, 400, STR("missing required host header"));
    struct str host = message_header(h->m, STR("host"));
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] <= ' ' || host.p[i] == '/' || host.p[i] == '@')
            return refuse(h, 400, STR("malformed host header"));
    h->m->authority = host.n ? host : STR("");
    return 0;
}

/* "chunked" is the only coding, given once: everything else is where proxies and servers disagree.
 */
static int check_coding(struct h1 *h)
{
    size_t n_codings = message_count_header(h->m, STR("transfer-encoding"));
    if (n_codings == 0)
        return 0;
    if (h->is_http10 || n_codings > 1)
        return refuse(h, 400, STR("misplaced transfer-encoding"));
    struct str coding = message_header(h->m, STR("transfer-encoding"));
    if (!(h->parser.flags & F_CHUNKED) || !str_eq_nocase(coding, STR("chunked")))
        return refuse(h, 501, STR("unsupported transfer encoding"));
    return 0;
}

static int check_body(struct h1 *h)
{
    int r = check_coding(h);
    if (r)
        return r;
    if ((h->parser.flags & F_CONTENT_LENGTH) && h->parser.content_length > h->limits.body_bytes)
        return refuse(h, 413, STR("request body too large"));
    struct str expect = message_header(h->m, STR("expect"));
    if (!expect.p)
        return 0;
    if (!str_eq_nocase(expect, STR("100-continue")))
        return refuse(h, 417, STR("unknown expectation"));
    bool has_body = (h->parser.flags & F_CHUNKED) || h->parser.content_length > 0;
    h->expects_continue = !h->is_http10 && has_body;
    return 0;
}

static int on_headers_complete(llhttp_t *p)
{
    struct h1 *h = p->data;
    /* An upgrade is the handler's decision, which comes after the request; until then it is an
     * ordinary one. */
    p->upgrade = 0;
    if (p->http_major != 1)
        return refuse(h, 505, STR("unsupported protocol version"));
    h->is_http10 = p->http_minor == 0;
    h->keeps_alive = llhttp_should_keep_alive(p);
    h->is_in_trailer = true;
    h->progress = H1_BODY;
    message_finish(h->m);
    int r = check_host(h);
    return r ? r : check_body(h);
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = p->data;
    h->expects_continue = false;
    if (n > h->limits.body_bytes - h->m->body.n)
        return refuse(h, 413, STR("request body too large"));
    buf_append(&h->m->body, at, n);
    return 0;
}

static int on_chunk_extension(llhttp_t *p, const char *at, size_t n)
{
    (void) at;
    struct h1 *h = p->data;
    h->extension_bytes += n;
    return h->extension_bytes > H1_EXTENSION_BYTES
               ? refuse(h, 400, STR("chunk extensions too long"))
               : 0;
}

static int on_message_complete(llhttp_t *p)
{
    struct h1 *h = p->data;
    h->progress = H1_REQUEST;
    return HPE_PAUSED;
}

static const llhttp_settings_t h1_settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_extension_name = on_chunk_extension,
    .on_chunk_extension_value = on_chunk_extension,
    .on_message_complete = on_message_complete,
};

/* ---- requests ----------------------------------------------------------------------------- */

struct h1 *h1_new(const struct h1_limits *limits)
{
    struct h1 *h = NEW(struct h1);
    h->limits = *limits;
    llhttp_init(&h->parser, HTTP_REQUEST, &h1_settings);
    h->parser.data = h;
    return h;
}

void h1_free(struct h1 *h)
{
    mem_free(h);
}

void h1_begin(struct h1 *h, struct message *m)
{
    h->m = m;
    h->field = NULL;
    h->progress = H1_IDLE;
    h->extension_bytes = 0;
    h->has_method = h->is_in_trailer = h->expects_continue = h->keeps_alive = h->is_http10 = false;
}

/* RFC 9110 5.6.2 */
static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           char_is_in(c, "!#$%&'*+-.^_`|~");
}

/* With the blank behind it; empty lines in front are skipped (RFC 9112 2.2). Returns the bytes
 * consumed. */
static size_t read_method(struct h1 *h, struct str bytes)
{
    size_t begin = 0;
    if (h->progress == H1_IDLE) {
        while (begin < bytes.n && (bytes.p[begin] == '\r' || bytes.p[begin] == '\n'))
            begin++;
        if (begin == bytes.n)
            return begin;
        h->progress = H1_HEAD;
        h->m->method_span = message_open_span(h->m);
    }
    size_t end = begin;
    while (end < bytes.n && is_token_char(bytes.p[end]))
        end++;
    message_extend(h->m, &h->m->method_span,
                   str_sub(bytes, begin, MIN(end, begin + H1_METHOD_BYTES + 1)));
    size_t n_method = h->m->method_span.length;
    bool is_ended = end < bytes.n;
    if (n_method > H1_METHOD_BYTES || (is_ended && (n_method == 0 || bytes.p[end] != ' ')))
        (void) refuse(h, 400, STR("malformed method"));
    h->has_method = h->is_at_target = is_ended;
    return end + is_ended;
}

static enum h1_progress parse(struct h1 *h, struct str bytes, size_t *ret_consumed)
{
    llhttp_resume(&h->parser);
    llhttp_errno_t e = llhttp_execute(&h->parser, bytes.p, bytes.n);
    if (e == HPE_OK) {
        *ret_consumed = bytes.n;
        return h->progress;
    }
    *ret_consumed = (size_t) (llhttp_get_error_pos(&h->parser) - bytes.p);
    if (e != HPE_PAUSED && h->progress != H1_REFUSED)
        (void) refuse(h, 400, str_of(llhttp_get_error_reason(&h->parser)));
    return h->progress;
}

enum h1_progress h1_feed(struct h1 *h, struct str bytes, size_t *ret_consumed)
{
    size_t n_method = 0;
    if (!h->has_method) {
        n_method = *ret_consumed = read_method(h, bytes);
        if (h->progress == H1_REFUSED || !h->has_method)
            return h->progress;
        size_t n_stand_in = 0;
        (void) parse(h, STR(H1_STAND_IN_METHOD), &n_stand_in);
        bytes = str_from(bytes, n_method);
        if (bytes.n == 0)
            return h->progress;
    }
    /* llhttp takes any number of blanks. */
    if (h->is_at_target && bytes.p[0] == ' ')
        (void) refuse(h, 400, STR("malformed request target"));
    h->is_at_target = false;
    size_t n_parsed = 0;
    if (h->progress != H1_REFUSED)
        (void) parse(h, bytes, &n_parsed);
    *ret_consumed = n_method + n_parsed;
    return h->progress;
}

int h1_refusal(const struct h1 *h, struct str *ret_reason)
{
    *ret_reason = h->refusal_reason;
    return h->refusal;
}

bool h1_take_expect_continue(struct h1 *h)
{
    bool expects = h->expects_continue;
    h->expects_continue = false;
    return expects;
}

bool h1_keeps_alive(const struct h1 *h)
{
    return h->keeps_alive;
}

bool h1_is_http10(const struct h1 *h)
{
    return h->is_http10;
}

/* ---- answers ------------------------------------------------------------------------------ */

static const struct {
    int status;
    struct str line;
} status_lines[] = {
#define LINE(status, words) \
    { \
        status, \
        { \
            "HTTP/1.1 " #status " " words "\r\n", sizeof("HTTP/1.1 " #status " " words "\r\n") - 1 \
        } \
    }
    LINE(200, "OK"),
    LINE(201, "Created"),
    LINE(202, "Accepted"),
    LINE(204, "No Content"),
    LINE(206, "Partial Content"),
    LINE(301, "Moved Permanently"),
    LINE(302, "Found"),
    LINE(303, "See Other"),
    LINE(304, "Not Modified"),
    LINE(307, "Temporary Redirect"),
    LINE(308, "Permanent Redirect"),
    LINE(400, "Bad Request"),
    LINE(401, "Unauthorized"),
    LINE(403, "Forbidden"),
    LINE(404, "Not Found"),
    LINE(405, "Method Not Allowed"),
    LINE(406, "Not Acceptable"),
    LINE(408, "Request Timeout"),
    LINE(409, "Conflict"),
    LINE(410, "Gone"),
    LINE(413, "Request Entity Too Large"),
    LINE(414, "Request URI Too Long"),
    LINE(415, "Unsupported Media Type"),
    LINE(417, "Expectation Failed"),
    LINE(422, "Unprocessable Entity"),
    LINE(429, "Too Many Requests"),
    LINE(431, "Request Header Fields Too Large"),
    LINE(500, "Internal Server Error"),
    LINE(501, "Not Implemented"),
    LINE(502, "Bad Gateway"),
    LINE(503, "Service Unavailable"),
    LINE(504, "Gateway Timeout"),
    LINE(505, "HTTP Version Not Supported"),
    LINE(507, "Insufficient Storage"),
#undef LINE
};

static void write_status_line(struct buf *out, int status)
{
    for (size_t i = 0; i < N_ELEMENTS(status_lines); i++) {
        if (status_lines[i].status == status) {
            buf_append_str(out, status_lines[i].line);
            return;
        }
    }
    buf_printf(out, "HTTP/1.1 %d Status\r\n", status);
}

static void write_header(struct buf *out, struct str name, struct str value)
{
    char *to = buf_reserve(out, name.n + value.n + 4);
    memcpy(to, name.p, name.n);
    to += name.n;
    *to++ = ':';
    *to++ = ' ';
    for (size_t i = 0; i < value.n; i++)
        *to++ = (unsigned char) value.p[i] < ' ' || value.p[i] == 0x7f ? ' ' : value.p[i];
    *to++ = '\r';
    *to++ = '\n';
    *to = '\0';
    out->n += name.n + value.n + 4;
}

static size_t format_unsigned(uint64_t value, unsigned base, char out[20])
{
    char reversed[20];
    size_t n = 0;
    do {
        reversed[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

static void write_framing(struct buf *out, const struct h1_answer *a)
{
    char digits[20];
    if (a->framing == H1_LENGTH)
        write_header(out, STR("Content-Length"),
                     str_range(digits, format_unsigned(a->length, 10, digits)));
    if (a->framing == H1_CHUNKED)
        buf_append_str(out, STR("Transfer-Encoding: chunked\r\n"));
    if (a->closes)
        buf_append_str(out, STR("Connection: close\r\n"));
    else if (a->says_keep_alive)
        buf_append_str(out, STR("Connection: keep-alive\r\n"));
}

void h1_write_head(struct buf *out, const struct h1_answer *a)
{
    write_status_line(out, a->status);
    for (size_t i = 0; i < a->n_headers; i++)
        if (!message_is_framing_header(a->headers[i].name))
            write_header(out, a->headers[i].name, a->headers[i].value);
    if (a->date.n)
        write_header(out, STR("Date"), a->date);
    write_framing(out, a);
    buf_append_str(out, STR("\r\n"));
}

size_t h1_chunk_head(size_t n_bytes, char out[H1_CHUNK_HEAD_BYTES])
{
    char digits[20];
    size_t n = format_unsigned(n_bytes, 16, digits);
    memcpy(out, digits, n);
    out[n++] = '\r';
    out[n++] = '\n';
    return n;
}
