/* SPDX-License-Identifier: Apache-2.0 */
/* An object, a message, and the status that comes of it. */
#pragma once

#include "base/alloc.h"
#include "base/clock.h"
#include "reports/derive.h"
#include "reports/words.h"
#include "test.h"

#define UNUSED __attribute__((unused))
#define NOW_US ((int64_t) 1800000000 * 1000000) /* 2027-01-15T08:00:00Z */
#define SECOND_US ((int64_t) 1000000)

struct fixture {
    struct arena *arena;
    struct json *object;
    struct derivation d;
};

/* JSON with ' for ". */
static UNUSED struct json *json_of(struct arena *a, const char *text)
{
    char *quoted = arena_strz(a, str_of(text));
    for (char *p = quoted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    struct json *v = json_parse_quick(a, str_of(quoted));
    assert_non_null(v);
    return v;
}

static UNUSED void begin(struct fixture *f, const char *object)
{
    f->arena = arena_new();
    f->object = json_of(f->arena, object);
    derivation_init(&f->d, f->arena, f->object);
    f->d.now_us = f->d.at_us = NOW_US;
}

/* The status is stored, and the next report comes a minute later. */
static UNUSED void store(struct fixture *f)
{
    int64_t now_us = f->d.now_us + 60 * SECOND_US;
    (void) json_set(f->arena, f->object, STR("status"), *f->d.status);
    derivation_init(&f->d, f->arena, f->object);
    f->d.now_us = f->d.at_us = now_us;
}

static UNUSED void end(struct fixture *f)
{
    arena_free(f->arena);
}

static UNUSED struct str text_at(const struct fixture *f, const char *outer, const char *inner)
{
    return inner ? json_str(json_at(f->d.status, outer, inner, NULL))
                 : json_get_str(f->d.status, str_of(outer));
}

#define assert_condition(f, type, want_status, want_reason, want_message) \
    do { \
        assert_str(derive_condition_text((f)->d.status, type, "status"), want_status); \
        assert_str(derive_condition_text((f)->d.status, type, "reason"), want_reason); \
        if (want_message) \
            assert_str(derive_condition_text((f)->d.status, type, "message"), want_message); \
    } while (0)

static UNUSED void assert_event(const struct fixture *f, size_t at, bool is_warning,
                                const char *reason, const char *message)
{
    assert_true(at < f->d.n_events);
    assert_int_equal(f->d.events[at].is_warning, is_warning);
    assert_string_equal(f->d.events[at].reason, reason);
    if (message)
        assert_str(f->d.events[at].message, message);
}

static UNUSED Eve__Info__ErrorInfo *error_of(struct arena *a, const char *words, int severity)
{
    Eve__Info__ErrorInfo *e = ARENA_NEW(a, Eve__Info__ErrorInfo);
    eve__info__error_info__init(e);
    e->description = arena_strz(a, str_of(words));
    e->severity = (Eve__Info__Severity) severity;
    return e;
}

static UNUSED Google__Protobuf__Timestamp *time_of(struct arena *a, int64_t us)
{
    Google__Protobuf__Timestamp *t = ARENA_NEW(a, Google__Protobuf__Timestamp);
    google__protobuf__timestamp__init(t);
    t->seconds = us / 1000000;
    t->nanos = (int32_t) (us % 1000000 * 1000);
    return t;
}
