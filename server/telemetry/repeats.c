/* SPDX-License-Identifier: Apache-2.0 */
/* A device that was stopped after its upload was kept, and before it heard of it, sends the same
 * bytes again. Decided by the writer, which sees all appends in their order: a repeat is answered
 * with its first, be that on disk since long or of the same group. */
#include "base/alloc.h"
#include "telemetry/telemetry_internal.h"

struct remembered *remembered_find(const struct track *k, unsigned stream, const struct uuid *app)
{
    for (size_t i = 0; k && i < k->n_remembered; i++)
        if (k->remembered[i].stream == stream && uuid_eq(&k->remembered[i].app, app))
            return &k->remembered[i];
    return NULL;
}

/* A place for one more: the one that was quiet for longest when there are enough. */
static struct remembered *make_place(struct track *k)
{
    if (k->n_remembered < TELEMETRY_MAX_REMEMBERED) {
        k->remembered =
            mem_realloc_array(k->remembered, k->n_remembered + 1, sizeof(*k->remembered));
        return &k->remembered[k->n_remembered++];
    }
    struct remembered *oldest = &k->remembered[0];
    for (size_t i = 1; i < k->n_remembered; i++)
        if (k->remembered[i].id < oldest->id)
            oldest = &k->remembered[i];
    return oldest;
}

static void set(struct track *k, unsigned stream, const struct uuid *app, uint64_t id,
                const unsigned char *digest)
{
    struct remembered *m = remembered_find(k, stream, app);
    m = m ? m : make_place(k);
    *m = (struct remembered){.app = *app, .id = id, .stream = (unsigned char) stream};
    memcpy(m->digest, digest, sizeof(m->digest));
}

void remembered_set(struct track *k, const struct append *a)
{
    set(k, a->frame.stream, &a->frame.app, a->frame.id, a->digest);
}

bool telemetry_remembers(struct telemetry *t, const struct telemetry_record *r)
{
    pthread_mutex_lock(&t->lock);
    bool is_known = remembered_find(track_find(t, &r->device), r->stream, &r->app) != NULL;
    pthread_mutex_unlock(&t->lock);
    return is_known;
}

void telemetry_remember(struct telemetry *t, const struct telemetry_record *r)
{
    pthread_mutex_lock(&t->lock);
    struct track *k = track_find(t, &r->device);
    if (k && !remembered_find(k, r->stream, &r->app))
        set(k, r->stream, &r->app, r->id, r->digest);
    pthread_mutex_unlock(&t->lock);
}

/* ---- in a group ----------------------------------------------------------------------------- */

/* Device, application and stream stand together in a frame: the key of its stream. */
static struct str stream_key(const struct append *a)
{
    _Static_assert(
        offsetof(struct frame, app) == offsetof(struct frame, device) + sizeof(struct uuid) &&
            offsetof(struct frame, stream) == offsetof(struct frame, app) + sizeof(struct uuid),
        "no gaps");
    return str_range((const char *) &a->frame.device,
                     2 * sizeof(struct uuid) + sizeof(a->frame.stream));
}

static bool is_same(const struct append *a, const unsigned char *digest)
{
    return memcmp(a->digest, digest, sizeof(a->digest)) == 0;
}

/* The last before it in the group decides, else what was kept before. What may no longer be read is
 * not repeated: it is kept again. */
static bool is_repeat(struct telemetry *t, const struct append *last, struct append *a)
{
    if (last) {
        a->repeated = is_same(a, last->digest) ? last : NULL;
        return a->repeated != NULL;
    }
    const struct track *k = track_find(t, &a->frame.device);
    const struct remembered *m = remembered_find(k, a->frame.stream, &a->frame.app);
    if (!m || m->id <= k->floor || !is_same(a, m->digest))
        return false;
    a->result = (int64_t) m->id;
    return true;
}

struct append *repeats_take(struct telemetry *t, struct append **group)
{
    struct append *repeats = NULL, **tail = &repeats;
    struct map lasts = {0};
    pthread_mutex_lock(&t->lock);
    for (struct append **at = group; *at;) {
        struct append *a = *at;
        if (!a->has_digest || !is_repeat(t, map_get(&lasts, stream_key(a)), a)) {
            if (a->has_digest)
                (void) map_put(&lasts, stream_key(a), a);
            at = &a->next;
            continue;
        }
        *at = a->next;
        *tail = a;
        tail = &a->next;
        a->next = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    map_done(&lasts);
    return repeats;
}

void repeats_settle(struct telemetry *t, struct append *repeats)
{
    for (struct append *a = repeats; a; a = a->next) {
        if (a->repeated)
            a->result = a->repeated->result;
        if (a->result >= 0)
            atomic_fetch_add(&t->n_repeats, 1);
        else
            atomic_fetch_add(&t->n_refused, 1);
    }
}
