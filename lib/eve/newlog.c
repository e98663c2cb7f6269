/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/newlog.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "json/json.h"

#define CHUNK_BYTES ((size_t) 16 * 1024)
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; 16 more: with gzip's head and tail */

/* ---- the head (RFC 1952 2.3) ---------------------------------------------------------------- */

#define FIXED_HEAD_BYTES 10

enum flag {
    FLAG_HEAD_CRC = 2,
    FLAG_EXTRA = 4,
    FLAG_NAME = 8,
    FLAG_COMMENT = 16,
    FLAGS_RESERVED = 0xe0,
};

struct cursor {
    struct str rest;
    bool failed;
};

struct raw_head {
    struct str name, comment; /* Latin-1 */
    int64_t created_s;
};

static struct str take(struct cursor *c, size_t n)
{
    if (c->failed || n > c->rest.n) {
        c->failed = true;
        return STR("");
    }
    struct str taken = str_range(c->rest.p, n);
    c->rest = str_from(c->rest, n);
    return taken;
}

static struct str take_text(struct cursor *c)
{
    ptrdiff_t n = str_find(c->rest, '\0');
    if (n < 0)
        c->failed = true;
    struct str text = take(c, n < 0 ? 0 : (size_t) n);
    (void) take(c, 1);
    return text;
}

static uint32_t little_endian(struct str s)
{
    uint32_t value = 0;
    for (size_t i = s.n; i > 0; i--)
        value = value << 8 | (unsigned char) s.p[i - 1];
    return value;
}

static int read_raw_head(struct str gzip, struct raw_head *ret)
{
    /* Whoever passes a longer head does not get to its end. */
    struct cursor c = {.rest = str_sub(gzip, 0, MIN(gzip.n, NEWLOG_MAX_HEADER_BYTES))};
    struct raw_head head = {STR(""), STR(""), 0};
    struct str fixed = take(&c, FIXED_HEAD_BYTES);
    if (c.failed || memcmp(fixed.p, "\x1f\x8b\x08", 3) != 0)
        return -EBADMSG;
    unsigned char flags = (unsigned char) fixed.p[3];
    head.created_s = little_endian(str_sub(fixed, 4, 8));
    if (flags & FLAG_EXTRA)
        (void) take(&c, little_endian(take(&c, 2)));
    if (flags & FLAG_NAME)
        head.name = take_text(&c);
    if (flags & FLAG_COMMENT)
        head.comment = take_text(&c);
    if (flags & FLAG_HEAD_CRC)
        (void) take(&c, 2);
    if (c.failed || flags & FLAGS_RESERVED)
        return -EBADMSG;
    *ret = head;
    return 0;
}

static void put_utf8(struct buf *to, uint32_t c)
{
    if (c < 0x80) {
        buf_append_char(to, (char) c);
        return;
    }
    if (c < 0x800) {
        buf_append_char(to, (char) (0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            buf_append_char(to, (char) (0xe0 | c >> 12));
        } else {
            buf_append_char(to, (char) (0xf0 | c >> 18));
            buf_append_char(to, (char) (0x80 | (c >> 12 & 0x3f)));
        }
        buf_append_char(to, (char) (0x80 | (c >> 6 & 0x3f)));
    }
    buf_append_char(to, (char) (0x80 | (c & 0x3f)));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character of an escape at the beginning of s, or 0. Only those that Latin-1 lacks are ever
 * escaped; to read others would break the JSON of a comment. */
static uint32_t escaped(struct str s, size_t *ret_n)
{
    if (s.n < 2 || s.p[0] != '\\' || (s.p[1] != 'u' && s.p[1] != 'U'))
        return 0;
    size_t n = 2 + (s.p[1] == 'u' ? 4 : 8);
    uint32_t c = 0;
    if (s.n < n)
        return 0;
    for (size_t i = 2; i < n; i++) {
        int digit = hex_digit(s.p[i]);
        if (digit < 0)
            return 0;
        c = c << 4 | (uint32_t) digit;
    }
    if (c <= 0xff || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        return 0;
    *ret_n = n;
    return c;
}

static struct str latin1_text(struct arena *a, struct str s)
{
    BUF_AUTO text = {0};
    while (s.n > 0) {
        size_t n = 1;
        uint32_t c = escaped(s, &n);
        put_utf8(&text, c ? c : (unsigned char) s.p[0]);
        /* An escaped backslash is no beginning of another escape. */
        if (s.n > 1 && s.p[0] == '\\' && s.p[1] == '\\') {
            buf_append_char(&text, '\\');
            n = 2;
        }
        s = str_from(s, n);
    }
    return arena_str(a, buf_str(&text));
}

int newlog_read_head(struct arena *a, struct str gzip, struct newlog_head *ret)
{
    struct raw_head head;
    int r = read_raw_head(gzip, &head);
    if (r < 0)
        return r;
    ret->name = latin1_text(a, head.name);
    ret->comment = latin1_text(a, head.comment);
    ret->created_s = head.created_s;
    return 0;
}

/* ---- what it holds -------------------------------------------------------------------------- */

/* Inflates all of it into the chunk, again and again, and hands each filling to `to` unless that is
 * NULL. */
static int inflate_member(z_stream *z, struct buf *to)
{
    unsigned char chunk[CHUNK_BYTES];
    int r = Z_OK;
    while (r == Z_OK) {
        z->next_out = chunk;
        z->avail_out = sizeof(chunk);
        r = inflate(z, Z_NO_FLUSH);
        if (z->total_out > NEWLOG_MAX_INFLATED_BYTES)
            return -EMSGSIZE;
        if (to)
            buf_append(to, chunk, sizeof(chunk) - z->avail_out);
    }
    /* zlib has compared the checksum and the length; what is cut short ends in Z_BUF_ERROR. */
    return r == Z_STREAM_END && z->avail_in == 0 ? 0 : -EBADMSG;
}

static int inflate_all(struct str gzip, struct buf *to)
{
    struct raw_head head;
    if (gzip.n > UINT_MAX || read_raw_head(gzip, &head) < 0)
        return -EBADMSG;
    z_stream z = {.next_in = (unsigned char *) (uintptr_t) gzip.p, .avail_in = (unsigned) gzip.n};
    if (inflateInit2(&z, GZIP_WINDOW_BITS) != Z_OK)
        return -ENOMEM;
    int r = inflate_member(&z, to);
    (void) inflateEnd(&z);
    return r;
}

int newlog_check(struct str gzip)
{
    return inflate_all(gzip, NULL);
}

int newlog_inflate(struct buf *to, struct str gzip)
{
    size_t n_before = to->n;
    int r = inflate_all(gzip, to);
    if (r < 0 && to->p) {
        to->n = n_before;
        to->p[to->n] = '\0';
    }
    return r;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static uint64_t get_unsigned(const struct json *object, struct str key)
{
    const struct json *v = json_get(object, key);
    if (json_is(v, JSON_INT))
        return (uint64_t) v->i;
    /* Beyond int64 a number is read as a double. */
    if (json_is(v, JSON_DOUBLE) && v->d > 0)
        return v->d < 0x1p64 ? (uint64_t) v->d : UINT64_MAX;
    return 0;
}

static void read_texts(const struct json *line, struct newlog_entry *entry)
{
    const struct {
        struct str key, *to;
    } texts[] = {
        {STR("severity"), &entry->severity}, {STR("source"), &entry->source},
        {STR("iid"), &entry->iid},           {STR("content"), &entry->content},
        {STR("filename"), &entry->filename}, {STR("function"), &entry->function},
    };
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        struct str text = json_get_str(line, texts[i].key);
        *texts[i].to = text.p ? text : STR("");
    }
}

static int read_line(struct arena *a, struct str text, struct newlog_entry *ret)
{
    const struct json *line = json_parse_quick(a, text);
    if (!json_is(line, JSON_OBJECT))
        return -EBADMSG;
    struct newlog_entry entry = {0};
    read_texts(line, &entry);
    entry.msgid = get_unsigned(line, STR("msgid"));
    const struct json *timestamp = json_get(line, STR("timestamp"));
    entry.seconds = json_get_int(timestamp, STR("seconds"), 0);
    entry.nanos = json_get_int(timestamp, STR("nanos"), 0);
    struct json *tags = json_get(line, STR("tags"));
    entry.tags = json_is(tags, JSON_OBJECT) ? tags : NULL;
    *ret = entry;
    return 0;
}

int newlog_next(struct arena *a, struct str *rest, struct newlog_entry *ret)
{
    struct str line;
    while (str_split(rest, '\n', &line))
        if (str_trim(line).n > 0)
            return read_line(a, line, ret);
    return -ENOENT;
}
