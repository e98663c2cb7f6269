/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry in a directory of its own, and short words for what the tests do with it. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "telemetry/telemetry_internal.h"
#include "test.h"

#define UNUSED __attribute__((unused))
#define ALL_STREAMS ((1u << TELEMETRY_STREAMS) - 1)
#define SECOND ((int64_t) 1000000)

/* A clock that another thread may read while the test moves it. */
struct test_clock {
    struct clock clock;
    atomic_llong now_us;
};

struct fixture {
    char directory[40];
    struct test_clock clock;
    struct telemetry_options options;
    struct telemetry *t;
};

static int64_t test_clock_now(const struct clock *c)
{
    return atomic_load(&CONTAINER_OF(c, struct test_clock, clock)->now_us);
}

static UNUSED void fixture_open(struct fixture *f)
{
    char *error = NULL;
    int r = telemetry_open(&f->options, &f->t, &error);
    if (r < 0)
        fail_msg("%s", error);
}

static UNUSED void fixture_close(struct fixture *f)
{
    telemetry_free(TAKE(f->t));
}

static UNUSED void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

static UNUSED void fixture_prepare(struct fixture *f)
{
    log_set_level(-1);
    *f = (struct fixture){.directory = "/tmp/seth-telemetry-XXXXXX"};
    assert_non_null(mkdtemp(f->directory));
    f->clock.clock = (struct clock){test_clock_now, test_clock_now};
    atomic_init(&f->clock.now_us, 1000 * SECOND);
    f->options = (struct telemetry_options){.directory = f->directory, .clock = &f->clock.clock};
}

static UNUSED void fixture_init(struct fixture *f)
{
    fixture_prepare(f);
    fixture_open(f);
}

/* fn for every file of the directory. */
static UNUSED size_t fixture_files(struct fixture *f, const char *suffix,
                                   void (*fn)(int directory, const char *name))
{
    size_t n = 0;
    DIR *d = opendir(f->directory);
    assert_non_null(d);
    struct dirent *e;
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.' || !str_ends_with(str_of(e->d_name), str_of(suffix)))
            continue;
        n++;
        if (fn)
            fn(dirfd(d), e->d_name);
    }
    closedir(d);
    return n;
}

static void remove_file(int directory, const char *name)
{
    (void) unlinkat(directory, name, 0);
}

static UNUSED void fixture_done(struct fixture *f)
{
    fixture_close(f);
    (void) fixture_files(f, "", remove_file);
    assert_int_equal(rmdir(f->directory), 0);
}

static UNUSED struct uuid device_number(unsigned i)
{
    struct uuid u = {{0xde, 0x71, (unsigned char) (i * 37)}};
    put_u32(u.bytes + 12, i);
    return u;
}

/* ---- appending, and waiting for it ------------------------------------------------------------
 */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_done;
    int64_t result;
};

static UNUSED void waiting_init(struct waiting *w)
{
    *w = (struct waiting){0};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

static UNUSED void waiting_done(void *arg, int64_t result)
{
    struct waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    w->n_done++;
    w->result = result;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static UNUSED int64_t waiting_for(struct waiting *w, size_t n)
{
    pthread_mutex_lock(&w->lock);
    while (w->n_done < n)
        pthread_cond_wait(&w->changed, &w->lock);
    int64_t result = w->result;
    pthread_mutex_unlock(&w->lock);
    return result;
}

static UNUSED int64_t append_record(struct fixture *f, const struct telemetry_record *r)
{
    struct waiting w;
    waiting_init(&w);
    telemetry_append(f->t, r, NULL, waiting_done, &w);
    return waiting_for(&w, 1);
}

static UNUSED int64_t append_to(struct fixture *f, unsigned device, enum telemetry_stream stream,
                                const char *text)
{
    return append_record(f, &(struct telemetry_record){.device = device_number(device),
                                                       .stream = stream,
                                                       .bytes = str_of(text)});
}

/* So many records of one size, each text beginning with its number. */
static UNUSED void append_many(struct fixture *f, unsigned device, size_t n, size_t n_bytes)
{
    struct waiting w;
    waiting_init(&w);
    char *text = mem_zalloc(n_bytes + 24);
    for (size_t i = 0; i < n; i++) {
        memset(text, '.', n_bytes);
        (void) snprintf(text, 24, "%zu", i);
        telemetry_append(f->t,
                         &(struct telemetry_record){.device = device_number(device),
                                                    .stream = TELEMETRY_METRICS,
                                                    .bytes = str_range(text, n_bytes)},
                         NULL, waiting_done, &w);
        assert_true(waiting_for(&w, i + 1) > 0);
    }
    mem_free(text);
}

/* ---- reading ----------------------------------------------------------------------------------
 */

/* The texts a query finds, with a space behind each; caller frees. */
static UNUSED char *read_texts(struct fixture *f, const struct telemetry_query *q)
{
    struct telemetry_cursor *c = telemetry_read(f->t, q);
    struct buf b = {0};
    struct telemetry_record r;
    int n;
    uint64_t last = q->after;
    while ((n = telemetry_next(c, &r)) > 0) {
        assert_true(r.id > last);
        last = r.id;
        buf_append_str(&b, r.bytes);
        buf_append_char(&b, ' ');
    }
    assert_int_equal(n, 0);
    telemetry_cursor_free(c);
    buf_append(&b, "", 0);
    return b.p ? buf_take(&b) : mem_strdup("");
}

#define assert_texts(f, expected, ...) \
    do { \
        struct telemetry_query assert_q = {__VA_ARGS__}; \
        if (!assert_q.streams) \
            assert_q.streams = ALL_STREAMS; \
        char *assert_texts_found = read_texts(f, &assert_q); \
        assert_string_equal(assert_texts_found, expected); \
        mem_free(assert_texts_found); \
    } while (0)

static UNUSED size_t count_records(struct fixture *f, const struct telemetry_query *q)
{
    struct telemetry_cursor *c = telemetry_read(f->t, q);
    struct telemetry_record r;
    size_t n = 0;
    while (telemetry_next(c, &r) > 0)
        n++;
    telemetry_cursor_free(c);
    return n;
}

static UNUSED struct telemetry_stats stats_of(struct fixture *f)
{
    struct telemetry_stats s;
    telemetry_stats(f->t, &s);
    return s;
}
