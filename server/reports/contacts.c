/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in touch. Silence is measured by the clock that never jumps, from when a tick saw the
 * device's last-seen time move; the time while the server was down counts for nobody. */
#include "base/alloc.h"
#include "reports/reports_internal.h"

struct contact *contact_get(struct reports *r, const struct uuid *device)
{
    struct contact *c = map_get(&r->contacts, str_range((const char *) device->bytes, 16));
    if (c)
        return c;
    c = NEW(struct contact);
    c->uuid = *device;
    c->is_fresh = true;
    c->tick = r->n_ticks;
    c->n_event_tokens = REPORTS_EVENT_BURST;
    c->event_tokens_at_us = reports_mono_us(r);
    (void) map_put(&r->contacts, str_range((const char *) c->uuid.bytes, 16), c);
    return c;
}

void contacts_free(struct reports *r)
{
    struct map_entry e;
    for (size_t at = 0; map_next(&r->contacts, &at, &e);)
        mem_free(e.value);
    map_done(&r->contacts);
}

void contact_heard(struct reports *r, struct contact *c, int64_t at_us)
{
    if (c->is_out_of_touch)
        c->quiet_until_us = 0;
    c->last_seen_us = at_us;
    c->heard_us = reports_mono_us(r);
    c->is_heard = true;
    c->is_fresh = false;
}

struct contact_view contact_judge(struct reports *r, struct contact *c,
                                  const struct catalog_view *device)
{
    /* A device that was in touch when the server ended gets the time to show itself again. */
    if (c->is_fresh && device->ready == CATALOG_READY_KNOWN) {
        c->is_heard = true;
        c->heard_us = r->started_us;
    }
    /* What was written may be newer than what was saved. */
    if (c->is_fresh)
        c->last_seen_us = MAX(c->last_seen_us, device->heartbeat_us);
    c->is_fresh = false;
    int64_t poll_s = MAX(device->poll_interval_s, (int64_t) REPORTS_MIN_POLL_S);
    int64_t limit_us = MIN(poll_s, (int64_t) REPORTS_MAX_POLL_S) * REPORTS_SILENT_POLLS * 1000000;
    bool is_heard = c->is_heard && reports_mono_us(r) - c->heard_us <= limit_us;
    c->is_out_of_touch = !is_heard;
    c->quiet_until_us = reports_mono_us(r) + REPORTS_QUIET_US;
    if (is_heard) /* it falls silent just after */
        c->quiet_until_us = MIN(c->quiet_until_us, c->heard_us + limit_us + 1);
    bool was_seen = c->last_seen_us || device->ready == CATALOG_READY_KNOWN || c->is_heard;
    return (struct contact_view){.contact = is_heard   ? CONTACT_HEARD
                                            : was_seen ? CONTACT_SILENT
                                                       : CONTACT_NEVER,
                                 .last_seen_us = c->last_seen_us,
                                 .word = c->word};
}

/* ---- the tick ------------------------------------------------------------------------------ */

/* With the roster locked. */
static void look(void *ctx, struct device *d)
{
    struct reports *r = ctx;
    struct contact *c = contact_get(r, &d->uuid);
    int64_t seen_us = atomic_load(&d->last_seen_us);
    c->tick = r->n_ticks;
    if (!seen_us) {
        /* What the server knew before it ended. Whoever is heard meanwhile has the last word. */
        if (c->last_seen_us)
            (void) atomic_compare_exchange_strong(&d->last_seen_us, &seen_us, c->last_seen_us);
        return;
    }
    if (seen_us != c->last_seen_us) {
        contact_heard(r, c, seen_us);
        r->is_unsaved = true;
    }
}

static bool is_to_write(const struct contact_view *v, const struct catalog_view *device)
{
    if (v->contact != CONTACT_HEARD)
        return device->ready != CATALOG_READY_UNKNOWN;
    return device->ready != CATALOG_READY_KNOWN ||
           v->last_seen_us - device->heartbeat_us >= DERIVE_HEARTBEAT_US;
}

/* Ten thousand devices are in order at any time: most are passed over. */
static bool is_passed_over(const struct reports *r, const struct contact *c)
{
    return c->tick == r->n_ticks && reports_mono_us(r) < c->quiet_until_us;
}

void contacts_tick(struct reports *r)
{
    ARENA_AUTO a = arena_new();
    ARENA_AUTO scratch = arena_new();
    struct contact **gone = NULL;
    size_t n_gone = 0;
    struct map_entry e;
    r->n_ticks++;
    roster_each(r->roster, look, r);
    for (size_t at = 0; map_next(&r->contacts, &at, &e);) {
        struct contact *c = e.value;
        struct catalog_view device;
        if (is_passed_over(r, c))
            continue;
        arena_reset(scratch);
        if (catalog_find(&r->catalog, scratch, CATALOG_DEVICE, &c->uuid, &device)) {
            struct contact_view v = contact_judge(r, c, &device);
            if (is_to_write(&v, &device)) {
                c->quiet_until_us = 0; /* until it is written */
                target_mark(r, target_get(r, CATALOG_DEVICE, &c->uuid));
            }
        } else if (c->tick != r->n_ticks) {
            gone = arena_grow(a, gone, n_gone, sizeof(struct contact *));
            gone[n_gone++] = c;
        }
    }
    for (size_t i = 0; i < n_gone; i++) {
        (void) map_remove(&r->contacts, str_range((const char *) gone[i]->uuid.bytes, 16));
        mem_free(gone[i]);
    }
}
