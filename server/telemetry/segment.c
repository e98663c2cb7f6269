/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "telemetry/crc32c.h"
#include "telemetry/live.h"

#define NAME_DIGITS 16

void segment_name(uint64_t first_id, const char *suffix, char out[SEGMENT_NAME_BYTES])
{
    (void) snprintf(out, SEGMENT_NAME_BYTES, "%016" PRIx64 ".%s", first_id, suffix);
}

int segment_parse_name(const char *name, uint64_t *ret_first_id)
{
    struct str s = str_of(name);
    if (s.n != NAME_DIGITS + 4 || !str_ends_with(s, STR(".seg")))
        return -EINVAL;
    uint64_t id = 0;
    for (size_t i = 0; i < NAME_DIGITS; i++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, name[i]);
        if (!at)
            return -EINVAL;
        id = id << 4 | (uint64_t) (at - digits);
    }
    *ret_first_id = id;
    return 0;
}

static struct segment *segment_new(int fd)
{
    struct segment *s = NEW(struct segment);
    atomic_init(&s->refs, 1);
    s->fd = fd;
    atomic_init(&s->end, SEGMENT_HEAD_BYTES);
    return s;
}

struct segment *segment_ref(struct segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void segment_unref(struct segment *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    (void) close(s->fd);
    live_free(s->live);
    mem_free(s);
}

int segment_pread(const struct segment *s, void *to, size_t n, uint64_t position)
{
    char *at = to;
    while (n > 0) {
        ssize_t r = pread(s->fd, at, n, (off_t) position);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -EBADMSG;
        at += r;
        position += (uint64_t) r;
        n -= (size_t) r;
    }
    return 0;
}

int segment_pwrite(const struct segment *s, const void *from, size_t n, uint64_t position)
{
    const char *at = from;
    while (n > 0) {
        ssize_t r = pwrite(s->fd, at, n, (off_t) position);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        at += r;
        position += (uint64_t) r;
        n -= (size_t) r;
    }
    return 0;
}

int segment_create(int directory, const char *name, uint64_t first_id, int64_t base_us,
                   struct segment **ret)
{
    int fd = openat(directory, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    CLEANUP(segment_unrefp) struct segment *s = segment_new(fd);
    s->head = (struct segment_head){.first_id = first_id, .base_us = base_us};
    random_bytes(&s->head.salt, sizeof(s->head.salt));
    s->last_arrived_us = base_us;
    s->file_bytes = SEGMENT_HEAD_BYTES;
    s->live = live_new();
    unsigned char head[SEGMENT_HEAD_BYTES];
    segment_head_encode(&s->head, head);
    int r = segment_pwrite(s, head, sizeof(head), 0);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r < 0) {
        (void) unlinkat(directory, name, 0);
        return r;
    }
    *ret = TAKE(s);
    return 0;
}

int segment_open(int directory, const char *name, struct segment **ret)
{
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    CLEANUP(segment_unrefp) struct segment *s = segment_new(fd);
    unsigned char head[SEGMENT_HEAD_BYTES];
    int r = segment_pread(s, head, sizeof(head), 0);
    if (r == 0)
        r = segment_head_decode(head, &s->head);
    if (r < 0)
        return r;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size > UINT32_MAX)
        return -EBADMSG;
    s->file_bytes = (uint64_t) st.st_size;
    s->last_arrived_us = s->head.base_us;
    *ret = TAKE(s);
    return 0;
}

int segment_read_frame(const struct segment *s, uint64_t position, struct frame *ret)
{
    unsigned char head[FRAME_BYTES];
    int r = segment_pread(s, head, sizeof(head), position);
    if (r < 0)
        return r;
    return frame_decode(s->head.salt, head, ret) ? 0 : -EBADMSG;
}

int segment_read_record(const struct segment *s, const struct entry *e, struct buf *to,
                        struct telemetry_record *ret)
{
    size_t n = entry_size(e);
    if (n < FRAME_BYTES || n > FRAME_MAX_BYTES)
        return -EBADMSG;
    buf_reset(to);
    int r = segment_pread(s, buf_reserve(to, n), n, e->position);
    if (r < 0)
        return r;
    struct frame f;
    if (!frame_decode(s->head.salt, (const unsigned char *) to->p, &f) ||
        FRAME_BYTES + f.n_bytes != n || f.id != entry_id(s, e) ||
        f.crc != crc32c(0, to->p + FRAME_BYTES, f.n_bytes))
        return -EBADMSG;
    to->n = n;
    *ret = (struct telemetry_record){
        .id = f.id,
        .device = f.device,
        .app = f.app,
        .stream = (enum telemetry_stream) f.stream,
        .form = (enum telemetry_form) f.form,
        .arrived_us = f.arrived_us,
        .device_us = f.device_us,
        .bytes = str_range(to->p + FRAME_BYTES, f.n_bytes),
    };
    return 0;
}
