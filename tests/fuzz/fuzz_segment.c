/* SPDX-License-Identifier: Apache-2.0 */
/* A segment file as a damaged disk or a hostile hand may leave it, through everything that opens,
 * reads, indexes, rewrites and continues it. The first byte:
 *
 *     bit 0  the rest is the file itself; otherwise it is frames as below, made whole
 *     bit 1  an index follows the frames, of what the input has left
 *     bit 2  another segment follows the file
 *
 * Frames: what to spoil 1 (bit 0 the sum of the head, bit 1 of the bytes, bit 2 no frame at all),
 * stream 1, form 1, id 1 (from the last), time 1 (from the last, signed), device 1, n 1, n bytes.
 * Index: rows 1, entries 1, then their bytes. */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/crc32c.h"
#include "telemetry/telemetry_internal.h"

#define IS_RAW 1
#define HAS_INDEX 2
#define HAS_NEXT 4
#define ROW_BYTES 56
#define ENTRY_BYTES 16
#define TRAILER_BYTES 56

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct segment_head head = {{0x12345678, 0x9abcdef0}, 1, 1000};

static unsigned take(struct str *in)
{
    unsigned char c = in->n ? (unsigned char) in->p[0] : 0;
    *in = str_from(*in, 1);
    return c;
}

static void append_frame(struct buf *to, struct str *in, struct frame *last)
{
    unsigned spoilt = take(in);
    struct frame f = {.stream = take(in), .form = take(in)};
    f.id = last->id + take(in);
    f.arrived_us = last->arrived_us + (int8_t) take(in) * 1000;
    f.device.bytes[15] = (unsigned char) take(in);
    struct str bytes = str_sub(*in, 1, 1 + (in->n ? (unsigned char) in->p[0] : 0));
    *in = str_from(*in, 1 + bytes.n);
    f.n_bytes = (uint32_t) bytes.n;
    f.crc = crc32c(0, bytes.p, bytes.n) ^ (spoilt >> 1 & 1);
    *last = f;
    if (!(spoilt & 4)) {
        unsigned char out[FRAME_BYTES];
        frame_encode(head.salt, &f, out);
        out[4] ^= spoilt & 1;
        buf_append(to, out, sizeof(out));
    }
    buf_append_str(to, bytes);
}

static void append_index(struct buf *to, struct str *in, uint64_t last_id)
{
    unsigned n_rows = take(in) % 8, n_entries = take(in);
    size_t end = to->n, n = n_rows * ROW_BYTES + n_entries * ENTRY_BYTES;
    struct str bytes = str_sub(*in, 0, n);
    buf_append_str(to, bytes);
    memset(buf_reserve(to, n - bytes.n), 0, n - bytes.n);
    to->n += n - bytes.n;
    unsigned char t[TRAILER_BYTES] = "sethidx1";
    put_u64(t + 8, end);
    put_u32(t + 16, n_rows);
    put_u32(t + 20, n_entries);
    put_u64(t + 24, last_id);
    put_u64(t + 32, 2000);
    put_u32(t + 40, head.salt.magic);
    put_u32(t + 44, head.salt.seed);
    put_u32(t + 48, crc32c(0, to->p + end, n));
    put_u32(t + 52, crc32c(0, t, 52));
    buf_append(to, t, sizeof(t));
}

static void make_file(struct buf *to, unsigned flags, struct str in)
{
    if (flags & IS_RAW) {
        buf_append_str(to, in);
        return;
    }
    unsigned char out[SEGMENT_HEAD_BYTES];
    segment_head_encode(&head, out);
    buf_append(to, out, sizeof(out));
    struct frame last = {.arrived_us = head.base_us};
    for (int n = 0; in.n > 0 && n < (flags & HAS_INDEX ? 4 : 64); n++)
        append_frame(to, &in, &last);
    if (flags & HAS_INDEX)
        append_index(to, &in, last.id);
}

static void write_file(const char *directory, const char *name, struct str bytes)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/%s", directory, name);
    int fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes.p, bytes.n) != (ssize_t) bytes.n)
        abort();
    (void) close(fd);
}

static void clean(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            (void) unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void) closedir(d);
}

/* How many a query finds; their ids grow. */
static size_t read_all(struct telemetry *t, const struct telemetry_query *q)
{
    struct telemetry_cursor *c = telemetry_read(t, q);
    struct telemetry_record r;
    uint64_t last = 0;
    size_t n = 0;
    while (telemetry_next(c, &r) > 0) {
        assert(r.id > last && r.stream < TELEMETRY_STREAMS);
        assert(!q->device || uuid_eq(q->device, &r.device));
        last = r.id;
        n++;
    }
    telemetry_cursor_free(c);
    return n;
}

static void use(struct telemetry *t)
{
    struct telemetry_query q = {.streams = ~0u};
    size_t n = read_all(t, &q);
    q.newest = 3;
    size_t n_newest = read_all(t, &q);
    assert(n_newest <= 3 && n_newest <= n);
    struct uuid device = {{0}};
    q.device = &device;
    for (unsigned char i = 0; i < 4; i++) {
        device.bytes[15] = i;
        q.newest = 0;
        n = read_all(t, &q);
        q.newest = 2;
        n_newest = read_all(t, &q);
        assert(n_newest <= 2);
    }
    telemetry_sweep(t);
    telemetry_forget(t, &device);
    telemetry_append(t, &(struct telemetry_record){.bytes = STR("more")}, NULL, NULL, NULL);
}

static int64_t clock_zero(const struct clock *c)
{
    (void) c;
    return 3000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_set_level((enum log_level) - 1);
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/seth-segment-XXXXXX",
               access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    const char *directory = mkdtemp(path.p);
    if (!directory)
        abort();
    struct str in = str_range((const char *) data, size);
    unsigned flags = take(&in);
    BUF_AUTO file = {0};
    make_file(&file, flags, in);
    write_file(directory, "0000000000000001.seg", buf_str(&file));
    if (flags & HAS_NEXT) {
        unsigned char next[SEGMENT_HEAD_BYTES];
        segment_head_encode(&(struct segment_head){{1, 2}, 4096, 2000}, next);
        write_file(directory, "0000000000001000.seg", str_range((char *) next, sizeof(next)));
    }
    const struct clock clock = {clock_zero, clock_zero};
    struct telemetry_options o = {.directory = directory, .clock = &clock, .segment_bytes = 4096};
    o.max_device_bytes = 300;
    /* Whatever it was, it opens, and opens again behind what was done with it. */
    for (int i = 0; i < 2; i++) {
        struct telemetry *t = NULL;
        char *error = NULL;
        int r = telemetry_open(&o, &t, &error);
        assert(r == 0);
        if (r == 0)
            use(t);
        telemetry_free(t);
    }
    clean(directory);
    (void) rmdir(directory);
    return 0;
}
