/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"

#include <stdio.h>
#include <zlib.h>

void desk_init(struct desk *d)
{
    *d = (struct desk){.loop = loop_new()};
    device_init(&d->device);
    d->msrv = msrv_new(&(struct msrv_options){
        .loop = d->loop,
        .clock = &d->device.clock.clock,
        .world = &device_world,
        .ctx = &d->device,
        .diag_path = d->device.diag_path,
    });
}

void desk_done(struct desk *d)
{
    msrv_free(d->msrv);
    loop_settle(d->loop);
    loop_free(d->loop);
    device_done(&d->device);
    buf_done(&d->out);
}

static void read_file(struct buf *out, const struct part *p)
{
    FILE *f = fopen(p->path, "r");
    if (!f)
        return;
    char *to = buf_reserve(out, p->length);
    size_t n = fseek(f, (long) p->offset, SEEK_SET) == 0 ? fread(to, 1, p->length, f) : 0;
    fclose(f);
    out->n += n;
    if (p->crc)
        *p->crc = (uint32_t) crc32(*p->crc, (const Bytef *) to, (uInt) n);
}

static void write_answer(struct desk *d, struct answer *a)
{
    answer_write_head(&d->out, a, d->device.clock.now_us);
    if (a->status == 204 || a->status == 304)
        return;
    for (size_t i = 0; i < a->n_parts; i++) {
        struct part *p = &a->parts[i];
        if (p->path)
            read_file(&d->out, p);
        if (p->make)
            p->make(p, p->make_arg);
        if (!p->path)
            buf_append_str(&d->out, p->bytes);
    }
}

static enum exchange_step feed(struct exchange *x, struct str rest, size_t n_piece)
{
    enum exchange_step step = EXCHANGE_READING;
    while (rest.n > 0 && (step == EXCHANGE_READING || step == EXCHANGE_CONTINUE)) {
        size_t n = n_piece ? MIN(n_piece, rest.n) : rest.n;
        step = exchange_feed(x, str_sub(rest, 0, n));
        rest = str_from(rest, n);
    }
    return step;
}

struct str desk_ask(struct desk *d, const char *address, struct str request, size_t n_piece)
{
    struct exchange x;
    exchange_init(&x, d->msrv, STR("net"), str_of(address), 40000);
    buf_reset(&d->out);
    enum exchange_step step = feed(&x, request, n_piece);
    if (step == EXCHANGE_TO_WORK) {
        exchange_work(&x);
        exchange_finish(&x);
    }
    if (x.request.answer.status)
        write_answer(d, &x.request.answer);
    else if (x.request.answer.is_proxied)
        buf_append_str(&d->out, STR("(proxied)"));
    exchange_done(&x);
    return buf_str(&d->out);
}

int desk_status(const struct desk *d)
{
    int64_t status = 0;
    (void) str_to_i64(str_sub(buf_str(&d->out), 9, 12), &status);
    return (int) status;
}

struct str desk_body(const struct desk *d)
{
    struct str all = buf_str(&d->out);
    ptrdiff_t end = str_find_str(all, STR("\r\n\r\n"));
    return end < 0 ? STR_NONE : str_from(all, (size_t) end + 4);
}

struct str desk_header(const struct desk *d, const char *name)
{
    struct str all = buf_str(&d->out), line;
    ptrdiff_t end = str_find_str(all, STR("\r\n\r\n"));
    all = end < 0 ? STR("") : str_sub(all, 0, (size_t) end);
    while (str_split(&all, '\n', &line)) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon > 0 && str_is(str_sub(line, 0, (size_t) colon), name))
            return str_trim(str_from(line, (size_t) colon + 1));
    }
    return STR_NONE;
}
