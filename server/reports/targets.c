/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that something is to be written to, and what is known of who reported what. */
#include "base/alloc.h"
#include "reports/reports_internal.h"

struct report *report_new(enum report_kind kind, const struct uuid *device, struct str bytes)
{
    struct report *n = mem_zalloc(sizeof(*n) + bytes.n);
    n->kind = kind;
    n->device = *device;
    n->bytes = str_range((char *) (n + 1), bytes.n);
    memcpy(n + 1, bytes.p ? bytes.p : "", bytes.n);
    return n;
}

/* ---- targets ------------------------------------------------------------------------------- */

struct target *target_get(struct reports *r, unsigned kind, const struct uuid *uuid)
{
    char key[TARGET_KEY_BYTES] = {(char) kind};
    memcpy(key + 1, uuid->bytes, sizeof(uuid->bytes));
    struct target *t = map_get(&r->targets, str_range(key, sizeof(key)));
    if (t)
        return t;
    t = NEW(struct target);
    memcpy(t->key, key, sizeof(key));
    t->kind = kind;
    t->uuid = *uuid;
    list_init(&t->link);
    list_init(&t->reports);
    list_init(&t->facts);
    (void) map_put(&r->targets, str_range(t->key, sizeof(t->key)), t);
    return t;
}

void target_move(struct reports *r, struct target *t, enum target_place place)
{
    list_remove(&t->link);
    t->place = place;
    if (place == PLACE_NONE)
        return;
    int64_t wait_us = place == PLACE_RESTING    ? REPORTS_REST_US
                      : place == PLACE_RETRYING ? REPORTS_RETRY_US
                                                : 0;
    t->until_us = reports_mono_us(r) + wait_us;
    list_append(&r->places[place], &t->link);
}

void target_mark(struct reports *r, struct target *t)
{
    t->is_dirty = true;
    if (t->place == PLACE_NONE)
        target_move(r, t, PLACE_READY);
}

static void drop_report(struct target *t, struct report *report)
{
    list_remove(&report->link);
    t->n_reports--;
    mem_free(report);
}

/* What the new one takes the place of. Of an Application every change of state is history; of all
 * else only the newest counts. What was fetched is one word more than the history has room for. */
static void make_room(struct target *t, const struct report *fresh)
{
    if (t->kind == CATALOG_APPLICATION && fresh->kind == REPORT_APPLICATION) {
        if (t->n_reports == REPORTS_MAX_PENDING)
            drop_report(t, CONTAINER_OF(t->reports.next, struct report, link));
        return;
    }
    LIST_FOR_EACH (&t->reports, link) {
        struct report *old = CONTAINER_OF(link, struct report, link);
        if (old->kind == fresh->kind && uuid_eq(&old->device, &fresh->device))
            drop_report(t, old);
    }
}

void target_push(struct reports *r, struct target *t, struct report *report)
{
    make_room(t, report);
    list_append(&t->reports, &report->link);
    t->n_reports++;
    target_mark(r, t);
}

void target_forget_reports(struct target *t)
{
    while (!list_is_empty(&t->reports))
        drop_report(t, CONTAINER_OF(t->reports.next, struct report, link));
}

void target_settle(struct reports *r, struct target *t)
{
    if (t->is_dirty) {
        target_move(r, t, PLACE_READY);
        return;
    }
    target_move(r, t, PLACE_NONE);
    if (!list_is_empty(&t->facts))
        return;
    (void) map_remove(&r->targets, str_range(t->key, sizeof(t->key)));
    mem_free(t);
}

uint64_t targets_oldest_id(const struct reports *r)
{
    struct map_entry e;
    uint64_t oldest = UINT64_MAX;
    for (size_t at = 0; map_next(&r->targets, &at, &e);) {
        const struct target *t = e.value;
        LIST_FOR_EACH (&t->reports, link) {
            const struct report *report = CONTAINER_OF(link, struct report, link);
            if (report->id)
                oldest = MIN(oldest, report->id);
        }
    }
    return oldest;
}

void targets_free(struct reports *r)
{
    struct map_entry e;
    for (size_t at = 0; map_next(&r->targets, &at, &e);) {
        target_forget_reports(e.value);
        mem_free(e.value);
    }
    for (size_t at = 0; map_next(&r->subjects, &at, &e);) {
        mem_free(((struct subject *) e.value)->message);
        mem_free(e.value);
    }
    map_done(&r->targets);
    map_done(&r->subjects);
}

/* ---- subjects ------------------------------------------------------------------------------ */

static void make_key(char key[SUBJECT_KEY_BYTES], enum report_kind kind, const struct uuid *device,
                     const struct uuid *object)
{
    key[0] = (char) kind;
    memcpy(key + 1, device->bytes, 16);
    memcpy(key + 17, object->bytes, 16);
}

struct subject *subject_find(const struct reports *r, enum report_kind kind,
                             const struct uuid *device, const struct uuid *object)
{
    char key[SUBJECT_KEY_BYTES];
    make_key(key, kind, device, object);
    return map_get(&r->subjects, str_range(key, sizeof(key)));
}

struct subject *subject_get(struct reports *r, enum report_kind kind, const struct uuid *device,
                            const struct uuid *object)
{
    struct subject *s = subject_find(r, kind, device, object);
    if (s)
        return s;
    s = NEW(struct subject);
    make_key(s->key, kind, device, object);
    list_init(&s->link);
    (void) map_put(&r->subjects, str_range(s->key, sizeof(s->key)), s);
    return s;
}

void subject_remove(struct reports *r, struct subject *s)
{
    list_remove(&s->link);
    (void) map_remove(&r->subjects, str_range(s->key, sizeof(s->key)));
    mem_free(s->message);
    mem_free(s);
}

struct uuid subject_device(const struct subject *s)
{
    struct uuid u;
    memcpy(u.bytes, s->key + 1, sizeof(u.bytes));
    return u;
}

struct uuid subject_object(const struct subject *s)
{
    struct uuid u;
    memcpy(u.bytes, s->key + 17, sizeof(u.bytes));
    return u;
}

void subject_set_fact(struct reports *r, struct subject *s, const struct fact *f)
{
    unsigned kind = s->key[0] == REPORT_CONTENT ? CATALOG_IMAGE : CATALOG_NETWORK;
    struct uuid object = subject_object(s);
    struct target *t = target_get(r, kind, &object);
    bool is_error = f->state == FACT_ERROR;
    bool is_same = s->message && is_error && str_eq(str_of(s->message), f->message);
    list_remove(&s->link);
    if (f->state != FACT_GONE)
        list_append(&t->facts, &s->link);
    s->fact = f->state;
    if (is_same)
        return;
    mem_free(s->message);
    s->message = NULL;
    s->is_untold = is_error;
    if (is_error)
        s->message = str_dup(f->message);
}
