/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/csv.h"

#include <errno.h>

#include "base/buf.h"

void csv_init(struct csv_reader *r, struct str text)
{
    *r = (struct csv_reader){.rest = text, .line = 1};
}

static bool is_at(const struct csv_reader *r, char c)
{
    return r->rest.n && r->rest.p[0] == c;
}

/* Takes a line's end off, \n or \r\n; false when none stands there. */
static bool take_line_end(struct csv_reader *r)
{
    const size_t n = is_at(r, '\n') ? 1 : str_starts_with(r->rest, STR("\r\n")) ? 2 : 0;
    r->rest = str_from(r->rest, n);
    r->line += n > 0;
    return n > 0;
}

static int read_plain(struct csv_reader *r, struct str *ret, const char **ret_error)
{
    size_t n = 0;
    while (n < r->rest.n && r->rest.p[n] != ',' && r->rest.p[n] != '\n') {
        if (r->rest.p[n] == '"') {
            *ret_error = "bare \" in non-quoted field";
            return -EINVAL;
        }
        n++;
    }
    /* A carriage return is part of the line's end only right before it. */
    const bool ends_line = n == r->rest.n || r->rest.p[n] == '\n';
    const size_t n_field = ends_line && n && r->rest.p[n - 1] == '\r' ? n - 1 : n;
    *ret = str_sub(r->rest, 0, n_field);
    r->rest = str_from(r->rest, n_field == n || n == r->rest.n ? n : n_field);
    return 0;
}

static int read_quoted(struct csv_reader *r, struct arena *a, struct str *ret,
                       const char **ret_error)
{
    BUF_AUTO b = {0};
    size_t n_lines = 0;
    for (size_t i = 1; i < r->rest.n; i++) {
        const char c = r->rest.p[i];
        const bool is_escaped = c == '"' && i + 1 < r->rest.n && r->rest.p[i + 1] == '"';
        if (c == '"' && !is_escaped) {
            r->rest = str_from(r->rest, i + 1);
            r->line += n_lines;
            *ret = arena_str(a, buf_str(&b));
            return 0;
        }
        buf_append_char(&b, c);
        i += is_escaped;
        n_lines += c == '\n';
    }
    *ret_error = "extraneous or missing \" in quoted-field";
    return -EINVAL;
}

int csv_next(struct csv_reader *r, struct arena *a, struct csv_record *ret, const char **ret_error)
{
    while (take_line_end(r))
        ;
    if (!r->rest.n)
        return 0;
    ret->n = 0;
    ret->line = r->line;
    for (;;) {
        if (ret->n == CSV_MAX_FIELDS) {
            *ret_error = "too many fields";
            return -EINVAL;
        }
        struct str *field = &ret->fields[ret->n++];
        const int e =
            is_at(r, '"') ? read_quoted(r, a, field, ret_error) : read_plain(r, field, ret_error);
        if (e < 0)
            return e;
        if (!r->rest.n || take_line_end(r))
            return 1;
        if (!is_at(r, ',')) {
            *ret_error = "extraneous or missing \" in quoted-field";
            return -EINVAL;
        }
        r->rest = str_from(r->rest, 1);
    }
}
