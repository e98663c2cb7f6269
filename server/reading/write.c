/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader gets: lines of JSON, or messages each with its length in front. */
#include <inttypes.h>

#include "base/clock.h"
#include "protobuf/protojson.h"
#include "reading/lines.h"
#include "json/json.h"

#define VARINT_MAX_BYTES 10

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_text(struct buf *to, const char *name, struct str value)
{
    if (value.n == 0)
        return;
    buf_printf(to, ",\"%s\":", name);
    json_write_str(to, value);
}

static void put_time(struct buf *to, const char *name, int64_t us)
{
    char text[CLOCK_MICROS_BYTES];
    clock_format_micros(us, text);
    buf_printf(to, ",\"%s\":\"%s\"", name, text);
}

/* With nanoseconds, which order lines of one microsecond. */
static void put_entry_time(struct buf *to, const struct newlog_entry *e)
{
    char text[CLOCK_SECONDS_BYTES];
    if (e->seconds == 0)
        return;
    clock_format_seconds(e->seconds * 1000000, text);
    buf_printf(to, ",\"timestamp\":\"%.19s.%09" PRId64 "Z\"", text, e->nanos);
}

static void put_app(struct buf *to, const struct uuid *app)
{
    char text[UUID_TEXT_BYTES];
    if (uuid_is_zero(app))
        return;
    uuid_text(app, text);
    buf_printf(to, ",\"app\":\"%s\"", text);
}

static void put_entry(struct buf *to, const struct line *line)
{
    const struct newlog_entry *e = &line->entry;
    put_entry_time(to, e);
    put_text(to, "severity", e->severity);
    put_text(to, "source", e->source);
    put_text(to, "iid", e->iid);
    put_text(to, "content", e->content);
    if (e->msgid)
        buf_printf(to, ",\"msgid\":%" PRIu64, e->msgid);
    put_text(to, "filename", e->filename);
    put_text(to, "function", e->function);
    if (e->tags && json_count(e->tags) > 0) {
        buf_append_str(to, STR(",\"tags\":"));
        json_write(to, e->tags);
    }
    put_app(to, &line->app);
}

static void put_members(struct buf *to, const struct json *object)
{
    JSON_FOR_EACH_MEMBER (object, m) {
        buf_append_char(to, ',');
        json_write(to, &m->key);
        buf_append_char(to, ':');
        json_write(to, &m->value);
    }
}

static void put_line(struct buf *to, const struct line *line)
{
    buf_printf(to, "{\"id\":\"%" PRIu64, line->id.record);
    if (line->id.line)
        buf_printf(to, "-%" PRIu32, line->id.line);
    buf_append_str(to, STR("\""));
    put_time(to, "arrived", line->arrived_us);
    switch (line->kind) {
    case LINE_ENTRY:
        put_entry(to, line);
        break;
    case LINE_MESSAGE:
        buf_append_str(to, STR(",\"message\":"));
        protojson_write(to, line->message, NULL);
        break;
    case LINE_OBJECT:
        put_members(to, line->object);
        break;
    case LINE_BAD:
        put_text(to, "error", str_of(line->reason));
        put_text(to, "text", line->text);
        put_app(to, &line->app);
        break;
    }
    buf_append_str(to, STR("}\n"));
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put_message(struct buf *to, struct str bytes)
{
    char *p = buf_reserve(to, VARINT_MAX_BYTES);
    size_t n = 0;
    for (uint64_t rest = bytes.n;; rest >>= 7) {
        p[n++] = (char) ((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        if (rest <= 0x7f)
            break;
    }
    to->n += n;
    buf_append_str(to, bytes);
}

static Eve__Logs__LogEntry__TagsEntry **tags_of(struct arena *a, const struct json *tags,
                                                size_t *ret_n)
{
    size_t n = 0;
    Eve__Logs__LogEntry__TagsEntry **list =
        ARENA_ARRAY(a, Eve__Logs__LogEntry__TagsEntry *, json_count(tags) + 1);
    JSON_FOR_EACH_MEMBER (tags, m) {
        if (!json_is(&m->value, JSON_STRING))
            continue;
        list[n] = ARENA_NEW(a, Eve__Logs__LogEntry__TagsEntry);
        eve__logs__log_entry__tags_entry__init(list[n]);
        list[n]->key = arena_strz(a, json_str(&m->key));
        list[n++]->value = arena_strz(a, json_str(&m->value));
    }
    *ret_n = n;
    return list;
}

/* The message a device would have sent for this line. */
static struct str entry_message(struct arena *a, const struct newlog_entry *e)
{
    Eve__Logs__LogEntry m = EVE__LOGS__LOG_ENTRY__INIT;
    Google__Protobuf__Timestamp at = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    at.seconds = e->seconds;
    at.nanos = (int32_t) e->nanos;
    m.timestamp = e->seconds ? &at : NULL;
    m.severity = arena_strz(a, e->severity);
    m.source = arena_strz(a, e->source);
    m.iid = arena_strz(a, e->iid);
    m.content = arena_strz(a, e->content);
    m.filename = arena_strz(a, e->filename);
    m.function = arena_strz(a, e->function);
    m.msgid = e->msgid;
    m.tags = tags_of(a, e->tags, &m.n_tags);
    return pb_pack(a, &m.base);
}

static void put_entry_message(struct buf *to, const struct line *line)
{
    ARENA_AUTO a = arena_new();
    put_message(to, line->log_entry ? pb_pack(a, &line->log_entry->base)
                                    : entry_message(a, &line->entry));
}

void line_write(const struct line *line, bool is_binary, struct buf *to)
{
    if (!is_binary)
        put_line(to, line);
    else if (line->kind == LINE_ENTRY)
        put_entry_message(to, line);
    else if (line->kind == LINE_MESSAGE)
        put_message(to, line->text);
}
