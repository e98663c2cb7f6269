/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of a local profile server's signals, as it comes and byte by byte: both must have the
 * same lines and endpoints, within limits. */
#include <stdlib.h>

#include "base/alloc.h"
#include "lps/signal.h"

/* What was understood, each line apart. */
static void read_line(struct str line, struct buf *to)
{
    ARENA_AUTO a = arena_new();
    const Eve__Profile__Signal *s = NULL;
    if (line.n > SIGNAL_MAX_LINE_BYTES || memchr(line.p, '\n', line.n))
        abort();
    const int r = signal_read(a, line, &s);
    buf_printf(to, "%d:", r);
    if (r == 0 && s->n_pending_changes > SIGNAL_MAX_ENDPOINTS)
        abort();
    for (size_t i = 0; r == 0 && i < s->n_pending_changes; i++)
        buf_printf(to, " %d", (int) s->pending_changes[i]);
    buf_append_char(to, '\n');
}

static int read_in_steps(struct str bytes, size_t step, struct buf *to)
{
    struct signal_lines l = {0};
    struct str line;
    int r = 0;
    for (size_t at = 0; at < bytes.n && r == 0; at += step) {
        /* Memory of its own: what is read beyond it is found. */
        const size_t n = at + step < bytes.n ? step : bytes.n - at;
        char *copy = mem_dup(bytes.p + at, n);
        struct str piece = str_range(copy, n);
        while ((r = signal_lines_next(&l, &piece, &line)) > 0)
            read_line(line, to);
        mem_free(copy);
    }
    if (r == 0)
        read_line(signal_lines_rest(&l), to);
    signal_lines_done(&l);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str bytes = str_range((const char *) data, size);
    BUF_AUTO whole = {0}, slow = {0};
    const int r = read_in_steps(bytes, size + 1, &whole);
    if (read_in_steps(bytes, 1, &slow) != r || !str_eq(buf_str(&whole), buf_str(&slow)))
        abort();
    return 0;
}
