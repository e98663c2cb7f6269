/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

TEST(every_parameter_is_read)
{
    struct fixture f;
    fixture_init(&f);
    struct reading_query q = parse(
        &f, READING_LOG,
        "start=2023-11-14T22:13:20Z&end=1700000001&limit=7&app=" APP_TEXT
        "&severity=err,warning&source=zedagent&contains=a%20b&by=device&after=17-4&follow=false");
    assert_int_equal(q.start_us, START_US);
    assert_int_equal(q.end_us, START_US + SECOND);
    assert_int_equal(q.limit, 7);
    assert_true(q.has_app && uuid_eq(&q.app, &f.app));
    assert_str(q.severity, "err,warning");
    assert_str(q.source, "zedagent");
    assert_str(q.contains, "a b");
    assert_true(q.is_by_device && q.has_after && !q.is_following);
    assert_int_equal(q.after.record, 17);
    assert_int_equal(q.after.line, 4);
    q = parse(&f, READING_INFO, "after=9&type=ZiDevice&app=none&follow=true&by=arrival");
    assert_true(q.has_type && q.type == 1 && q.has_app && uuid_is_zero(&q.app));
    assert_true(q.is_following && !q.is_by_device && q.after.line == 0);
    assert_int_equal(parse(&f, READING_INFO, "type=networkinstance").type, 6);
    assert_int_equal(parse(&f, READING_INFO, "type=77").type, 77);
    fixture_done(&f);
}

TEST(what_is_wrong_is_named_with_what_is_right)
{
    static const struct {
        enum reading_what what;
        const char *parameters, *message;
    } cases[] = {
        {READING_LOG, "start=yesterday",
         "invalid value \"yesterday\" of the parameter start: it takes a time as RFC 3339 has it, "
         "or "
         "Unix seconds"},
        {READING_LOG, "end=-1", "parameter end"},
        {READING_LOG, "end=99999999999999999", "parameter end"},
        {READING_LOG, "limit=0", "parameter limit: it takes a number from 1 to 1000000"},
        {READING_LOG, "limit=many", "parameter limit"},
        {READING_LOG, "limit=1000001", "parameter limit"},
        {READING_LOG, "app=web", "the UUID of an application"},
        {READING_LOG, "severity=", "parameter severity"},
        {READING_LOG, "source=", "parameter source"},
        {READING_LOG, "contains=", "parameter contains"},
        {READING_LOG, "by=size", "it takes arrival or device"},
        {READING_LOG, "after=x", "parameter after"},
        {READING_LOG, "after=1-0", "parameter after"},
        {READING_LOG, "after=1-", "parameter after"},
        {READING_LOG, "after=-1", "parameter after"},
        {READING_LOG, "after=99999999999999999999", "parameter after"},
        {READING_LOG, "follow=perhaps", "it takes true or false"},
        {READING_LOG, "type=1", "unknown parameter \"type\": log takes after, app, by, contains"},
        {READING_INFO, "type=ZiNothing", "such as ZiDevice, device or 1"},
        {READING_INFO, "severity=err", "unknown parameter \"severity\": info takes"},
        {READING_METRICS, "app=none", "unknown parameter \"app\""},
        {READING_LAST_SEEN, "limit=1", "lastseen takes none"},
        {READING_LOG, "sverity=err", "unknown parameter \"sverity\""},
        {READING_LOG, "end=1&follow=true", "exclude each other"},
        {READING_LOG, "by=device&limit=100001", "at most 100000 with by=device"},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct request_query in = request_parse_query(f.arena, str_of(cases[i].parameters));
        struct reading_query q;
        status_init(&f.status, f.arena);
        assert_true(reading_query_parse(&in, cases[i].what, &q, &f.status) < 0);
        assert_int_equal(f.status.code, 400);
        if (str_find_str(f.status.message, str_of(cases[i].message)) < 0)
            fail_msg("%s: %.*s", cases[i].parameters, STR_ARG(f.status.message));
    }
    fixture_done(&f);
}
