/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/reasons.h"

#include <sys/stat.h>

#include "base/log.h"
#include "machine/machine.h"

#define REASON_FILE STR("reboot-reason")
#define STACK_FILE STR("reboot-stack")
#define IMAGE_FILE STR("reboot-image")
#define BOOT_FILE STR("boot-reason")
#define COUNTER_FILE STR("status/restartcounter")

/* ---- names ---------------------------------------------------------------------------------- */

static const struct {
    enum boot_reason reason;
    const char *name;
} names[] = {
    {BOOT_NONE, "BootReasonNone"},
    {BOOT_FIRST, "BootReasonFirst"},
    {BOOT_REBOOT_COMMAND, "BootReasonRebootCmd"},
    {BOOT_UPDATE, "BootReasonUpdate"},
    {BOOT_FALLBACK, "BootReasonFallback"},
    {BOOT_DISCONNECT, "BootReasonDisconnect"},
    {BOOT_FATAL, "BootReasonFatal"},
    {BOOT_OUT_OF_MEMORY, "BootReasonOOM"},
    {BOOT_WATCHDOG_HUNG, "BootReasonWatchdogHung"},
    {BOOT_WATCHDOG_PID, "BootReasonWatchdogPid"},
    {BOOT_KERNEL, "BootReasonKernel"},
    {BOOT_POWER_FAIL, "BootReasonPowerFail"},
    {BOOT_UNKNOWN, "BootReasonUnknown"},
    {BOOT_VAULT_FAILURE, "BootReasonVaultFailure"},
    {BOOT_POWEROFF_COMMAND, "BootReasonPoweroffCmd"},
    {BOOT_KUBE_TRANSITION, "BootReasonKubeTransition"},
    {BOOT_HARDWARE_WATCHDOG, "BootReasonHardwareWatchdog"},
};

const char *boot_reason_name(enum boot_reason r)
{
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (names[i].reason == r)
            return names[i].name;
    return "BootReasonParseFail";
}

enum boot_reason boot_reason_parse(struct str text)
{
    const struct str word = str_trim(text);
    if (!word.n)
        return BOOT_NONE;
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (str_is(word, names[i].name))
            return names[i].reason;
    return BOOT_PARSE_FAIL;
}

/* ---- taking --------------------------------------------------------------------------------- */

/* Topics carry UTF-8; a kernel's last words may be anything. */
static struct str readable(struct arena *a, struct str text)
{
    if (str_is_utf8(text))
        return text;
    char *out = arena_strz(a, text);
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char) out[i] >= 0x80 || out[i] == '\0')
            out[i] = '?';
    return str_range(out, text.n);
}

/* Its text, cut, and when it was written; then it is gone. Empty: there was none. */
static struct str take(struct node *n, struct arena *a, struct str name, int64_t *ret_wall_us)
{
    BUF_AUTO content = {0};
    struct stat st;
    if (node_file_read(n, NODE_PERSIST, name, &content) < 0)
        return STR("");
    if (ret_wall_us && stat(node_path(a, n, NODE_PERSIST, name), &st) == 0)
        *ret_wall_us = (int64_t) st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    const int r = node_file_remove(n, NODE_PERSIST, name);
    if (r < 0)
        log_warning("a reason of the last start stays", LOG_STR("file", name), LOG_ERRNO(r));
    const struct str text = str_sub(buf_str(&content), 0, MIN(content.n, REASONS_MAX_BYTES));
    return readable(a, arena_str(a, str_trim(text)));
}

/* The value before. */
static uint32_t count(struct node *n, bool *ret_is_first)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO content = {0};
    int64_t value = 0;
    *ret_is_first = node_file_read(n, NODE_PERSIST, COUNTER_FILE, &content) < 0;
    if (str_to_i64(str_trim(buf_str(&content)), &value) < 0 || value < 0 || value >= UINT32_MAX)
        value = 0;
    const int r = node_file_write(n, NODE_PERSIST, COUNTER_FILE,
                                  arena_printf(a, "%lld", (long long) value + 1));
    if (r < 0)
        log_warning("the start is not counted", LOG_ERRNO(r));
    return (uint32_t) value;
}

static struct str cut_stack(struct arena *a, struct str stack)
{
    if (stack.n <= REASONS_MAX_STACK_BYTES + 100)
        return stack;
    /* Not within a character. */
    size_t n = REASONS_MAX_STACK_BYTES;
    while (n > 0 && ((unsigned char) stack.p[n] & 0xc0) == 0x80)
        n--;
    return arena_printf(a, "Truncated stack: %.*s", (int) n, stack.p);
}

/* Nobody has left a word. */
static void guess(struct arena *a, bool is_first, int64_t now_us, struct reasons *r)
{
    char time[CLOCK_MICROS_BYTES];
    clock_format_micros(now_us, time);
    r->wall_us = now_us;
    r->stack = STR("");
    r->reason = arena_printf(a,
                             is_first ? "NORMAL: First boot of device - at %s"
                                      : "Unknown reboot reason - power failure or crash - at %s",
                             time);
    if (r->boot == BOOT_NONE)
        r->boot = is_first ? BOOT_FIRST : BOOT_UNKNOWN;
}

struct reasons reasons_take(struct node *n, struct arena *a)
{
    struct reasons r = {0};
    bool is_first = false;
    int64_t boot_us = 0;
    r.reason = take(n, a, REASON_FILE, &r.wall_us);
    r.stack = cut_stack(a, take(n, a, STACK_FILE, NULL));
    r.image = take(n, a, IMAGE_FILE, NULL);
    r.boot = boot_reason_parse(take(n, a, BOOT_FILE, &boot_us));
    if (r.boot != BOOT_NONE)
        r.wall_us = boot_us;
    r.restart_counter = count(n, &is_first);
    if (!r.reason.n)
        guess(a, is_first, n->clock->wall_us(n->clock), &r);
    return r;
}

/* ---- leaving -------------------------------------------------------------------------------- */

static struct str version_of(struct node *n, struct arena *a)
{
    struct machine_identity id = {0};
    return n->machine->functions->identity(n->machine, a, &id) == 0 ? str_trim(id.eve_version)
                                                                    : STR("unknown");
}

int reasons_leave(struct node *n, struct str reason, enum boot_reason boot)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO before = {0};
    BUF_AUTO text = {0};
    char time[CLOCK_MICROS_BYTES];
    const bool is_later = node_file_read(n, NODE_PERSIST, BOOT_FILE, &before) == 0;
    if (is_later)
        (void) node_file_read(n, NODE_PERSIST, REASON_FILE, &text);
    clock_format_micros(n->clock->wall_us(n->clock), time);
    buf_printf(&text, "%.*s at EVE version %.*s at %s\n", STR_ARG(str_trim(reason)),
               STR_ARG(version_of(n, a)), time);
    const int r = node_file_write(n, NODE_PERSIST, REASON_FILE, buf_str(&text));
    if (r < 0 || is_later)
        return r;
    return node_file_write(n, NODE_PERSIST, BOOT_FILE, str_of(boot_reason_name(boot)));
}
