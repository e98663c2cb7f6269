/* SPDX-License-Identifier: Apache-2.0 */
#include "api/timestamp.h"
#include "test.h"

TEST(times_come_out_in_utc)
{
    static const struct {
        const char *in, *out;
        enum timestamp_precision precision;
    } cases[] = {
        {"2001-02-03T04:05:06Z", "2001-02-03T04:05:06Z", TIMESTAMP_SECONDS},
        {"2001-02-03T04:05:06.789Z", "2001-02-03T04:05:06Z", TIMESTAMP_SECONDS},
        {"2001-02-03T04:05:06+02:00", "2001-02-03T02:05:06Z", TIMESTAMP_SECONDS},
        {"2001-02-03T04:05:06.123456Z", "2001-02-03T04:05:06.123456Z", TIMESTAMP_MICROS},
        {"2000-02-29T00:00:00.000000-01:30", "2000-02-29T01:30:00.000000Z", TIMESTAMP_MICROS},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t when;
        struct str error = STR("");
        if (timestamp_parse(a, str_of(cases[i].in), cases[i].precision, &when, &error) < 0)
            fail_msg("%s: %.*s", cases[i].in, STR_ARG(error));
        assert_str(timestamp_text(a, when, cases[i].precision), cases[i].out);
    }
}

TEST(bad_times_are_refused_in_the_words_of_go)
{
#define SECONDS "\" as \"2006-01-02T15:04:05Z07:00\": "
#define MICROS "\" as \"2006-01-02T15:04:05.000000Z07:00\": "
    static const struct {
        const char *in, *error;
        enum timestamp_precision precision;
    } cases[] = {
        {"yesterday", "parsing time \"yesterday" MICROS "cannot parse \"yesterday\" as \"2006\"",
         TIMESTAMP_MICROS},
        {"2001-02-03T04:05:06Z",
         "parsing time \"2001-02-03T04:05:06Z" MICROS "cannot parse \"Z\" as \".000000\"",
         TIMESTAMP_MICROS},
        {"", "parsing time \"" SECONDS "cannot parse \"\" as \"2006\"", TIMESTAMP_SECONDS},
        {"2001-02", "parsing time \"2001-02" SECONDS "cannot parse \"\" as \"-\"",
         TIMESTAMP_SECONDS},
        {"2001-13-01T00:00:00Z", "parsing time \"2001-13-01T00:00:00Z\": month out of range",
         TIMESTAMP_SECONDS},
        {"2001-02-29T00:00:00Z", "parsing time \"2001-02-29T00:00:00Z\": day out of range",
         TIMESTAMP_SECONDS},
        {"2001-02-03T24:00:00Z", "parsing time \"2001-02-03T24:00:00Z\": hour out of range",
         TIMESTAMP_SECONDS},
        {"2001-02-03 04:05:06Z",
         "parsing time \"2001-02-03 04:05:06Z" SECONDS "cannot parse \" 04:05:06Z\" as \"T\"",
         TIMESTAMP_SECONDS},
        {"2001-02-03T04:05:06",
         "parsing time \"2001-02-03T04:05:06" SECONDS "cannot parse \"\" as \"Z07:00\"",
         TIMESTAMP_SECONDS},
        {"2001-02-03T04:05:06Zx", "parsing time \"2001-02-03T04:05:06Zx\": extra text: \"x\"",
         TIMESTAMP_SECONDS},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t when;
        struct str error = STR("");
        assert_true(timestamp_parse(a, str_of(cases[i].in), cases[i].precision, &when, &error) < 0);
        assert_str(error, cases[i].error);
    }
}
