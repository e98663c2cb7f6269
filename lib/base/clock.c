/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define MICROS_PER_SECOND 1000000

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    (void) clock_gettime(id, &t);
    return (int64_t) t.tv_sec * MICROS_PER_SECOND + t.tv_nsec / 1000;
}

static int64_t system_wall(const struct clock *c)
{
    (void) c;
    return read_clock(CLOCK_REALTIME);
}

static int64_t system_monotonic(const struct clock *c)
{
    (void) c;
    return read_clock(CLOCK_MONOTONIC);
}

const struct clock clock_system = {system_wall, system_monotonic};

static int64_t virtual_now(const struct clock *c)
{
    return CONTAINER_OF(c, struct clock_virtual, clock)->now_us;
}

void clock_virtual_init(struct clock_virtual *v, int64_t now_us)
{
    v->clock = (struct clock){virtual_now, virtual_now};
    v->now_us = now_us;
}

/* ---- faster -------------------------------------------------------------------------------- */

/* Sequentially consistent throughout: it is set a few times in a program's life. */
static int64_t scaled_time(const struct clock_scaled *s, const atomic_int_fast64_t *base_us)
{
    for (;;) {
        const unsigned version = atomic_load(&s->version);
        const int64_t of_us = atomic_load(&s->of_us), begin_us = atomic_load(base_us);
        const double speed = atomic_load(&s->speed);
        const int64_t since_us = s->of->monotonic_us(s->of) - of_us;
        if (version % 2 == 0 && version == atomic_load(&s->version))
            return begin_us + (int64_t) ((double) since_us * speed);
    }
}

static int64_t scaled_wall(const struct clock *c)
{
    const struct clock_scaled *s = CONTAINER_OF(c, struct clock_scaled, clock);
    return scaled_time(s, &s->wall_us);
}

static int64_t scaled_monotonic(const struct clock *c)
{
    const struct clock_scaled *s = CONTAINER_OF(c, struct clock_scaled, clock);
    return scaled_time(s, &s->monotonic_us);
}

void clock_scaled_init(struct clock_scaled *s, const struct clock *of)
{
    s->clock = (struct clock){scaled_wall, scaled_monotonic};
    s->of = of;
    atomic_init(&s->version, 0);
    atomic_init(&s->of_us, of->monotonic_us(of));
    atomic_init(&s->wall_us, of->wall_us(of));
    atomic_init(&s->monotonic_us, atomic_load(&s->of_us));
    atomic_init(&s->speed, 1.0);
}

void clock_scaled_set_speed(struct clock_scaled *s, double factor)
{
    /* First, so that nobody has read a later time than the one the new speed begins at. */
    atomic_fetch_add(&s->version, 1);
    const int64_t of_us = s->of->monotonic_us(s->of);
    const int64_t gained_us =
        (int64_t) ((double) (of_us - atomic_load(&s->of_us)) * atomic_load(&s->speed));
    atomic_store(&s->of_us, of_us);
    atomic_fetch_add(&s->wall_us, gained_us);
    atomic_fetch_add(&s->monotonic_us, gained_us);
    atomic_store(&s->speed, factor);
    atomic_fetch_add(&s->version, 1);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Seconds count down from 1970 too: the fraction is always what follows them. */
static int64_t whole_seconds(int64_t wall_us)
{
    const int64_t seconds = wall_us / MICROS_PER_SECOND;
    return wall_us % MICROS_PER_SECOND < 0 ? seconds - 1 : seconds;
}

static void put_two(char *to, int value)
{
    to[0] = (char) ('0' + value / 10);
    to[1] = (char) ('0' + value % 10);
}

/* Up to the seconds, without a zone. By hand: every write has a time or two. */
static void format_seconds(int64_t wall_us, char out[CLOCK_SECONDS_BYTES])
{
    const time_t seconds = (time_t) whole_seconds(wall_us);
    struct tm tm = {0};
    (void) gmtime_r(&seconds, &tm);
    const int year = MIN(MAX(tm.tm_year + 1900, 0), 9999);
    memcpy(out, "0000-00-00T00:00:00", CLOCK_SECONDS_BYTES - 1);
    put_two(out, year / 100);
    put_two(out + 2, year % 100);
    put_two(out + 5, tm.tm_mon + 1);
    put_two(out + 8, tm.tm_mday);
    put_two(out + 11, tm.tm_hour);
    put_two(out + 14, tm.tm_min);
    put_two(out + 17, tm.tm_sec);
}

void clock_format_seconds(int64_t wall_us, char out[CLOCK_SECONDS_BYTES])
{
    format_seconds(wall_us, out);
    out[CLOCK_SECONDS_BYTES - 2] = 'Z';
    out[CLOCK_SECONDS_BYTES - 1] = 0;
}

void clock_format_micros(int64_t wall_us, char out[CLOCK_MICROS_BYTES])
{
    char seconds[CLOCK_SECONDS_BYTES];
    format_seconds(wall_us, seconds);
    const int64_t fraction = (wall_us % MICROS_PER_SECOND + MICROS_PER_SECOND) % MICROS_PER_SECOND;
    (void) snprintf(out, CLOCK_MICROS_BYTES, "%.19s.%06uZ", seconds, (unsigned) fraction);
}

/* Exactly n digits at p. */
static bool digits(struct str s, size_t at, size_t n, int *ret)
{
    int value = 0;
    for (size_t i = at; i < at + n; i++) {
        if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
            return false;
        value = value * 10 + (s.p[i] - '0');
    }
    *ret = value;
    return true;
}

static bool char_at(struct str s, size_t at, const char *any_of)
{
    return at < s.n && char_is_in(s.p[at], any_of);
}

/* "Z" or "+hh:mm", in seconds east of UTC. */
static int parse_zone(struct str s, int64_t *ret_offset)
{
    int hours = 0, minutes = 0;
    if (s.n == 1 && char_at(s, 0, "Zz")) {
        *ret_offset = 0;
        return 0;
    }
    if (s.n != 6 || !char_at(s, 0, "+-") || !digits(s, 1, 2, &hours) || s.p[3] != ':' ||
        !digits(s, 4, 2, &minutes) || hours > 23 || minutes > 59)
        return -EINVAL;
    *ret_offset = (s.p[0] == '-' ? -1 : 1) * (hours * 3600L + minutes * 60L);
    return 0;
}

static bool is_date(const struct tm *tm)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = tm->tm_year + 1900;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (tm->tm_mon < 0 || tm->tm_mon > 11 || tm->tm_mday < 1)
        return false;
    return tm->tm_mday <= days[tm->tm_mon] + (leap && tm->tm_mon == 1);
}

/* Of a good date. The year is taken to begin in March, so that the leap day is its last; timegm()
 * looks for time zones first. */
static int64_t days_since_1970(const struct tm *tm)
{
    const int64_t month = (tm->tm_mon + 10) % 12;                     /* March is 0 */
    const int64_t year = tm->tm_year + 1900 + 400 - (tm->tm_mon < 2); /* 400 years later: not < 0 */
    const int64_t day_of_year = (153 * month + 2) / 5 + tm->tm_mday - 1;
    const int64_t days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
    return days - 865565; /* 1970-01-01, 400 years later */
}

static int64_t seconds_since_1970(const struct tm *tm)
{
    return ((days_since_1970(tm) * 24 + tm->tm_hour) * 60 + tm->tm_min) * 60 + tm->tm_sec;
}

int clock_parse(struct str s, int64_t *ret_wall_us)
{
    struct tm tm = {0};
    bool shape =
        digits(s, 0, 4, &tm.tm_year) && char_at(s, 4, "-") && digits(s, 5, 2, &tm.tm_mon) &&
        char_at(s, 7, "-") && digits(s, 8, 2, &tm.tm_mday) && char_at(s, 10, "Tt") &&
        digits(s, 11, 2, &tm.tm_hour) && char_at(s, 13, ":") && digits(s, 14, 2, &tm.tm_min) &&
        char_at(s, 16, ":") && digits(s, 17, 2, &tm.tm_sec);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (!shape || !is_date(&tm) || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return -EINVAL;

    size_t at = 19;
    int64_t micros = 0, scale = MICROS_PER_SECOND / 10;
    if (char_at(s, at, ".")) {
        for (at++; at < s.n && s.p[at] >= '0' && s.p[at] <= '9'; at++, scale /= 10)
            micros += scale * (s.p[at] - '0');
        if (at == 20)
            return -EINVAL;
    }
    int64_t offset = 0;
    int r = parse_zone(str_from(s, at), &offset);
    if (r < 0)
        return r;
    *ret_wall_us = (seconds_since_1970(&tm) - offset) * MICROS_PER_SECOND + micros;
    return 0;
}
