/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes all that a list would show: every write is submitted at once, so that they share commits;
 * those that lost a race are tried again from the version that won. The answer is the list as it
 * was. */
#include <errno.h>
#include <stdatomic.h>

#include "api/admission/admission.h"
#include "api/admission/webhooks.h"
#include "api/codec.h"
#include "api/delete_options.h"
#include "api/forecast.h"
#include "api/list_options.h"
#include "api/reply.h"

#define DELETE_COLLECTION_MAX_ROUNDS 16

struct item {
    struct store_write write;
    struct sweep *sweep;
    bool is_over;
};

struct sweep {
    struct call *call;
    struct delete_options options;
    struct store_page page; /* as listed */
    struct item *items;
    atomic_size_t n_pending;
    int n_rounds;
};

static bool has_failed(const struct call *c)
{
    return c->status.code || c->must_block;
}

/* Of a dry run: what would go, together. */
static void forecast(struct sweep *s)
{
    struct call *c = s->call;
    struct forecast_change *changes = ARENA_ARRAY(c->arena, struct forecast_change, s->page.n + 1);
    for (size_t i = 0; i < s->page.n; i++) {
        const struct object *o = s->page.objects[i];
        changes[i] = (struct forecast_change){.collection = c->kind->collection,
                                              .namespace = object_span(o, o->head.namespace),
                                              .name = object_span(o, o->head.name),
                                              .old = json_parse_quick(c->arena, object_text(o))};
    }
    (void) forecast_dry_run(c, changes, s->page.n);
}

static void finish(struct sweep *s)
{
    struct call *c = s->call;
    struct reply_form form = {0};
    admission_release(c);
    struct reply_list_meta meta = {.revision = s->page.revision, .n_remaining = -1};
    for (size_t i = 0; i < s->page.n; i++)
        object_unref(TAKE(s->items[i].write.committed));
    if (c->is_dry_run && !has_failed(c))
        forecast(s);
    if (has_failed(c) || reply_form_of(c, &form) < 0)
        call_fail(c);
    else
        call_reply_list(c, &form, s->page.objects, s->page.n, &meta);
}

/* One that finishes last wakes the call. */
static void drop_pending(struct sweep *s)
{
    if (atomic_fetch_sub(&s->n_pending, 1) == 1)
        s->call->resume(s->call);
}

static void on_item_done(struct store_write *w)
{
    drop_pending(CONTAINER_OF(w, struct item, write)->sweep);
}

/* True when a write was submitted. */
static bool begin_item(struct sweep *s, struct item *it, const struct object *listed)
{
    struct call *c = s->call;
    struct str name = object_span(listed, listed->head.name);
    struct str key =
        arena_printf(c->arena, "%.*s/%.*s/%.*s", STR_ARG(c->kind->collection),
                     STR_ARG(object_span(listed, listed->head.namespace)), STR_ARG(name));
    CLEANUP(object_unrefp) struct object *current = store_get(api_store(c->api), key);
    if (!current)
        return false;
    const struct kind *stored = registry_collection(c->registry, c->kind->collection);
    struct json *marked = NULL;
    const struct json *object = codec_decode(c->arena, current, stored);
    int step = delete_plan(c, &s->options, object, &marked);
    if (step < 0 || delete_admit(c, &s->options, current, object) < 0 || step == DELETE_WAIT ||
        c->is_dry_run)
        return false;
    object_unref(TAKE(it->write.committed));
    it->write = (struct store_write){.condition = marked ? STORE_REPLACE : STORE_REMOVE,
                                     .key = key,
                                     .expected_revision = current->revision,
                                     .on_done = on_item_done};
    if (marked && codec_encode(stored, marked, &it->write.object) < 0)
        return false;
    if (!marked)
        it->write.object = codec_farewell(current);
    atomic_fetch_add(&s->n_pending, 1);
    store_submit(api_store(c->api), &it->write);
    return true;
}

static void run_round(struct sweep *s)
{
    struct call *c = s->call;
    s->n_rounds++;
    /* The round itself counts as pending, so that no item can end it before all are submitted. */
    atomic_store(&s->n_pending, 1);
    for (size_t i = 0; i < s->page.n; i++)
        if (!s->items[i].is_over)
            /* One refusal ends the sweep; what has been submitted happens. */
            s->items[i].is_over = has_failed(c) || !begin_item(s, &s->items[i], s->page.objects[i]);
    drop_pending(s);
}

static void on_round(struct call *c)
{
    struct sweep *s = c->verb_state;
    bool again = false;
    for (size_t i = 0; i < s->page.n; i++) {
        struct item *it = &s->items[i];
        int result = it->write.result;
        if (it->is_over)
            continue;
        it->is_over = result != -ESTALE && result != -ENOENT;
        again |= !it->is_over;
        if (result < 0 && it->is_over)
            (void) status_from_store(&c->status, c->kind, STR(""), result);
    }
    if (again && !has_failed(c) && s->n_rounds < DELETE_COLLECTION_MAX_ROUNDS)
        run_round(s);
    else
        finish(s);
}

static int list(struct call *c, struct sweep *s)
{
    struct list_options o = {0};
    int r = list_options_parse(c, false, &o);
    if (r == 0)
        r = delete_options_parse(c, &s->options);
    if (r < 0)
        return r;
    struct store_range range = {.collection = c->kind->collection,
                                .namespace =
                                    c->in.path.namespace.n ? c->in.path.namespace : STR_NONE,
                                .limit = (size_t) o.limit};
    selector_restrict(&o.selector, &range);
    return store_list(api_store(c->api), &range, &s->page);
}

static void release(struct call *c)
{
    struct sweep *s = c->verb_state;
    store_page_done(&s->page);
}

void verb_delete_collection(struct call *c)
{
    struct sweep *s = ARENA_NEW(c->arena, struct sweep);
    /* Before anything is gone: what runs again elsewhere answers with the whole list. */
    c->must_block = !c->may_block &&
                    webhooks_may_match(api_webhooks(c->api), c->kind, STR(""), ADMISSION_DELETE);
    if (c->must_block) {
        call_fail(c);
        return;
    }
    s->call = c;
    c->verb_state = s;
    c->on_release = release;
    if (list(c, s) < 0) {
        call_fail(c);
        return;
    }
    s->items = ARENA_ARRAY(c->arena, struct item, s->page.n + 1);
    for (size_t i = 0; i < s->page.n; i++)
        s->items[i].sweep = s;
    c->on_written = on_round;
    run_round(s);
}
