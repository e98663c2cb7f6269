/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/config_items.h"

#include <errno.h>
#include <inttypes.h>

#include "base/base64.h"

#define MAX32 ((int64_t) UINT32_MAX)
#define GIB (1024 * 1024 * 1024)
#define HOUR_S 3600
#define DAY_S (24 * HOUR_S)

#define NUMBER(name, min, max, number) \
    { \
        name, CONFIG_ITEM_INT, min, max, number, "" \
    }
#define BOOLEAN(name, is_true) \
    { \
        name, CONFIG_ITEM_BOOL, 0, 0, is_true, "" \
    }
#define TRISTATE(name, state) \
    { \
        name, CONFIG_ITEM_TRISTATE, 0, 0, state, "" \
    }
#define WORDS(name, type, text) \
    { \
        name, type, 0, 0, 0, text \
    }

/* Ranges are those of the widest version of EVE: what some version takes is not refused here. The
 * least amount of memory for EVE, which is its default too, depends on the device. */
static const struct config_item items[] = {
    TRISTATE("airgap.mode", CONFIG_ITEM_NONE),
    BOOLEAN("app.allow.vnc", false),
    BOOLEAN("app.enable.boot.order", false),
    WORDS("app.fml.resolution", CONFIG_ITEM_TEXT, ""),
    NUMBER("blob.download.max.retries", 1, 10, 5),
    BOOLEAN("datastore.http.security.allowinsecureauth", false),
    WORDS("debug.default.loglevel", CONFIG_ITEM_LEVEL, "info"),
    WORDS("debug.default.remote.loglevel", CONFIG_ITEM_LEVEL, "info"),
    BOOLEAN("debug.disable.dhcp.all-ones.netmask", false),
    BOOLEAN("debug.enable.console", true),
    WORDS("debug.enable.ssh", CONFIG_ITEM_TEXT, ""),
    BOOLEAN("debug.enable.usb", true),
    BOOLEAN("debug.enable.vga", true),
    BOOLEAN("debug.enable.vnc.shim.vm", false),
    WORDS("debug.kernel.loglevel", CONFIG_ITEM_SYSLOG, "info"),
    WORDS("debug.kernel.remote.loglevel", CONFIG_ITEM_SYSLOG, "info"),
    WORDS("debug.syslog.loglevel", CONFIG_ITEM_SYSLOG, "info"),
    WORDS("debug.syslog.remote.loglevel", CONFIG_ITEM_SYSLOG, "info"),
    WORDS("debug.tui.loglevel", CONFIG_ITEM_TEXT, "info"),
    WORDS("diag.probe.remote.http.endpoint", CONFIG_ITEM_TEXT, "www.google.com"),
    WORDS("diag.probe.remote.https.endpoint", CONFIG_ITEM_TEXT, "www.google.com"),
    WORDS("edgeview.authen.jwt", CONFIG_ITEM_TEXT, ""),
    WORDS("edgeview.authen.publickey", CONFIG_ITEM_TEXT, ""),
    NUMBER("force.fallback.counter", 0, MAX32, 0),
    NUMBER("gogc.forced.growth.memory.MiB", 10, 1024, 50),
    NUMBER("gogc.forced.growth.memory.percent", 5, 300, 20),
    NUMBER("gogc.forced.interval.seconds", 0, 1000, 10),
    NUMBER("gogc.memory.limit.bytes", 0, MAX32, 0),
    NUMBER("gogc.percent", 0, 500, 100),
    NUMBER("goroutine.leak.detection.check.interval.minutes", 1, MAX32, 1),
    NUMBER("goroutine.leak.detection.check.window.minutes", 10, MAX32, 10),
    NUMBER("goroutine.leak.detection.cooldown.minutes", 1, MAX32, 5),
    NUMBER("goroutine.leak.detection.keep.stats.hours", 1, MAX32, 24),
    NUMBER("goroutine.leak.detection.threshold", 1, MAX32, 5000),
    WORDS("k3s.config.override", CONFIG_ITEM_TEXT, ""),
    NUMBER("kubevirt.drain.skip.k8sapinotreachable.timeout", 1, MAX32, 300),
    NUMBER("kubevirt.drain.timeout", 1, MAX32, 24),
    WORDS("log.count.filenames", CONFIG_ITEM_TEXT, ""),
    NUMBER("log.dedup.window.size", 0, MAX32, 0),
    WORDS("log.filter.filenames", CONFIG_ITEM_TEXT, ""),
    TRISTATE("maintenance.mode", CONFIG_ITEM_NONE),
    BOOLEAN("memory-monitor.enabled", false),
    BOOLEAN("memory.apps.ignore.check", false),
    NUMBER("memory.eve.limit.MiB", 0, MAX32, 0),
    NUMBER("memory.eve.limit.bytes", 0, MAX32, 0),
    NUMBER("memory.vmm.limit.MiB", 0, 1024 * 1024 * 1024, 0),
    NUMBER("msrv.prometheus.metrics.burst", 1, MAX32, 10),
    NUMBER("msrv.prometheus.metrics.idletimeout.seconds", 1, MAX32, 240),
    NUMBER("msrv.prometheus.metrics.rps", 1, MAX32, 1),
    BOOLEAN("netdump.downloader.http.with.fieldvalue", false),
    BOOLEAN("netdump.downloader.with.pcap", false),
    BOOLEAN("netdump.enable", true),
    NUMBER("netdump.topic.maxcount", 1, MAX32, 10),
    NUMBER("netdump.topic.postonboard.interval", 60, MAX32, DAY_S),
    NUMBER("netdump.topic.preonboard.interval", 60, MAX32, HOUR_S),
    NUMBER("network.download.max.cost", 0, 255, 0),
    TRISTATE("network.fallback.any.eth", CONFIG_ITEM_DISABLED),
    BOOLEAN("network.local.legacy.mac.address", false),
    BOOLEAN("network.switch.enable.arpsnoop", true),
    BOOLEAN("newlog.allow.fastupload", false),
    NUMBER("newlog.gzipfiles.ondisk.maxmegabytes", 10, MAX32, 2048),
    BOOLEAN("process.cloud-init.multipart", false),
    BOOLEAN("storage.apps.ignore.disk.check", false),
    NUMBER("storage.dom0.disk.maxusagebytes", 100 * 1024 * 1024, MAX32, (int64_t) 2 * GIB),
    NUMBER("storage.dom0.disk.minusage.percent", 20, 80, 20),
    NUMBER("storage.zfs.reserved.percent", 1, 99, 20),
    NUMBER("timer.appcontainer.stats.interval", 1, MAX32, 300),
    NUMBER("timer.boot.retry", 10, MAX32, 600),
    NUMBER("timer.cert.interval", 60, MAX32, DAY_S),
    NUMBER("timer.config.interval", 5, DAY_S, 60),
    NUMBER("timer.defer.content.delete", 0, DAY_S, 0),
    NUMBER("timer.deviceinfo.interval", 1, MAX32, 600),
    NUMBER("timer.dial.timeout", 0, HOUR_S, 10),
    NUMBER("timer.download.retry", 60, MAX32, 600),
    NUMBER("timer.download.stalled", 20, MAX32, 600),
    NUMBER("timer.gc.vdisk", 60, MAX32, HOUR_S),
    NUMBER("timer.hardwarehealth.interval", 6 * HOUR_S, MAX32, 12 * HOUR_S),
    NUMBER("timer.location.app.interval", 5, HOUR_S, 20),
    NUMBER("timer.location.cloud.interval", 300, MAX32, HOUR_S),
    NUMBER("timer.lps.appbootinfo", 1, MAX32, 60),
    NUMBER("timer.lps.appinfo", 1, MAX32, 60),
    NUMBER("timer.lps.devinfo", 1, MAX32, 60),
    NUMBER("timer.lps.network", 1, MAX32, 60),
    NUMBER("timer.lps.profile", 1, MAX32, 60),
    NUMBER("timer.lps.radio", 1, MAX32, 5),
    NUMBER("timer.metric.diskscan.interval", 5, HOUR_S, 300),
    NUMBER("timer.metric.interval", 5, HOUR_S, 60),
    NUMBER("timer.ntpsources.interval", 60, 1800, 600),
    NUMBER("timer.port.georedo", 60, MAX32, HOUR_S),
    NUMBER("timer.port.georetry", 5, MAX32, 600),
    NUMBER("timer.port.testbetterinterval", 0, MAX32, 600),
    NUMBER("timer.port.testduration", 10, HOUR_S, 30),
    NUMBER("timer.port.testinterval", 300, HOUR_S, 300),
    NUMBER("timer.port.timeout", 0, HOUR_S, 15),
    NUMBER("timer.reboot.no.network", 120, MAX32, 7 * DAY_S),
    NUMBER("timer.send.timeout", 0, HOUR_S, 120),
    NUMBER("timer.test.baseimage.update", 30, HOUR_S, 600),
    NUMBER("timer.update.fallback.no.network", 60, MAX32, 300),
    NUMBER("timer.use.config.checkpoint", 0, MAX32, 600),
    NUMBER("timer.vault.ready.cutoff", 60, MAX32, 300),
    WORDS("vector.config", CONFIG_ITEM_BASE64, ""),
    BOOLEAN("vector.enabled", true),
    BOOLEAN("wwan.modem.recovery.reload.drivers", false),
    BOOLEAN("wwan.modem.recovery.restart.modemmanager", false),
    BOOLEAN("wwan.modem.recovery.watchdog", false),
    BOOLEAN("wwan.query.visible.providers", false),
};

const struct config_item *config_items(size_t *ret_n)
{
    *ret_n = N_ELEMENTS(items);
    return items;
}

const struct config_item *config_item_find(struct str name)
{
    size_t low = 0, high = N_ELEMENTS(items);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = str_cmp(name, str_of(items[middle].name));
        if (order == 0)
            return &items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool config_item_is_text(const struct config_item *item)
{
    return item->type != CONFIG_ITEM_INT && item->type != CONFIG_ITEM_BOOL &&
           item->type != CONFIG_ITEM_TRISTATE;
}

const struct config_item *config_item_of_agent(struct str name, struct str *ret_agent,
                                               struct str *ret_setting)
{
    static const struct config_item level = WORDS("", CONFIG_ITEM_LEVEL, "info");
    static const struct {
        const char *written, *kept;
    } settings[] = {{"loglevel", "debug.loglevel"},
                    {"remote.loglevel", "debug.remote.loglevel"},
                    {"debug.loglevel", "debug.loglevel"},
                    {"debug.remote.loglevel", "debug.remote.loglevel"}};
    struct str rest = name, part, agent;
    if (!str_split(&rest, '.', &part) || (!str_is(part, "agent") && !str_is(part, "debug")) ||
        !str_split(&rest, '.', &agent) || agent.n == 0)
        return NULL;
    for (size_t i = 0; i < N_ELEMENTS(settings); i++)
        if (str_is(rest, settings[i].written)) {
            *ret_agent = agent;
            *ret_setting = str_of(settings[i].kept);
            return &level;
        }
    return NULL;
}

/* ---- the types ----------------------------------------------------------------------------- */

static const char *const true_words[] = {"true", "1", "t", "T", "TRUE", "True"};
static const char *const false_words[] = {"false", "0", "f", "F", "FALSE", "False"};
/* In the order of enum config_item_tristate. */
static const char *const tristates[] = {"none", "disabled", "enabled"};
static const char *const levels[] = {"none", "all",     "panic", "fatal", "error",
                                     "warn", "warning", "info",  "debug", "trace"};
static const char *const syslog_levels[] = {"none", "emerg", "alert", "crit",    "critical",
                                            "err",  "error", "warn",  "warning", "notice",
                                            "info", "debug", "all"};

/* Its number in the list, or -1. */
static int64_t find_word(struct str value, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(value, list[i]))
            return (int64_t) i;
    return -1;
}

static bool is_unsigned(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < '0' || value.p[i] > '9')
            return false;
    return value.n > 0;
}

static struct str parse_int(struct arena *a, const struct config_item *item, struct str value,
                            int64_t *ret)
{
    if (is_unsigned(value) && str_to_i64(value, ret) == 0 && *ret >= item->min && *ret <= item->max)
        return STR_NONE;
    return arena_printf(a, "must be an integer between %" PRId64 " and %" PRId64, item->min,
                        item->max);
}

static struct str parse_bool(struct str value, int64_t *ret)
{
    *ret = find_word(value, true_words, N_ELEMENTS(true_words)) >= 0;
    if (*ret || find_word(value, false_words, N_ELEMENTS(false_words)) >= 0)
        return STR_NONE;
    return STR("must be true or false");
}

/* What is wrong, or STR_NONE. */
static struct str judge(struct arena *a, const struct config_item *item, struct str value,
                        int64_t *ret)
{
    struct str ignored;
    switch (item->type) {
    case CONFIG_ITEM_INT:
        return parse_int(a, item, value, ret);
    case CONFIG_ITEM_BOOL:
        return parse_bool(value, ret);
    case CONFIG_ITEM_TRISTATE:
        *ret = find_word(value, tristates, N_ELEMENTS(tristates));
        return *ret >= 0 ? STR_NONE : STR("must be enabled, disabled or none");
    case CONFIG_ITEM_LEVEL:
        return find_word(value, levels, N_ELEMENTS(levels)) >= 0
                   ? STR_NONE
                   : STR("must be none, panic, fatal, error, warning, info, debug, trace or all");
    case CONFIG_ITEM_SYSLOG:
        return find_word(value, syslog_levels, N_ELEMENTS(syslog_levels)) >= 0
                   ? STR_NONE
                   : STR("must be none, emerg, alert, crit, err, warning, notice, info, debug or "
                         "all");
    case CONFIG_ITEM_BASE64:
        return base64_decode(a, value, BASE64_STANDARD, &ignored, NULL) == 0
                   ? STR_NONE
                   : STR("must be base64");
    case CONFIG_ITEM_TEXT:
        break;
    }
    return STR_NONE;
}

int config_item_parse(struct arena *a, const struct config_item *item, struct str text,
                      struct config_item_value *ret, struct str *ret_reason)
{
    int64_t number = 0;
    const struct str reason = judge(a, item, text, &number);
    if (reason.p) {
        *ret_reason = reason;
        return -EINVAL;
    }
    *ret = config_item_is_text(item) ? (struct config_item_value){.text = text}
                                     : (struct config_item_value){.number = number};
    return 0;
}

struct str config_item_text(struct arena *a, const struct config_item *item,
                            const struct config_item_value *value)
{
    switch (item->type) {
    case CONFIG_ITEM_INT:
        return arena_printf(a, "%" PRId64, value->number);
    case CONFIG_ITEM_BOOL:
        return value->number ? STR("true") : STR("false");
    case CONFIG_ITEM_TRISTATE:
        return str_of(tristates[value->number]);
    case CONFIG_ITEM_LEVEL:
    case CONFIG_ITEM_SYSLOG:
    case CONFIG_ITEM_BASE64:
    case CONFIG_ITEM_TEXT:
        break;
    }
    return value->text;
}
