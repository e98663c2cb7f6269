/* SPDX-License-Identifier: Apache-2.0 */
#include "reading/query.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "eve/info.pb-c.h"

static const struct str what_names[READING_WHATS] = {
    [READING_LOG] = {"log", 3},
    [READING_INFO] = {"info", 4},
    [READING_METRICS] = {"metrics", 7},
    [READING_FLOWLOG] = {"flowlog", 7},
    [READING_HARDWARE] = {"hardware", 8},
    [READING_REQUESTS] = {"requests", 8},
    [READING_LAST_SEEN] = {"lastseen", 8},
};

enum reading_what reading_what(struct str name)
{
    enum reading_what what = 0;
    while (what < READING_WHATS && !str_eq(name, what_names[what]))
        what++;
    return what;
}

struct str reading_what_name(enum reading_what what)
{
    return what_names[what];
}

/* ---- values --------------------------------------------------------------------------------- */

static int read_number(struct str text, uint64_t max, uint64_t *ret)
{
    int64_t value = 0;
    if (str_to_i64(text, &value) < 0 || value < 0 || (uint64_t) value > max)
        return -EINVAL;
    *ret = (uint64_t) value;
    return 0;
}

static int read_time(struct str text, int64_t *ret_us)
{
    const int64_t max_s = (int64_t) 1 << 40; /* beyond it microseconds overflow */
    int64_t seconds = 0;
    if (str_to_i64(text, &seconds) < 0)
        return clock_parse(text, ret_us);
    if (seconds < 0 || seconds > max_s)
        return -EINVAL;
    *ret_us = seconds * 1000000;
    return 0;
}

static int read_start(struct str text, struct reading_query *q)
{
    return read_time(text, &q->start_us);
}

static int read_end(struct str text, struct reading_query *q)
{
    return read_time(text, &q->end_us);
}

static int read_limit(struct str text, struct reading_query *q)
{
    int r = read_number(text, READING_MAX_LIMIT, &q->limit);
    return r == 0 && q->limit == 0 ? -EINVAL : r;
}

static int read_app(struct str text, struct reading_query *q)
{
    q->has_app = true;
    return str_is(text, "none") ? 0 : uuid_parse(text, &q->app);
}

static int read_severity(struct str text, struct reading_query *q)
{
    q->severity = text;
    return text.n ? 0 : -EINVAL;
}

static int read_source(struct str text, struct reading_query *q)
{
    q->source = text;
    return text.n ? 0 : -EINVAL;
}

static int read_contains(struct str text, struct reading_query *q)
{
    q->contains = text;
    return text.n ? 0 : -EINVAL;
}

/* "ZiDevice", "device" or 1. */
static int read_type(struct str text, struct reading_query *q)
{
    const ProtobufCEnumDescriptor *d = &eve__info__zinfo_types__descriptor;
    uint64_t number = 0;
    q->has_type = true;
    if (read_number(text, INT32_MAX, &number) == 0) {
        q->type = (int32_t) number;
        return 0;
    }
    for (unsigned i = 0; i < d->n_values; i++) {
        struct str name = str_of(d->values[i].name);
        if (str_eq_nocase(name, text) || str_eq_nocase(str_from(name, 2), text)) {
            q->type = d->values[i].value;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_by(struct str text, struct reading_query *q)
{
    q->is_by_device = str_is(text, "device");
    return q->is_by_device || str_is(text, "arrival") ? 0 : -EINVAL;
}

static int read_after(struct str text, struct reading_query *q)
{
    uint64_t line = 0;
    ptrdiff_t dash = str_find(text, '-');
    struct str record = dash < 0 ? text : str_sub(text, 0, (size_t) dash);
    q->has_after = true;
    if (read_number(record, INT64_MAX, &q->after.record) < 0)
        return -EINVAL;
    if (dash >= 0 &&
        (read_number(str_from(text, (size_t) dash + 1), UINT32_MAX, &line) < 0 || line == 0))
        return -EINVAL;
    q->after.line = (uint32_t) line;
    return 0;
}

static int read_follow(struct str text, struct reading_query *q)
{
    q->is_following = str_is(text, "true");
    return q->is_following || str_is(text, "false") ? 0 : -EINVAL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

#define OF_LOG (1u << READING_LOG)
#define OF_INFO (1u << READING_INFO)
#define OF_FLOWLOG (1u << READING_FLOWLOG)
#define OF_ALL ((1u << READING_LAST_SEEN) - 1)

static const struct parameter {
    struct str name;
    unsigned of; /* mask of what it is for */
    const char *takes;
    int (*read)(struct str text, struct reading_query *q);
} parameters[] = {
    {{"after", 5}, OF_ALL, "the id of a line, such as 17 or 17-4", read_after},
    {{"app", 3},
     OF_LOG | OF_INFO | OF_FLOWLOG,
     "the UUID of an application, or none for what is of no application",
     read_app},
    {{"by", 2}, OF_ALL, "arrival or device", read_by},
    {{"contains", 8}, OF_LOG, "a part of the content", read_contains},
    {{"end", 3}, OF_ALL, "a time as RFC 3339 has it, or Unix seconds", read_end},
    {{"follow", 6}, OF_ALL, "true or false", read_follow},
    {{"limit", 5}, OF_ALL, "a number from 1 to 1000000", read_limit},
    {{"severity", 8}, OF_LOG, "severities, with a comma between them", read_severity},
    {{"source", 6}, OF_LOG, "sources, with a comma between them", read_source},
    {{"start", 5}, OF_ALL, "a time as RFC 3339 has it, or Unix seconds", read_start},
    {{"type", 4},
     OF_INFO,
     "the name or number of a ZInfoTypes, such as ZiDevice, device or 1",
     read_type},
};

static int refuse_name(const struct request_parameter *p, enum reading_what what, struct status *st)
{
    BUF_AUTO names = {0};
    for (size_t i = 0; i < N_ELEMENTS(parameters); i++)
        if (parameters[i].of >> what & 1)
            buf_printf(&names, "%s%.*s", names.n ? ", " : "", STR_ARG(parameters[i].name));
    struct str name = what_names[what], quoted = status_quote(st->arena, p->name);
    if (!names.n)
        return status_bad_request(st, "unknown parameter %.*s: %.*s takes none", STR_ARG(quoted),
                                  STR_ARG(name));
    return status_bad_request(st, "unknown parameter %.*s: %.*s takes %.*s", STR_ARG(quoted),
                              STR_ARG(name), STR_ARG(buf_str(&names)));
}

static int read_parameter(const struct request_parameter *p, struct reading_query *q,
                          struct status *st)
{
    for (size_t i = 0; i < N_ELEMENTS(parameters); i++) {
        const struct parameter *known = &parameters[i];
        if (!str_eq(known->name, p->name) || !(known->of >> q->what & 1))
            continue;
        if (known->read(p->value, q) == 0)
            return 0;
        return status_bad_request(st, "invalid value %.*s of the parameter %.*s: it takes %s",
                                  STR_ARG(status_quote(st->arena, p->value)), STR_ARG(known->name),
                                  known->takes);
    }
    return refuse_name(p, q->what, st);
}

int reading_query_parse(const struct request_query *in, enum reading_what what,
                        struct reading_query *ret, struct status *st)
{
    struct reading_query q = {.what = what};
    for (size_t i = 0; i < in->n; i++) {
        int r = read_parameter(&in->parameters[i], &q, st);
        if (r < 0)
            return r;
    }
    if (q.end_us && q.is_following)
        return status_bad_request(st, "the parameters end and follow exclude each other");
    if (q.is_by_device && q.limit > READING_MAX_ORDERED_LIMIT)
        return status_bad_request(st, "the parameter limit takes at most %d with by=device",
                                  READING_MAX_ORDERED_LIMIT);
    *ret = q;
    return 0;
}
