/* SPDX-License-Identifier: Apache-2.0 */
/* A device with telemetry, and streams over it read to their end. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "eve/info.pb-c.h"
#include "eve/logs.pb-c.h"
#include "eve/newlog.h"
#include "protobuf/message.h"
#include "reading/reading.h"
#include "reading/stream.h"
#include "telemetry/telemetry.h"
#include "test.h"

#define UNUSED __attribute__((unused))
#define SECOND ((int64_t) 1000000)
#define START_US ((int64_t) 1700000000 * SECOND)
#define UUID_TEXT "0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab"
#define APP_TEXT "11111111-2222-4333-8444-555555555555"

/* A clock that another thread may read while the test moves it. */
struct test_clock {
    struct clock clock;
    atomic_llong now_us;
};

static int64_t test_clock_now(const struct clock *c)
{
    return atomic_load(&CONTAINER_OF(c, struct test_clock, clock)->now_us);
}

struct fixture {
    struct arena *arena;
    char directory[40];
    struct test_clock clock;
    struct telemetry *telemetry;
    struct roster *roster;
    struct reading reading;
    struct device *known;
    struct uuid device, app;
    struct status status;
};

static UNUSED void fixture_init(struct fixture *f)
{
    log_set_level((enum log_level) - 1);
    *f = (struct fixture){.arena = arena_new(), .directory = "/tmp/seth-reading-XXXXXX"};
    assert_non_null(mkdtemp(f->directory));
    f->clock.clock = (struct clock){test_clock_now, test_clock_now};
    atomic_init(&f->clock.now_us, START_US);
    char *error = NULL;
    struct telemetry_options o = {.directory = f->directory, .clock = &f->clock.clock};
    assert_int_equal(telemetry_open(&o, &f->telemetry, &error), 0);
    f->roster = roster_new(&(struct roster_options){.clock = &clock_system});
    f->known = roster_take(
        f->roster, STR("{\"metadata\":{\"namespace\":\"site\",\"name\":\"edge\",\"uid\":\"u\"},"
                       "\"spec\":{},\"status\":{\"uuid\":\"" UUID_TEXT "\"}}"));
    assert_non_null(f->known);
    f->reading = (struct reading){f->telemetry, f->roster};
    assert_int_equal(uuid_parse(STR(UUID_TEXT), &f->device), 0);
    assert_int_equal(uuid_parse(STR(APP_TEXT), &f->app), 0);
    status_init(&f->status, f->arena);
}

static UNUSED void fixture_done(struct fixture *f)
{
    telemetry_free(f->telemetry);
    device_unref(f->known);
    roster_free(f->roster);
    DIR *d = opendir(f->directory);
    struct dirent *e;
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            (void) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    assert_int_equal(rmdir(f->directory), 0);
    arena_free(f->arena);
}

/* ---- what devices send ------------------------------------------------------------------------
 */

struct stored {
    sem_t done;
    int64_t id;
};

static UNUSED void on_stored(void *arg, int64_t result)
{
    struct stored *s = arg;
    s->id = result;
    sem_post(&s->done);
}

static UNUSED int64_t append(struct fixture *f, struct telemetry_record r)
{
    struct stored s = {0};
    sem_init(&s.done, 0, 0);
    r.device = f->device;
    telemetry_append(f->telemetry, &r, NULL, on_stored, &s);
    sem_wait(&s.done);
    sem_destroy(&s.done);
    assert_true(s.id > 0);
    return s.id;
}

static UNUSED struct str gzip(struct arena *a, struct str text)
{
    size_t n = text.n + text.n / 10 + 256;
    char *out = arena_alloc(a, n);
    z_stream z = {.next_in = (unsigned char *) (uintptr_t) text.p,
                  .avail_in = (unsigned) text.n,
                  .next_out = (unsigned char *) out,
                  .avail_out = (unsigned) n};
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return str_range(out, n - z.avail_out);
}

/* A log upload of lines that the test wrote. */
static UNUSED int64_t append_log(struct fixture *f, const char *lines)
{
    return append(f, (struct telemetry_record){.stream = TELEMETRY_LOG,
                                               .form = TELEMETRY_GZIP,
                                               .bytes = gzip(f->arena, str_of(lines))});
}

/* One line of such an upload. */
static UNUSED const char *log_line(struct fixture *f, int64_t seconds, const char *severity,
                                   const char *content)
{
    return arena_printf(f->arena,
                        "{\"severity\":\"%s\",\"source\":\"zedagent\",\"content\":\"%s\","
                        "\"timestamp\":{\"seconds\":%lld,\"nanos\":5}}\n",
                        severity, content, (long long) seconds)
        .p;
}

static UNUSED int64_t append_info(struct fixture *f, int type, const char *device_id)
{
    Eve__Info__ZInfoMsg m = EVE__INFO__ZINFO_MSG__INIT;
    m.ztype = (Eve__Info__ZInfoTypes) type;
    m.devid = arena_strz(f->arena, str_of(device_id));
    return append(f, (struct telemetry_record){.stream = TELEMETRY_INFO,
                                               .bytes = pb_pack(f->arena, &m.base)});
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static UNUSED struct reading_query parse(struct fixture *f, enum reading_what what,
                                         const char *parameters)
{
    struct request_query in = request_parse_query(f->arena, str_of(parameters));
    struct reading_query q = {0};
    if (reading_query_parse(&in, what, &q, &f->status) < 0)
        fail_msg("%.*s", STR_ARG(f->status.message));
    return q;
}

/* Everything there is for now, a little at a time. */
static UNUSED enum annex_read read_stream(struct fixture *f, struct annex_stream *s,
                                          struct str *ret)
{
    BUF_AUTO all = {0};
    enum annex_read last;
    do {
        BUF_AUTO piece = {0};
        last = s->read(s, &piece, 200);
        buf_append_str(&all, buf_str(&piece));
    } while (last == ANNEX_MORE);
    *ret = arena_str(f->arena, buf_str(&all));
    return last;
}

static UNUSED struct str read_all(struct fixture *f, enum reading_what what, const char *parameters)
{
    struct reading_query q = parse(f, what, parameters);
    struct annex_stream *s = reading_stream_new(f->telemetry, f->known, &q, &f->status);
    assert_non_null(s);
    struct str text;
    assert_int_equal(read_stream(f, s, &text), ANNEX_END);
    s->close(s);
    return text;
}

/* One member of every line, with a blank behind each. */
static UNUSED const char *members(struct fixture *f, struct str lines, const char *name)
{
    BUF_AUTO b = {0};
    struct str line;
    while (str_split(&lines, '\n', &line)) {
        struct json_parse_result r;
        if (json_parse(f->arena, line, &r) < 0)
            fail_msg("no JSON: %.*s", STR_ARG(line));
        buf_append_str(&b, json_get_str(r.value, str_of(name)));
        buf_append_char(&b, ' ');
    }
    return arena_str(f->arena, buf_str(&b)).p;
}

#define assert_members(f, what, parameters, name, expected) \
    assert_string_equal(members(f, read_all(f, what, parameters), name), expected)
