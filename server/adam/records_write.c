/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/records.h"

#include <inttypes.h>

#include "protobuf/protojson.h"
#include "json/json.h"

/* ---- log entries, as protojson writes a LogEntry --------------------------------------------- */

static void add_text(struct arena *a, struct json *object, const char *key, struct str value)
{
    if (value.n)
        (void) json_append_member(a, object, str_of(key), json_string(value));
}

static void write_entry(struct buf *to, const struct newlog_entry *e)
{
    ARENA_AUTO a = arena_new();
    struct json object = json_object();
    Google__Protobuf__Timestamp at = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    at.seconds = e->seconds;
    at.nanos = (int32_t) e->nanos;
    add_text(a, &object, "severity", e->severity);
    add_text(a, &object, "source", e->source);
    add_text(a, &object, "iid", e->iid);
    add_text(a, &object, "content", e->content);
    if (e->msgid)
        add_text(a, &object, "msgid", arena_printf(a, "%" PRIu64, e->msgid));
    if (json_count(e->tags))
        (void) json_append_member(a, &object, STR("tags"), *e->tags);
    if (at.seconds || at.nanos)
        (void) json_append_member(a, &object, STR("timestamp"),
                                  *protojson_value(a, &at.base, NULL));
    add_text(a, &object, "filename", e->filename);
    add_text(a, &object, "function", e->function);
    json_write(to, &object);
    buf_append_char(to, '\n');
}

/* ---- requests, with Adam's names ------------------------------------------------------------- */

static void write_request(struct buf *to, const struct json *request)
{
    ARENA_AUTO a = arena_new();
    static const struct {
        const char *ours, *adams;
    } members[] = {{"timestamp", "timestamp"}, {"uuid", "uuid"},     {"clientIP", "client-ip"},
                   {"forwarded", "forwarded"}, {"method", "method"}, {"url", "url"}};
    struct json object = json_object();
    for (size_t i = 0; i < N_ELEMENTS(members); i++) {
        const struct json *value = json_get(request, str_of(members[i].ours));
        if (value)
            (void) json_append_member(a, &object, str_of(members[i].adams), *value);
    }
    json_write(to, &object);
    buf_append_char(to, '\n');
}

/* ---------------------------------------------------------------------------------------------- */

void adam_write_line(const struct line *line, bool is_binary, struct buf *to)
{
    switch (line->kind) {
    case LINE_ENTRY:
        write_entry(to, &line->entry);
        break;
    case LINE_MESSAGE:
        if (is_binary)
            buf_append_str(to, line->text);
        else
            protojson_write(to, line->message, NULL);
        buf_append_char(to, '\n');
        break;
    case LINE_OBJECT:
        write_request(to, line->object);
        break;
    case LINE_BAD:
        break;
    }
}
