/* SPDX-License-Identifier: Apache-2.0 */
/* by=device: the lines in the order of the device's own time. */
#include <errno.h>

#include "reading/stream_internal.h"

static struct ordered_key key_of(const struct line *line)
{
    return (struct ordered_key){line->time_us, line->id.record, line->id.line};
}

/* Everything stored, from its beginning. */
static void begin(struct reading_stream *s, bool is_lowest_first)
{
    if (s->cursor)
        return;
    stream_open_cursor(s, 0, s->last_id + 1, 0);
    ordered_reset(&s->ordered, is_lowest_first);
}

/* Finds the oldest of the newest `limit`. */
int stream_bound(struct reading_stream *s)
{
    struct line line;
    int r;
    begin(s, /* is_lowest_first= */ true);
    while ((r = stream_next_line(s, &line)) > 0) {
        struct ordered_key key = key_of(&line);
        if (ordered_compare(&key, &s->floor) <= 0)
            continue;
        ordered_add(&s->ordered, &key, STR_NONE);
        if (s->ordered.n > s->query.limit)
            ordered_drop_first(&s->ordered);
    }
    if (r < 0)
        return r;
    if (s->ordered.n > 0) {
        s->floor = s->ordered.items[0].key;
        s->floor.line--;
    }
    stream_close_cursor(s);
    return 0;
}

/* The first lines above the floor, as many as may be held. */
int stream_gather(struct reading_stream *s)
{
    struct line line;
    int r;
    begin(s, /* is_lowest_first= */ false);
    while ((r = stream_next_line(s, &line)) > 0) {
        struct ordered_key key = key_of(&line);
        struct ordered *o = &s->ordered;
        if (ordered_compare(&key, &s->floor) <= 0)
            continue;
        if (o->is_partial && ordered_compare(&key, &o->items[0].key) > 0)
            continue;
        buf_reset(&s->text);
        line_write(&line, s->query.is_binary, &s->text);
        ordered_add(o, &key, buf_str(&s->text));
        while (o->n_bytes > ORDERED_MAX_BYTES && o->n > 1)
            ordered_drop_first(o);
    }
    if (r < 0)
        return r;
    stream_close_cursor(s);
    ordered_sort(&s->ordered);
    s->given = 0;
    return 0;
}

bool stream_give(struct reading_stream *s, struct buf *to, size_t room)
{
    struct ordered *o = &s->ordered;
    for (; s->given < o->n; s->given++) {
        if (to->n >= room)
            return false;
        buf_append(to, o->items[s->given].text, o->items[s->given].n);
        s->floor = o->items[s->given].key;
    }
    return true;
}

int stream_find_floor(struct reading_stream *s)
{
    struct line line;
    bool is_found = false;
    struct reading_id id = s->query.after;
    stream_open_cursor(s, id.record - 1, id.record + 1, 0);
    if (id.record > 0 && telemetry_next(s->cursor, &s->record) > 0) {
        lines_open(&s->lines, &s->record);
        while (lines_next(&s->lines, &line)) {
            struct ordered_key key = key_of(&line);
            if ((id.line && id.line != line.id.line) ||
                (is_found && ordered_compare(&key, &s->floor) < 0))
                continue;
            s->floor = key;
            is_found = true;
        }
    }
    stream_close_cursor(s);
    return is_found ? 0 : -ENOENT;
}
