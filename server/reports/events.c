/* SPDX-License-Identifier: Apache-2.0 */
/* Events about objects. One that tells the same again has the same name, so that it is counted
 * rather than made anew, also after a restart. */
#include <errno.h>

#include "base/log.h"
#include "pki/pki.h"
#include "reports/reports_internal.h"
#include "reports/words.h"

#define COMPONENT "seth-reports"
#define NAME_HASH_BYTES 8
#define MAX_STEM_BYTES (WORDS_MAX_NAME - 1 - 2 * NAME_HASH_BYTES)

static bool may_cause(struct reports *r, struct contact *c)
{
    int64_t now_us = reports_mono_us(r);
    int64_t n_new = (now_us - c->event_tokens_at_us) / REPORTS_EVENT_EVERY_US;
    if (n_new > 0) {
        c->n_event_tokens =
            (unsigned) MIN((int64_t) REPORTS_EVENT_BURST, (int64_t) c->n_event_tokens + n_new);
        c->event_tokens_at_us += n_new * REPORTS_EVENT_EVERY_US;
    }
    if (!c->n_event_tokens)
        return false;
    c->n_event_tokens--;
    return true;
}

static struct str event_name(struct arena *a, const struct json *object,
                             const struct derived_event *e)
{
    unsigned char digest[SHA256_BYTES];
    const struct json *meta = json_get(object, STR("metadata"));
    struct str name = json_get_str(meta, STR("name"));
    struct str what = arena_printf(a, "%.*s/%s/%.*s", STR_ARG(json_get_str(meta, STR("uid"))),
                                   e->reason, STR_ARG(e->message));
    BUF_AUTO b = {0};
    pki_sha256(what, digest);
    buf_append_str(&b, str_sub(name, 0, MIN(name.n, (size_t) MAX_STEM_BYTES)));
    buf_append_char(&b, '.');
    for (size_t i = 0; i < NAME_HASH_BYTES; i++)
        buf_printf(&b, "%02x", digest[i]);
    return arena_str(a, buf_str(&b));
}

static void copy(struct arena *a, struct json *to, const char *key, const struct json *from)
{
    const struct json *value = json_get(from, str_of(key));
    if (value)
        (void) json_append_member(a, to, str_of(key), *value);
}

static void text(struct arena *a, struct json *to, const char *key, struct str value)
{
    (void) json_append_member(a, to, str_of(key), json_string(value));
}

static struct json involved(struct arena *a, const struct json *object)
{
    struct json ref = json_object();
    const struct json *meta = json_get(object, STR("metadata"));
    copy(a, &ref, "apiVersion", object);
    copy(a, &ref, "kind", object);
    copy(a, &ref, "namespace", meta);
    copy(a, &ref, "name", meta);
    copy(a, &ref, "uid", meta);
    return ref;
}

static struct json *event_of(struct arena *a, const struct json *object, struct str name,
                             const struct derived_event *e, struct str now)
{
    struct json *event = json_new(a, json_object());
    struct json meta = json_object(), source = json_object();
    text(a, &meta, "name", name);
    copy(a, &meta, "namespace", json_get(object, STR("metadata")));
    text(a, &source, "component", STR(COMPONENT));
    text(a, event, "apiVersion", STR("v1"));
    text(a, event, "kind", STR("Event"));
    (void) json_append_member(a, event, STR("metadata"), meta);
    (void) json_append_member(a, event, STR("involvedObject"), involved(a, object));
    text(a, event, "reason", str_of(e->reason));
    text(a, event, "message", words_clean(a, e->message, WORDS_MAX_MESSAGE));
    text(a, event, "type", e->is_warning ? STR("Warning") : STR("Normal"));
    (void) json_append_member(a, event, STR("source"), source);
    text(a, event, "firstTimestamp", now);
    text(a, event, "lastTimestamp", now);
    (void) json_append_member(a, event, STR("count"), json_int(1));
    text(a, event, "reportingComponent", STR(COMPONENT));
    text(a, event, "reportingInstance", STR(""));
    return event;
}

static int count_again(struct reports *r, struct arena *a, const struct place *p,
                       struct json *event, struct str now)
{
    int64_t n = json_get_int(event, STR("count"), 1);
    (void) json_set(a, event, STR("count"), json_int(n < INT32_MAX ? n + 1 : n));
    (void) json_set(a, event, STR("lastTimestamp"), json_string(now));
    return place_update(r, a, p, event);
}

void events_tell(struct reports *r, struct contact *cause, const struct json *object,
                 const struct derived_event *e)
{
    if (!may_cause(r, cause)) {
        (void) atomic_fetch_add_explicit(&r->counters.n_events_shed, 1, memory_order_relaxed);
        return;
    }
    ARENA_AUTO a = arena_new();
    struct json *there = NULL;
    struct str now = words_stamp(a, reports_wall_us(r));
    struct place p = {STR(""), STR("v1"), STR("events"),
                      json_str(json_at(object, "metadata", "namespace", NULL)),
                      event_name(a, object, e)};
    int result = place_get(r, a, &p, &there);
    if (result == 0)
        result = count_again(r, a, &p, there, now);
    else if (result == -ENOENT)
        result = place_create(r, a, &p, event_of(a, object, p.name, e, now));
    if (result == 0)
        (void) atomic_fetch_add_explicit(&r->counters.n_events, 1, memory_order_relaxed);
    else
        log_debug("event not written", LOG_TEXT("reason", e->reason), LOG_ERRNO(result));
}
