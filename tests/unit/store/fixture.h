/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, and short words for what the tests do with it. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "store/store.h"
#include "test.h"

#define UNUSED __attribute__((unused))

/* A clock that another thread may read while the test moves it. */
struct test_clock {
    struct clock clock;
    atomic_llong now_us;
};

struct fixture {
    char directory[32];
    char *path;
    struct test_clock clock;
    struct store_options options;
    struct store *store;
};

static int64_t test_clock_now(const struct clock *c)
{
    return atomic_load(&CONTAINER_OF(c, struct test_clock, clock)->now_us);
}

/* Knows the name and where the revision goes; refuses a text that asks for it. */
static UNUSED int parse_head(void *ctx, struct str key, struct str text,
                             struct object_head *ret_head)
{
    (void) ctx;
    struct str mark = STR("\"resourceVersion\":\"");
    ptrdiff_t at = str_find_str(text, mark);
    if (at < 0 || str_find_str(text, STR("unreadable")) >= 0)
        return -EINVAL;
    ptrdiff_t slash = str_find_last(key, '/');
    struct str name = str_from(key, (size_t) slash + 1);
    ptrdiff_t name_at = str_find_str(text, name);
    *ret_head = (struct object_head){.revision_at = (uint32_t) ((size_t) at + mark.n)};
    if (name_at >= 0)
        ret_head->name = (struct span){(uint32_t) name_at, (uint32_t) name.n};
    return 0;
}

static UNUSED void fixture_init(struct fixture *f)
{
    log_set_level(LOG_ERROR);
    *f = (struct fixture){.directory = "/tmp/seth-store-XXXXXX"};
    assert_non_null(mkdtemp(f->directory));
    f->path = mem_alloc(sizeof(f->directory) + 16);
    (void) snprintf(f->path, sizeof(f->directory) + 16, "%s/store.db", f->directory);
    f->clock.clock = (struct clock){test_clock_now, test_clock_now};
    atomic_init(&f->clock.now_us, 1000000);
    f->options =
        (struct store_options){.path = f->path, .parse_head = parse_head, .clock = &f->clock.clock};
}

static UNUSED void fixture_open(struct fixture *f)
{
    char *error = NULL;
    int r = store_open(&f->options, &f->store, &error);
    if (r < 0)
        fail_msg("open: %d: %s", r, error);
}

static UNUSED void fixture_close(struct fixture *f)
{
    store_close(TAKE(f->store));
}

static UNUSED void fixture_done(struct fixture *f)
{
    fixture_close(f);
    DIR *d = opendir(f->directory);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    (void) closedir(d);
    assert_int_equal(rmdir(f->directory), 0);
    mem_free(f->path);
}

/* Opening must fail; returns the words, to be freed. */
static UNUSED char *fixture_open_fails(struct fixture *f, int expected)
{
    char *error = NULL;
    int r = store_open(&f->options, &f->store, &error);
    assert_int_equal(r, expected);
    assert_non_null(error);
    assert_non_null(strstr(error, f->path));
    return error;
}

/* An object whose name is the last part of the key. */
static UNUSED struct object *make_object(const char *key, const char *data)
{
    BUF_AUTO text = {0};
    const char *name = strrchr(key, '/') + 1;
    buf_printf(&text,
               "{\"kind\":\"Thing\",\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"\"},"
               "\"data\":\"%s\"}",
               name, data);
    struct object_head head = {0};
    assert_int_equal(parse_head(NULL, str_of(key), buf_str(&text), &head), 0);
    return object_new(buf_str(&text), &head);
}

struct outcome {
    int result;
    int64_t revision;
    int64_t committed; /* its revision, 0 when there is none */
};

static UNUSED struct outcome write_one(struct fixture *f, enum store_condition condition,
                                       const char *key, int64_t expected, const char *data)
{
    struct store_write w = {.condition = condition,
                            .key = str_of(key),
                            .expected_revision = expected,
                            .object = make_object(key, data)};
    (void) store_write_sync(f->store, &w);
    struct outcome out = {w.result, w.revision, w.committed ? w.committed->revision : 0};
    object_unref(w.committed);
    return out;
}

static UNUSED int64_t create(struct fixture *f, const char *key, const char *data)
{
    struct outcome out = write_one(f, STORE_CREATE, key, 0, data);
    assert_int_equal(out.result, 0);
    return out.revision;
}

static UNUSED int64_t replace(struct fixture *f, const char *key, int64_t expected,
                              const char *data)
{
    struct outcome out = write_one(f, STORE_REPLACE, key, expected, data);
    assert_int_equal(out.result, 0);
    return out.revision;
}

static UNUSED int64_t remove_key(struct fixture *f, const char *key, int64_t expected)
{
    struct outcome out = write_one(f, STORE_REMOVE, key, expected, "last state");
    assert_int_equal(out.result, 0);
    return out.revision;
}

/* Names and revisions of a page as "a:2 b:3". */
static UNUSED char *page_text(const struct store_page *page)
{
    struct buf b = {0};
    buf_append_str(&b, STR(""));
    for (size_t i = 0; i < page->n; i++)
        buf_printf(&b, "%s%.*s:%" PRId64, i ? " " : "",
                   STR_ARG(object_span(page->objects[i], page->objects[i]->head.name)),
                   page->objects[i]->revision);
    return b.p ? buf_take(&b) : mem_strdup("");
}

static UNUSED void assert_list(struct fixture *f, const struct store_range *range,
                               const char *expected)
{
    struct store_page page = {0};
    assert_int_equal(store_list(f->store, range, &page), 0);
    char *text = page_text(&page);
    assert_string_equal(text, expected);
    mem_free(text);
    store_page_done(&page);
}

/* The history of a collection as "+2 ~3 -4". */
static UNUSED void assert_history(struct fixture *f, const char *collection, int64_t from,
                                  int64_t to, const char *expected)
{
    struct store_event **events = NULL;
    size_t n = 0;
    assert_int_equal(store_history(f->store, str_of(collection), from, to, &events, &n), 0);
    BUF_AUTO b = {0};
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s%c%" PRId64, i ? " " : "", "+~-"[events[i]->type], events[i] -> revision);
        assert_int_equal(events[i]->object->revision, events[i]->revision);
        assert_str(events[i]->collection, collection);
        bytes_unref(&events[i]->bytes);
    }
    mem_free(events);
    assert_str(buf_str(&b), expected);
}
