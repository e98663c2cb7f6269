/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/operation.h"

#include "test.h"

#define S INT64_C(1000000)
#define WEEK_S 604800

TEST(nothing_is_done_without_a_command)
{
    struct operation o = {0};
    assert_int_equal(operation_due_us(&o), INT64_MAX);
    assert_int_equal(operation_step(&o, 100 * S, true), OPERATION_WAIT);
}

TEST(a_reboot_waits_writes_halts_waits_and_goes)
{
    struct operation o = {0};
    assert_true(operation_begin(&o, OPERATION_REBOOT, 0));
    assert_int_equal(operation_due_us(&o), 30 * S);
    assert_int_equal(operation_step(&o, 30 * S - 1, true), OPERATION_WAIT);
    assert_int_equal(operation_step(&o, 30 * S, true), OPERATION_WRITE_REASON);
    assert_int_equal(operation_step(&o, 30 * S, false), OPERATION_WAIT);
    assert_int_equal(operation_step(&o, 40 * S, true), OPERATION_TELL_HALTED);
    assert_int_equal(operation_step(&o, 40 * S, true), OPERATION_WAIT);
    assert_int_equal(operation_due_us(&o), 70 * S);
    assert_int_equal(operation_step(&o, 70 * S, true), OPERATION_GO);
    assert_int_equal(operation_step(&o, 1000 * S, true), OPERATION_WAIT);
    assert_int_equal(operation_due_us(&o), INT64_MAX);
}

TEST(applications_that_do_not_halt_are_not_waited_for_for_ever)
{
    struct operation o = {0};
    assert_true(operation_begin(&o, OPERATION_POWEROFF, 0));
    assert_int_equal(operation_step(&o, 30 * S, false), OPERATION_WRITE_REASON);
    assert_int_equal(operation_due_us(&o), 330 * S);
    assert_int_equal(operation_step(&o, 330 * S - 1, false), OPERATION_WAIT);
    assert_int_equal(operation_step(&o, 330 * S, false), OPERATION_TELL_HALTED);
    assert_int_equal(operation_step(&o, 360 * S, false), OPERATION_GO);
}

TEST(a_shutdown_halts_applications_and_may_be_followed_by_a_reboot)
{
    struct operation o = {0};
    assert_true(operation_begin(&o, OPERATION_SHUTDOWN, 0));
    assert_false(operation_begin(&o, OPERATION_SHUTDOWN, 5 * S));
    assert_int_equal(operation_step(&o, 30 * S, true), OPERATION_TELL_HALTED);
    assert_int_equal(operation_step(&o, 100 * S, true), OPERATION_WAIT);
    assert_int_equal(operation_due_us(&o), INT64_MAX);
    assert_true(operation_begin(&o, OPERATION_REBOOT, 100 * S));
    assert_false(operation_begin(&o, OPERATION_POWEROFF, 101 * S));
    assert_false(operation_begin(&o, OPERATION_REBOOT, 101 * S));
    assert_int_equal(operation_step(&o, 130 * S, true), OPERATION_WRITE_REASON);
}

TEST(an_outage_lasts_from_the_last_contact)
{
    struct outage o = {.since_us = 5 * S};
    assert_int_equal(outage_due_us(&o, WEEK_S), (5 + WEEK_S) * S);
    outage_note(&o, false, 100 * S); /* still none: from the beginning of this life */
    assert_int_equal(outage_due_us(&o, WEEK_S), (5 + WEEK_S) * S);
    outage_note(&o, true, 200 * S);
    assert_int_equal(outage_due_us(&o, WEEK_S), INT64_MAX);
    outage_note(&o, false, 1000 * S);
    outage_note(&o, false, 2000 * S);
    assert_int_equal(outage_due_us(&o, WEEK_S), (1000 + WEEK_S) * S);
    assert_int_equal(outage_due_us(&o, 120), 1120 * S);
}

TEST(a_vault_is_given_time_once_the_controller_is_reached)
{
    struct lockup l = {0};
    assert_int_equal(lockup_due_us(&l, 300), INT64_MAX);
    lockup_note(&l, true, false, 10 * S);
    assert_int_equal(lockup_due_us(&l, 300), INT64_MAX);
    lockup_note(&l, true, true, 100 * S);
    lockup_note(&l, true, false, 200 * S);
    assert_int_equal(lockup_due_us(&l, 300), 400 * S);
    lockup_note(&l, false, false, 250 * S);
    assert_int_equal(lockup_due_us(&l, 300), INT64_MAX);
    lockup_note(&l, true, false, 1000 * S);
    assert_int_equal(lockup_due_us(&l, 300), 1300 * S);
}
