/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "reading/ordered.h"

#define LOG(f, parameters, name, expected) \
    assert_members(f, READING_LOG, parameters, name, expected)

TEST(a_line_has_all_the_device_said)
{
    struct fixture f;
    fixture_init(&f);
    (void) append(&f, (struct telemetry_record){
                          .stream = TELEMETRY_APP_LOG,
                          .form = TELEMETRY_GZIP,
                          .app = f.app,
                          .bytes = gzip(f.arena, STR("{\"severity\":\"err\",\"source\":\"s\","
                                                     "\"iid\":\"7\",\"content\":\"a \\\"b\\\"\\n\","
                                                     "\"msgid\":12,\"tags\":{\"k\":\"v\"},"
                                                     "\"timestamp\":{\"seconds\":1700000000,"
                                                     "\"nanos\":12345678},\"filename\":\"f.go\","
                                                     "\"function\":\"main\"}\n"))});
    assert_str(read_all(&f, READING_LOG, ""),
               "{\"id\":\"1-1\",\"arrived\":\"2023-11-14T22:13:20.000000Z\","
               "\"timestamp\":\"2023-11-14T22:13:20.012345678Z\",\"severity\":\"err\","
               "\"source\":\"s\",\"iid\":\"7\",\"content\":\"a \\\"b\\\"\\n\",\"msgid\":12,"
               "\"filename\":\"f.go\",\"function\":\"main\",\"tags\":{\"k\":\"v\"},"
               "\"app\":\"" APP_TEXT "\"}\n");
    fixture_done(&f);
}

/* Three uploads, of two lines each, that overlap in the device's own time. */
static void append_six(struct fixture *f)
{
    static const struct {
        int64_t seconds;
        const char *severity, *content;
    } lines[] = {{100, "err", "a"},  {300, "info", "b"},    {200, "ERR", "c"},
                 {500, "info", "d"}, {400, "warning", "e"}, {600, "err", "f"}};
    for (size_t i = 0; i < 6; i += 2) {
        atomic_store(&f->clock.now_us, START_US + (int64_t) i * SECOND);
        struct str upload = arena_printf(
            f->arena, "%s%s", log_line(f, lines[i].seconds, lines[i].severity, lines[i].content),
            log_line(f, lines[i + 1].seconds, lines[i + 1].severity, lines[i + 1].content));
        (void) append_log(f, upload.p);
    }
}

TEST(lines_come_by_arrival_with_ids_to_resume_from)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    LOG(&f, "", "content", "a b c d e f ");
    LOG(&f, "", "id", "1-1 1-2 2-1 2-2 3-1 3-2 ");
    LOG(&f, "after=2-1", "content", "d e f ");
    LOG(&f, "after=2-2", "content", "e f ");
    LOG(&f, "after=2", "content", "e f ");
    LOG(&f, "after=0", "content", "a b c d e f ");
    LOG(&f, "after=0-9", "content", "a b c d e f ");
    LOG(&f, "after=77", "content", "");
    LOG(&f, "start=1700000002", "content", "c d e f ");
    LOG(&f, "end=2023-11-14T22:13:22Z", "content", "a b ");
    fixture_done(&f);
}

TEST(lines_are_chosen_by_what_they_say)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    LOG(&f, "severity=err", "content", "a c f ");
    LOG(&f, "severity=err,Warning", "content", "a c e f ");
    LOG(&f, "source=zedagent&contains=d", "content", "d ");
    LOG(&f, "source=nim", "content", "");
    LOG(&f, "app=none&contains=e", "content", "e ");
    LOG(&f, "app=" APP_TEXT, "content", "");
    fixture_done(&f);
}

TEST(a_limit_counts_lines_that_match_from_the_newest)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    LOG(&f, "limit=1", "content", "f ");
    LOG(&f, "limit=3", "content", "d e f ");
    LOG(&f, "limit=4", "content", "c d e f ");
    LOG(&f, "limit=99", "content", "a b c d e f ");
    LOG(&f, "limit=2&severity=err", "content", "c f ");
    LOG(&f, "limit=2&end=1700000003", "content", "c d ");
    LOG(&f, "limit=3&after=2-2", "content", "e f ");
    LOG(&f, "limit=3&after=2-1", "content", "d e f ");
    LOG(&f, "limit=5&after=1-1", "content", "b c d e f ");
    LOG(&f, "limit=2&contains=nothing", "content", "");
    fixture_done(&f);
}

TEST(a_limit_goes_back_as_far_as_it_must)
{
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 300; i++)
        (void) append_info(&f, i % 100 == 0 ? 3 : 1, arena_printf(f.arena, "%d", i).p);
    assert_members(&f, READING_INFO, "limit=2&type=app", "id", "101 201 ");
    assert_members(&f, READING_INFO, "limit=3&type=ZiApp", "id", "1 101 201 ");
    assert_members(&f, READING_INFO, "limit=9&type=3", "id", "1 101 201 ");
    assert_members(&f, READING_INFO, "limit=2", "id", "299 300 ");
    assert_members(&f, READING_INFO, "limit=150&after=297", "id", "298 299 300 ");
    fixture_done(&f);
}

TEST(lines_come_in_the_order_of_their_own_time)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    LOG(&f, "by=device", "content", "a c b e d f ");
    LOG(&f, "by=device&limit=2", "content", "d f ");
    LOG(&f, "by=device&limit=4", "content", "b e d f ");
    LOG(&f, "by=device&start=200&end=500", "content", "c b e ");
    LOG(&f, "by=device&severity=err", "content", "a c f ");
    LOG(&f, "by=device&after=2-1", "content", "b e d f ");
    LOG(&f, "by=device&after=2-1&limit=2", "content", "d f ");
    LOG(&f, "by=device&after=3-2", "content", "");
    fixture_done(&f);
}

TEST(a_place_in_time_that_is_gone_is_said_to_be)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    static const char *const parameters[] = {"by=device&after=99", "by=device&after=1-3",
                                             "by=device&after=0"};
    for (size_t i = 0; i < N_ELEMENTS(parameters); i++) {
        struct reading_query q = parse(&f, READING_LOG, parameters[i]);
        assert_null(reading_stream_new(f.telemetry, f.known, &q, &f.status));
        assert_int_equal(f.status.code, 410);
    }
    fixture_done(&f);
}

TEST(more_than_may_be_held_is_put_in_order_in_turns)
{
    struct fixture f;
    fixture_init(&f);
    char *content = arena_alloc(f.arena, 60001);
    memset(content, 'x', 60000);
    content[60000] = 0;
    /* Three times what is held, the latest first. */
    size_t n = 3 * ORDERED_MAX_BYTES / 60000;
    struct stored stored = {0};
    sem_init(&stored.done, 0, 0);
    for (size_t i = 0; i < n; i++) {
        struct str line = str_of(log_line(&f, 100000 - (int64_t) i, "info", content));
        telemetry_append(f.telemetry,
                         &(struct telemetry_record){.device = f.device,
                                                    .stream = TELEMETRY_LOG,
                                                    .form = TELEMETRY_GZIP,
                                                    .bytes = gzip(f.arena, line)},
                         NULL, on_stored, &stored);
    }
    for (size_t i = 0; i < n; i++)
        sem_wait(&stored.done);
    sem_destroy(&stored.done);
    struct str all = read_all(&f, READING_LOG, "by=device"), line;
    size_t n_lines = 0;
    while (str_split(&all, '\n', &line)) {
        struct str id = arena_printf(f.arena, "{\"id\":\"%zu-1\"", n - n_lines);
        assert_true(str_starts_with(line, id));
        n_lines++;
    }
    assert_int_equal(n_lines, n);
    fixture_done(&f);
}

TEST(a_follower_gets_what_comes)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    static const struct {
        const char *parameters, *first;
    } cases[] = {{"follow=true&limit=1", "f "},
                 {"follow=true&after=3-1", "f "},
                 {"follow=true&by=device&limit=2", "d f "}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct reading_query q = parse(&f, READING_LOG, cases[i].parameters);
        struct annex_stream *s = reading_stream_new(f.telemetry, f.known, &q, &f.status);
        struct str text;
        assert_int_equal(read_stream(&f, s, &text), ANNEX_WAIT);
        if (i == 0 || i == 2)
            assert_string_equal(members(&f, text, "content"), cases[i].first);
        s->close(s);
    }
    fixture_done(&f);
}

static void wake(void *arg)
{
    sem_post(arg);
}

TEST(a_follower_waits_and_is_woken)
{
    struct fixture f;
    fixture_init(&f);
    struct reading_query q = parse(&f, READING_LOG, "follow=true&severity=err");
    struct annex_stream *s = reading_stream_new(f.telemetry, f.known, &q, &f.status);
    struct str text;
    sem_t woken;
    sem_init(&woken, 0, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_stream(&f, s, &text), ANNEX_WAIT);
        assert_int_equal(text.n, 0);
        s->wait(s, wake, &woken);
        (void) append_info(&f, 1, "of no interest");
        (void) append_log(&f, arena_printf(f.arena, "%s%s", log_line(&f, 1, "info", "no"),
                                           log_line(&f, 2, "err", "yes"))
                                  .p);
        sem_wait(&woken);
        assert_int_equal(sem_trywait(&woken), -1);
        s->cancel(s);
        assert_int_equal(read_stream(&f, s, &text), ANNEX_WAIT);
        assert_string_equal(members(&f, text, "content"), "yes ");
    }
    s->wait(s, wake, &woken);
    s->cancel(s);
    s->close(s);
    sem_destroy(&woken);
    fixture_done(&f);
}

TEST(a_follower_of_a_deleted_device_comes_to_its_end)
{
    struct fixture f;
    fixture_init(&f);
    append_six(&f);
    struct reading_query q = parse(&f, READING_LOG, "follow=true&limit=1");
    struct annex_stream *s = reading_stream_new(f.telemetry, f.known, &q, &f.status);
    struct str text;
    sem_t woken;
    sem_init(&woken, 0, 0);
    assert_int_equal(read_stream(&f, s, &text), ANNEX_WAIT);
    s->wait(s, wake, &woken);
    atomic_store(&f.known->is_gone, true);
    telemetry_forget(f.telemetry, &f.device);
    sem_wait(&woken);
    s->cancel(s);
    assert_int_equal(read_stream(&f, s, &text), ANNEX_END);
    assert_int_equal(text.n, 0);
    s->close(s);
    sem_destroy(&woken);
    fixture_done(&f);
}

TEST(what_is_damaged_is_one_line_that_says_so)
{
    struct fixture f;
    fixture_init(&f);
    struct str whole = gzip(f.arena, str_of(log_line(&f, 1, "err", "a")));
    (void) append(&f, (struct telemetry_record){.stream = TELEMETRY_LOG,
                                                .form = TELEMETRY_GZIP,
                                                .bytes = str_sub(whole, 0, whole.n - 3)});
    (void) append_log(&f,
                      arena_printf(f.arena, "not json \xff\n\n%s", log_line(&f, 1, "err", "b")).p);
    (void) append(&f, (struct telemetry_record){.stream = TELEMETRY_LOG,
                                                .form = TELEMETRY_PROTO,
                                                .bytes = STR("\xff\xff")});
    LOG(&f, "", "id", "1-1 2-1 2-2 3-1 ");
    LOG(&f, "", "error", "the upload is damaged the line is no log entry  the upload is damaged ");
    LOG(&f, "", "content", "  b  ");
    LOG(&f, "", "text", " not json \xef\xbf\xbd   ");
    LOG(&f, "severity=err", "content", "b ");
    LOG(&f, "contains=not", "id", "2-1 ");
    (void) append(&f, (struct telemetry_record){.stream = TELEMETRY_INFO, .bytes = STR("\xff")});
    assert_members(&f, READING_INFO, "", "error", "the record is no ZInfoMsg ");
    assert_members(&f, READING_INFO, "type=0", "error", "");
    fixture_done(&f);
}

TEST(a_bomb_is_one_line)
{
    struct fixture f;
    fixture_init(&f);
    char *zeros = arena_zalloc(f.arena, NEWLOG_MAX_INFLATED_BYTES + 1);
    (void) append(&f, (struct telemetry_record){
                          .stream = TELEMETRY_LOG,
                          .form = TELEMETRY_GZIP,
                          .bytes = gzip(f.arena, str_range(zeros, NEWLOG_MAX_INFLATED_BYTES + 1))});
    LOG(&f, "", "error", "the upload inflates to more than is read ");
    fixture_done(&f);
}

static Eve__Logs__LogEntry entry(const char *severity, const char *content)
{
    Eve__Logs__LogEntry e = EVE__LOGS__LOG_ENTRY__INIT;
    e.severity = (char *) (uintptr_t) severity;
    e.content = (char *) (uintptr_t) content;
    return e;
}

static void append_bundle(struct fixture *f)
{
    Eve__Logs__LogBundle b = EVE__LOGS__LOG_BUNDLE__INIT;
    Eve__Logs__LogEntry one = entry("err", "old way"), two = entry("info", "bad \xff byte");
    Eve__Logs__LogEntry *entries[] = {&one, &two};
    b.n_log = 2;
    b.log = entries;
    (void) append(f, (struct telemetry_record){.stream = TELEMETRY_LOG,
                                               .form = TELEMETRY_PROTO,
                                               .bytes = pb_pack(f->arena, &b.base)});
}

TEST(bundles_are_lines_too)
{
    struct fixture f;
    fixture_init(&f);
    append_bundle(&f);
    assert_str(read_all(&f, READING_LOG, ""),
               "{\"id\":\"1-1\",\"arrived\":\"2023-11-14T22:13:20.000000Z\",\"severity\":\"err\","
               "\"content\":\"old way\"}\n"
               "{\"id\":\"1-2\",\"arrived\":\"2023-11-14T22:13:20.000000Z\",\"severity\":\"info\","
               "\"content\":\"bad \xef\xbf\xbd byte\"}\n");
    LOG(&f, "after=1-1", "severity", "info ");
    fixture_done(&f);
}

TEST(messages_are_protobuf_json)
{
    struct fixture f;
    fixture_init(&f);
    (void) append_info(&f, 1, UUID_TEXT);
    assert_str(read_all(&f, READING_INFO, ""),
               "{\"id\":\"1\",\"arrived\":\"2023-11-14T22:13:20.000000Z\",\"message\":{"
               "\"ztype\":\"ZiDevice\",\"devId\":\"" UUID_TEXT "\"}}\n");
    (void) append(
        &f, (struct telemetry_record){.stream = TELEMETRY_REQUESTS,
                                      .form = TELEMETRY_JSON,
                                      .bytes = STR("{\"method\":\"POST\",\n\"status\":200}")});
    assert_str(read_all(&f, READING_REQUESTS, ""),
               "{\"id\":\"2\",\"arrived\":\"2023-11-14T22:13:20.000000Z\",\"method\":\"POST\","
               "\"status\":200}\n");
    fixture_done(&f);
}

/* Takes a message and its length off. */
static struct str take_message(struct str *rest)
{
    size_t n = 0, i = 0;
    do
        n |= (size_t) (rest->p[i] & 0x7f) << 7 * i;
    while (rest->p[i++] & 0x80);
    struct str m = str_sub(*rest, i, i + n);
    *rest = str_from(*rest, i + n);
    return m;
}

TEST(raw_messages_have_their_length_in_front)
{
    struct fixture f;
    fixture_init(&f);
    char *long_id = arena_zalloc(f.arena, 301);
    memset(long_id, 'x', 300);
    (void) append_info(&f, 1, "short");
    (void) append_info(&f, 1, long_id);
    (void) append_log(&f, log_line(&f, 42, "err", "a"));
    append_bundle(&f);
    struct reading_query q = parse(&f, READING_INFO, "");
    q.is_binary = true;
    struct annex_stream *s = reading_stream_new(f.telemetry, f.known, &q, &f.status);
    struct str text;
    assert_int_equal(read_stream(&f, s, &text), ANNEX_END);
    s->close(s);
    for (int i = 0; i < 2; i++) {
        Eve__Info__ZInfoMsg *m = PB_UNPACK(f.arena, eve__info__zinfo_msg, take_message(&text));
        assert_string_equal(m->devid, i ? long_id : "short");
    }
    assert_int_equal(text.n, 0);
    q = parse(&f, READING_LOG, "");
    q.is_binary = true;
    s = reading_stream_new(f.telemetry, f.known, &q, &f.status);
    assert_int_equal(read_stream(&f, s, &text), ANNEX_END);
    s->close(s);
    static const char *const contents[] = {"a", "old way", "bad \xff byte"};
    for (int i = 0; i < 3; i++) {
        Eve__Logs__LogEntry *e = PB_UNPACK(f.arena, eve__logs__log_entry, take_message(&text));
        assert_string_equal(e->content, contents[i]);
        assert_int_equal(e->timestamp ? e->timestamp->seconds : 0, i == 0 ? 42 : 0);
    }
    assert_int_equal(text.n, 0);
    fixture_done(&f);
}
