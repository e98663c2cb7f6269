/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frames of a segment file that may end anywhere and be damaged anywhere. */
#include <errno.h>

#include "base/alloc.h"
#include "telemetry/crc32c.h"
#include "telemetry/segment.h"

#define WINDOW_BYTES ((size_t) 256 * 1024)

struct scanner {
    const struct segment *s;
    uint64_t n_bytes; /* of the file */
    uint64_t window_at;
    size_t window_n;
    unsigned char *window;
    int error;
};

/* n bytes at `at`, n at most a window; NULL when the file ends before, or cannot be read. */
static const unsigned char *look(struct scanner *sc, uint64_t at, size_t n)
{
    if (at + n > sc->n_bytes || sc->error < 0)
        return NULL;
    if (at < sc->window_at || at + n > sc->window_at + sc->window_n) {
        size_t wanted = (size_t) MIN(WINDOW_BYTES, sc->n_bytes - at);
        sc->window_n = 0;
        sc->error = segment_pread(sc->s, sc->window, wanted, at);
        if (sc->error < 0)
            return NULL;
        sc->window_at = at;
        sc->window_n = wanted;
    }
    return sc->window + (at - sc->window_at);
}

/* A head that is good and whose bytes are all in the file. */
static bool frame_at(struct scanner *sc, uint64_t at, struct frame *ret)
{
    const unsigned char *head = look(sc, at, FRAME_BYTES);
    return head && frame_decode(sc->s->head.salt, head, ret) &&
           at + FRAME_BYTES + ret->n_bytes <= sc->n_bytes;
}

static bool is_body_good(struct scanner *sc, uint64_t at, const struct frame *f)
{
    uint32_t crc = 0;
    for (size_t done = 0; done < f->n_bytes;) {
        size_t n = MIN(WINDOW_BYTES, f->n_bytes - done);
        const unsigned char *piece = look(sc, at + done, n);
        if (!piece)
            return false;
        crc = crc32c(crc, piece, n);
        done += n;
    }
    return crc == f->crc;
}

/* The next place from `at` on where a frame's head may be; the file's end when there is none. */
static uint64_t next_magic(struct scanner *sc, uint64_t at)
{
    unsigned char magic[4];
    put_u32(magic, sc->s->head.salt.magic);
    while (at + FRAME_BYTES <= sc->n_bytes) {
        size_t n = (size_t) MIN(WINDOW_BYTES, sc->n_bytes - at);
        const unsigned char *p = look(sc, at, n);
        if (!p)
            break;
        const unsigned char *found = memmem(p, n, magic, sizeof(magic));
        if (found)
            return at + (uint64_t) (found - p);
        at += n - (sizeof(magic) - 1);
    }
    return sc->n_bytes;
}

/* Ids and times grow in a file, and fit its entries; what does not was not written by us so. */
static bool is_in_order(const struct segment *s, const struct frame *f, const struct frame *last)
{
    return f->id >= s->head.first_id && f->id - s->head.first_id < SEGMENT_MAX_IDS &&
           f->id > last->id && f->arrived_us >= last->arrived_us;
}

int segment_scan(const struct segment *s, uint64_t n_bytes, struct scan *scan)
{
    struct scanner sc = {.s = s, .n_bytes = n_bytes, .window = mem_alloc(WINDOW_BYTES)};
    struct frame last = {.arrived_us = s->head.base_us}, f;
    uint64_t at = SEGMENT_HEAD_BYTES, n_bad = 0;
    scan->end = at;
    scan->n_damaged = 0;
    while (at < n_bytes && sc.error == 0) {
        if (!frame_at(&sc, at, &f)) {
            n_bad++;
            at = next_magic(&sc, at + 1);
            continue;
        }
        /* The head is good, so its length is: a damaged body costs one record. */
        uint64_t position = at;
        at += FRAME_BYTES + f.n_bytes;
        if (!is_in_order(s, &f, &last) || !is_body_good(&sc, position + FRAME_BYTES, &f)) {
            n_bad++;
            continue;
        }
        scan->n_damaged += n_bad;
        n_bad = 0;
        scan->on_frame(scan->ctx, &f, position);
        scan->end = at;
        last = f;
    }
    scan->n_bad_tail = n_bytes > scan->end ? n_bytes - scan->end : 0;
    mem_free(sc.window);
    return sc.error;
}

uint64_t segment_next_frame(const struct segment *s, uint64_t at, uint64_t end)
{
    struct scanner sc = {.s = s, .n_bytes = end, .window = mem_alloc(WINDOW_BYTES)};
    struct frame f;
    do
        at = next_magic(&sc, at);
    while (at < end && !frame_at(&sc, at, &f) && ++at);
    mem_free(sc.window);
    return at;
}
