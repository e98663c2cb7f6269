/* SPDX-License-Identifier: Apache-2.0 */
#include "device/intake.h"

#include <errno.h>

#include "base/alloc.h"
#include "eve/flowlog.pb-c.h"
#include "eve/hardwarehealth.pb-c.h"
#include "eve/info.pb-c.h"
#include "eve/logs.pb-c.h"
#include "eve/metrics.pb-c.h"
#include "eve/newlog.h"
#include "pki/pki.h"
#include "json/json.h"

/* A message larger than this is read on a worker. */
#define LARGE_MESSAGE_BYTES ((size_t) 64 * 1024)

/* ---- putting it on disk --------------------------------------------------------------------- */

static void refuse_unkept(struct device_call *c, int64_t error)
{
    c->retry_after_s = 60;
    if (error == -ENOSPC)
        (void) device_refuse(c, 503, "the controller's disk is full");
    else if (error == -EAGAIN)
        (void) device_refuse(c, 503, "the controller is busy");
    else
        (void) device_refuse(c, 503, "the controller cannot write to its disk");
}

static void on_kept(void *arg, int64_t result)
{
    struct device_visit *v = arg;
    struct device_call *c = &v->call;
    if (result < 0) {
        refuse_unkept(c, result);
    } else {
        c->status = 201;
        v->record.id = (uint64_t) result;
        if (c->api->reports && (v->route.endpoint->stream == TELEMETRY_INFO ||
                                v->route.endpoint->stream == TELEMETRY_METRICS ||
                                v->route.endpoint->stream == TELEMETRY_HARDWARE))
            reports_take(c->api->reports, &v->record);
    }
    device_visit_answer(v);
}

/* Acknowledged when it is on disk; the store copies it, so the exchange may go meanwhile. */
static void keep(struct device_visit *v, int64_t device_us, const unsigned char *digest)
{
    struct device_call *c = &v->call;
    const struct endpoint *e = v->route.endpoint;
    if (!c->api->telemetry) { /* the server is ending */
        on_kept(v, -EAGAIN);
        return;
    }
    device_visit_keep(v);
    v->record = (struct telemetry_record){.device = c->device->uuid,
                                          .app = c->app,
                                          .stream = e->stream,
                                          .form = e->form,
                                          .device_us = device_us,
                                          .bytes = c->payload,
                                          .digest = digest};
    telemetry_append(c->api->telemetry, &v->record, v->door->loop, on_kept, v);
}

/* ---- messages ------------------------------------------------------------------------------- */

static int64_t time_us(const Google__Protobuf__Timestamp *t)
{
    /* Beyond these a time is nonsense, and would overflow. */
    const int64_t max_s = (int64_t) 1 << 40;
    if (!t || t->seconds <= 0 || t->seconds > max_s)
        return 0;
    return t->seconds * 1000000 + t->nanos / 1000;
}

/* Whether the payload is a message of the stream, and the time it speaks of. */
static bool read_message(struct device_call *c, enum telemetry_stream stream, int64_t *ret_us)
{
    const Eve__Info__ZInfoMsg *info = NULL;
    const Eve__Metrics__ZMetricMsg *metrics = NULL;
    const Eve__Hardwarehealth__ZHardwareHealth *health = NULL;
    const Eve__Logs__LogBundle *log = NULL;
    const Eve__Logs__AppInstanceLogBundle *app_log = NULL;
    *ret_us = 0;
    switch (stream) {
    case TELEMETRY_INFO:
        info = PB_UNPACK(c->arena, eve__info__zinfo_msg, c->payload);
        *ret_us = info ? time_us(info->attimestamp) : 0;
        return info != NULL;
    case TELEMETRY_METRICS:
        metrics = PB_UNPACK(c->arena, eve__metrics__zmetric_msg, c->payload);
        *ret_us = metrics ? time_us(metrics->attimestamp) : 0;
        return metrics != NULL;
    case TELEMETRY_HARDWARE:
        health = PB_UNPACK(c->arena, eve__hardwarehealth__zhardware_health, c->payload);
        *ret_us = health ? time_us(health->at_time_stamp) : 0;
        return health != NULL;
    case TELEMETRY_LOG:
        log = PB_UNPACK(c->arena, eve__logs__log_bundle, c->payload);
        *ret_us = log ? time_us(log->timestamp) : 0;
        return log != NULL;
    case TELEMETRY_APP_LOG:
        app_log = PB_UNPACK(c->arena, eve__logs__app_instance_log_bundle, c->payload);
        *ret_us = app_log ? time_us(app_log->timestamp) : 0;
        return app_log != NULL;
    case TELEMETRY_FLOWLOG:
        return PB_UNPACK(c->arena, eve__flowlog__flow_message, c->payload) != NULL;
    default:
        return false;
    }
}

int device_check_message(struct device_call *c)
{
    if (read_message(c, c->endpoint->stream, &c->device_us))
        return 0;
    return device_refuse(c, 422, "the body is not the message of this endpoint");
}

void device_visit_keep_message(struct device_visit *v)
{
    keep(v, v->call.device_us, /* digest= */ NULL);
}

/* Most are small; one of many thousand values would keep the loop from others. */
void device_visit_take_message(struct device_visit *v)
{
    if (v->call.payload.n > LARGE_MESSAGE_BYTES) {
        device_visit_run(v);
        return;
    }
    (void) device_check_message(&v->call);
    if (v->call.status)
        device_visit_answer(v);
    else
        device_visit_keep_message(v);
}

/* ---- compressed logs ------------------------------------------------------------------------ */

static void digest_of(struct str bytes, unsigned char out[TELEMETRY_DIGEST_BYTES])
{
    unsigned char hash[SHA256_BYTES];
    pki_sha256(bytes, hash);
    memcpy(out, hash, TELEMETRY_DIGEST_BYTES);
}

/* A device that died before it heard that we have its file sends it again, perhaps to a server that
 * was started since: the last upload tells. Once for each stream after a start. */
static void remember_last(struct device_call *c)
{
    struct telemetry *t = c->api->telemetry;
    struct telemetry_record last = {
        .device = c->device->uuid, .app = c->app, .stream = c->endpoint->stream};
    if (!t || telemetry_remembers(t, &last))
        return;
    const struct telemetry_query query = {.device = &c->device->uuid,
                                          .streams = 1u << c->endpoint->stream,
                                          .app = c->endpoint->is_of_app ? &c->app : NULL,
                                          .newest = 1};
    struct telemetry_cursor *cursor = telemetry_read(t, &query);
    unsigned char digest[TELEMETRY_DIGEST_BYTES];
    if (telemetry_next(cursor, &last) == 1 && last.form == TELEMETRY_GZIP) {
        digest_of(last.bytes, digest);
        last.digest = digest;
        telemetry_remember(t, &last);
    }
    telemetry_cursor_free(cursor);
}

/* On a worker: what it holds may be a thousand times what was sent. */
int device_check_gzip(struct device_call *c)
{
    int r = newlog_check(c->payload);
    if (r == -EMSGSIZE)
        return device_refuse(c, 422, "the log inflates to more than is taken");
    if (r < 0)
        return device_refuse(c, 422, "the log is not one whole gzip member");
    digest_of(c->payload, c->digest);
    remember_last(c);
    return 0;
}

void device_visit_keep_gzip(struct device_visit *v)
{
    struct device_call *c = &v->call;
    struct newlog_head head = {0};
    (void) newlog_read_head(c->arena, c->payload, &head); /* has been checked */
    keep(v, head.created_s * 1000000, c->digest);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Of a note beside what the peer wrote. Every poll makes one: memory once, no formats. */
#define NOTE_BYTES 256

void intake_note_request(struct device_visit *v)
{
    const struct device_call *c = &v->call;
    const struct clock *clock = c->api->clock;
    if (!c->api->telemetry) /* the server is ending */
        return;
    char at[CLOCK_MICROS_BYTES],
        status[] = {(char) ('0' + c->status / 100 % 10), (char) ('0' + c->status / 10 % 10),
                    (char) ('0' + c->status % 10), '}'};
    BUF_AUTO text = {0};
    clock_format_micros(clock->wall_us(clock), at);
    (void) buf_reserve(&text, NOTE_BYTES + c->source.n + c->method.n + c->path.n);
    buf_append_str(&text, STR("{\"timestamp\":\""));
    buf_append(&text, at, CLOCK_MICROS_BYTES - 1);
    buf_append_str(&text, STR("\",\"uuid\":\""));
    buf_append(&text, c->device->uuid_text, UUID_TEXT_BYTES - 1);
    /* Words of the peer's go through the writer of JSON strings. */
    buf_append_str(&text, STR("\",\"clientIP\":"));
    json_write_str(&text, c->source);
    buf_append_str(&text, STR(",\"method\":"));
    json_write_str(&text, c->method);
    buf_append_str(&text, STR(",\"url\":"));
    json_write_str(&text, c->path);
    buf_append_str(&text, STR(",\"status\":"));
    buf_append(&text, status, sizeof(status));
    telemetry_note(c->api->telemetry, &(struct telemetry_record){.device = c->device->uuid,
                                                                 .stream = TELEMETRY_REQUESTS,
                                                                 .form = TELEMETRY_JSON,
                                                                 .bytes = buf_str(&text)});
}
