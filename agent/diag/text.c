/* SPDX-License-Identifier: Apache-2.0 */
/* The report in the words of EVE's own: INFO, WARNING, ERROR, PASS. */

#include "diag/diag_internal.h"

#define MIN_COLUMNS 16u

static struct str text_of(const struct json *o, const char *key)
{
    struct str s = json_get_str(o, str_of(key));
    return s.p ? s : STR("");
}

static struct str joined(struct arena *a, const struct json *list)
{
    BUF_AUTO b = {0};
    JSON_FOR_EACH_ITEM (list, item)
        buf_printf(&b, "%s%.*s", b.n ? ", " : "", STR_ARG(json_str(item)));
    return arena_str(a, buf_str(&b));
}

/* ---- the device ----------------------------------------------------------------------------- */

static void write_summary(struct buf *b, const struct json *report)
{
    const struct json *summary = json_get(report, STR("summary"));
    struct str level = text_of(summary, "level"), device = text_of(report, "device");
    buf_printf(b, "\nINFO: updated diag information at %.*s\n", STR_ARG(text_of(report, "time")));
    buf_printf(b, "%s: Summary: %.*s\n",
               str_is(level, "info")      ? "INFO"
               : str_is(level, "warning") ? "WARNING"
                                          : "ERROR",
               STR_ARG(text_of(summary, "words")));
    buf_printf(b, "INFO: EV Controller %.*s\n", STR_ARG(text_of(report, "server")));
    if (device.n)
        buf_printf(b, "INFO: Device %.*s, model %.*s\n", STR_ARG(device),
                   STR_ARG(text_of(report, "hardwareModel")));
    else
        buf_printf(b, "WARNING: not onboarded; using the %.*s certificate\n",
                   STR_ARG(text_of(report, "identity")));
    if (json_get_bool(report, STR("maintenanceMode"), false))
        buf_append_str(b, STR("WARNING: maintenance mode\n"));
    if (json_get_bool(report, STR("airgapMode"), false))
        buf_append_str(b, STR("INFO: air-gap mode\n"));
}

static void write_configs(struct buf *b, const struct json *config)
{
    bool is_testing = json_get_bool(config, STR("testing"), false);
    const struct json *list = json_get(config, STR("list"));
    int64_t current = json_get_int(config, STR("current"), -1), i = 0;
    if (json_count(list) && current < 0)
        buf_append_str(b, STR("WARNING: Have no currently working DevicePortConfig\n"));
    JSON_FOR_EACH_ITEM (list, one) {
        struct str key = text_of(one, "key");
        if (i < current)
            buf_printf(b, "WARNING: Not %s priority %d DevicePortConfig key %.*s due to %.*s\n",
                       is_testing ? "testing" : "using", (int) i, STR_ARG(key),
                       STR_ARG(text_of(one, "lastError")));
        else if (i == current)
            buf_printf(b, "INFO: %s priority %d DevicePortConfig key %.*s\n",
                       is_testing ? "Testing" : "Using", (int) i, STR_ARG(key));
        i++;
    }
    if (current >= 0 && i - 1 > current)
        buf_printf(b, "INFO: Have %d backup DevicePortConfig\n", (int) (i - 1 - current));
    if (is_testing)
        buf_append_str(b, STR("WARNING: The configuration below is under test hence might report "
                              "failures\n"));
    struct str state = text_of(config, "state");
    if (!str_is(state, "SUCCESS"))
        buf_printf(b, "WARNING: state %.*s not SUCCESS\n", STR_ARG(state));
}

static void write_rest(struct buf *b, const struct json *report)
{
    JSON_FOR_EACH_ITEM (json_get(report, STR("vaults")), vault) {
        bool is_bad = str_is(text_of(vault, "status"), "error");
        buf_printf(b, "%s: vault %.*s %.*s %.*s\n", is_bad ? "ERROR" : "INFO",
                   STR_ARG(text_of(vault, "name")), STR_ARG(text_of(vault, "status")),
                   STR_ARG(text_of(vault, "error")));
    }
    const struct json *apps = json_get(report, STR("apps"));
    buf_printf(
        b, "INFO: applications: %d starting, %d running, %d stopping, %d in error\n",
        (int) json_get_int(apps, STR("starting"), 0), (int) json_get_int(apps, STR("running"), 0),
        (int) json_get_int(apps, STR("stopping"), 0), (int) json_get_int(apps, STR("error"), 0));
    JSON_FOR_EACH_ITEM (json_get(apps, STR("list")), app)
        if (text_of(app, "error").n)
            buf_printf(b, "ERROR: application %.*s: %.*s\n", STR_ARG(text_of(app, "name")),
                       STR_ARG(text_of(app, "error")));
    JSON_FOR_EACH_ITEM (json_get(report, STR("downloads")), download)
        if (text_of(download, "error").n)
            buf_printf(b, "ERROR: download of %.*s: %.*s\n", STR_ARG(text_of(download, "name")),
                       STR_ARG(text_of(download, "error")));
}

/* ---- ports ---------------------------------------------------------------------------------- */

static void write_proxy(struct buf *b, struct str name, const struct json *proxy)
{
    const struct json *list = json_get(proxy, STR("list"));
    int64_t n_pac = json_get_int(proxy, STR("pacBytes"), 0);
    bool discovers = json_get_bool(proxy, STR("discovers"), false);
    if (!json_count(list) && !n_pac && !discovers) {
        buf_printf(b, "INFO: %.*s: no http(s) proxy\n", STR_ARG(name));
        return;
    }
    if (text_of(proxy, "exceptions").n)
        buf_printf(b, "INFO: %.*s: proxy exceptions %.*s\n", STR_ARG(name),
                   STR_ARG(text_of(proxy, "exceptions")));
    struct str url = text_of(proxy, "url");
    url = url.n ? url : text_of(proxy, "wpadUrl");
    if (discovers && url.n)
        buf_printf(b, "INFO: %.*s: WPAD fetched from %.*s\n", STR_ARG(name), STR_ARG(url));
    else if (discovers)
        buf_printf(b, "WARNING: %.*s: WPAD enabled but found no URL\n", STR_ARG(name));
    if (n_pac)
        buf_printf(b, "INFO: %.*s: Have PAC file len %d\n", STR_ARG(name), (int) n_pac);
    if (text_of(proxy, "pac").n)
        buf_printf(b, "INFO: %.*s: PAC file:\n%.*s\n", STR_ARG(name),
                   STR_ARG(text_of(proxy, "pac")));
    JSON_FOR_EACH_ITEM (list, one)
        buf_printf(b, "INFO: %.*s: %.*s proxy %.*s\n", STR_ARG(name), STR_ARG(text_of(one, "type")),
                   STR_ARG(text_of(one, "server")));
}

static void write_wireless(struct buf *b, struct str name, const struct json *w)
{
    ARENA_AUTO a = arena_new();
    if (!w)
        return;
    buf_printf(b, "INFO: %.*s: %.*s %.*s%.*s %.*s\n", STR_ARG(name), STR_ARG(text_of(w, "type")),
               STR_ARG(joined(a, json_get(w, STR("networks")))), STR_ARG(text_of(w, "module")),
               STR_ARG(text_of(w, "mode")));
    static const char *const errors[] = {"configError", "probeError"};
    for (size_t i = 0; i < N_ELEMENTS(errors); i++)
        if (text_of(w, errors[i]).n)
            buf_printf(b, "ERROR: %.*s: %.*s\n", STR_ARG(name), STR_ARG(text_of(w, errors[i])));
}

static void write_settings(struct buf *b, struct str name, const struct json *port)
{
    ARENA_AUTO a = arena_new();
    JSON_FOR_EACH_ITEM (json_get(port, STR("addresses")), address)
        buf_printf(b, "INFO: %.*s: IP address %.*s\n", STR_ARG(name), STR_ARG(json_str(address)));
    if (!json_count(json_get(port, STR("addresses"))))
        buf_printf(b, "INFO: %.*s: No IP address\n", STR_ARG(name));
    buf_printf(b, "INFO: %.*s: DNS servers: %.*s\n", STR_ARG(name),
               STR_ARG(joined(a, json_get(port, STR("dnsServers")))));
    if (str_is(text_of(port, "addressing"), "static"))
        buf_printf(b, "INFO: %.*s: Static IP router: %.*s\n", STR_ARG(name),
                   STR_ARG(joined(a, json_get(port, STR("routers")))));
    write_wireless(b, name, json_get(port, STR("wireless")));
    write_proxy(b, name, json_get(port, STR("proxy")));
    if (text_of(port, "lastError").n)
        buf_printf(b, "ERROR: %.*s: %.*s\n", STR_ARG(name), STR_ARG(text_of(port, "lastError")));
    if (text_of(port, "lastWarning").n)
        buf_printf(b, "WARNING: %.*s: %.*s\n", STR_ARG(name),
                   STR_ARG(text_of(port, "lastWarning")));
}

static void write_check(struct buf *b, struct str name, const struct json *check)
{
    struct str kind = text_of(check, "check"), target = text_of(check, "target"),
               words = text_of(check, "words");
    bool is_good = str_is(text_of(check, "result"), "pass");
    bool is_probe = str_starts_with(kind, STR("probe-"));
    if (is_probe && is_good)
        buf_printf(b, "WARNING: %.*s: Can reach %.*s but not the EV controller\n", STR_ARG(name),
                   STR_ARG(target));
    else if (is_probe)
        buf_printf(b, "ERROR: %.*s: Can't reach %.*s; likely lack of Internet connectivity\n",
                   STR_ARG(name), STR_ARG(target));
    else if (is_good && words.n)
        buf_printf(b, "INFO: %.*s: %.*s of %.*s: %.*s\n", STR_ARG(name), STR_ARG(kind),
                   STR_ARG(target), STR_ARG(words));
    else if (is_good)
        buf_printf(b, "INFO: %.*s: %.*s %.*s ok\n", STR_ARG(name), STR_ARG(kind), STR_ARG(target));
    else
        buf_printf(b, "ERROR: %.*s: %.*s %.*s failed after %d tries: %.*s\n", STR_ARG(name),
                   STR_ARG(kind), STR_ARG(target), (int) json_get_int(check, STR("tries"), 0),
                   STR_ARG(words));
}

static void write_port(struct buf *b, const struct json *report, const struct json *port)
{
    struct str name = text_of(port, "name"), result = text_of(port, "result");
    bool is_management = json_get_bool(port, STR("isManagement"), false);
    int64_t cost = json_get_int(port, STR("cost"), 0);
    buf_printf(b, "INFO: Port %.*s: ", STR_ARG(name));
    if (!is_management)
        buf_append_str(b, STR("for application use\n"));
    else if (cost == 0)
        buf_append_str(b, STR("for EV Controller without usage-based charging\n"));
    else
        buf_printf(b, "for EV Controller (cost %d)\n", (int) cost);
    write_settings(b, name, port);
    if (!is_management) {
        buf_printf(b, "INFO: %.*s: not intended for EV controller; skipping those tests\n",
                   STR_ARG(name));
        return;
    }
    JSON_FOR_EACH_ITEM (json_get(port, STR("checks")), check)
        write_check(b, name, check);
    if (!json_count(json_get(port, STR("addresses"))))
        buf_printf(b, "WARNING: %.*s: No IP address to connect to EV controller\n", STR_ARG(name));
    else if (str_is(result, "pass"))
        buf_printf(b, "PASS: port %.*s fully connected to EV controller %.*s\n", STR_ARG(name),
                   STR_ARG(text_of(report, "server")));
    else
        buf_printf(b, "FAIL: port %.*s not connected to EV controller %.*s\n", STR_ARG(name),
                   STR_ARG(text_of(report, "server")));
}

static void write_conclusion(struct buf *b, const struct json *report)
{
    int n_management = (int) json_get_int(report, STR("managementPorts"), 0);
    int n_passed = (int) json_get_int(report, STR("passedPorts"), 0);
    if (n_management == 0)
        buf_append_str(b, STR("ERROR: No ports specified to have EV controller connectivity\n"));
    else if (n_passed == n_management)
        buf_append_str(b, STR("PASS: All ports specified to have EV controller connectivity passed "
                              "test\n"));
    else
        buf_printf(b,
                   "WARNING: %d out of %d ports specified to have EV controller connectivity "
                   "passed test\n",
                   n_passed, n_management);
}

/* ---- on a console --------------------------------------------------------------------------- */

/* So much of the line as there is room for, cut at a blank where there is one, and between
 * characters in any case. */
static struct str first_part(struct str line, size_t room)
{
    if (line.n <= room)
        return line;
    ptrdiff_t blank = str_find_last(str_sub(line, 0, room), ' ');
    size_t n = blank > 0 ? (size_t) blank : room;
    while (n > 1 && ((unsigned char) line.p[n] & 0xc0) == 0x80)
        n--;
    return str_sub(line, 0, n);
}

/* What does not fit a line goes on in the next, indented. Returns how many lines were written. */
static size_t write_folded(struct buf *b, struct str line, unsigned columns)
{
    size_t n_lines = 0;
    const char *indent = "";
    do {
        size_t room = columns ? MAX(columns, MIN_COLUMNS) - strlen(indent) : line.n;
        struct str part = first_part(line, room);
        buf_printf(b, "%s%.*s\n", indent, STR_ARG(part));
        line = str_from(line, part.n);
        line = columns ? str_trim(line) : line;
        indent = "  ";
        n_lines++;
    } while (line.n > 0);
    return n_lines;
}

/* Of a report that is too long the last line, its result, is always there. */
static void fit(struct buf *b, struct str text, unsigned rows, unsigned columns)
{
    size_t n_lines = 0, n_left_out = 0;
    struct str line;
    while (str_split(&text, '\n', &line)) {
        if (rows && n_lines + 2 >= rows && text.n > 0) {
            n_left_out++;
            continue;
        }
        if (n_left_out)
            buf_printf(b, "(%zu more lines)\n", n_left_out);
        n_left_out = 0;
        n_lines += write_folded(b, line, columns);
    }
}

void diag_text(struct buf *b, const struct json *report, unsigned rows, unsigned columns)
{
    BUF_AUTO text = {0};
    write_summary(&text, report);
    write_configs(&text, json_get(report, STR("portConfig")));
    write_rest(&text, report);
    const struct json *ports = json_get(report, STR("ports"));
    buf_printf(&text, "INFO: Have %zu total ports. %d ports should be connected to EV controller\n",
               json_count(ports), (int) json_get_int(report, STR("managementPorts"), 0));
    JSON_FOR_EACH_ITEM (ports, port)
        write_port(&text, report, port);
    write_conclusion(&text, report);
    fit(b, buf_str(&text), rows, columns);
}
