/* SPDX-License-Identifier: Apache-2.0 */
/* The functions a PAC script may call, as far as they need no script engine. */
#pragma once

#include <time.h>

#include "base/str.h"

/* Glob with `*` and `?`, in time that is at most the product of both lengths. */
bool uplink_pac_glob(struct str text, struct str pattern);
/* Dotted quad to host order; false: it is none. */
bool uplink_pac_ipv4(struct str text, uint32_t *ret);
bool uplink_pac_is_in_net(struct str address, struct str network, struct str mask);

/* An argument of a range: a number or a word. */
struct uplink_pac_arg {
    bool is_number;
    double number;
    struct str word;
};
bool uplink_pac_weekday_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now);
bool uplink_pac_date_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now);
bool uplink_pac_time_range(const struct uplink_pac_arg *args, size_t n, const struct tm *now);
