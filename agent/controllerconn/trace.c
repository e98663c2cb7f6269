/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/trace.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "json/json.h"

struct event {
    int64_t after_us;
    char *text;
};

struct uplink_trace {
    const struct clock *clock;
    int64_t begin_wall_us, begin_us;
    struct event *events;
    size_t n_events, n_dropped;
};

struct uplink_trace *uplink_trace_new(const struct clock *clock)
{
    struct uplink_trace *t = NEW(struct uplink_trace);
    t->clock = clock;
    t->begin_wall_us = clock->wall_us(clock);
    t->begin_us = clock->monotonic_us(clock);
    return t;
}

void uplink_trace_free(struct uplink_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_events; i++)
        mem_free(t->events[i].text);
    mem_free(t->events);
    mem_free(t);
}

void uplink_trace_add(struct uplink_trace *t, const char *format, ...)
{
    if (!t)
        return;
    if (t->n_events >= UPLINK_TRACE_MAX_EVENTS) {
        t->n_dropped++;
        return;
    }
    BUF_AUTO text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    if (text.n > UPLINK_TRACE_MAX_TEXT_BYTES) {
        text.n = UPLINK_TRACE_MAX_TEXT_BYTES;
        text.p[text.n] = 0;
    }
    t->events = mem_realloc_array(t->events, t->n_events + 1, sizeof(t->events[0]));
    t->events[t->n_events++] =
        (struct event){t->clock->monotonic_us(t->clock) - t->begin_us, mem_strdup(text.p)};
}

void uplink_trace_write(const struct uplink_trace *t, struct buf *to)
{
    char begin[CLOCK_MICROS_BYTES];
    clock_format_micros(t->begin_wall_us, begin);
    buf_printf(to, "{\"begin\":\"%s\",\"events\":[", begin);
    for (size_t i = 0; i < t->n_events; i++) {
        buf_printf(to, "%s{\"ms\":%" PRId64 ",\"text\":", i ? "," : "",
                   t->events[i].after_us / 1000);
        /* Words of others may be cut within a character, or be no text at all. */
        const struct str text = str_of(t->events[i].text);
        json_write_str(to, str_is_utf8(text) ? text : STR("(not text)"));
        buf_append_char(to, '}');
    }
    buf_printf(to, "],\"dropped\":%zu}", t->n_dropped);
}
