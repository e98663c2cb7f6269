/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests that register themselves:
 *
 *     TEST(update_rejects_stale_revision) { ... assert_int_equal(...); }
 *
 * Every test file includes this once and is one executable; the names come out as TAP through
 * cmocka. */
#pragma once

/* cmocka needs these four before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

#define TEST_MAX 512

static struct CMUnitTest test_table[TEST_MAX];
static size_t test_count;

#define TEST(test_name) \
    static void test_name(void **state); \
    __attribute__((constructor)) static void test_name##_register(void) \
    { \
        test_table[test_count++] = (struct CMUnitTest){#test_name, test_name, NULL, NULL, NULL}; \
    } \
    static void test_name(void **state __attribute__((unused)))

/* assert_str(actual struct str, "expected") */
#define assert_str(actual, expected) \
    do { \
        struct str assert_s = (actual); \
        const char *assert_z = (expected); \
        if (!str_is(assert_s, assert_z)) \
            fail_msg("got \"%.*s\", expected \"%s\"", STR_ARG(assert_s), assert_z); \
    } while (0)

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("tests", test_table, test_count, NULL, NULL);
}
