/* SPDX-License-Identifier: Apache-2.0 */
/* Failed logins by address: each further one of an address within a minute is to be answered later
 * than the one before. IPv6 addresses count by their /64, which is one machine's to choose from. A
 * table of fixed size: when it is full, the address that has been quiet the longest is forgotten.
 */
#pragma once

#include "base/str.h"

#define LOGIN_FAILURES_MAX_ADDRESSES 8192
#define LOGIN_FAILURES_FIRST_DELAY_MS 100
#define LOGIN_FAILURES_MAX_DELAY_MS 5000
#define LOGIN_FAILURES_FORGET_MS 60000

struct login_failures;

struct login_failures *login_failures_new(void);
void login_failures_free(struct login_failures *l);
/* Counts one more at now_ms, which never goes back, and returns the delay: 0 for the first, then
 * 100 ms, doubling up to 5 s. From any thread. */
int64_t login_failures_add(struct login_failures *l, struct str address, int64_t now_ms);
