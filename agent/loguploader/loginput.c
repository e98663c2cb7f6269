/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/loginput.h"

#include <errno.h>

#define DEFAULT_LEVEL 6u

static const char *const severities[] = {"emerg",   "alert",  "crit", "err",
                                         "warning", "notice", "info", "debug"};

const char *loginput_severity(unsigned level)
{
    return severities[level & 7];
}

int loginput_level(struct str word)
{
    /* Those of Go's logger beside syslog's. */
    static const struct {
        const char *word;
        int level;
    } others[] = {{"none", -1}, {"panic", 1}, {"critical", 2}, {"fatal", 2},
                  {"error", 3}, {"warn", 4},  {"trace", 7},    {"all", 7}};
    for (unsigned i = 0; i < N_ELEMENTS(severities); i++)
        if (str_is(word, severities[i]))
            return (int) i;
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        if (str_is(word, others[i].word))
            return others[i].level;
    return 7;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `<30>`, taken off. */
static unsigned take_priority(struct str *s)
{
    ptrdiff_t end = str_find(str_sub(*s, 0, MIN(s->n, 5)), '>');
    int64_t priority;
    if (s->n < 3 || s->p[0] != '<' || end < 2 || !is_digit(s->p[1]) ||
        str_to_i64(str_sub(*s, 1, (size_t) end), &priority) < 0)
        return DEFAULT_LEVEL;
    *s = str_from(*s, (size_t) end + 1);
    return (unsigned) priority & 7;
}

/* `Jan  2 15:04:05 ` or a time of RFC 3339. */
static void take_time(struct str *s)
{
    if (s->n > 16 && s->p[3] == ' ' && s->p[6] == ' ' && s->p[9] == ':' && s->p[15] == ' ') {
        *s = str_from(*s, 16);
        return;
    }
    ptrdiff_t end = str_find(*s, ' ');
    if (end >= 19 && end <= 40 && s->p[4] == '-' && s->p[10] == 'T')
        *s = str_from(*s, (size_t) end + 1);
}

/* `[host] tag[pid]`, with a host only in front of a tag. */
static void read_tag(struct str tag, struct loginput *ret)
{
    ptrdiff_t blank = str_find_last(tag, ' ');
    if (blank >= 0)
        tag = str_from(tag, (size_t) blank + 1);
    ptrdiff_t bracket = str_find(tag, '[');
    if (bracket >= 0 && str_ends_with(tag, STR("]"))) {
        ret->pid = str_sub(tag, (size_t) bracket + 1, tag.n - 1);
        tag = str_sub(tag, 0, (size_t) bracket);
    }
    ret->source = tag;
}

struct loginput loginput_syslog(struct str datagram)
{
    const size_t max_tag = 256;
    while (datagram.n > 0 && datagram.p[datagram.n - 1] == '\0')
        datagram.n--;
    struct str rest = str_trim(datagram);
    struct loginput in = {.source = STR("syslog"), .pid = STR("")};
    in.level = take_priority(&rest);
    take_time(&rest);
    ptrdiff_t colon = str_find_str(str_sub(rest, 0, MIN(rest.n, max_tag)), STR(": "));
    if (colon > 0) {
        read_tag(str_sub(rest, 0, (size_t) colon), &in);
        rest = str_from(rest, (size_t) colon + 2);
    }
    in.content = str_trim(rest);
    return in;
}

int loginput_kernel(struct str record, struct loginput *ret)
{
    ptrdiff_t semicolon = str_find(record, ';');
    if (semicolon < 0)
        return -EBADMSG;
    struct str head = str_sub(record, 0, (size_t) semicolon), part;
    int64_t numbers[3] = {0};
    for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
        if (!str_split(&head, ',', &part) || str_to_i64(part, &numbers[i]) < 0 || numbers[i] < 0)
            return -EBADMSG;
    struct str content = str_from(record, (size_t) semicolon + 1);
    ptrdiff_t newline = str_find(content, '\n'); /* what follows are properties */
    *ret =
        (struct loginput){.level = (unsigned) numbers[0] & 7,
                          .source = STR("kernel"),
                          .content = newline < 0 ? content : str_sub(content, 0, (size_t) newline),
                          .sequence = (uint64_t) numbers[1],
                          .boot_us = numbers[2]};
    return 0;
}
