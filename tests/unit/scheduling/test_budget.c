/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/budget.h"

#include "test.h"

TEST(a_budget_is_spent_and_fills_again)
{
    const int64_t second_us = 1000000;
    CLEANUP(budget_done) struct budget b;
    budget_init(&b, /* burst= */ 3, /* per_s= */ 2, /* now_us= */ 5);
    for (int i = 0; i < 3; i++)
        assert_true(budget_take(&b, 5));
    assert_false(budget_take(&b, 5));
    assert_false(budget_take(&b, 5 + second_us / 4));
    assert_true(budget_take(&b, 5 + second_us / 2));
    assert_false(budget_take(&b, 5 + second_us / 2));
    /* However long nothing was taken: no more than at the start. */
    for (int i = 0; i < 3; i++)
        assert_true(budget_take(&b, INT64_MAX));
    assert_false(budget_take(&b, INT64_MAX));
}
