/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/machine.h"

#include "base/random.h"
#include "test.h"

struct expected {
    enum attest_event event;
    enum attest_action action;
    enum attest_state state;
};

static void walk(struct attest_machine *m, const struct expected *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(attest_machine_step(m, e[i].event), e[i].action);
        assert_int_equal(m->state, e[i].state);
    }
}
#define WALK(m, ...) \
    do { \
        const struct expected list[] = {__VA_ARGS__}; \
        walk(m, list, N_ELEMENTS(list)); \
    } while (0)

TEST(states_are_numbered_as_the_api_has_them)
{
    assert_int_equal(ATTEST_NONCE_WAIT, 1);
    assert_int_equal(ATTEST_ESCROW_WAIT, 5);
    assert_int_equal(ATTEST_COMPLETE, 7);
    for (enum attest_state s = 0; s < ATTEST_STATES; s++)
        assert_string_not_equal(attest_state_name(s), "?");
    assert_string_equal(attest_state_name(ATTEST_STATES), "?");
}

TEST(a_good_attestation_completes)
{
    struct attest_machine m = {0};
    WALK(&m, {ATTEST_START, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT},
         {ATTEST_NONCE, ATTEST_ASK_QUOTE, ATTEST_INTERNAL_QUOTE_WAIT},
         {ATTEST_QUOTE, ATTEST_SEND_QUOTE, ATTEST_WAIT},
         {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_RECORDED, ATTEST_FINISH, ATTEST_COMPLETE});
}

TEST(the_key_of_the_vault_may_come_later)
{
    struct attest_machine m = {.state = ATTEST_WAIT};
    WALK(&m, {ATTEST_ESCROW, ATTEST_DO_NOTHING, ATTEST_WAIT},
         {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_NO_ESCROW, ATTEST_DO_NOTHING, ATTEST_INTERNAL_ESCROW_WAIT},
         {ATTEST_ESCROW, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_RECORDED, ATTEST_FINISH, ATTEST_COMPLETE});
}

TEST(a_request_that_fails_is_repeated_from_where_it_was)
{
    struct attest_machine m = {0};
    WALK(&m, {ATTEST_START, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT},
         {ATTEST_FAILED, ATTEST_START_TIMER, ATTEST_NONCE_WAIT},
         {ATTEST_TIMEOUT, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT},
         {ATTEST_NONCE, ATTEST_ASK_QUOTE, ATTEST_INTERNAL_QUOTE_WAIT},
         {ATTEST_QUOTE, ATTEST_SEND_QUOTE, ATTEST_WAIT},
         {ATTEST_FAILED, ATTEST_START_TIMER, ATTEST_WAIT},
         {ATTEST_TIMEOUT, ATTEST_SEND_QUOTE, ATTEST_WAIT},
         {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_FAILED, ATTEST_START_TIMER, ATTEST_ESCROW_WAIT},
         {ATTEST_TIMEOUT, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT});
}

TEST(who_is_denied_begins_with_another_nonce)
{
    static const enum attest_state denied[] = {ATTEST_WAIT, ATTEST_ESCROW_WAIT};
    for (size_t i = 0; i < N_ELEMENTS(denied); i++) {
        struct attest_machine m = {.state = denied[i]};
        WALK(&m, {ATTEST_DENIED, ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
             {ATTEST_TIMEOUT, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT});
    }
}

TEST(a_complete_one_starts_again_after_a_while)
{
    struct attest_machine m = {.state = ATTEST_COMPLETE};
    WALK(&m, {ATTEST_RESTART, ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
         {ATTEST_TIMEOUT, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT});
    assert_false(m.restarts);
}

TEST(one_that_is_under_way_ends_before_it_starts_again)
{
    struct attest_machine m = {.state = ATTEST_WAIT};
    WALK(&m, {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_RESTART, ATTEST_DO_NOTHING, ATTEST_ESCROW_WAIT},
         {ATTEST_RECORDED, ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
         {ATTEST_TIMEOUT, ATTEST_ASK_NONCE, ATTEST_NONCE_WAIT},
         {ATTEST_NONCE, ATTEST_ASK_QUOTE, ATTEST_INTERNAL_QUOTE_WAIT},
         {ATTEST_QUOTE, ATTEST_SEND_QUOTE, ATTEST_WAIT},
         {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
         {ATTEST_RECORDED, ATTEST_FINISH, ATTEST_COMPLETE});
}

/* Config was refused before there was a token: the one that is on its way is what was wanted. */
TEST(one_that_is_under_way_is_enough)
{
    static const enum attest_state early[] = {ATTEST_NONCE_WAIT, ATTEST_INTERNAL_QUOTE_WAIT,
                                              ATTEST_WAIT};
    for (size_t i = 0; i < N_ELEMENTS(early); i++) {
        struct attest_machine m = {.state = early[i]};
        (void) attest_machine_step(&m, ATTEST_RESTART);
        assert_int_equal(m.state, early[i]);
        (void) attest_machine_step(&m, ATTEST_NONCE);
        (void) attest_machine_step(&m, ATTEST_QUOTE);
        WALK(&m, {ATTEST_GRANTED, ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
             {ATTEST_RECORDED, ATTEST_FINISH, ATTEST_COMPLETE});
    }
}

/* Whatever comes late or twice: a machine that is given what it waits for gets to the end. */
TEST(strange_events_do_not_hinder_it)
{
    static const enum attest_event wanted[ATTEST_STATES] = {
        [ATTEST_NONE] = ATTEST_START,
        [ATTEST_NONCE_WAIT] = ATTEST_NONCE,
        [ATTEST_INTERNAL_QUOTE_WAIT] = ATTEST_QUOTE,
        [ATTEST_INTERNAL_ESCROW_WAIT] = ATTEST_ESCROW,
        [ATTEST_WAIT] = ATTEST_GRANTED,
        [ATTEST_ESCROW_WAIT] = ATTEST_RECORDED,
        [ATTEST_RESTART_WAIT] = ATTEST_TIMEOUT,
    };
    for (int run = 0; run < 200; run++) {
        struct attest_machine m = {0};
        for (int i = 0; i < 30; i++) {
            (void) attest_machine_step(&m, (enum attest_event) random_below(ATTEST_EVENTS));
            assert_true(m.state < ATTEST_STATES);
        }
        int n = 0;
        for (m.restarts = false; m.state != ATTEST_COMPLETE; n++)
            (void) attest_machine_step(&m, wanted[m.state]);
        assert_true(n <= 6);
    }
}
