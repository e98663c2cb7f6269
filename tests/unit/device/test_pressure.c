/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pressure.h"

#include "test.h"

static bool admits(int64_t behind_ms, enum device_class class)
{
    struct pressure p = {0};
    return pressure_admits(&p, class, 1000000, behind_ms);
}

TEST(the_least_needed_goes_first)
{
    static const int64_t limits[] = {PRESSURE_LOGS_MS, PRESSURE_METRICS_MS, PRESSURE_INFO_MS,
                                     PRESSURE_ESSENTIAL_MS};
    static const enum device_class classes[] = {DEVICE_LOGS, DEVICE_METRICS, DEVICE_INFO,
                                                DEVICE_ESSENTIAL};
    for (size_t i = 0; i < N_ELEMENTS(limits); i++) {
        for (size_t k = 0; k < N_ELEMENTS(classes); k++) {
            assert_int_equal(admits(limits[i] - 1, classes[k]), k >= i);
            assert_int_equal(admits(limits[i], classes[k]), k > i);
        }
    }
}

TEST(what_was_is_remembered_for_a_while)
{
    struct pressure p = {0};
    int64_t now = 1000000;
    assert_false(pressure_admits(&p, DEVICE_LOGS, now, 2 * PRESSURE_LOGS_MS));
    assert_false(pressure_admits(&p, DEVICE_LOGS, now + PRESSURE_MEMORY_MS / 4, 0));
    assert_true(pressure_admits(&p, DEVICE_LOGS, now + PRESSURE_MEMORY_MS * 3 / 4, 0));
    assert_true(pressure_admits(&p, DEVICE_LOGS, now + PRESSURE_MEMORY_MS, 0));
}

/* A storm that is over must not keep devices from their configuration. */
TEST(what_devices_need_goes_by_now_alone)
{
    struct pressure p = {0};
    assert_false(pressure_admits(&p, DEVICE_ESSENTIAL, 1000000, PRESSURE_ESSENTIAL_MS));
    assert_true(pressure_admits(&p, DEVICE_ESSENTIAL, 1000001, 0));
}

TEST(those_put_off_longest_are_least_needed)
{
    assert_true(pressure_retry_after_s(DEVICE_ESSENTIAL) < pressure_retry_after_s(DEVICE_INFO));
    assert_true(pressure_retry_after_s(DEVICE_METRICS) <= pressure_retry_after_s(DEVICE_LOGS));
}
