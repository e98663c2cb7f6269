/* SPDX-License-Identifier: Apache-2.0 */
/* Topics in, protobuf JSON out, one file for each message:
 *
 *     {"kind": "app", "key": "..", "last": {..}, "topics": {"zedmanager/AppInstanceStatus": {"key":
 * {..}}}, "items": {"timer.config.interval": "1"}, "facts": {..}, "expected": {..}}
 *
 * "kind" may be "metrics". The machine is simulated, its clock stands. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "protobuf/protojson.h"
#include "report/info.h"
#include "report/metrics.h"
#include "test.h"

#define NOW_US INT64_C(1767225600000000) /* 2026-01-01T00:00:00Z */

static const char *const kind_names[KINDS] = {
    [KIND_DEVICE] = "device",     [KIND_APP] = "app",
    [KIND_VOLUME] = "volume",     [KIND_NETWORK_INSTANCE] = "network-instance",
    [KIND_CONTENT] = "content",   [KIND_BLOB] = "blob",
    [KIND_METADATA] = "metadata", [KIND_HARDWARE] = "hardware",
    [KIND_PATCH] = "patch",       [KIND_EDGEVIEW] = "edgeview",
    [KIND_LOCATION] = "location", [KIND_NTP] = "ntp",
};

/* Which topic is which, in the file's words. */
static const struct {
    const char *name;
    enum report_topic topic;
} topic_names[] = {
    {"zedagent/ZedAgentStatus", REPORT_ZEDAGENT},
    {"nim/DeviceNetworkStatus", REPORT_NETWORK},
    {"nim/DevicePortConfigList", REPORT_PORT_CONFIGS},
    {"nodeagent/NodeAgentStatus", REPORT_NODEAGENT},
    {"baseosmgr/BaseOsStatus", REPORT_BASE_OS},
    {"baseosmgr/BaseOSMgrStatus", REPORT_BASE_OS_MANAGER},
    {"baseosmgr/ZbootStatus", REPORT_ZBOOT},
    {"zedmanager/AppInstanceStatus", REPORT_APP},
    {"zedagent/AppInstanceConfig", REPORT_APP_CONFIG},
    {"zedrouter/NetworkInstanceStatus", REPORT_NETWORK_INSTANCE},
    {"zedrouter/NetworkInstanceMetrics", REPORT_NETWORK_INSTANCE_METRICS},
    {"zedrouter/NetworkMetrics", REPORT_NETWORK_METRICS},
    {"zedrouter/AppContainerMetrics", REPORT_CONTAINER_METRICS},
    {"domainmgr/AssignableAdapters", REPORT_ADAPTERS},
    {"domainmgr/DomainMetric", REPORT_DOMAIN_METRIC},
    {"domainmgr/ProcessMetric", REPORT_PROCESS_METRIC},
    {"domainmgr/HostMemory", REPORT_HOST_MEMORY},
    {"domainmgr/Capabilities", REPORT_CAPABILITIES},
    {"volumemgr/ContentTreeStatus", REPORT_CONTENT},
    {"volumemgr/VolumeStatus", REPORT_VOLUME},
    {"volumemgr/BlobStatus", REPORT_BLOB},
    {"volumemgr/DiskMetric", REPORT_DISK_METRIC},
    {"volumemgr/AppDiskMetric", REPORT_APP_DISK_METRIC},
    {"vaultmgr/VaultStatus", REPORT_VAULT},
    {"msrv/AppInstMetaData", REPORT_METADATA},
    {"msrv/PatchEnvelopeUsage", REPORT_PATCH_USAGE},
    {"msrv/PatchEnvelopeInfo", REPORT_PATCH},
    {"zedagent/PatchEnvelopeInfoList", REPORT_PATCH_LIST},
    {"wwan/WwanMetrics", REPORT_WWAN_METRICS},
    {"wwan/WwanLocationInfo", REPORT_WWAN_LOCATION},
    {"edgeview/EdgeviewStatus", REPORT_EDGEVIEW},
    {"newlogd/NewlogMetrics", REPORT_NEWLOG},
    {"loguploader/NewlogMetrics", REPORT_LOGUPLOADER},
    {"nim/MetricsMap", REPORT_MAP_NIM},
    {"loguploader/MetricsMap", REPORT_MAP_LOGUPLOADER},
    {"domainmgr/CipherMetrics", REPORT_CIPHER_DOMAINMGR},
};

static struct json *load(void *arg, struct arena *a, enum report_topic topic)
{
    const struct json *file = arg;
    (void) a;
    for (size_t i = 0; i < N_ELEMENTS(topic_names); i++)
        if (topic_names[i].topic == topic)
            return json_get(json_get(file, STR("topics")), str_of(topic_names[i].name));
    return NULL;
}

/* A topic that is misspelt would be one that nobody publishes. */
static void check_names(const struct json *file)
{
    JSON_FOR_EACH_MEMBER (json_get(file, STR("topics")), m) {
        size_t n = 0;
        for (size_t i = 0; i < N_ELEMENTS(topic_names); i++)
            n += str_is(json_str(&m->key), topic_names[i].name);
        if (n != 1)
            fail_msg("no topic %.*s", STR_ARG(json_str(&m->key)));
    }
}

static struct zedagent_facts facts_of(const struct json *f)
{
    return (struct zedagent_facts){
        .device_state = (enum zedagent_device_state) json_get_int(f, STR("state"), 1),
        .reboot_counter = (uint32_t) json_get_int(f, STR("reboot-counter"), 0),
        .is_maintenance = json_get_bool(f, STR("maintenance"), false),
        .maintenance_reasons = (unsigned) json_get_int(f, STR("reasons"), 0),
        .device_name = json_get_str(f, STR("name")),
        .config_received_us = json_get_int(f, STR("received-us"), 0),
        .config_processed_us = json_get_int(f, STR("processed-us"), 0),
    };
}

static struct items *items_of(const struct json *file)
{
    struct items *i = items_new();
    items_begin(i);
    JSON_FOR_EACH_MEMBER (json_get(file, STR("items")), m)
        (void) items_set(i, json_str(&m->key), json_str(&m->value));
    return i;
}

static struct json *make(struct world *w, const struct json *file)
{
    static const struct ntp_source sources[] = {
        {'^', '*', STR("192.0.2.123"), 2, 255, 6, 0.00025},
        {'=', '?', STR("192.0.2.124"), 0, 0, 10, 0},
    };
    const struct str kind = json_get_str(file, STR("kind"));
    if (str_is(kind, "metrics"))
        return protojson_value(w->arena, &metrics_make(w)->base, NULL);
    struct info_subject s = {
        .key = json_get_str(file, STR("key")),
        .last = json_get(file, STR("last")),
        .kind = KINDS,
        .ntp_sources = sources,
        .n_ntp_sources = N_ELEMENTS(sources),
    };
    for (size_t i = 0; i < KINDS; i++)
        if (str_is(kind, kind_names[i]))
            s.kind = (enum report_kind) i;
    assert_int_not_equal(s.kind, KINDS);
    assert_str(info_queue_key(w, &s), arena_strz(w->arena, json_get_str(file, STR("queue-key"))));
    const Eve__Info__ZInfoMsg *m = info_make(w, &s);
    return m ? protojson_value(w->arena, &m->base, NULL) : json_new(w->arena, json_null());
}

/* The whole file; @VERSION@ stands for ours. */
static struct str read_file(struct arena *a, const char *name)
{
    BUF_AUTO text = {0}, whole = {0};
    FILE *f = fopen(arena_printf(a, "%s/%s", GOLDEN_DIRECTORY, name).p, "r");
    assert_non_null(f);
    size_t n;
    while ((n = fread(buf_reserve(&text, 65536), 1, 65536, f)) > 0)
        text.n += n;
    (void) fclose(f);
    struct str rest = buf_str(&text);
    for (ptrdiff_t at; (at = str_find_str(rest, STR("@VERSION@"))) >= 0;) {
        buf_append_str(&whole, str_sub(rest, 0, (size_t) at));
        buf_append_str(&whole, STR(SETH_VERSION));
        rest = str_from(rest, (size_t) at + 9);
    }
    buf_append_str(&whole, rest);
    return arena_str(a, buf_str(&whole));
}

static void check(const char *name)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO actual = {0};
    struct json_parse_result file;
    if (json_parse(a, read_file(a, name), &file) < 0)
        fail_msg("%s: %.*s", name, STR_ARG(file.error));
    check_names(file.value);
    struct clock_virtual clock;
    clock_virtual_init(&clock, NOW_US);
    struct machine *machine = machine_sim_new(&(struct machine_sim_options){
        .clock = &clock.clock, .seed = 1, .address = STR("192.0.2.7")});
    struct items *items = items_of(file.value);
    struct report_ground ground = {
        .device = STR("11111111-2222-4333-8444-555555555555"),
        .machine = machine,
        .facts = facts_of(json_get(file.value, STR("facts"))),
        .items = items,
        .persist_directory = "/persist",
        .own_metrics = json_get_str(file.value, STR("own-metrics")),
    };
    struct world w = {
        .arena = a, .now_us = NOW_US, .ground = &ground, .load = load, .arg = file.value};
    const struct json *made = make(&w, file.value);
    const struct json *expected = json_get(file.value, STR("expected"));
    json_write(&actual, made);
    if (!expected || !json_equal(made, expected)) {
        (void) fprintf(stderr, "GOLDEN %s %s\n", name,
                       actual.p); /* longer than fail_msg() has room */
        fail_msg("%s is another message", name);
    }
    items_free(items);
    machine_free(machine);
}

TEST(every_message_is_as_it_was)
{
    DIR *d = opendir(GOLDEN_DIRECTORY);
    const struct dirent *e;
    size_t n = 0;
    assert_non_null(d);
    while ((e = readdir(d)))
        if (str_ends_with(str_of(e->d_name), STR(".json"))) {
            check(e->d_name);
            n++;
        }
    (void) closedir(d);
    assert_true(n >= 12);
}
