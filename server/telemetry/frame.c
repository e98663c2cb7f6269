/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/frame.h"

#include <errno.h>

#include "telemetry/crc32c.h"

/* Offsets in a frame; the checksum covers what follows it. */
enum {
    FRAME_AT_MAGIC = 0,
    FRAME_AT_SUM = 4,
    FRAME_AT_LENGTH = 8,
    FRAME_AT_CRC = 12,
    FRAME_AT_ID = 16,
    FRAME_AT_ARRIVED = 24,
    FRAME_AT_DEVICE_TIME = 32,
    FRAME_AT_DEVICE = 40,
    FRAME_AT_APP = 56,
    FRAME_AT_STREAM = 72,
    FRAME_AT_FORM = 73,
};

/* Offsets in a copy of a segment's head. */
enum {
    HEAD_AT_NAME = 0,
    HEAD_AT_MAGIC = 8,
    HEAD_AT_SEED = 12,
    HEAD_AT_FIRST_ID = 16,
    HEAD_AT_BASE = 24,
    HEAD_AT_SUM = 32,
    HEAD_COPY_BYTES = SEGMENT_HEAD_BYTES / 2,
};

static const char head_name[8] = "sethtel1";

void segment_head_encode(const struct segment_head *h, unsigned char out[SEGMENT_HEAD_BYTES])
{
    memset(out, 0, SEGMENT_HEAD_BYTES);
    memcpy(out + HEAD_AT_NAME, head_name, sizeof(head_name));
    put_u32(out + HEAD_AT_MAGIC, h->salt.magic);
    put_u32(out + HEAD_AT_SEED, h->salt.seed);
    put_u64(out + HEAD_AT_FIRST_ID, h->first_id);
    put_u64(out + HEAD_AT_BASE, (uint64_t) h->base_us);
    put_u32(out + HEAD_AT_SUM, crc32c(0, out, HEAD_AT_SUM));
    memcpy(out + HEAD_COPY_BYTES, out, HEAD_COPY_BYTES);
}

static bool decode_copy(const unsigned char *in, struct segment_head *ret)
{
    if (memcmp(in, head_name, sizeof(head_name)) != 0 ||
        get_u32(in + HEAD_AT_SUM) != crc32c(0, in, HEAD_AT_SUM))
        return false;
    ret->salt = (struct frame_salt){get_u32(in + HEAD_AT_MAGIC), get_u32(in + HEAD_AT_SEED)};
    ret->first_id = get_u64(in + HEAD_AT_FIRST_ID);
    ret->base_us = (int64_t) get_u64(in + HEAD_AT_BASE);
    return true;
}

int segment_head_decode(const unsigned char in[SEGMENT_HEAD_BYTES], struct segment_head *ret)
{
    return decode_copy(in, ret) || decode_copy(in + HEAD_COPY_BYTES, ret) ? 0 : -EBADMSG;
}

static uint32_t frame_sum(struct frame_salt salt, const unsigned char *frame)
{
    return crc32c(salt.seed, frame + FRAME_AT_LENGTH, FRAME_BYTES - FRAME_AT_LENGTH);
}

void frame_encode(struct frame_salt salt, const struct frame *f, unsigned char out[FRAME_BYTES])
{
    memset(out, 0, FRAME_BYTES);
    put_u32(out + FRAME_AT_MAGIC, salt.magic);
    put_u32(out + FRAME_AT_LENGTH, f->n_bytes);
    put_u32(out + FRAME_AT_CRC, f->crc);
    put_u64(out + FRAME_AT_ID, f->id);
    put_u64(out + FRAME_AT_ARRIVED, (uint64_t) f->arrived_us);
    put_u64(out + FRAME_AT_DEVICE_TIME, (uint64_t) f->device_us);
    memcpy(out + FRAME_AT_DEVICE, f->device.bytes, sizeof(f->device.bytes));
    memcpy(out + FRAME_AT_APP, f->app.bytes, sizeof(f->app.bytes));
    out[FRAME_AT_STREAM] = (unsigned char) f->stream;
    out[FRAME_AT_FORM] = (unsigned char) f->form;
    put_u32(out + FRAME_AT_SUM, frame_sum(salt, out));
}

bool frame_decode(struct frame_salt salt, const unsigned char in[FRAME_BYTES], struct frame *ret)
{
    if (get_u32(in + FRAME_AT_MAGIC) != salt.magic ||
        get_u32(in + FRAME_AT_SUM) != frame_sum(salt, in))
        return false;
    struct frame f = {
        .id = get_u64(in + FRAME_AT_ID),
        .arrived_us = (int64_t) get_u64(in + FRAME_AT_ARRIVED),
        .device_us = (int64_t) get_u64(in + FRAME_AT_DEVICE_TIME),
        .stream = in[FRAME_AT_STREAM],
        .form = in[FRAME_AT_FORM],
        .n_bytes = get_u32(in + FRAME_AT_LENGTH),
        .crc = get_u32(in + FRAME_AT_CRC),
    };
    if (f.n_bytes > TELEMETRY_MAX_RECORD_BYTES || f.stream > FRAME_FORGET ||
        f.form > TELEMETRY_JSON)
        return false;
    memcpy(f.device.bytes, in + FRAME_AT_DEVICE, sizeof(f.device.bytes));
    memcpy(f.app.bytes, in + FRAME_AT_APP, sizeof(f.app.bytes));
    *ret = f;
    return true;
}
