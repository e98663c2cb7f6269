/* SPDX-License-Identifier: Apache-2.0 */
#include "api/version.h"

enum stability { STABILITY_NONE, STABILITY_ALPHA, STABILITY_BETA, STABILITY_GA };

struct version {
    enum stability stability; /* STABILITY_NONE: the name does not follow the pattern */
    int64_t major, minor;
};

/* Digits without a leading zero, at most 9 of them. */
static bool take_number(struct str *rest, int64_t *ret_value)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
        n++;
    if (n == 0 || n > 9 || rest->p[0] == '0')
        return false;
    *ret_value = 0;
    for (size_t i = 0; i < n; i++)
        *ret_value = *ret_value * 10 + (rest->p[i] - '0');
    *rest = str_from(*rest, n);
    return true;
}

static struct version version_parse(struct str text)
{
    struct version v = {.stability = STABILITY_GA};
    struct str rest = str_from(text, 1);
    if (!str_starts_with(text, STR("v")) || !take_number(&rest, &v.major))
        return (struct version){.stability = STABILITY_NONE};
    if (rest.n == 0)
        return v;
    if (str_starts_with(rest, STR("alpha"))) {
        v.stability = STABILITY_ALPHA;
        rest = str_from(rest, 5);
    } else if (str_starts_with(rest, STR("beta"))) {
        v.stability = STABILITY_BETA;
        rest = str_from(rest, 4);
    }
    if (v.stability == STABILITY_GA || !take_number(&rest, &v.minor) || rest.n > 0)
        return (struct version){.stability = STABILITY_NONE};
    return v;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int version_compare(struct str a, struct str b)
{
    const struct version x = version_parse(a), y = version_parse(b);
    if (x.stability != y.stability)
        return compare_numbers(x.stability, y.stability);
    if (x.stability == STABILITY_NONE)
        return str_cmp(b, a);
    const int order = compare_numbers(x.major, y.major);
    return order ? order : compare_numbers(x.minor, y.minor);
}
