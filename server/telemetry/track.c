/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each device: where its records end, and from where on they are read. */
#include "base/alloc.h"
#include "telemetry/telemetry_internal.h"

static struct str key_of(const struct uuid *u)
{
    return str_range((const char *) u->bytes, sizeof(u->bytes));
}

struct track *track_find(const struct telemetry *t, const struct uuid *device)
{
    return map_get(&t->tracks, key_of(device));
}

struct track *track_of(struct telemetry *t, const struct uuid *device)
{
    struct track *k = track_find(t, device);
    if (k)
        return k;
    k = NEW(struct track);
    k->device = *device;
    list_init(&k->waiters);
    (void) map_put(&t->tracks, key_of(&k->device), k);
    return k;
}

void tracks_done(struct telemetry *t)
{
    size_t position = 0;
    struct map_entry item;
    while (map_next(&t->tracks, &position, &item)) {
        struct track *k = item.value;
        mem_free(k->remembered);
        mem_free(k);
    }
    map_done(&t->tracks);
}

void track_row(struct telemetry *t, const struct row *r)
{
    struct track *k = track_of(t, &r->device);
    k->last_id = MAX(k->last_id, r->last_id);
    k->floor = MAX(k->floor, r->forget_id);
    k->n_bytes += (int64_t) r->n_bytes;
}

int64_t track_oldest_us(const struct telemetry *t, const struct track *k)
{
    int64_t age_s = k && k->max_age_s ? k->max_age_s : t->options.max_age_s;
    if (age_s <= 0)
        return INT64_MIN;
    int64_t now = t->options.clock->wall_us(t->options.clock);
    return age_s > now / 1000000 ? INT64_MIN : now - age_s * 1000000;
}

void telemetry_forget(struct telemetry *t, const struct uuid *device)
{
    /* The record makes it last; what is read from now on need not wait for it. */
    pthread_mutex_lock(&t->lock);
    struct track *k = track_find(t, device);
    bool is_known = k != NULL;
    if (k) {
        k->floor = t->last_id;
        k->n_bytes = 0;
    }
    pthread_mutex_unlock(&t->lock);
    if (!is_known)
        return;
    struct append *a = append_new(&(struct telemetry_record){
        .device = *device, .stream = (enum telemetry_stream) FRAME_FORGET});
    append_queue(t, a, /* is_forced= */ true);
    keeper_call(t);
}

void telemetry_limit(struct telemetry *t, const struct uuid *device, int64_t max_age_s)
{
    pthread_mutex_lock(&t->lock);
    struct track *k = max_age_s ? track_of(t, device) : track_find(t, device);
    if (k)
        k->max_age_s = max_age_s;
    pthread_mutex_unlock(&t->lock);
}
