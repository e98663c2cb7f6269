/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/newlog_metrics.h"
#include "test.h"

TEST(the_reply_of_a_controller_is_averaged)
{
    struct newlog_metrics m = {0};
    m.device.n_sent = 1;
    newlog_metrics_take_reply(&m, STR("{\"cpuPercentage\":10.5,\"logProcessDelayMsec\":100}\n"));
    m.device.n_sent = 2;
    newlog_metrics_take_reply(&m, STR("{\"cpuPercentage\":20.5,\"logProcessDelayMsec\":200}"));
    assert_true(m.server.cpu_percent == 20.5 && m.server.average_cpu_percent == 15.5);
    assert_true(m.server.process_ms == 200 && m.server.average_process_ms == 150);
    static const char *const others[] = {
        "", "[]", "{", "null", "{\"cpuPercentage\":-1}", "{\"logProcessDelayMsec\":1e300}"};
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        newlog_metrics_take_reply(&m, str_of(others[i]));
    assert_true(m.server.cpu_percent == 20.5);
}

TEST(the_json_is_that_of_eve)
{
    ARENA_AUTO a = arena_new();
    struct newlog_metrics m = {.is_failing = true,
                               .failing_since_us = 1700000000000000,
                               .n_bytes_sent = 7,
                               .n_4xx = 2,
                               .n_429 = 1,
                               .interval_s = 90,
                               .rotate_s = 300};
    m.device.n_sent = 2;
    m.apps.n_waiting = 5;
    newlog_metrics_take_latency(&m, 30);
    newlog_metrics_take_latency(&m, 10);
    BUF_AUTO text = {0};
    json_write(&text, newlog_metrics_json(a, &m));
    assert_string_equal(
        text.p,
        "{\"FailedToSend\":true,\"FailSentStartTime\":\"2023-11-14T22:13:20Z\","
        "\"LastTooManyReqTime\":\"0001-01-01T00:00:00Z\",\"TotalBytesUpload\":7,"
        "\"Num4xxResponses\":2,\"NumTooManyRequest\":1,\"CurrUploadIntvSec\":90,"
        "\"LogfileTimeoutSec\":300,\"MaxGzipSize\":0,\"AvgGzipSize\":0,\"NumGZipFileRemoved\":0,"
        "\"NumBreakGZipFile\":0,\"NumSkipUploadAppFile\":0,\"NumKmessages\":0,"
        "\"NumSyslogMessages\":0,\"TotalSizeLogs\":0,\"DevTop10InputBytesPCT\":null,"
        "\"OldestSavedDeviceLog\":\"0001-01-01T00:00:00Z\","
        "\"Latency\":{\"MinUploadMsec\":10,\"MaxUploadMsec\":30,\"AvgUploadMsec\":20,"
        "\"CurrUploadMsec\":10},"
        "\"ServerStats\":{\"CurrCPULoadPCT\":0,\"AvgCPULoadPCT\":0,\"CurrProcessMsec\":0,"
        "\"AvgProcessMsec\":0},"
        "\"DevMetrics\":{\"NumGZipFilesSent\":2,\"NumGZipBytesWrite\":0,\"NumBytesWrite\":0,"
        "\"NumGzipFileInDir\":0,\"NumInputEvent\":0,\"NumGZipFileRetry\":0,"
        "\"NumGZipFileKeptLocal\":0,\"RecentUploadTimestamp\":\"0001-01-01T00:00:00Z\","
        "\"LastGZipFileSendTime\":\"0001-01-01T00:00:00Z\"},"
        "\"AppMetrics\":{\"NumGZipFilesSent\":0,\"NumGZipBytesWrite\":0,\"NumBytesWrite\":0,"
        "\"NumGzipFileInDir\":5,\"NumInputEvent\":0,\"NumGZipFileRetry\":0,"
        "\"NumGZipFileKeptLocal\":0,\"RecentUploadTimestamp\":\"0001-01-01T00:00:00Z\","
        "\"LastGZipFileSendTime\":\"0001-01-01T00:00:00Z\"}}");
}

TEST(the_uploaders_part_comes_from_the_uploader)
{
    ARENA_AUTO a = arena_new();
    struct newlog_metrics own = {.n_kernel = 3, .interval_s = 0}, uploader = {.interval_s = 45};
    own.device.n_events = 10;
    uploader.device.n_sent = 4;
    struct json *merged = newlog_metrics_json(a, &own);
    newlog_metrics_merge(a, merged, newlog_metrics_json(a, &uploader));
    assert_int_equal(json_get_int(merged, STR("CurrUploadIntvSec"), 0), 45);
    assert_int_equal(json_get_int(merged, STR("NumKmessages"), 0), 3);
    const struct json *device = json_get(merged, STR("DevMetrics"));
    assert_int_equal(json_get_int(device, STR("NumGZipFilesSent"), 0), 4);
    assert_int_equal(json_get_int(device, STR("NumInputEvent"), 0), 10);
    newlog_metrics_merge(a, merged, NULL);
    assert_int_equal(json_get_int(merged, STR("CurrUploadIntvSec"), 0), 45);
}
