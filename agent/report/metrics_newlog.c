/* SPDX-License-Identifier: Apache-2.0 */
/* How the logs do: what newlogd publishes, or where it is not, loguploader itself. */
#include "report/metrics.h"

static Eve__Metrics__LogfileMetrics *make_files(struct world *w, const struct json *value)
{
    Eve__Metrics__LogfileMetrics *f =
        MAKE(w, Eve__Metrics__LogfileMetrics, eve__metrics__logfile_metrics);
    f->numgzipfilesent = NUMBER(value, "NumGZipFilesSent");
    f->numgzipbyteswrite = NUMBER(value, "NumGZipBytesWrite");
    f->numbyteswrite = NUMBER(value, "NumBytesWrite");
    f->numgzipfileindir = (uint32_t) NUMBER(value, "NumGzipFileInDir");
    f->numinputevent = NUMBER(value, "NumInputEvent");
    f->numgzipfileretry = NUMBER(value, "NumGZipFileRetry");
    f->numgzipfilekeptlocal = (uint32_t) NUMBER(value, "NumGZipFileKeptLocal");
    f->recentgzipfiletime = TIME(w, value, "RecentUploadTimestamp");
    f->lastgzipfilesendtime = TIME(w, value, "LastGZipFileSendTime");
    return f;
}

static void add_sources(struct world *w, Eve__Metrics__NewlogMetric *n, const struct json *sources)
{
    JSON_FOR_EACH_MEMBER (sources, m) {
        Eve__Metrics__NewlogMetric__Top10InputSourcesEntry *e =
            MAKE(w, Eve__Metrics__NewlogMetric__Top10InputSourcesEntry,
                 eve__metrics__newlog_metric__top10_input_sources_entry);
        e->key = make_text(w, json_str(&m->key));
        e->value = json_is(&m->value, JSON_INT) ? (uint32_t) m->value.i : 0;
        PUSH(w, n, top10_input_sources, e);
    }
}

static void set_upload(struct world *w, Eve__Metrics__NewlogMetric *n, const struct json *value)
{
    const struct json *latency = json_get(value, STR("Latency"));
    const struct json *server = json_get(value, STR("ServerStats"));
    n->failedtosend = FLAG(value, "FailedToSend");
    n->failsentstarttime = TIME(w, value, "FailSentStartTime");
    n->totalbytesupload = NUMBER(value, "TotalBytesUpload");
    n->num4xxresponses = (uint32_t) NUMBER(value, "Num4xxResponses");
    n->currentuploadintv = (uint32_t) NUMBER(value, "CurrUploadIntvSec");
    n->toomanyrequest = (uint32_t) NUMBER(value, "NumTooManyRequest");
    n->mimuploadmsec = (uint32_t) NUMBER(latency, "MinUploadMsec");
    n->maxuploadmsec = (uint32_t) NUMBER(latency, "MaxUploadMsec");
    n->avguploadmsec = (uint32_t) NUMBER(latency, "AvgUploadMsec");
    n->lastuploadmsec = (uint32_t) NUMBER(latency, "CurrUploadMsec");
    n->currentcpuloadpct = (float) make_double(server, STR("CurrCPULoadPCT"));
    n->averagecpuloadpct = (float) make_double(server, STR("AvgCPULoadPCT"));
    n->currentprocessdelay = (uint32_t) NUMBER(server, "CurrProcessMsec");
    n->averageprocessdelay = (uint32_t) NUMBER(server, "AvgProcessMsec");
}

Eve__Metrics__NewlogMetric *metrics_newlog(struct world *w)
{
    const struct json *newlogd = world_only(w, REPORT_NEWLOG);
    const struct json *value = newlogd ? newlogd : world_only(w, REPORT_LOGUPLOADER);
    if (!value)
        return NULL;
    Eve__Metrics__NewlogMetric *n =
        MAKE(w, Eve__Metrics__NewlogMetric, eve__metrics__newlog_metric);
    set_upload(w, n, value);
    n->logfiletimeout = (uint32_t) NUMBER(value, "LogfileTimeoutSec");
    n->maxgzipfilesize = (uint32_t) NUMBER(value, "MaxGzipSize");
    n->avggzipfilesize = (uint32_t) NUMBER(value, "AvgGzipSize");
    n->gzipfilesremoved = (uint32_t) NUMBER(value, "NumGZipFileRemoved");
    n->skipuploadappfile = (uint32_t) NUMBER(value, "NumSkipUploadAppFile");
    n->total_size_logs = NUMBER(value, "TotalSizeLogs");
    n->oldest_saved_device_log = TIME(w, value, "OldestSavedDeviceLog");
    n->devicemetrics = make_files(w, json_get(value, STR("DevMetrics")));
    n->appmetrics = make_files(w, json_get(value, STR("AppMetrics")));
    add_sources(w, n, json_get(value, STR("DevTop10InputBytesPCT")));
    return n;
}
