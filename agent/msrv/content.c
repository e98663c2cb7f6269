/* SPDX-License-Identifier: Apache-2.0 */
/* A file as the answer: its type, its age, and a range of it. */
#include <sys/stat.h>
#include <unistd.h>

#include "msrv/msrv_internal.h"

/* clang-format off */
static const struct {
    const char *suffix;
    const char *type;
} types[] = {
    {".json", "application/json"},
    {".zip",  "application/zip"},
    {".gz",   "application/gzip"},
    {".txt",  "text/plain; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".xml",  "text/xml; charset=utf-8"},
};
/* clang-format on */

static const char *type_of(struct str path)
{
    for (size_t i = 0; i < N_ELEMENTS(types); i++)
        if (str_ends_with(path, str_of(types[i].suffix)))
            return types[i].type;
    return "application/octet-stream";
}

/* ---- ranges (RFC 9110 14) ------------------------------------------------------------------- */

struct range {
    uint64_t begin, length;
};

enum range_verdict { RANGE_NONE, RANGE_GOOD, RANGE_OUTSIDE };

static bool is_number(struct str s, int64_t *ret)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return str_to_i64(s, ret) == 0;
}

static enum range_verdict suffix_range(struct str digits, uint64_t size, struct range *ret)
{
    int64_t n = 0;
    if (!is_number(digits, &n))
        return RANGE_NONE;
    if (n == 0 || size == 0)
        return RANGE_OUTSIDE;
    ret->length = MIN((uint64_t) n, size);
    ret->begin = size - ret->length;
    return RANGE_GOOD;
}

/* One range. Of several the whole file is sent, as RFC 9110 14.2 allows, and of what is no range.
 */
static enum range_verdict read_range(struct str header, uint64_t size, struct range *ret)
{
    if (!str_starts_with(header, STR("bytes=")) || str_find(header, ',') >= 0)
        return RANGE_NONE;
    struct str spec = str_trim(str_from(header, 6));
    ptrdiff_t dash = str_find(spec, '-');
    if (dash < 0)
        return RANGE_NONE;
    struct str first = str_sub(spec, 0, (size_t) dash), last = str_from(spec, (size_t) dash + 1);
    if (first.n == 0)
        return suffix_range(last, size, ret);
    int64_t begin = 0, end = INT64_MAX;
    if (!is_number(first, &begin) || (last.n && !is_number(last, &end)) || end < begin)
        return RANGE_NONE;
    if ((uint64_t) begin >= size)
        return RANGE_OUTSIDE;
    ret->begin = (uint64_t) begin;
    ret->length = MIN((uint64_t) end, size - 1) - ret->begin + 1;
    return RANGE_GOOD;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void answer_outside(struct request *r, uint64_t size)
{
    answer_error(r, 416, STR("invalid range: failed to overlap"));
    answer_header(r, STR("Content-Range"),
                  arena_printf(r->arena, "bytes */%llu", (unsigned long long) size));
}

static void answer_range(struct request *r, const char *path, const struct range *range)
{
    struct part *p = ARENA_NEW(r->arena, struct part);
    *p = (struct part){.path = path, .offset = range->begin, .length = range->length};
    answer_parts(r, p, 1);
}

/* Dates are compared as texts: a client gives back what it was told. */
static bool is_condition(struct request *r, struct str header, struct str modified)
{
    struct str value = message_header(r->message, header);
    return !value.p || str_eq(value, modified);
}

bool content_answer(struct request *r, const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, R_OK) < 0)
        return false;
    char date[HTTP_DATE_BYTES];
    http_date((int64_t) st.st_mtime * 1000000, date);
    struct str modified = arena_str(r->arena, str_of(date));
    uint64_t size = (uint64_t) st.st_size;
    struct range range = {0, size};
    enum range_verdict verdict = RANGE_NONE;
    struct str header = message_header(r->message, STR("range"));
    if (message_header(r->message, STR("if-modified-since")).p &&
        is_condition(r, STR("if-modified-since"), modified)) {
        r->answer.status = 304;
        answer_header(r, STR("Last-Modified"), modified);
        return true;
    }
    if (header.p && is_condition(r, STR("if-range"), modified))
        verdict = read_range(header, size, &range);
    if (verdict == RANGE_OUTSIDE) {
        answer_outside(r, size);
        return true;
    }
    r->answer.status = verdict == RANGE_GOOD ? 206 : 200;
    answer_header(r, STR("Accept-Ranges"), STR("bytes"));
    answer_header(r, STR("Content-Type"), str_of(type_of(str_of(path))));
    answer_header(r, STR("Last-Modified"), modified);
    if (verdict == RANGE_GOOD)
        answer_header(r, STR("Content-Range"),
                      arena_printf(r->arena, "bytes %llu-%llu/%llu",
                                   (unsigned long long) range.begin,
                                   (unsigned long long) (range.begin + range.length - 1),
                                   (unsigned long long) size));
    answer_range(r, path, &range);
    return true;
}
