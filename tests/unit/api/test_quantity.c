/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quantity.h"
#include "test.h"

TEST(quantities_come_out_in_canonical_form)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0", "0"},
        {"0Gi", "0"},
        {"00", "0"},
        {"-0", "0"},
        {"1", "1"},
        {"1Gi", "1Gi"},
        {"1024Mi", "1Gi"},
        {"1500Mi", "1500Mi"},
        {"1.5Gi", "1536Mi"},
        {"0.5Gi", "512Mi"},
        {"1.1Ki", "1126400m"},
        {"512Ki", "512Ki"},
        {"8Ki", "8Ki"},
        {"1000", "1k"},
        {"1000000", "1M"},
        {"1500", "1500"},
        {"0.25", "250m"},
        {"1.5", "1500m"},
        {"0.250", "250m"},
        {"1.500", "1.500"},
        {"100m", "100m"},
        {"1000m", "1"},
        {"1e3", "1e3"},
        {"1E3", "1E3"},
        {"12e5", "1200e3"},
        {"1000e3", "1e6"},
        {"5E", "5E"},
        {"1000E", "1e21"},
        {"9Ei", "9223372036854775807"},
        {"7Ei", "7Ei"},
        {"1.G", "1.G"},
        {".5", "500m"},
        {"+1Gi", "+1Gi"},
        {"-1Gi", "-1Gi"},
        {"-1024Mi", "-1Gi"},
        {"-0.5", "-500m"},
        {"1n", "1n"},
        {"0.0000000001", "1n"},
        {"1.0000000001", "1000000001n"},
        {"1000Ki", "1000Ki"},
        {"16Ki", "16Ki"},
        {"1023i", NULL},
        {"", NULL},
        {"1GiB", NULL},
        {"1x", NULL},
        {"1Gx", NULL},
        {"abc", NULL},
        {"1 Gi", NULL},
        {"1e", NULL},
        {"1e+", NULL},
        {"1ee3", NULL},
        {"1e99999", NULL},
        {"1.2.3", NULL},
        {"9223372036854775807", "9223372036854775807"},
        {"1000000000000000000000", "1e21"},
        {"88888888888888888888888888888.8888888", "88888888888888888888888888888888888800n"},
        {"88888888888888888888888888888888888800n", "88888888888888888888888888888888888800n"},
        {"1000000000000000000000000000000000001", NULL},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity q;
        struct str error = STR("");
        const int r = quantity_parse(str_of(cases[i].in), &q, &error);
        if (!cases[i].out) {
            if (r >= 0)
                fail_msg("\"%s\" is no quantity but gave %.*s", cases[i].in,
                         STR_ARG(quantity_text(a, &q)));
            assert_true(error.n > 0);
            continue;
        }
        if (r < 0)
            fail_msg("\"%s\": %.*s", cases[i].in, STR_ARG(error));
        if (!str_is(quantity_text(a, &q), cases[i].out))
            fail_msg("\"%s\" gave \"%.*s\", not \"%s\"", cases[i].in, STR_ARG(quantity_text(a, &q)),
                     cases[i].out);
    }
}

TEST(bad_quantities_are_refused_in_the_words_of_the_library)
{
    static const struct {
        const char *in, *error;
    } cases[] = {
        {"1GiB", "quantities must match the regular expression "
                 "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
        {"1Gm", "unable to parse quantity's suffix"},
        {"1000000000000000000000000000000000001", "unable to parse numeric part of quantity"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity q;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].in), &q, &error) < 0);
        assert_str(error, cases[i].error);
    }
}

TEST(quantities_compare_by_value)
{
    static const struct {
        const char *a, *b;
        int order;
    } cases[] = {
        {"1Gi", "1024Mi", 0}, {"1", "1000m", 0},
        {"1k", "1Ki", -1},    {"2Gi", "1Gi", 1},
        {"-1", "1", -1},      {"-2", "-1", -1},
        {"0", "0Gi", 0},      {"1e100", "1Ei", 1},
        {"1n", "0", 1},       {"-1n", "0", -1},
        {"1.5", "1500m", 0},  {"999m", "1", -1},
        {"1e-9", "1n", 0},    {"123456789012345678", "123456789012345679", -1},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity a, b;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].a), &a, &error) >= 0);
        assert_true(quantity_parse(str_of(cases[i].b), &b, &error) >= 0);
        if (quantity_compare(&a, &b) != cases[i].order ||
            quantity_compare(&b, &a) != -cases[i].order)
            fail_msg("%s against %s gave %d", cases[i].a, cases[i].b, quantity_compare(&a, &b));
    }
}

TEST(integers_are_told_from_fractions)
{
    static const struct {
        const char *text;
        bool is_integer;
    } cases[] = {{"1", true},      {"1.0", true},   {"1000m", true},
                 {"1500m", false}, {"1.5Gi", true}, {"1n", false}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity q;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].text), &q, &error) >= 0);
        assert_int_equal(quantity_is_integer(&q), cases[i].is_integer);
    }
}

TEST(amounts_of_resources_are_rounded_up_to_thousandths)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"1u", "1m"}, {"1.0001", "1001m"}, {"250m", "250m"}, {"1500Mi", "1500Mi"}, {"-1u", "-1m"}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity q;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].in), &q, &error) >= 0);
        quantity_round_milli(&q);
        assert_str(quantity_text(a, &q), cases[i].out);
    }
}

TEST(storage_is_rounded_up_to_bytes)
{
    static const struct {
        const char *in, *out;
    } cases[] = {{"1m", "1"},    {"1500m", "2"}, {"1.5Gi", "1536Mi"},
                 {"1Gi", "1Gi"}, {"0", "0"},     {"-1500m", "-2"}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity q;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].in), &q, &error) >= 0);
        quantity_round_whole(&q);
        assert_str(quantity_text(a, &q), cases[i].out);
    }
}

TEST(sums_keep_the_format_of_the_first_that_is_not_zero)
{
    static const struct {
        const char *a, *b, *sum;
    } cases[] = {
        {"1", "2", "3"},
        {"0", "1Gi", "1Gi"},
        {"1Gi", "512Mi", "1536Mi"},
        {"1Gi", "1k", "1073742824"},
        {"100m", "1", "1100m"},
        {"1G", "1M", "1001M"},
        {"5", "-5", "0"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quantity x, y;
        struct str error;
        assert_true(quantity_parse(str_of(cases[i].a), &x, &error) >= 0);
        assert_true(quantity_parse(str_of(cases[i].b), &y, &error) >= 0);
        struct quantity sum = quantity_add(&x, &y);
        assert_str(quantity_text(a, &sum), cases[i].sum);
    }
}

TEST(a_sum_beyond_all_bounds_is_the_larger_part)
{
    struct quantity huge, tiny;
    struct str error;
    assert_true(quantity_parse(STR("123456789012345678901234567890e9"), &huge, &error) >= 0);
    assert_true(quantity_parse(STR("1n"), &tiny, &error) >= 0);
    struct quantity sum = quantity_add(&huge, &tiny);
    assert_true(quantity_compare(&sum, &huge) >= 0);
    sum = quantity_add(&tiny, &huge);
    assert_true(quantity_compare(&sum, &huge) >= 0);
}
