/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/pac_functions.h"

#include <arpa/inet.h>

bool uplink_pac_glob(struct str text, struct str pattern)
{
    size_t t = 0, p = 0, star_p = SIZE_MAX, star_t = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star_p = p++;
            star_t = t;
        } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == text.p[t])) {
            p++;
            t++;
        } else if (star_p != SIZE_MAX) {
            p = star_p + 1;
            t = ++star_t;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

bool uplink_pac_ipv4(struct str text, uint32_t *ret)
{
    char z[INET_ADDRSTRLEN];
    struct in_addr a;
    if (text.n == 0 || text.n >= sizeof(z))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = 0;
    if (inet_pton(AF_INET, z, &a) != 1)
        return false;
    *ret = ntohl(a.s_addr);
    return true;
}

bool uplink_pac_is_in_net(struct str address, struct str network, struct str mask)
{
    uint32_t a, n, m;
    return uplink_pac_ipv4(address, &a) && uplink_pac_ipv4(network, &n) &&
           uplink_pac_ipv4(mask, &m) && (a & m) == (n & m);
}

/* The place of a three-letter word in a list of such, or -1. */
static int find_word(struct str word, const char *list)
{
    if (word.n != 3)
        return -1;
    for (int i = 0; list[3 * i]; i++)
        if (str_eq_nocase(word, str_range(list + 3 * i, 3)))
            return i;
    return -1;
}

static bool is_between(int64_t x, int64_t from, int64_t to)
{
    return from <= to ? from <= x && x <= to : x >= from || x <= to;
}

bool uplink_pac_weekday_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now)
{
    static const char days[] = "SUNMONTUEWEDTHUFRISAT";
    const int from = n > 0 ? find_word(args[0].word, days) : -1;
    const int to = n > 1 ? find_word(args[1].word, days) : from;
    return from >= 0 && to >= 0 && is_between(now->tm_wday, from, to);
}

/* A day (1 to 31), a month (JAN), a year: each adds its digits to what is compared. */
static bool add_date_part(const struct uplink_pac_arg *a, const struct tm *now, int64_t *value,
                          int64_t *current)
{
    const int month = find_word(a->word, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC");
    if (!a->is_number) {
        *value += (month + 1) * 100;
        *current += (now->tm_mon + 1) * 100;
        return month >= 0;
    }
    if (!(a->number >= 1 && a->number <= 9999))
        return false;
    *value += a->number <= 31 ? (int64_t) a->number : (int64_t) a->number * 10000;
    *current += a->number <= 31 ? now->tm_mday : ((int64_t) now->tm_year + 1900) * 10000;
    return true;
}

bool uplink_pac_date_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now)
{
    int64_t from = 0, to = 0, current = 0, again = 0;
    if (n == 0 || n > 6 || (n > 1 && n % 2 != 0))
        return false;
    const size_t half = n == 1 ? 1 : n / 2;
    for (size_t i = 0; i < half; i++)
        if (!add_date_part(&args[i], now, &from, &current) ||
            !add_date_part(&args[n == 1 ? i : half + i], now, &to, &again))
            return false;
    return current == again && is_between(current, from, to);
}

bool uplink_pac_time_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now)
{
    static const int64_t units[] = {3600, 60, 1};
    const int64_t parts[] = {now->tm_hour, now->tm_min, now->tm_sec};
    int64_t from = 0, to = 0, current = 0;
    if (n == 0 || n > 6 || (n > 1 && n % 2 != 0))
        return false;
    const size_t half = n == 1 ? 1 : n / 2;
    for (size_t i = 0; i < half; i++) {
        const struct uplink_pac_arg *a = &args[i], *b = &args[n == 1 ? i : half + i];
        if (!(a->is_number && b->is_number && a->number >= 0 && a->number < 60 && b->number >= 0 &&
              b->number < 60))
            return false;
        from += (int64_t) a->number * units[i];
        to += (int64_t) b->number * units[i];
        current += parts[i] * units[i];
    }
    return is_between(current, from, to);
}
