/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/response.h"

#include <errno.h>
#include <zlib.h>

#include "base/alloc.h"

#define GZIP_WINDOW_BITS (16 + MAX_WBITS)
#define INFLATE_STEP_BYTES ((size_t) 16 * 1024)

static int fail(struct uplink_response *a, int error)
{
    a->error = error;
    return HPE_USER;
}

/* ---- the head ------------------------------------------------------------------------------ */

static int keep_head(struct uplink_response *a, struct buf *to, const char *at, size_t n)
{
    a->n_head_bytes += n;
    if (a->n_head_bytes > UPLINK_RESPONSE_MAX_HEAD_BYTES)
        return fail(a, -EMSGSIZE);
    buf_append(to, at, n);
    return 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct uplink_response *a = p->data;
    return keep_head(a, &a->field, at, n);
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct uplink_response *a = p->data;
    return keep_head(a, &a->value, at, n);
}

static int begin_gzip(struct uplink_response *a)
{
    if (a->gzip)
        return 0;
    a->gzip = NEW(z_stream);
    return inflateInit2(a->gzip, GZIP_WINDOW_BITS) == Z_OK ? 0 : fail(a, -ENOMEM);
}

static void end_gzip(struct uplink_response *a)
{
    if (a->gzip)
        (void) inflateEnd(a->gzip);
    mem_free(a->gzip);
    a->gzip = NULL;
}

static int on_value_complete(llhttp_t *p)
{
    struct uplink_response *a = p->data;
    const struct str name = buf_str(&a->field), value = buf_str(&a->value);
    const struct {
        struct str name;
        struct buf *to;
    } kept[] = {{STR("content-type"), &a->content_type}, {STR("location"), &a->location}};
    for (size_t i = 0; i < N_ELEMENTS(kept); i++)
        if (str_eq_nocase(name, kept[i].name)) {
            buf_reset(kept[i].to);
            buf_append_str(kept[i].to, value);
        }
    const bool is_gzip =
        str_eq_nocase(name, STR("content-encoding")) && str_eq_nocase(value, STR("gzip"));
    buf_reset(&a->field);
    buf_reset(&a->value);
    return is_gzip ? begin_gzip(a) : 0;
}

static int on_headers_complete(llhttp_t *p)
{
    struct uplink_response *a = p->data;
    a->status = llhttp_get_status_code(p);
    return 0;
}

/* ---- the body ------------------------------------------------------------------------------ */

static int keep_body(struct uplink_response *a, const void *at, size_t n)
{
    if (n > a->max_body_bytes - a->body.n)
        return fail(a, -EMSGSIZE);
    buf_append(&a->body, at, n);
    return 0;
}

static int inflate_body(struct uplink_response *a, const char *at, size_t n)
{
    unsigned char step[INFLATE_STEP_BYTES];
    z_stream *z = a->gzip;
    z->next_in = (unsigned char *) at;
    z->avail_in = (unsigned) n;
    int r = a->is_gzip_over ? Z_DATA_ERROR : Z_OK;
    while (r == Z_OK && (z->avail_in > 0 || z->avail_out == 0)) {
        z->next_out = step;
        z->avail_out = sizeof(step);
        r = inflate(z, Z_NO_FLUSH);
        if (r == Z_BUF_ERROR)
            return 0; /* all of it was taken */
        if ((r == Z_OK || r == Z_STREAM_END) && keep_body(a, step, sizeof(step) - z->avail_out))
            return HPE_USER;
    }
    a->is_gzip_over = r == Z_STREAM_END;
    return r == Z_OK || r == Z_STREAM_END ? 0 : fail(a, -EBADMSG);
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct uplink_response *a = p->data;
    return a->gzip ? inflate_body(a, at, n) : keep_body(a, at, n);
}

static void forget_head(struct uplink_response *a)
{
    buf_reset(&a->content_type);
    buf_reset(&a->location);
    end_gzip(a);
}

static int on_complete(llhttp_t *p)
{
    struct uplink_response *a = p->data;
    /* "100 Continue" and its like come before the answer. */
    if (a->status / 100 == 1 && a->status != 101) {
        forget_head(a);
        return 0;
    }
    if (a->gzip && !a->is_gzip_over && a->gzip->total_in > 0)
        return fail(a, -EBADMSG);
    a->is_complete = true;
    return HPE_PAUSED;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static const llhttp_settings_t settings = {.on_header_field = on_field,
                                           .on_header_value = on_value,
                                           .on_header_value_complete = on_value_complete,
                                           .on_headers_complete = on_headers_complete,
                                           .on_body = on_body,
                                           .on_message_complete = on_complete};

void uplink_response_init(struct uplink_response *a, size_t max_body_bytes)
{
    *a = (struct uplink_response){.max_body_bytes = max_body_bytes};
    llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
    a->parser.data = a;
}

void uplink_response_done(struct uplink_response *a)
{
    end_gzip(a);
    struct buf *all[] = {&a->field, &a->value, &a->content_type, &a->location, &a->body};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        buf_done(all[i]);
}

int uplink_response_feed(struct uplink_response *a, struct str bytes)
{
    if (a->is_complete || a->error)
        return a->error ? a->error : 1;
    const llhttp_errno_t r = llhttp_execute(&a->parser, bytes.p, bytes.n);
    if (a->is_complete)
        return 1;
    if (a->error == 0 && r != HPE_OK)
        a->error = -EBADMSG;
    return a->error;
}

int uplink_response_end(struct uplink_response *a)
{
    if (!a->is_complete && a->error == 0)
        (void) llhttp_finish(&a->parser);
    return a->is_complete ? 1 : -ECONNRESET;
}
