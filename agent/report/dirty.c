/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed since it was last told. Changes that come together are told together. */
#include "base/alloc.h"
#include "report/report_internal.h"

static void start_flush(struct report *r, int64_t after_ms)
{
    const int64_t at_ms = loop_now_ms(r->node->loop) + after_ms;
    if (r->flush_at_ms && r->flush_at_ms <= at_ms)
        return;
    r->flush_at_ms = at_ms;
    loop_timer_start(r->flush_timer, after_ms, 0);
}

void report_mark_device(struct report *r)
{
    r->is_device_dirty = true;
    start_flush(r, REPORT_DEVICE_MS);
}

static void dirty_free(struct report *r, struct dirty *d)
{
    (void) map_remove(&r->dirty_by_id, str_range(d->id, d->n_id));
    list_remove(&d->link);
    mem_free(d->id);
    mem_free(d->last);
    mem_free(d);
}

static struct dirty *dirty_get(struct report *r, enum report_kind kind, struct str key)
{
    BUF_AUTO id = {0};
    buf_append_char(&id, (char) ('A' + kind));
    buf_append_str(&id, key);
    struct dirty *d = map_get(&r->dirty_by_id, buf_str(&id));
    if (d)
        return d;
    d = NEW(struct dirty);
    d->kind = kind;
    d->n_id = id.n;
    d->id = buf_take(&id);
    list_append(&r->dirty, &d->link);
    (void) map_put(&r->dirty_by_id, str_range(d->id, d->n_id), d);
    return d;
}

void report_mark(struct report *r, enum report_kind kind, struct str key, const struct json *last)
{
    struct dirty *d = dirty_get(r, kind, key);
    mem_free(TAKE(d->last));
    if (last) {
        BUF_AUTO text = {0};
        json_write(&text, last);
        d->n_last = text.n;
        d->last = buf_take(&text);
    }
    if (r->dirty_by_id.n_items >= REPORT_MAX_DIRTY && report_can_send(r))
        report_flush(r);
    else
        start_flush(r, REPORT_OBJECT_MS);
}

static int tell(struct report *r, struct report_view *v, struct dirty *d)
{
    struct arena *a = v->world.arena;
    const struct info_subject s = {
        .kind = d->kind,
        .key = arena_str(a, str_range(d->id + 1, d->n_id - 1)),
        .last = d->last ? json_parse_quick(a, str_range(d->last, d->n_last)) : NULL,
    };
    return report_tell(r, v, &s);
}

void report_flush(struct report *r)
{
    r->flush_at_ms = 0;
    loop_timer_stop(r->flush_timer);
    /* Nobody to tell as whom: it waits until there is. */
    if (!report_can_send(r) || (list_is_empty(&r->dirty) && !r->is_device_dirty))
        return;
    ARENA_AUTO a = arena_new();
    struct report_view v;
    report_view_init(r, a, &v);
    int result = 0;
    while (result == 0 && !list_is_empty(&r->dirty)) {
        struct dirty *d = CONTAINER_OF(r->dirty.next, struct dirty, link);
        result = tell(r, &v, d);
        if (result == 0)
            dirty_free(r, d);
    }
    if (r->is_device_dirty && report_tell(r, &v, &(struct info_subject){.kind = KIND_DEVICE}) == 0)
        r->is_device_dirty = false;
    if (r->is_device_dirty || !list_is_empty(&r->dirty))
        start_flush(r, REPORT_FULL_MS);
}

void report_dirty_done(struct report *r)
{
    while (!list_is_empty(&r->dirty))
        dirty_free(r, CONTAINER_OF(r->dirty.next, struct dirty, link));
    map_done(&r->dirty_by_id);
}
