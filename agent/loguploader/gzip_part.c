/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/gzip_part.h"

#include <errno.h>

#include "base/alloc.h"
#include "loguploader/logfiles.h"

#define WINDOW_BITS (15 + 16) /* 16: with gzip's head and tail */
#define MEMORY_LEVEL 8
#define OS_UNKNOWN 255 /* RFC 1952 2.3.1 */
/* How much is taken before its compressed size is asked for: each time costs a block's head. */
#define BLOCK_BYTES ((size_t) 16 * 1024)
/* Tail, last block and what incompressible bytes grow by. */
#define TAIL_BYTES ((size_t) 128)
#define OUT_BYTES ((size_t) 8 * 1024)
#define MAX_LABEL_BYTES ((size_t) 2048)

static size_t character(struct str s, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *) s.p;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3f);
    *ret = c;
    return n;
}

/* What Latin-1 lacks is escaped as EVE does it. */
static void append_latin1(struct buf *b, uint32_t c)
{
    if (c == 0)
        buf_append_str(b, STR("\\u0000"));
    else if (c > 0xffff)
        buf_printf(b, "\\U%08x", c);
    else if (c > 0xff)
        buf_printf(b, "\\u%04x", c);
    else
        buf_append_char(b, (char) c);
}

static char *latin1(struct str text)
{
    BUF_AUTO b = {0};
    if (!str_is_utf8(text))
        text = STR("");
    while (text.n > 0 && b.n < MAX_LABEL_BYTES) {
        uint32_t c;
        size_t n = character(text, &c);
        append_latin1(&b, c);
        text = str_from(text, n);
    }
    return buf_take(&b);
}

int gzip_part_begin(struct gzip_part *p, bool is_app, struct str label, int64_t created_s)
{
    *p = (struct gzip_part){.label = latin1(label)};
    if (deflateInit2(&p->z, Z_BEST_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        gzip_part_done(p);
        return -ENOMEM;
    }
    p->is_open = true;
    p->head = (gz_header){.time = (uLong) created_s, .os = OS_UNKNOWN};
    Bytef *label_bytes = (Bytef *) p->label;
    if (p->label[0] && is_app)
        p->head.name = label_bytes;
    else if (p->label[0])
        p->head.comment = label_bytes;
    (void) deflateSetHeader(&p->z, &p->head);
    return 0;
}

static int deflate_some(struct gzip_part *p, struct str bytes, int flush)
{
    p->z.next_in = (Bytef *) (uintptr_t) bytes.p;
    p->z.avail_in = (uInt) bytes.n;
    do {
        p->z.next_out = (Bytef *) buf_reserve(&p->out, OUT_BYTES);
        p->z.avail_out = (uInt) OUT_BYTES;
        if (deflate(&p->z, flush) == Z_STREAM_ERROR)
            return -EINVAL;
        p->out.n += OUT_BYTES - p->z.avail_out;
    } while (p->z.avail_out == 0);
    return 0;
}

bool gzip_part_has_room(const struct gzip_part *p, size_t n_bytes)
{
    return p->n_lines == 0 ||
           p->out.n + p->n_pending + n_bytes + TAIL_BYTES <= LOGFILES_TARGET_BYTES;
}

int gzip_part_add(struct gzip_part *p, struct str line)
{
    int r = deflate_some(p, line, Z_NO_FLUSH);
    p->n_pending += line.n;
    p->n_lines++;
    if (r < 0 || p->n_pending < BLOCK_BYTES)
        return r;
    p->n_pending = 0;
    return deflate_some(p, STR(""), Z_PARTIAL_FLUSH);
}

int gzip_part_finish(struct gzip_part *p)
{
    return deflate_some(p, STR(""), Z_FINISH);
}

void gzip_part_done(struct gzip_part *p)
{
    if (p->is_open)
        (void) deflateEnd(&p->z);
    mem_free(p->label);
    buf_done(&p->out);
    *p = (struct gzip_part){0};
}
