/* SPDX-License-Identifier: Apache-2.0 */
#include "settings/config_items.h"

#include <inttypes.h>

#include "base/base64.h"

#define MAX32 ((int64_t) UINT32_MAX)
#define HOUR_S 3600
#define DAY_S (24 * HOUR_S)

enum item_type {
    ITEM_INT,
    ITEM_BOOL,
    ITEM_TRISTATE,
    ITEM_LEVEL,  /* of the log of a service of EVE */
    ITEM_SYSLOG, /* of the kernel or syslog */
    ITEM_BASE64,
    ITEM_TEXT,
};

struct item {
    const char *name;
    enum item_type type;
    int64_t min, max; /* ITEM_INT */
};

/* Ranges are those of the widest version of EVE: what some version takes is not refused here. The
 * least amount of memory for EVE depends on the device. */
static const struct item items[] = {
    {"airgap.mode", ITEM_TRISTATE, 0, 0},
    {"app.allow.vnc", ITEM_BOOL, 0, 0},
    {"app.enable.boot.order", ITEM_BOOL, 0, 0},
    {"app.fml.resolution", ITEM_TEXT, 0, 0},
    {"blob.download.max.retries", ITEM_INT, 1, 10},
    {"datastore.http.security.allowinsecureauth", ITEM_BOOL, 0, 0},
    {"debug.default.loglevel", ITEM_LEVEL, 0, 0},
    {"debug.default.remote.loglevel", ITEM_LEVEL, 0, 0},
    {"debug.disable.dhcp.all-ones.netmask", ITEM_BOOL, 0, 0},
    {"debug.enable.console", ITEM_BOOL, 0, 0},
    {"debug.enable.ssh", ITEM_TEXT, 0, 0},
    {"debug.enable.usb", ITEM_BOOL, 0, 0},
    {"debug.enable.vga", ITEM_BOOL, 0, 0},
    {"debug.enable.vnc.shim.vm", ITEM_BOOL, 0, 0},
    {"debug.kernel.loglevel", ITEM_SYSLOG, 0, 0},
    {"debug.kernel.remote.loglevel", ITEM_SYSLOG, 0, 0},
    {"debug.syslog.loglevel", ITEM_SYSLOG, 0, 0},
    {"debug.syslog.remote.loglevel", ITEM_SYSLOG, 0, 0},
    {"debug.tui.loglevel", ITEM_TEXT, 0, 0},
    {"edgeview.authen.jwt", ITEM_TEXT, 0, 0},
    {"edgeview.authen.publickey", ITEM_TEXT, 0, 0},
    {"force.fallback.counter", ITEM_INT, 0, MAX32},
    {"gogc.forced.growth.memory.MiB", ITEM_INT, 10, 1024},
    {"gogc.forced.growth.memory.percent", ITEM_INT, 5, 300},
    {"gogc.forced.interval.seconds", ITEM_INT, 0, 1000},
    {"gogc.memory.limit.bytes", ITEM_INT, 0, MAX32},
    {"gogc.percent", ITEM_INT, 0, 500},
    {"goroutine.leak.detection.check.interval.minutes", ITEM_INT, 1, MAX32},
    {"goroutine.leak.detection.check.window.minutes", ITEM_INT, 10, MAX32},
    {"goroutine.leak.detection.cooldown.minutes", ITEM_INT, 1, MAX32},
    {"goroutine.leak.detection.keep.stats.hours", ITEM_INT, 1, MAX32},
    {"goroutine.leak.detection.threshold", ITEM_INT, 1, MAX32},
    {"k3s.config.override", ITEM_TEXT, 0, 0},
    {"kubevirt.drain.skip.k8sapinotreachable.timeout", ITEM_INT, 1, MAX32},
    {"kubevirt.drain.timeout", ITEM_INT, 1, MAX32},
    {"log.count.filenames", ITEM_TEXT, 0, 0},
    {"log.dedup.window.size", ITEM_INT, 0, MAX32},
    {"log.filter.filenames", ITEM_TEXT, 0, 0},
    {"maintenance.mode", ITEM_TRISTATE, 0, 0},
    {"memory-monitor.enabled", ITEM_BOOL, 0, 0},
    {"memory.apps.ignore.check", ITEM_BOOL, 0, 0},
    {"memory.eve.limit.MiB", ITEM_INT, 0, MAX32},
    {"memory.eve.limit.bytes", ITEM_INT, 0, MAX32},
    {"memory.vmm.limit.MiB", ITEM_INT, 0, 1024 * 1024 * 1024},
    {"msrv.prometheus.metrics.burst", ITEM_INT, 1, MAX32},
    {"msrv.prometheus.metrics.idletimeout.seconds", ITEM_INT, 1, MAX32},
    {"msrv.prometheus.metrics.rps", ITEM_INT, 1, MAX32},
    {"netdump.downloader.http.with.fieldvalue", ITEM_BOOL, 0, 0},
    {"netdump.downloader.with.pcap", ITEM_BOOL, 0, 0},
    {"netdump.enable", ITEM_BOOL, 0, 0},
    {"netdump.topic.maxcount", ITEM_INT, 1, MAX32},
    {"netdump.topic.postonboard.interval", ITEM_INT, 60, MAX32},
    {"netdump.topic.preonboard.interval", ITEM_INT, 60, MAX32},
    {"network.download.max.cost", ITEM_INT, 0, 255},
    {"network.fallback.any.eth", ITEM_TRISTATE, 0, 0},
    {"network.local.legacy.mac.address", ITEM_BOOL, 0, 0},
    {"network.switch.enable.arpsnoop", ITEM_BOOL, 0, 0},
    {"newlog.allow.fastupload", ITEM_BOOL, 0, 0},
    {"newlog.gzipfiles.ondisk.maxmegabytes", ITEM_INT, 10, MAX32},
    {"process.cloud-init.multipart", ITEM_BOOL, 0, 0},
    {"storage.apps.ignore.disk.check", ITEM_BOOL, 0, 0},
    {"storage.dom0.disk.maxusagebytes", ITEM_INT, 100 * 1024 * 1024, MAX32},
    {"storage.dom0.disk.minusage.percent", ITEM_INT, 20, 80},
    {"storage.zfs.reserved.percent", ITEM_INT, 1, 99},
    {"timer.appcontainer.stats.interval", ITEM_INT, 1, MAX32},
    {"timer.boot.retry", ITEM_INT, 10, MAX32},
    {"timer.cert.interval", ITEM_INT, 60, MAX32},
    {"timer.config.interval", ITEM_INT, 5, DAY_S},
    {"timer.defer.content.delete", ITEM_INT, 0, DAY_S},
    {"timer.deviceinfo.interval", ITEM_INT, 1, MAX32},
    {"timer.dial.timeout", ITEM_INT, 0, HOUR_S},
    {"timer.download.retry", ITEM_INT, 60, MAX32},
    {"timer.download.stalled", ITEM_INT, 20, MAX32},
    {"timer.gc.vdisk", ITEM_INT, 60, MAX32},
    {"timer.hardwarehealth.interval", ITEM_INT, 6 * HOUR_S, MAX32},
    {"timer.location.app.interval", ITEM_INT, 5, HOUR_S},
    {"timer.location.cloud.interval", ITEM_INT, 300, MAX32},
    {"timer.metric.diskscan.interval", ITEM_INT, 5, HOUR_S},
    {"timer.metric.interval", ITEM_INT, 5, HOUR_S},
    {"timer.ntpsources.interval", ITEM_INT, 60, 1800},
    {"timer.port.georedo", ITEM_INT, 60, MAX32},
    {"timer.port.georetry", ITEM_INT, 5, MAX32},
    {"timer.port.testbetterinterval", ITEM_INT, 0, MAX32},
    {"timer.port.testduration", ITEM_INT, 10, HOUR_S},
    {"timer.port.testinterval", ITEM_INT, 300, HOUR_S},
    {"timer.port.timeout", ITEM_INT, 0, HOUR_S},
    {"timer.reboot.no.network", ITEM_INT, 120, MAX32},
    {"timer.send.timeout", ITEM_INT, 0, HOUR_S},
    {"timer.test.baseimage.update", ITEM_INT, 30, HOUR_S},
    {"timer.update.fallback.no.network", ITEM_INT, 60, MAX32},
    {"timer.use.config.checkpoint", ITEM_INT, 0, MAX32},
    {"timer.vault.ready.cutoff", ITEM_INT, 60, MAX32},
    {"vector.config", ITEM_BASE64, 0, 0},
    {"vector.enabled", ITEM_BOOL, 0, 0},
    {"wwan.modem.recovery.reload.drivers", ITEM_BOOL, 0, 0},
    {"wwan.modem.recovery.restart.modemmanager", ITEM_BOOL, 0, 0},
    {"wwan.modem.recovery.watchdog", ITEM_BOOL, 0, 0},
    {"wwan.query.visible.providers", ITEM_BOOL, 0, 0},
};

/* ---- the types ----------------------------------------------------------------------------- */

static const char *const booleans[] = {"true", "false", "1",    "0",     "t",    "f",
                                       "T",    "F",     "TRUE", "FALSE", "True", "False"};
static const char *const tristates[] = {"enabled", "disabled", "none"};
static const char *const levels[] = {"none", "all",     "panic", "fatal", "error",
                                     "warn", "warning", "info",  "debug", "trace"};
static const char *const syslog_levels[] = {"none", "emerg", "alert", "crit",    "critical",
                                            "err",  "error", "warn",  "warning", "notice",
                                            "info", "debug", "all"};

static bool is_one_of(struct str value, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(value, list[i]))
            return true;
    return false;
}

static bool is_unsigned(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < '0' || value.p[i] > '9')
            return false;
    return value.n > 0;
}

static struct str judge_int(struct arena *a, const struct item *item, struct str value)
{
    int64_t number = 0;
    if (is_unsigned(value) && str_to_i64(value, &number) == 0 && number >= item->min &&
        number <= item->max)
        return STR_NONE;
    return arena_printf(a, "must be an integer between %" PRId64 " and %" PRId64, item->min,
                        item->max);
}

/* What is wrong, or STR_NONE. */
static struct str judge(struct arena *a, const struct item *item, struct str value)
{
    struct str ignored;
    switch (item->type) {
    case ITEM_INT:
        return judge_int(a, item, value);
    case ITEM_BOOL:
        return is_one_of(value, booleans, N_ELEMENTS(booleans)) ? STR_NONE
                                                                : STR("must be true or false");
    case ITEM_TRISTATE:
        return is_one_of(value, tristates, N_ELEMENTS(tristates))
                   ? STR_NONE
                   : STR("must be enabled, disabled or none");
    case ITEM_LEVEL:
        return is_one_of(value, levels, N_ELEMENTS(levels))
                   ? STR_NONE
                   : STR("must be none, panic, fatal, error, warning, info, debug, trace or all");
    case ITEM_SYSLOG:
        return is_one_of(value, syslog_levels, N_ELEMENTS(syslog_levels))
                   ? STR_NONE
                   : STR("must be none, emerg, alert, crit, err, warning, notice, info, debug or "
                         "all");
    case ITEM_BASE64:
        return base64_decode(a, value, BASE64_STANDARD, &ignored, NULL) == 0
                   ? STR_NONE
                   : STR("must be base64");
    case ITEM_TEXT:
        break;
    }
    return STR_NONE;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* agent.<service>.<setting>, and as it was once written debug.<service>.<setting>. */
static const struct item *find_of_agent(struct str name)
{
    static const struct item level = {"", ITEM_LEVEL, 0, 0};
    static const char *const settings[] = {"loglevel", "remote.loglevel", "debug.loglevel",
                                           "debug.remote.loglevel"};
    struct str rest = name, part, agent;
    if (!str_split(&rest, '.', &part) || (!str_is(part, "agent") && !str_is(part, "debug")) ||
        !str_split(&rest, '.', &agent) || agent.n == 0)
        return NULL;
    return is_one_of(rest, settings, N_ELEMENTS(settings)) ? &level : NULL;
}

static const struct item *find(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(items); i++)
        if (str_is(name, items[i].name))
            return &items[i];
    return find_of_agent(name);
}

enum settings_verdict config_item_judge(struct arena *a, struct str name, struct str value,
                                        struct str *ret_reason)
{
    const struct item *item = find(name);
    if (!item)
        return SETTINGS_UNKNOWN;
    const struct str reason = judge(a, item, value);
    if (!reason.p)
        return SETTINGS_GOOD;
    *ret_reason = reason;
    return SETTINGS_BAD;
}
