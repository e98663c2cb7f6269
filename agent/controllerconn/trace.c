/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/trace.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pki/file.h"
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

bool uplink_trace_gate_pass(struct uplink_trace_gate *g, const char *topic, int64_t monotonic_us)
{
    size_t i = 0;
    while (i < g->n_topics && strcmp(g->topics[i].topic, topic) != 0)
        i++;
    if (i < g->n_topics && monotonic_us - g->topics[i].last_us < g->interval_us)
        return false;
    if (i >= UPLINK_TRACE_MAX_TOPICS)
        return false;
    g->topics[i].topic = topic;
    g->topics[i].last_us = monotonic_us;
    g->n_topics = MAX(g->n_topics, i + 1);
    return true;
}

/* ---- archive ------------------------------------------------------------------------------- */

/* Names of a topic's files end in a time that sorts as text. */
static bool is_of_topic(const char *name, const char *topic)
{
    const struct str rest = str_from(str_of(name), strlen(topic) + 1);
    return str_starts_with(str_of(name), str_of(topic)) && name[strlen(topic)] == '-' &&
           str_ends_with(rest, STR(".json")) && rest.n > 0 && rest.p[0] >= '0' && rest.p[0] <= '9';
}

static int remove_oldest(const char *directory, const char *topic, size_t max_files)
{
    struct dirent **names = NULL;
    const int n = scandir(directory, &names, NULL, alphasort);
    if (n < 0)
        return -errno;
    size_t n_files = 0;
    for (int i = 0; i < n; i++)
        n_files += is_of_topic(names[i]->d_name, topic);
    for (int i = 0; i < n; i++) {
        if (n_files > max_files && is_of_topic(names[i]->d_name, topic)) {
            BUF_AUTO path = {0};
            buf_printf(&path, "%s/%s", directory, names[i]->d_name);
            (void) unlink(path.p);
            n_files--;
        }
        free(names[i]);
    }
    free(names);
    return 0;
}

int uplink_trace_archive(const struct uplink_trace *t, const char *directory, const char *topic,
                         size_t max_files)
{
    BUF_AUTO path = {0}, text = {0};
    char begin[CLOCK_SECONDS_BYTES];
    clock_format_seconds(t->begin_wall_us, begin);
    for (char *c = begin; *c; c++)
        if (*c == ':')
            *c = '-';
    begin[sizeof(begin) - 2] = 0; /* without its Z */
    buf_printf(&path, "%s/%s-%s.json", directory, topic, begin);
    uplink_trace_write(t, &text);
    const int r = pki_file_write(path.p, buf_str(&text), 0644);
    return r < 0 ? r : remove_oldest(directory, topic, max_files);
}
