/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the protocol: one packet, one message, fields apart by one blank, no end mark. Bytes
 * to struct and back, nothing else. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "pubsub/pubsub.h"

enum pubsub_word {
    PUBSUB_REQUEST,   /* request <topic>, of a subscriber */
    PUBSUB_HELLO,     /* hello <topic> <is persistent>; without the last word before 2026 */
    PUBSUB_UPDATE,    /* update <topic> <base64 key> <base64 JSON> */
    PUBSUB_DELETE,    /* delete <topic> <base64 key> */
    PUBSUB_COMPLETE,  /* complete <topic> */
    PUBSUB_RESTARTED, /* restarted <topic> <counter>; without it from the oldest: 1 */
};

struct pubsub_frame {
    enum pubsub_word word;
    struct str topic;
    struct str key;
    struct str value; /* bytes, not yet JSON */
    int64_t counter;
    bool is_persistent;
};

/* -EBADMSG for what is none. Keys and values are copies in the arena, the topic is the packet's. */
int pubsub_frame_read(struct arena *a, struct str packet, struct pubsub_frame *ret);
/* Appends; -EMSGSIZE, and nothing appended, when the packet would be too large. */
int pubsub_frame_write(struct buf *b, const struct pubsub_frame *f);
/* Bytes of an update of a key and a value of these sizes. */
size_t pubsub_frame_update_bytes(size_t n_topic, size_t n_key, size_t n_value);
