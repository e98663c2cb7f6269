/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/resp.h"

#include <errno.h>

/* Bytes that were read and are of no use any more go in pieces of this size. */
#define CONSUME_BYTES ((size_t) 256 * 1024)

void resp_reader_done(struct resp_reader *r)
{
    buf_done(&r->in);
}

static struct str unread(const struct resp_reader *r)
{
    return str_from(buf_str(&r->in), r->used);
}

static int need(struct resp_reader *r, size_t n_bytes)
{
    if (r->used >= CONSUME_BYTES) {
        buf_consume(&r->in, r->used);
        r->used = 0;
    }
    while (r->in.n - r->used < n_bytes) {
        const int result = r->more(r->ctx, &r->in);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Without its CR LF; lives until more is read. */
static int read_line(struct resp_reader *r, struct str *ret)
{
    ptrdiff_t end = 0;
    for (size_t n = 1; (end = str_find(unread(r), '\n')) < 0; n = unread(r).n + 1) {
        if (n > RESP_MAX_LINE_BYTES)
            return -E2BIG;
        const int result = need(r, n);
        if (result < 0)
            return result;
    }
    const struct str line = str_sub(unread(r), 0, (size_t) end);
    if (line.n >= RESP_MAX_LINE_BYTES)
        return -E2BIG;
    if (line.n < 2 || line.p[line.n - 1] != '\r')
        return -EBADMSG;
    r->used += (size_t) end + 1;
    *ret = str_sub(line, 0, line.n - 1);
    return 0;
}

static int take_text(struct resp_reader *r, struct arena *a, struct str text, struct resp *ret)
{
    r->n_bytes += text.n;
    if (r->n_bytes > RESP_MAX_REPLY_BYTES)
        return -E2BIG;
    ret->text = arena_str(a, text);
    return 0;
}

static int read_text(struct resp_reader *r, struct arena *a, int64_t n, struct resp *ret)
{
    if (n == -1)
        return 0; /* nil */
    if (n < 0)
        return -EBADMSG;
    if ((size_t) n > RESP_MAX_TEXT_BYTES)
        return -E2BIG;
    int result = need(r, (size_t) n + 2);
    if (result < 0)
        return result;
    const struct str text = str_sub(unread(r), 0, (size_t) n + 2);
    if (!str_ends_with(text, STR("\r\n")))
        return -EBADMSG;
    ret->type = RESP_TEXT;
    result = take_text(r, a, str_sub(text, 0, (size_t) n), ret);
    r->used += text.n;
    return result;
}

static int read_value(struct resp_reader *r, struct arena *a, unsigned depth, struct resp *ret);

/* Memory grows with what has come, not with what was announced. */
static int read_list(struct resp_reader *r, struct arena *a, int64_t n, unsigned depth,
                     struct resp *ret)
{
    if (n == -1)
        return 0;
    if (n < 0)
        return -EBADMSG;
    if (depth >= RESP_MAX_DEPTH || (size_t) n > RESP_MAX_ITEMS)
        return -E2BIG;
    ret->type = RESP_LIST;
    for (int64_t i = 0; i < n; i++) {
        struct resp item;
        const int result = read_value(r, a, depth + 1, &item);
        if (result < 0)
            return result;
        ret->items = arena_grow(a, ret->items, ret->n_items, sizeof(*ret->items));
        ret->items[ret->n_items++] = item;
    }
    return 0;
}

static int read_value(struct resp_reader *r, struct arena *a, unsigned depth, struct resp *ret)
{
    struct str line = STR("");
    int64_t number = 0;
    *ret = (struct resp){.type = RESP_NIL, .text = STR("")};
    if (++r->n_items > RESP_MAX_ITEMS)
        return -E2BIG;
    const int result = read_line(r, &line);
    if (result < 0)
        return result;
    const char kind = line.p[0];
    line = str_from(line, 1);
    if (kind == '+' || kind == '-') {
        ret->type = kind == '+' ? RESP_TEXT : RESP_ERROR;
        return take_text(r, a, line, ret);
    }
    if (str_to_i64(line, &number) < 0)
        return -EBADMSG;
    ret->number = number;
    switch (kind) {
    case ':':
        ret->type = RESP_INT;
        return 0;
    case '$':
        return read_text(r, a, number, ret);
    case '*':
        return read_list(r, a, number, depth, ret);
    default:
        return -EBADMSG;
    }
}

int resp_read(struct resp_reader *r, struct arena *a, struct resp *ret)
{
    r->n_items = r->n_bytes = 0;
    return read_value(r, a, 0, ret);
}

void resp_write_command(struct buf *to, const struct str *words, size_t n_words)
{
    buf_printf(to, "*%zu\r\n", n_words);
    for (size_t i = 0; i < n_words; i++) {
        buf_printf(to, "$%zu\r\n", words[i].n);
        buf_append_str(to, words[i]);
        buf_append_str(to, STR("\r\n"));
    }
}
