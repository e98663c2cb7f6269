/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/newlog_metrics.h"

#define MAX_REPLY_BYTES 4096

void newlog_metrics_take_latency(struct newlog_metrics *m, int64_t ms)
{
    m->latency_ms.min = m->latency_ms.min ? MIN(m->latency_ms.min, ms) : ms;
    m->latency_ms.max = MAX(m->latency_ms.max, ms);
    m->latency_ms.current = ms;
    m->latency_ms.total += ms;
}

static double number(const struct json *object, struct str key)
{
    const struct json *v = json_get(object, key);
    return json_is(v, JSON_INT) ? (double) v->i : json_is(v, JSON_DOUBLE) ? v->d : 0;
}

void newlog_metrics_take_reply(struct newlog_metrics *m, struct str body)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed;
    if (body.n == 0 || body.n > MAX_REPLY_BYTES || json_parse(a, body, &parsed) < 0 ||
        !json_is(parsed.value, JSON_OBJECT))
        return;
    double cpu = number(parsed.value, STR("cpuPercentage"));
    double ms = number(parsed.value, STR("logProcessDelayMsec"));
    if (!(cpu >= 0 && cpu <= 1e6 && ms >= 0 && ms <= 1e9))
        return;
    double n_before = (double) (m->device.n_sent ? m->device.n_sent - 1 : 0);
    m->server.cpu_percent = cpu;
    m->server.process_ms = (int64_t) ms;
    m->server.average_cpu_percent =
        (m->server.average_cpu_percent * n_before + cpu) / (n_before + 1);
    m->server.average_process_ms =
        (int64_t) (((double) m->server.average_process_ms * n_before + ms) / (n_before + 1));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void set_int(struct arena *a, struct json *object, struct str key, uint64_t value)
{
    (void) json_append_member(a, object, key, json_int((int64_t) value));
}

static void set_time(struct arena *a, struct json *object, struct str key, int64_t wall_us)
{
    (void) json_append_member(a, object, key, *node_json_time(a, wall_us));
}

static struct json stream_json(struct arena *a, const struct newlog_stream_metrics *s)
{
    struct json o = json_object();
    set_int(a, &o, STR("NumGZipFilesSent"), s->n_sent);
    set_int(a, &o, STR("NumGZipBytesWrite"), s->gzip_bytes);
    set_int(a, &o, STR("NumBytesWrite"), s->n_bytes);
    set_int(a, &o, STR("NumGzipFileInDir"), s->n_waiting);
    set_int(a, &o, STR("NumInputEvent"), s->n_events);
    set_int(a, &o, STR("NumGZipFileRetry"), s->n_retries);
    set_int(a, &o, STR("NumGZipFileKeptLocal"), s->n_kept_local);
    set_time(a, &o, STR("RecentUploadTimestamp"), s->recent_us);
    set_time(a, &o, STR("LastGZipFileSendTime"), s->sent_us);
    return o;
}

static struct json latency_json(struct arena *a, const struct newlog_metrics *m)
{
    struct json o = json_object();
    uint64_t n = m->device.n_sent + m->apps.n_sent;
    set_int(a, &o, STR("MinUploadMsec"), (uint64_t) m->latency_ms.min);
    set_int(a, &o, STR("MaxUploadMsec"), (uint64_t) m->latency_ms.max);
    set_int(a, &o, STR("AvgUploadMsec"), n ? (uint64_t) m->latency_ms.total / n : 0);
    set_int(a, &o, STR("CurrUploadMsec"), (uint64_t) m->latency_ms.current);
    return o;
}

static struct json server_json(struct arena *a, const struct newlog_metrics *m)
{
    struct json o = json_object();
    (void) json_append_member(a, &o, STR("CurrCPULoadPCT"), json_double(m->server.cpu_percent));
    (void) json_append_member(a, &o, STR("AvgCPULoadPCT"),
                              json_double(m->server.average_cpu_percent));
    set_int(a, &o, STR("CurrProcessMsec"), (uint64_t) m->server.process_ms);
    set_int(a, &o, STR("AvgProcessMsec"), (uint64_t) m->server.average_process_ms);
    return o;
}

struct json *newlog_metrics_json(struct arena *a, const struct newlog_metrics *m)
{
    struct json *o = json_new(a, json_object());
    const struct {
        struct str key;
        uint64_t value;
    } numbers[] = {
        {STR("TotalBytesUpload"), m->n_bytes_sent},
        {STR("Num4xxResponses"), m->n_4xx},
        {STR("NumTooManyRequest"), m->n_429},
        {STR("CurrUploadIntvSec"), m->interval_s},
        {STR("LogfileTimeoutSec"), (uint64_t) m->rotate_s},
        {STR("MaxGzipSize"), m->max_gzip},
        {STR("AvgGzipSize"), m->average_gzip},
        {STR("NumGZipFileRemoved"), m->n_removed},
        {STR("NumBreakGZipFile"), m->n_broken},
        {STR("NumSkipUploadAppFile"), m->n_skipped},
        {STR("NumKmessages"), m->n_kernel},
        {STR("NumSyslogMessages"), m->n_syslog},
        {STR("TotalSizeLogs"), m->disk_bytes},
    };
    (void) json_append_member(a, o, STR("FailedToSend"), json_bool(m->is_failing));
    set_time(a, o, STR("FailSentStartTime"), m->failing_since_us);
    set_time(a, o, STR("LastTooManyReqTime"), m->refused_us);
    for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
        set_int(a, o, numbers[i].key, numbers[i].value);
    (void) json_append_member(a, o, STR("DevTop10InputBytesPCT"),
                              m->top_sources ? *m->top_sources : json_null());
    set_time(a, o, STR("OldestSavedDeviceLog"), m->oldest_us);
    (void) json_append_member(a, o, STR("Latency"), latency_json(a, m));
    (void) json_append_member(a, o, STR("ServerStats"), server_json(a, m));
    (void) json_append_member(a, o, STR("DevMetrics"), stream_json(a, &m->device));
    (void) json_append_member(a, o, STR("AppMetrics"), stream_json(a, &m->apps));
    return o;
}

static void copy_members(struct arena *a, struct json *to, const struct json *from,
                         const struct str *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct json *value = json_get(from, keys[i]);
        if (value)
            (void) json_set(a, to, keys[i], *value);
    }
}

void newlog_metrics_merge(struct arena *a, struct json *to, const struct json *uploader)
{
    static const struct str whole[] = {
        STR("TotalBytesUpload"), STR("Num4xxResponses"),   STR("NumTooManyRequest"),
        STR("Latency"),          STR("CurrUploadIntvSec"), STR("ServerStats"),
        STR("FailedToSend"),     STR("FailSentStartTime"), STR("LastTooManyReqTime"),
    };
    static const struct str of_stream[] = {
        STR("NumGZipFilesSent"),      STR("NumGzipFileInDir"),     STR("NumGZipFileRetry"),
        STR("RecentUploadTimestamp"), STR("LastGZipFileSendTime"), STR("NumGZipFileKeptLocal"),
    };
    copy_members(a, to, uploader, whole, N_ELEMENTS(whole));
    const struct str streams[] = {STR("DevMetrics"), STR("AppMetrics")};
    for (size_t i = 0; i < N_ELEMENTS(streams); i++)
        copy_members(a, json_ensure_object(a, to, streams[i]), json_get(uploader, streams[i]),
                     of_stream, N_ELEMENTS(of_stream));
}
