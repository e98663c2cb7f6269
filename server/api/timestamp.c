/* SPDX-License-Identifier: Apache-2.0 */
#include "api/timestamp.h"

#include <errno.h>

#include "base/clock.h"
#include "json/json.h"

static const struct str layouts[] = {
    [TIMESTAMP_SECONDS] = STR("2006-01-02T15:04:05Z07:00"),
    [TIMESTAMP_MICROS] = STR("2006-01-02T15:04:05.000000Z07:00"),
};

struct reader {
    struct arena *arena;
    struct str text, layout, rest;
    struct str error; /* the first; sticky */
};

static struct str quoted(struct arena *a, struct str s)
{
    BUF_AUTO b = {0};
    json_write_str(&b, s);
    return arena_str(a, buf_str(&b));
}

static void fail_element(struct reader *r, struct str from, const char *element)
{
    if (r->error.n > 0)
        return;
    r->error = arena_printf(r->arena, "parsing time %.*s as \"%.*s\": cannot parse %.*s as \"%s\"",
                            STR_ARG(quoted(r->arena, r->text)), STR_ARG(r->layout),
                            STR_ARG(quoted(r->arena, from)), element);
}

static void fail_range(struct reader *r, const char *what)
{
    if (r->error.n == 0)
        r->error = arena_printf(r->arena, "parsing time %.*s: %s out of range",
                                STR_ARG(quoted(r->arena, r->text)), what);
}

static bool is_digit(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

static int64_t read_number(struct reader *r, size_t n_digits, const char *element)
{
    int64_t value = 0;
    for (size_t i = 0; i < n_digits; i++) {
        if (!is_digit(r->rest, i)) {
            fail_element(r, r->rest, element);
            return 0;
        }
        value = value * 10 + (r->rest.p[i] - '0');
    }
    r->rest = str_from(r->rest, n_digits);
    return value;
}

static void read_literal(struct reader *r, const char *literal)
{
    if (r->error.n > 0)
        return;
    if (!str_starts_with(r->rest, str_of(literal)))
        fail_element(r, r->rest, literal);
    else
        r->rest = str_from(r->rest, 1);
}

static int64_t read_element(struct reader *r, size_t n_digits, const char *element)
{
    return r->error.n > 0 ? 0 : read_number(r, n_digits, element);
}

static int64_t days_in(int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && is_leap ? 29 : days[month - 1];
}

/* Seconds may have a fraction though the layout has none; micros must have six digits. */
static void read_fraction(struct reader *r, enum timestamp_precision precision)
{
    if (r->error.n > 0)
        return;
    const bool has_point = r->rest.n > 0 && (r->rest.p[0] == '.' || r->rest.p[0] == ',');
    size_t n = 0;
    while (has_point && is_digit(r->rest, n + 1))
        n++;
    if (precision == TIMESTAMP_MICROS) {
        if (n < 6)
            fail_element(r, r->rest, ".000000");
        n = MIN(n, (size_t) 6);
    }
    if (n > 0)
        r->rest = str_from(r->rest, n + 1);
}

static void read_zone(struct reader *r)
{
    if (r->error.n > 0)
        return;
    if (str_starts_with(r->rest, STR("Z"))) {
        r->rest = str_from(r->rest, 1);
        return;
    }
    const struct str z = r->rest;
    const bool is_offset = z.n >= 6 && (z.p[0] == '+' || z.p[0] == '-') && is_digit(z, 1) &&
                           is_digit(z, 2) && z.p[3] == ':' && is_digit(z, 4) && is_digit(z, 5);
    if (!is_offset) {
        fail_element(r, z, "Z07:00");
        return;
    }
    r->rest = str_from(z, 6);
}

static void read_all(struct reader *r, enum timestamp_precision precision)
{
    const int64_t year = read_element(r, 4, "2006");
    read_literal(r, "-");
    const int64_t month = read_element(r, 2, "01");
    if (month < 1 || month > 12)
        fail_range(r, "month");
    read_literal(r, "-");
    const int64_t day = read_element(r, 2, "02");
    read_literal(r, "T");
    if (read_element(r, 2, "15") >= 24)
        fail_range(r, "hour");
    read_literal(r, ":");
    if (read_element(r, 2, "04") >= 60)
        fail_range(r, "minute");
    read_literal(r, ":");
    if (read_element(r, 2, "05") >= 60)
        fail_range(r, "second");
    read_fraction(r, precision);
    read_zone(r);
    if (r->error.n == 0 && r->rest.n > 0)
        r->error =
            arena_printf(r->arena, "parsing time %.*s: extra text: %.*s",
                         STR_ARG(quoted(r->arena, r->text)), STR_ARG(quoted(r->arena, r->rest)));
    if (r->error.n == 0 && (day < 1 || day > days_in(year, month)))
        fail_range(r, "day");
}

int timestamp_parse(struct arena *a, struct str text, enum timestamp_precision precision,
                    int64_t *ret_wall_us, struct str *ret_error)
{
    struct reader r = {.arena = a, .text = text, .layout = layouts[precision], .rest = text};
    read_all(&r, precision);
    if (r.error.n == 0 && clock_parse(text, ret_wall_us) < 0)
        fail_element(&r, text, "2006");
    if (r.error.n == 0)
        return 0;
    *ret_error = r.error;
    return -EINVAL;
}

struct str timestamp_text(struct arena *a, int64_t wall_us, enum timestamp_precision precision)
{
    char text[CLOCK_MICROS_BYTES];
    if (precision == TIMESTAMP_MICROS)
        clock_format_micros(wall_us, text);
    else
        clock_format_seconds(wall_us, text);
    return arena_str(a, str_of(text));
}
