/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the text format, numbers as Go's client library writes them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics/metrics_internal.h"

/* Go's 'g' turns to exponents from here on. */
#define EXPONENT_FROM 6
#define EXPONENT_BELOW (-4)
/* 17 digits tell any two doubles apart. */
#define MAX_DIGITS 17
#define INTEGERS_BELOW 1000000.0

static const char *const type_names[] = {
    [METRIC_COUNTER] = "counter",
    [METRIC_GAUGE] = "gauge",
    [METRIC_HISTOGRAM] = "histogram",
};

/* The fewest digits that read back as the value; most need 15 or fewer. */
static void shortest_digits(double value, char digits[MAX_DIGITS + 1], int *ret_n,
                            int *ret_exponent)
{
    char text[48];
    for (int precision = 14; precision < MAX_DIGITS; precision++) {
        (void) snprintf(text, sizeof(text), "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    int n = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    *ret_exponent = *at == 'e' ? (int) strtol(at + 1, NULL, 10) : 0;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *ret_n = n;
}

static void write_finite(struct buf *b, double value)
{
    char digits[MAX_DIGITS + 1];
    int n = 0, exponent = 0;
    shortest_digits(fabs(value), digits, &n, &exponent);
    if (value < 0)
        buf_append_char(b, '-');
    if (exponent < EXPONENT_BELOW || exponent >= EXPONENT_FROM) {
        buf_append_char(b, digits[0]);
        if (n > 1)
            buf_append_char(b, '.');
        buf_append(b, digits + 1, (size_t) n - 1);
        buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0)
        buf_append(b, "0.0000", (size_t) (1 - exponent));
    for (int i = 0; i < n; i++) {
        if (i == exponent + 1 && exponent >= 0)
            buf_append_char(b, '.');
        buf_append_char(b, digits[i]);
    }
    for (int i = n; i <= exponent; i++)
        buf_append_char(b, '0');
}

void metrics_write_number(struct buf *b, double value)
{
    if (isnan(value))
        buf_append_str(b, STR("NaN"));
    else if (isinf(value))
        buf_append_str(b, value < 0 ? STR("-Inf") : STR("+Inf"));
    else if (value >= 0 && value < INTEGERS_BELOW && value == (double) (int64_t) value)
        metrics_write_count(b, (int64_t) value);
    else
        write_finite(b, value);
}

void metrics_write_count(struct buf *b, int64_t n)
{
    char digits[24];
    size_t at = sizeof(digits);
    if (n < 0 || (double) n >= INTEGERS_BELOW) {
        write_finite(b, (double) n);
        return;
    }
    do
        digits[--at] = (char) ('0' + n % 10);
    while (n /= 10);
    buf_append(b, digits + at, sizeof(digits) - at);
}

static void write_escaped(struct buf *b, struct str s, bool escapes_quotes)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\n')
            buf_append_str(b, STR("\\n"));
        else if (c == '\\' || (c == '"' && escapes_quotes))
            buf_append(b, (char[]){'\\', c}, 2);
        else
            buf_append_char(b, c);
    }
}

void metrics_write_label(struct buf *labels, const char *name, struct str value)
{
    if (labels->n)
        buf_append_char(labels, ',');
    buf_append_str(labels, str_of(name));
    buf_append_str(labels, STR("=\""));
    write_escaped(labels, value, true);
    buf_append_char(labels, '"');
}

void metrics_write_head(struct buf *b, const char *name, const char *help, enum metric_type type)
{
    buf_printf(b, "# HELP %s ", name);
    write_escaped(b, str_of(help), false);
    buf_printf(b, "\n# TYPE %s %s\n", name, type_names[type]);
}

static void write_name(struct buf *b, const char *name, const char *suffix,
                       const struct buf *labels, struct str le)
{
    buf_append_str(b, str_of(name));
    buf_append_str(b, str_of(suffix));
    bool has_labels = labels && labels->n;
    if (has_labels || le.n) {
        buf_append_char(b, '{');
        if (has_labels)
            buf_append_str(b, buf_str(labels));
        if (le.n) {
            buf_append_str(b, has_labels ? STR(",le=\"") : STR("le=\""));
            buf_append_str(b, le);
            buf_append_char(b, '"');
        }
        buf_append_char(b, '}');
    }
    buf_append_char(b, ' ');
}

void metrics_write_value(struct buf *b, const char *name, const struct buf *labels, double value)
{
    write_name(b, name, "", labels, STR_NONE);
    metrics_write_number(b, value);
    buf_append_char(b, '\n');
}

static void write_line(struct buf *b, const char *name, const char *suffix,
                       const struct buf *labels, struct str le, int64_t n)
{
    write_name(b, name, suffix, labels, le);
    metrics_write_count(b, n);
    buf_append_char(b, '\n');
}

void metrics_write_histogram(struct buf *b, const char *name, const struct buf *labels,
                             const struct metric_histogram *h)
{
    int64_t n = 0;
    BUF_AUTO le = {0};
    for (size_t i = 0; i < h->n_bounds; i++) {
        n += h->counts[i];
        buf_reset(&le);
        metrics_write_number(&le, h->bounds[i]);
        write_line(b, name, "_bucket", labels, buf_str(&le), n);
    }
    n += h->counts[h->n_bounds];
    write_line(b, name, "_bucket", labels, STR("+Inf"), n);
    write_name(b, name, "_sum", labels, STR_NONE);
    metrics_write_number(b, h->sum);
    buf_append_char(b, '\n');
    write_line(b, name, "_count", labels, STR_NONE, n);
}
