/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a segment file, little-endian at fixed offsets: its head, and the frames that hold one
 * record each. No I/O.
 *
 * What a device sends may look like a frame. So that a torn record can never pass for others, each
 * segment draws its own magic and its own seed of the checksums. */
#pragma once

#include <endian.h>
#include <sys/types.h>

#include "telemetry/telemetry.h"

#define FRAME_BYTES ((size_t) 80) /* in front of a record's bytes */
#define FRAME_MAX_BYTES (FRAME_BYTES + TELEMETRY_MAX_RECORD_BYTES)
/* Stands where a stream does: everything of the device up to here is forgotten. */
#define FRAME_FORGET TELEMETRY_STREAMS
#define FRAME_STREAM_BITS 3
_Static_assert(FRAME_FORGET < 1 << FRAME_STREAM_BITS, "an index entry has three bits for it");

/* Two copies, a disk sector each: one flipped bit must not cost a segment. */
#define SEGMENT_HEAD_BYTES ((size_t) 1024)

struct frame_salt {
    uint32_t magic, seed;
};

struct segment_head {
    struct frame_salt salt;
    uint64_t first_id; /* no frame has a lower one */
    int64_t base_us;   /* no frame arrived earlier */
};

struct frame {
    uint64_t id;
    int64_t arrived_us, device_us;
    struct uuid device, app;
    unsigned stream, form;
    uint32_t n_bytes, crc; /* of the record's bytes */
};

void segment_head_encode(const struct segment_head *h, unsigned char out[SEGMENT_HEAD_BYTES]);
/* -EBADMSG: neither copy is good. */
int segment_head_decode(const unsigned char in[SEGMENT_HEAD_BYTES], struct segment_head *ret);

void frame_encode(struct frame_salt salt, const struct frame *f, unsigned char out[FRAME_BYTES]);
bool frame_decode(struct frame_salt salt, const unsigned char in[FRAME_BYTES], struct frame *ret);

static inline void put_u32(unsigned char *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}
static inline void put_u64(unsigned char *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}
static inline uint32_t get_u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}
static inline uint64_t get_u64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}
