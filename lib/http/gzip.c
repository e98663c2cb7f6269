/* SPDX-License-Identifier: Apache-2.0 */
#include "http/gzip.h"

#include <errno.h>
#include <zlib.h>

#include "base/buf.h"

#define GZIP_LEVEL 1
#define GZIP_WINDOW_BITS (15 + 16) /* 16: with the gzip header */
#define GZIP_MEMORY_LEVEL 8
#define GZIP_STEP_BYTES ((size_t) 64 * 1024)
/* zlib counts what it is given in an unsigned int. */
#define GZIP_INPUT_BYTES ((size_t) 1 << 30)

static int compress_piece(z_stream *z, struct str piece, int flush, struct buf *out)
{
    z->next_in = (Bytef *) piece.p;
    z->avail_in = (uInt) piece.n;
    int r;
    do {
        z->next_out = (Bytef *) buf_reserve(out, GZIP_STEP_BYTES);
        z->avail_out = (uInt) GZIP_STEP_BYTES;
        r = deflate(z, flush);
        if (r == Z_STREAM_ERROR)
            return -EINVAL;
        out->n += GZIP_STEP_BYTES - z->avail_out;
    } while (z->avail_out == 0);
    return 0;
}

static int compress_all(z_stream *z, const struct slice *in, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        for (struct str rest = in[i].s; rest.n > 0; rest = str_from(rest, GZIP_INPUT_BYTES)) {
            int r =
                compress_piece(z, str_sub(rest, 0, MIN(rest.n, GZIP_INPUT_BYTES)), Z_NO_FLUSH, out);
            if (r < 0)
                return r;
        }
    }
    return compress_piece(z, STR(""), Z_FINISH, out);
}

int http_gzip(const struct slice *in, size_t n, struct slice *ret)
{
    z_stream z = {0};
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    BUF_AUTO out = {0};
    int r = compress_all(&z, in, n, &out);
    (void) deflateEnd(&z);
    if (r < 0)
        return r;
    size_t n_bytes = out.n;
    *ret = slice_adopt(buf_take(&out), n_bytes);
    return 0;
}
