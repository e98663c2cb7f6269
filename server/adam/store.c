/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/store.h"

#include <errno.h>

#include "base/buf.h"

struct adam_stored_onboard *adam_store_add_onboard(struct adam_store *s)
{
    s->onboards = arena_grow(s->arena, s->onboards, s->n_onboards, sizeof(*s->onboards));
    s->onboards[s->n_onboards] = (struct adam_stored_onboard){.serials = STR("")};
    return &s->onboards[s->n_onboards++];
}

struct adam_stored_device *adam_store_add_device(struct adam_store *s, struct str uuid)
{
    s->devices = arena_grow(s->arena, s->devices, s->n_devices, sizeof(*s->devices));
    s->devices[s->n_devices] = (struct adam_stored_device){.uuid = uuid};
    return &s->devices[s->n_devices++];
}

/* ---- msgpack --------------------------------------------------------------------------------- */

/* A cursor; what reads beyond the end makes it bad for good. */
struct unpacker {
    struct str rest;
    bool is_bad;
};

static size_t take_number(struct unpacker *u, size_t n_bytes)
{
    size_t value = 0;
    if (u->rest.n < n_bytes) {
        u->is_bad = true;
        return 0;
    }
    for (size_t i = 0; i < n_bytes; i++)
        value = value << 8 | (unsigned char) u->rest.p[i];
    u->rest = str_from(u->rest, n_bytes);
    return value;
}

static size_t take_count(struct unpacker *u)
{
    const size_t head = take_number(u, 1);
    if (head >= 0x90 && head <= 0x9f)
        return head - 0x90;
    if (head == 0xdc || head == 0xdd)
        return take_number(u, head == 0xdc ? 2 : 4);
    u->is_bad |= head != 0xc0; /* nil: none */
    return 0;
}

static struct str take_text(struct unpacker *u)
{
    const size_t head = take_number(u, 1);
    size_t n = 0;
    if (head >= 0xa0 && head <= 0xbf)
        n = head - 0xa0;
    else if (head >= 0xd9 && head <= 0xdb)
        n = take_number(u, (size_t) 1 << (head - 0xd9));
    else
        u->is_bad = true;
    if (u->is_bad || n > u->rest.n) {
        u->is_bad = true;
        return STR("");
    }
    const struct str text = str_sub(u->rest, 0, n);
    u->rest = str_from(u->rest, n);
    return text;
}

int adam_store_unpack_serials(struct arena *a, struct str msgpack, struct str *ret_serials)
{
    struct unpacker u = {.rest = msgpack};
    BUF_AUTO serials = {0};
    const size_t n = take_count(&u);
    for (size_t i = 0; i < n && !u.is_bad; i++) {
        buf_append_str(&serials, take_text(&u));
        buf_append_char(&serials, '\n');
    }
    if (u.is_bad || u.rest.n)
        return -EBADMSG;
    *ret_serials = arena_str(a, buf_str(&serials));
    return 0;
}
