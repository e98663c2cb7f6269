/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a Redis server: the first byte says in which pieces they come, the rest is what comes.
 * Pieces make no difference, and what was read lies within the limits. */
#include <errno.h>
#include <stdlib.h>

#include "adam/resp.h"
#include "adam/store.h"

#define MAX_REPLIES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

struct source {
    struct str rest;
    size_t step;
};

static int hand_out(void *ctx, struct buf *to)
{
    struct source *s = ctx;
    const size_t n = MIN(s->step, s->rest.n);
    if (n == 0)
        return -EPIPE;
    buf_append(to, s->rest.p, n);
    s->rest = str_from(s->rest, n);
    return 0;
}

static size_t measure(struct arena *a, const struct resp *v, unsigned depth)
{
    size_t n = 1 + v->text.n;
    struct str serials;
    require(depth <= RESP_MAX_DEPTH);
    require(v->type == RESP_LIST || v->n_items == 0);
    if (v->type == RESP_TEXT)
        (void) adam_store_unpack_serials(a, v->text, &serials);
    for (size_t i = 0; i < v->n_items; i++)
        n += measure(a, &v->items[i], depth + 1);
    return n;
}

/* What all replies say, as one number; the error that ended them is in it. */
static size_t read_all(struct str bytes, size_t step)
{
    ARENA_AUTO a = arena_new();
    struct source s = {bytes, step};
    struct resp_reader r = {.more = hand_out, .ctx = &s};
    struct resp v;
    size_t sum = 0;
    int result = 0;
    for (int i = 0; i < MAX_REPLIES && (result = resp_read(&r, a, &v)) == 0; i++)
        sum = sum * 31 + measure(a, &v, 0);
    resp_reader_done(&r);
    return sum * 31 + (size_t) -result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct str bytes = str_range((const char *) data + 1, size - 1);
    require(read_all(bytes, (size_t) data[0] + 1) == read_all(bytes, bytes.n + 1));
    return 0;
}
