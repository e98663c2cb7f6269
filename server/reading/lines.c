/* SPDX-License-Identifier: Apache-2.0 */
#include "reading/lines.h"

#include <errno.h>

#include "eve/flowlog.pb-c.h"
#include "eve/hardwarehealth.pb-c.h"
#include "eve/info.pb-c.h"
#include "eve/metrics.pb-c.h"
#include "json/json.h"

/* Of a line that cannot be read so much is shown. */
#define BAD_SHOWN_BYTES 1024
/* Seconds of the year 9999: later times cannot be written. */
#define MAX_SECONDS ((int64_t) 253402300799)

/* ---- opening --------------------------------------------------------------------------------- */

static void open_gzip(struct lines *l)
{
    int r = newlog_inflate(&l->inflated, l->record->bytes);
    if (r == -EMSGSIZE)
        l->damage = "the upload inflates to more than is read";
    else if (r < 0)
        l->damage = "the upload is damaged";
    l->rest = buf_str(&l->inflated);
}

static void open_bundle(struct lines *l)
{
    const Eve__Logs__LogBundle *log = NULL;
    const Eve__Logs__AppInstanceLogBundle *app_log = NULL;
    if (l->record->stream == TELEMETRY_LOG)
        log = PB_UNPACK(l->arena, eve__logs__log_bundle, l->record->bytes);
    else
        app_log = PB_UNPACK(l->arena, eve__logs__app_instance_log_bundle, l->record->bytes);
    if (log) {
        l->entries = log->log;
        l->n_entries = log->n_log;
    } else if (app_log) {
        l->entries = app_log->log;
        l->n_entries = app_log->n_log;
    } else {
        l->damage = "the upload is damaged";
    }
}

static bool is_log(const struct telemetry_record *r)
{
    return r->stream == TELEMETRY_LOG || r->stream == TELEMETRY_APP_LOG;
}

void lines_open(struct lines *l, const struct telemetry_record *r)
{
    if (!l->arena) {
        l->arena = arena_new();
        l->line_arena = arena_new();
    }
    l->record = r;
    if (is_log(r) && r->form == TELEMETRY_GZIP)
        open_gzip(l);
    else if (is_log(r))
        open_bundle(l);
}

void lines_close(struct lines *l)
{
    struct arena *arena = l->arena, *line_arena = l->line_arena;
    if (arena) {
        arena_reset(arena);
        arena_reset(line_arena);
    }
    buf_done(&l->inflated);
    *l = (struct lines){.arena = arena, .line_arena = line_arena};
}

void lines_done(struct lines *l)
{
    lines_close(l);
    arena_free(l->arena);
    arena_free(l->line_arena);
    *l = (struct lines){0};
}

/* ---- log entries ----------------------------------------------------------------------------- */

/* Bytes that are no UTF-8 become U+FFFD: JSON has no others. */
static struct str clean(struct arena *a, struct str s)
{
    if (str_is_utf8(s))
        return s;
    BUF_AUTO b = {0};
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char) s.p[i] < 0x80)
            buf_append_char(&b, s.p[i]);
        else
            buf_append_str(&b, STR("\xef\xbf\xbd"));
    return arena_str(a, buf_str(&b));
}

static struct json *tags_of(struct arena *a, const Eve__Logs__LogEntry *e)
{
    if (e->n_tags == 0)
        return NULL;
    struct json *tags = json_new(a, json_object());
    for (size_t i = 0; i < e->n_tags; i++)
        json_set(a, tags, clean(a, pb_text(e->tags[i]->key)),
                 json_string(clean(a, pb_text(e->tags[i]->value))));
    return tags;
}

static struct newlog_entry entry_of_message(struct arena *a, const Eve__Logs__LogEntry *e)
{
    return (struct newlog_entry){
        .severity = clean(a, pb_text(e->severity)),
        .source = clean(a, pb_text(e->source)),
        .iid = clean(a, pb_text(e->iid)),
        .content = clean(a, pb_text(e->content)),
        .filename = clean(a, pb_text(e->filename)),
        .function = clean(a, pb_text(e->function)),
        .msgid = e->msgid,
        .seconds = e->timestamp ? e->timestamp->seconds : 0,
        .nanos = e->timestamp ? e->timestamp->nanos : 0,
        .tags = tags_of(a, e),
    };
}

static bool has_time(const struct newlog_entry *e)
{
    return e->seconds > 0 && e->seconds <= MAX_SECONDS && e->nanos >= 0 && e->nanos < 1000000000;
}

static struct line bad_line(struct lines *l, const char *reason, struct str text)
{
    return (struct line){.kind = LINE_BAD,
                         .reason = reason,
                         .text = clean(l->line_arena, str_sub(text, 0, BAD_SHOWN_BYTES))};
}

/* The next of an upload; false: no more. */
static bool next_entry(struct lines *l, struct line *ret)
{
    struct line line = {.kind = LINE_ENTRY};
    if (l->record->form == TELEMETRY_GZIP) {
        struct str before = l->rest;
        int r = newlog_next(l->line_arena, &l->rest, &line.entry);
        if (r == -ENOENT)
            return false;
        if (r < 0)
            line = bad_line(l, "the line is no log entry",
                            str_trim(str_sub(before, 0, before.n - l->rest.n)));
    } else {
        if (l->number >= l->n_entries)
            return false;
        line.log_entry = l->entries[l->number];
        line.entry = entry_of_message(l->line_arena, line.log_entry);
    }
    line.id.line = ++l->number;
    if (has_time(&line.entry))
        line.time_us = line.entry.seconds * 1000000 + line.entry.nanos / 1000;
    else
        line.entry.seconds = line.entry.nanos = 0;
    *ret = line;
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static const struct {
    const ProtobufCMessageDescriptor *descriptor;
    const char *damage;
} messages[TELEMETRY_STREAMS] = {
    [TELEMETRY_INFO] = {&eve__info__zinfo_msg__descriptor, "the record is no ZInfoMsg"},
    [TELEMETRY_METRICS] = {&eve__metrics__zmetric_msg__descriptor, "the record is no ZMetricMsg"},
    [TELEMETRY_FLOWLOG] = {&eve__flowlog__flow_message__descriptor, "the record is no FlowMessage"},
    [TELEMETRY_HARDWARE] = {&eve__hardwarehealth__zhardware_health__descriptor,
                            "the record is no ZHardwareHealth"},
};

static struct uuid uuid_of(const char *text)
{
    struct uuid u = {{0}};
    (void) uuid_parse(pb_text(text), &u);
    return u;
}

/* The application that a message speaks of; zero: none. */
static struct uuid app_of(const ProtobufCMessage *m)
{
    if (m->descriptor == &eve__info__zinfo_msg__descriptor) {
        const Eve__Info__ZInfoMsg *info = (const Eve__Info__ZInfoMsg *) m;
        if (info->info_content_case == EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO)
            return uuid_of(info->ainfo->appid);
        if (info->info_content_case == EVE__INFO__ZINFO_MSG__INFO_CONTENT_AMDINFO)
            return uuid_of(info->amdinfo->uuid);
    }
    if (m->descriptor == &eve__flowlog__flow_message__descriptor) {
        const Eve__Flowlog__FlowMessage *flow = (const Eve__Flowlog__FlowMessage *) m;
        if (flow->scope)
            return uuid_of(flow->scope->uuid);
    }
    return (struct uuid){{0}};
}

static struct line object_line(struct lines *l)
{
    const struct json *object = json_parse_quick(l->arena, l->record->bytes);
    if (!json_is(object, JSON_OBJECT))
        return bad_line(l, "the record is no JSON", l->record->bytes);
    return (struct line){.kind = LINE_OBJECT, .object = object};
}

static struct line message_line(struct lines *l)
{
    const struct telemetry_record *r = l->record;
    const ProtobufCMessageDescriptor *d = messages[r->stream].descriptor;
    ProtobufCMessage *m = d ? pb_unpack(l->arena, d, r->bytes) : NULL;
    if (!m)
        return bad_line(l, d ? messages[r->stream].damage : "the record is of no known kind",
                        STR(""));
    return (struct line){.kind = LINE_MESSAGE, .message = m, .text = r->bytes, .app = app_of(m)};
}

bool lines_next(struct lines *l, struct line *ret)
{
    const struct telemetry_record *r = l->record;
    struct line line;
    arena_reset(l->line_arena);
    if (l->damage) {
        line = bad_line(l, l->damage, STR(""));
        line.id.line = ++l->number;
        l->damage = NULL;
        l->rest = STR("");
    } else if (is_log(r)) {
        if (!next_entry(l, &line))
            return false;
    } else {
        if (l->is_given)
            return false;
        line = r->form == TELEMETRY_JSON ? object_line(l) : message_line(l);
        l->is_given = true;
        line.time_us = r->device_us;
    }
    line.id.record = r->id;
    line.arrived_us = r->arrived_us;
    if (line.time_us <= 0)
        line.time_us = r->device_us > 0 ? r->device_us : r->arrived_us;
    if (is_log(r))
        line.app = r->app;
    *ret = line;
    return true;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool is_among(struct str value, struct str list)
{
    struct str part;
    while (str_split(&list, ',', &part))
        if (str_eq_nocase(str_trim(part), value))
            return true;
    return false;
}

static bool is_of_type(const struct line *line, int32_t type)
{
    if (line->kind != LINE_MESSAGE ||
        line->message->descriptor != &eve__info__zinfo_msg__descriptor)
        return false;
    return (int32_t) ((const Eve__Info__ZInfoMsg *) line->message)->ztype == type;
}

bool line_matches(const struct line *line, const struct reading_query *q)
{
    const struct newlog_entry *e = &line->entry;
    bool is_entry = line->kind == LINE_ENTRY;
    if (q->is_by_device &&
        ((q->start_us && line->time_us < q->start_us) || (q->end_us && line->time_us >= q->end_us)))
        return false;
    if (q->has_app && !uuid_eq(&q->app, &line->app))
        return false;
    if (q->has_type && !is_of_type(line, q->type))
        return false;
    if (q->severity.p && !(is_entry && is_among(e->severity, q->severity)))
        return false;
    if (q->source.p && !(is_entry && is_among(e->source, q->source)))
        return false;
    struct str content = is_entry ? e->content : line->text;
    return !q->contains.p || str_find_str(content, q->contains) >= 0;
}
