/* SPDX-License-Identifier: Apache-2.0 */
/* Lists at a revision. A long list lets go of the lock between chunks and stays at its revision by
 * the events that came since; filters run without the lock. */
#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/index.h"

/* How many objects ahead; more brings nothing. */
#define PREFETCH_DISTANCE 12

struct reader {
    struct index *ix;
    const struct store_range *range;
    int64_t at;        /* the revision read; 0 until the first chunk */
    size_t chunk;      /* how many objects to take at a time */
    struct buf behind; /* the key of the last object taken; empty before the first */
    size_t n_behind;   /* how many objects follow it in the range, as of the last chunk */
};

/* What the key held at a revision not below the floor. */
static struct object *version_at(const struct key_slot *slot, int64_t at)
{
    struct object *o = slot->newest;
    for (const struct event *v = slot->entry->last; v && v->shared.revision > at; v = v->older)
        o = v->shared.previous;
    return o;
}

static size_t count_slots(const struct key_block *b, uint32_t from, uint32_t to, int64_t at)
{
    size_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += version_at(&b->slots[i], at) != NULL;
    return n;
}

/* How many objects existed between two places. Blocks that did not change since need no look
 * inside. */
static size_t count_between(const struct keys *k, struct key_cursor from, struct key_cursor to,
                            int64_t at)
{
    size_t n = 0;
    for (; from.block < to.block; from = (struct key_cursor){from.block + 1, 0}) {
        const struct key_block *b = k->blocks[from.block];
        bool is_whole = from.at == 0 && b->newest_revision <= at;
        n += is_whole ? b->n_live : count_slots(b, from.at, b->n, at);
    }
    if (key_cursor_is_before(from, to))
        n += count_slots(k->blocks[from.block], from.at, to.at, at);
    return n;
}

static void find_bounds(const struct reader *rd, const struct keys *k, struct key_cursor *ret_from,
                        struct key_cursor *ret_to)
{
    const struct store_range *range = rd->range;
    BUF_AUTO prefix = {0};
    if (range->namespace.p) {
        buf_append_str(&prefix, range->namespace);
        buf_append_char(&prefix, '/');
    }
    *ret_from = keys_seek(k, buf_str(&prefix));
    *ret_to = prefix.n ? keys_seek_end(k, buf_str(&prefix)) : (struct key_cursor){k->n_blocks, 0};
    struct str behind = rd->behind.n ? buf_str(&rd->behind) : range->after;
    if (behind.p) {
        struct key_cursor from = keys_seek_behind(k, behind);
        if (key_cursor_is_before(*ret_from, from))
            *ret_from = from;
    }
}

/* Takes at most n objects from place *at of the block on. */
static size_t take_from_block(const struct key_block *b, uint32_t *at, int64_t revision, size_t n,
                              struct object **ret_objects)
{
    size_t taken = 0;
    bool is_current = b->newest_revision <= revision;
    for (; *at < b->n && taken < n; ++*at) {
        /* Taking waits for memory and little else: the line of a later object is asked for
         * meanwhile. */
        if (*at + PREFETCH_DISTANCE < b->n)
            __builtin_prefetch(b->slots[*at + PREFETCH_DISTANCE].newest, /* for write= */ 1);
        const struct key_slot *slot = &b->slots[*at];
        struct object *o = is_current ? slot->newest : version_at(slot, revision);
        if (o)
            ret_objects[taken++] = object_ref(o);
    }
    return taken;
}

/* Takes n objects from the cursor on; there are as many. Returns the key of the last. */
static struct str take(const struct keys *k, struct key_cursor from, int64_t revision, size_t n,
                       struct object **ret_objects)
{
    struct str last = STR_NONE;
    for (size_t taken = 0; taken < n; from = (struct key_cursor){from.block + 1, 0}) {
        const struct key_block *b = k->blocks[from.block];
        taken += take_from_block(b, &from.at, revision, n - taken, ret_objects + taken);
        last = entry_key(b->slots[from.at - 1].entry);
    }
    return last;
}

/* Settles which revision is read, or finds that it no longer can be. */
static int pin(struct reader *rd)
{
    if (!rd->at)
        rd->at = rd->range->at ? rd->range->at : rd->ix->revision;
    if (rd->at > rd->ix->revision)
        return -EAGAIN;
    return rd->at < rd->ix->floor ? -ERANGE : 0;
}

/* Appends at most max objects to the page. */
static void read_locked(struct reader *rd, size_t max, struct store_page *page)
{
    const struct collection *c = index_collection(rd->ix, rd->range->collection);
    rd->n_behind = 0;
    if (!c)
        return;
    struct key_cursor from, to;
    find_bounds(rd, &c->keys, &from, &to);
    size_t n_left = count_between(&c->keys, from, to, rd->at);
    size_t n = MIN(MIN(n_left, max), rd->chunk);
    rd->n_behind = n_left - n;
    if (!n)
        return;
    size_t n_room = page->n + (rd->range->filter ? n : MIN(n_left, max));
    page->objects = mem_realloc_array(page->objects, n_room, sizeof(*page->objects));
    struct str last = take(&c->keys, from, rd->at, n, page->objects + page->n);
    page->n += n;
    if (rd->n_behind) {
        buf_reset(&rd->behind);
        buf_append_str(&rd->behind, last);
    }
}

static int read_chunk(struct reader *rd, size_t max, struct store_page *page)
{
    index_lock_read(rd->ix);
    int r = pin(rd);
    if (r == 0)
        read_locked(rd, max, page);
    index_unlock(rd->ix);
    return r;
}

/* Leaves out what the filter refuses among the objects from `from` on, and what exceeds the limit.
 */
static void filter(struct reader *rd, size_t from, struct store_page *page)
{
    const struct store_range *range = rd->range;
    size_t n = from, i = from;
    for (; i < page->n && !(range->limit && n == range->limit); i++) {
        if (range->filter(range->ctx, page->objects[i]))
            page->objects[n++] = page->objects[i];
        else
            object_unref(page->objects[i]);
    }
    rd->n_behind += page->n - i;
    for (; i < page->n; i++)
        object_unref(page->objects[i]);
    page->n = n;
}

static int read_all(struct reader *rd, struct store_page *page)
{
    const struct store_range *range = rd->range;
    do {
        size_t before = page->n;
        size_t max = range->limit && !range->filter ? range->limit - page->n : SIZE_MAX;
        int r = read_chunk(rd, max, page);
        if (r < 0)
            return r;
        if (range->filter)
            filter(rd, before, page);
    } while (rd->n_behind && !(range->limit && page->n >= range->limit));
    page->revision = rd->at;
    page->has_more = rd->n_behind > 0;
    page->n_remaining = range->filter ? -1 : (int64_t) rd->n_behind;
    return 0;
}

static int list_with_chunk(struct index *ix, const struct store_range *range, size_t chunk,
                           struct store_page *ret_page)
{
    struct reader rd = {.ix = ix, .range = range, .chunk = chunk};
    /* What a filter lets through is not known beforehand: a small page should not take thousands.
     */
    if (range->filter && range->limit)
        rd.chunk = MIN(chunk, MAX(range->limit, (size_t) INDEX_FILTER_CHUNK));
    struct store_page page = {0};
    int r = read_all(&rd, &page);
    buf_done(&rd.behind);
    if (r < 0)
        store_page_done(&page);
    else
        *ret_page = page;
    return r;
}

int index_list(struct index *ix, const struct store_range *range, struct store_page *ret_page)
{
    int r = list_with_chunk(ix, range, INDEX_LIST_CHUNK, ret_page);
    /* History overtook a list of the newest state between two chunks: once more without letting go.
     */
    if (r == -ERANGE && range->at == 0)
        r = list_with_chunk(ix, range, SIZE_MAX, ret_page);
    return r;
}

void store_page_done(struct store_page *p)
{
    for (size_t i = 0; i < p->n; i++)
        object_unref(p->objects[i]);
    mem_free(p->objects);
    *p = (struct store_page){0};
}
