/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/budget.h"

#define ONE ((int64_t) 1000000)

void budget_init(struct budget *b, int64_t burst, int64_t per_s, int64_t now_us)
{
    *b = (struct budget){
        .burst = burst, .per_s = per_s, .left_millionths = burst * ONE, .at_us = now_us};
    (void) pthread_mutex_init(&b->lock, NULL);
}

void budget_done(struct budget *b)
{
    (void) pthread_mutex_destroy(&b->lock);
}

bool budget_take(struct budget *b, int64_t now_us)
{
    (void) pthread_mutex_lock(&b->lock);
    /* A longer pause gives no more: it fills the budget, and does not overflow. */
    const int64_t pause_us = MIN(MAX(now_us - b->at_us, 0), b->burst * ONE / b->per_s);
    b->left_millionths = MIN(b->left_millionths + pause_us * b->per_s, b->burst * ONE);
    b->at_us = now_us;
    const bool is_there = b->left_millionths >= ONE;
    if (is_there)
        b->left_millionths -= ONE;
    (void) pthread_mutex_unlock(&b->lock);
    return is_there;
}
