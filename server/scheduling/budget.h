/* SPDX-License-Identifier: Apache-2.0 */
/* How often something may be done: so many at once, and so many a second in the long run. */
#pragma once

#include <pthread.h>

#include "base/lang.h"

struct budget {
    pthread_mutex_t lock;
    int64_t burst, per_s;
    int64_t left_millionths; /* of one */
    int64_t at_us;
};

void budget_init(struct budget *b, int64_t burst, int64_t per_s, int64_t now_us);
void budget_done(struct budget *b);
/* Takes one, from any thread; false: there is none. now_us is of a clock that never goes back. */
bool budget_take(struct budget *b, int64_t now_us);
