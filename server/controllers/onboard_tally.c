/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/onboard_tally.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"
#include "settings/settings.h"

struct sponsor {
    size_t n; /* Devices */
    char *key;
};

struct member {
    struct sponsor *by;
    char *key; /* "<namespace>/<name>" */
};

struct onboard_tally {
    pthread_mutex_t lock;
    struct map sponsors, members;
};

struct onboard_tally *onboard_tally_new(void)
{
    struct onboard_tally *t = NEW(struct onboard_tally);
    (void) pthread_mutex_init(&t->lock, NULL);
    return t;
}

void onboard_tally_free(struct onboard_tally *t)
{
    if (!t)
        return;
    struct map_entry e;
    for (size_t at = 0; map_next(&t->members, &at, &e);) {
        mem_free(((struct member *) e.value)->key);
        mem_free(e.value);
    }
    for (size_t at = 0; map_next(&t->sponsors, &at, &e);) {
        mem_free(((struct sponsor *) e.value)->key);
        mem_free(e.value);
    }
    map_done(&t->members);
    map_done(&t->sponsors);
    (void) pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

static char *copy(struct str s)
{
    struct buf b = {0};
    buf_append_str(&b, s);
    return buf_take(&b);
}

/* ---- under the lock ------------------------------------------------------------------------ */

static struct sponsor *sponsor_of(struct onboard_tally *t, struct str key)
{
    struct sponsor *s = map_get(&t->sponsors, key);
    if (s)
        return s;
    s = NEW(struct sponsor);
    s->key = copy(key);
    (void) map_put(&t->sponsors, str_of(s->key), s);
    return s;
}

static void leave(struct onboard_tally *t, struct member *m)
{
    (void) map_remove(&t->members, str_of(m->key));
    if (--m->by->n == 0) {
        (void) map_remove(&t->sponsors, str_of(m->by->key));
        mem_free(m->by->key);
        mem_free(m->by);
    }
    mem_free(m->key);
    mem_free(m);
}

static void join(struct onboard_tally *t, struct str device, struct str sponsor)
{
    struct member *m = NEW(struct member);
    m->key = copy(device);
    m->by = sponsor_of(t, sponsor);
    m->by->n++;
    (void) map_put(&t->members, str_of(m->key), m);
}

/* ---- events -------------------------------------------------------------------------------- */

/* "<Kind>/<namespace>/<name>" of what let the device in; STR_NONE when nothing did. */
static struct str sponsor_in(struct arena *a, const struct kube_event *e)
{
    /* Most Devices are somebody's own: those need not be parsed. */
    if (e->type == KUBE_DELETED || str_find_str(e->text, STR(SETTINGS_ONBOARDED_BY)) < 0)
        return STR_NONE;
    const struct json *annotations =
        json_at(json_parse_quick(a, e->text), "metadata", "annotations", NULL);
    const struct str by = json_get_str(annotations, STR(SETTINGS_ONBOARDED_BY));
    const ptrdiff_t slash = str_find(by, '/');
    if (slash <= 0)
        return STR_NONE;
    return arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(str_sub(by, 0, (size_t) slash)),
                        STR_ARG(e->namespace), STR_ARG(str_from(by, (size_t) slash + 1)));
}

void onboard_tally_event(struct onboard_tally *t, const struct kube_event *e,
                         void (*changed)(void *ctx, struct str sponsor), void *ctx)
{
    ARENA_AUTO a = arena_new();
    const struct str device = arena_printf(a, "%.*s/%.*s", STR_ARG(e->namespace), STR_ARG(e->name));
    const struct str now = sponsor_in(a, e);
    struct str before = STR_NONE;
    (void) pthread_mutex_lock(&t->lock);
    struct member *m = map_get(&t->members, device);
    if (m)
        before = arena_str(a, str_of(m->by->key));
    const bool is_same = before.p && now.p ? str_eq(before, now) : !before.p && !now.p;
    if (!is_same && m)
        leave(t, m);
    if (!is_same && now.p)
        join(t, device, now);
    (void) pthread_mutex_unlock(&t->lock);
    if (!is_same && before.p)
        changed(ctx, before);
    if (!is_same && now.p)
        changed(ctx, now);
}

size_t onboard_tally_count(struct onboard_tally *t, struct str sponsor)
{
    (void) pthread_mutex_lock(&t->lock);
    const struct sponsor *s = map_get(&t->sponsors, sponsor);
    const size_t n = s ? s->n : 0;
    (void) pthread_mutex_unlock(&t->lock);
    return n;
}
