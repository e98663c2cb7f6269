/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/nodeagent.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "nodeagent/baseos.h"
#include "nodeagent/operation.h"
#include "nodeagent/reasons.h"

#define NAME STR("nodeagent")
#define VAULT_NAME STR("Application Data Store")
#define VAULT_ERROR 4
#define MAINTENANCE_VAULT_LOCKED 2
#define CONFIG_SUCCESS 1
#define CONFIG_TEMPORARY_FAIL 3

/* Who says whether applications still run: EVE's domainmgr, or whoever has them here. */
enum halting { DOMAINS, INSTANCES, HALTINGS };

struct nodeagent {
    struct node *node;
    struct baseos *baseos; /* NULL: somebody else has it */
    struct publication *status;
    struct subscription *zedagent, *vault;
    struct subscription *halting[HALTINGS]; /* while an operation goes on */
    struct node_watch watch;
    struct loop_timer *timer;
    struct loop_deferred soon;
    struct arena *arena; /* of the reasons */
    struct reasons reasons;
    struct operation operation;
    struct outage outage;
    struct lockup lockup;
    bool is_maintenance; /* the vault stays locked */
    bool are_halted;
    char *why; /* of the operation */
    enum boot_reason boot;
};

static int64_t now_us(const struct nodeagent *a)
{
    return a->node->clock->monotonic_us(a->node->clock);
}

/* ---- NodeAgentStatus ------------------------------------------------------------------------ */

static struct json maintenance_reasons(struct arena *arena, const struct nodeagent *a)
{
    struct json list = json_array();
    if (!a->is_maintenance)
        return json_null();
    json_push(arena, &list, json_int(MAINTENANCE_VAULT_LOCKED));
    return list;
}

static void publish(struct nodeagent *a)
{
    ARENA_AUTO arena = arena_new();
    struct json *v = json_new(arena, json_object());
    const enum operation_kind kind = a->operation.kind;
    json_append_member(arena, v, STR("Name"), json_string(NAME));
    json_append_member(arena, v, STR("CurPart"), json_string(BASEOS_PARTITION));
    json_append_member(arena, v, STR("UpdateInprogress"), json_bool(false));
    json_append_member(arena, v, STR("RemainingTestTime"), json_int(0));
    json_append_member(arena, v, STR("DeviceReboot"), json_bool(kind == OPERATION_REBOOT));
    json_append_member(arena, v, STR("DeviceShutdown"), json_bool(kind == OPERATION_SHUTDOWN));
    json_append_member(arena, v, STR("DevicePoweroff"), json_bool(kind == OPERATION_POWEROFF));
    json_append_member(arena, v, STR("AllDomainsHalted"), json_bool(a->are_halted));
    json_append_member(arena, v, STR("RebootReason"), json_string(a->reasons.reason));
    json_append_member(arena, v, STR("BootReason"), json_int(a->reasons.boot));
    json_append_member(arena, v, STR("RebootStack"), json_string(a->reasons.stack));
    json_append_member(arena, v, STR("RebootTime"), *node_json_time(arena, a->reasons.wall_us));
    json_append_member(arena, v, STR("RestartCounter"), json_int(a->reasons.restart_counter));
    json_append_member(arena, v, STR("RebootImage"), json_string(a->reasons.image));
    json_append_member(arena, v, STR("LocalMaintenanceMode"), json_bool(a->is_maintenance));
    json_append_member(arena, v, STR("LocalMaintenanceModeReasons"), maintenance_reasons(arena, a));
    json_append_member(arena, v, STR("HVTypeKube"), json_bool(false));
    json_append_member(arena, v, STR("WaitDrainInProgress"), json_bool(false));
    const int r = publication_publish(a->status, NAME, v);
    if (r < 0)
        log_error("NodeAgentStatus is not published", LOG_ERRNO(r));
}

/* ---- the end of this life ------------------------------------------------------------------- */

static bool are_all_halted(const struct nodeagent *a)
{
    ARENA_AUTO arena = arena_new();
    struct str key, text;
    for (size_t i = 0; i < HALTINGS; i++)
        for (size_t at = 0; a->halting[i] && subscription_next(a->halting[i], &at, &key, &text);)
            if (json_get_bool(json_parse_quick(arena, text), STR("Activated"), false))
                return false;
    return true;
}

static void on_soon(struct loop_deferred *d);

static void on_halting(void *arg, struct str key, const struct json *value)
{
    (void) key, (void) value;
    struct nodeagent *a = arg;
    loop_defer(a->node->loop, &a->soon);
}

static void on_halting_again(void *arg, struct str key, const struct json *value,
                             const struct json *old)
{
    (void) old;
    on_halting(arg, key, value);
}

static void watch_applications(struct nodeagent *a)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_halting, .on_modify = on_halting_again, .on_delete = on_halting};
    static const struct pubsub_name names[HALTINGS] = {
        [DOMAINS] = {.agent = {"domainmgr", 9}, .topic = {"DomainStatus", 12}},
        [INSTANCES] = {.agent = {"zedmanager", 10}, .topic = {"AppInstanceStatus", 17}},
    };
    for (size_t i = 0; i < HALTINGS; i++) {
        if (a->halting[i])
            continue;
        const int r = subscription_new(a->node->pubsub, &names[i], &handlers, a, &a->halting[i]);
        if (r < 0)
            log_warning("whether applications halt is not known", LOG_ERRNO(r));
    }
}

static void write_reason(struct nodeagent *a)
{
    const int r = reasons_leave(a->node, str_of(a->why), a->boot);
    if (r < 0)
        log_error("why the device starts again is not written", LOG_ERRNO(r));
}

/* A simulated machine may end us in it. */
static void go(struct nodeagent *a)
{
    struct machine *m = a->node->machine;
    const enum machine_restart how =
        a->operation.kind == OPERATION_POWEROFF ? MACHINE_POWEROFF : MACHINE_REBOOT;
    ARENA_AUTO arena = arena_new();
    const struct str why = arena_str(arena, str_of(a->why));
    const int r = m->functions->restart(m, how, why);
    if (r < 0)
        log_error("the machine does not restart", LOG_ERRNO(r), LOG_STR("reason", why));
}

static void arm(struct nodeagent *a);

static void proceed(struct nodeagent *a)
{
    for (;;) {
        switch (operation_step(&a->operation, now_us(a), are_all_halted(a))) {
        case OPERATION_WAIT:
            arm(a);
            return;
        case OPERATION_WRITE_REASON:
            write_reason(a);
            break;
        case OPERATION_TELL_HALTED:
            a->are_halted = true;
            publish(a);
            break;
        case OPERATION_GO:
            go(a);
            return;
        }
    }
}

static void on_soon(struct loop_deferred *d)
{
    proceed(CONTAINER_OF(d, struct nodeagent, soon));
}

static void begin(struct nodeagent *a, enum operation_kind kind, struct str why,
                  enum boot_reason boot)
{
    if (!operation_begin(&a->operation, kind, now_us(a)))
        return;
    log_warning("the device is to come to its end", LOG_STR("reason", why));
    mem_free(a->why);
    a->why = str_dup(why);
    a->boot = boot;
    a->are_halted = false;
    watch_applications(a);
    publish(a);
    proceed(a);
}

/* ---- without a controller, without a vault
 * ------------------------------------------------------------------- */

static int64_t limit_s(const struct nodeagent *a)
{
    return items_int(a->node->items, "timer.reboot.no.network");
}

static int64_t vault_limit_s(const struct nodeagent *a)
{
    return items_int(a->node->items, "timer.vault.ready.cutoff");
}

static void check_vault(struct nodeagent *a)
{
    const bool is_late = now_us(a) >= lockup_due_us(&a->lockup, vault_limit_s(a));
    const bool is_maintenance = a->lockup.is_locked && (a->is_maintenance || is_late);
    if (is_maintenance == a->is_maintenance)
        return;
    a->is_maintenance = is_maintenance;
    publish(a);
}

static void check_outage(struct nodeagent *a)
{
    const int64_t due = outage_due_us(&a->outage, limit_s(a));
    if (a->operation.kind != OPERATION_NONE || now_us(a) < due)
        return;
    ARENA_AUTO arena = arena_new();
    begin(a, OPERATION_REBOOT,
          arena_printf(arena,
                       "Exceeded outage for cloud connectivity %lld by %lld seconds; rebooting",
                       (long long) limit_s(a), (long long) ((now_us(a) - due) / 1000000)),
          BOOT_DISCONNECT);
}

/* One timer for whatever is next; none while there is nothing. */
static void arm(struct nodeagent *a)
{
    int64_t due = operation_due_us(&a->operation);
    if (a->operation.kind == OPERATION_NONE)
        due = outage_due_us(&a->outage, limit_s(a));
    if (!a->is_maintenance)
        due = MIN(due, lockup_due_us(&a->lockup, vault_limit_s(a)));
    if (due == INT64_MAX)
        loop_timer_stop(a->timer);
    else
        loop_timer_start(a->timer, MAX((due - now_us(a) + 999) / 1000, INT64_C(0)), 0);
}

static void on_timer(void *arg)
{
    struct nodeagent *a = arg;
    check_vault(a);
    check_outage(a);
    proceed(a);
}

/* ---- what zedagent says --------------------------------------------------------------------- */

static void on_zedagent(void *arg, struct str key, const struct json *v)
{
    static const struct {
        struct str member;
        enum operation_kind kind;
    } commands[] = {
        {{"RebootCmd", 9}, OPERATION_REBOOT},
        {{"ShutdownCmd", 11}, OPERATION_SHUTDOWN},
        {{"PoweroffCmd", 11}, OPERATION_POWEROFF},
    };
    (void) key;
    struct nodeagent *a = arg;
    const int64_t status = json_get_int(v, STR("ConfigGetStatus"), 0);
    outage_note(&a->outage, status == CONFIG_SUCCESS || status == CONFIG_TEMPORARY_FAIL, now_us(a));
    lockup_note(&a->lockup, a->lockup.is_locked, status == CONFIG_SUCCESS, now_us(a));
    for (size_t i = 0; i < N_ELEMENTS(commands); i++)
        if (json_get_bool(v, commands[i].member, false))
            begin(a, commands[i].kind, json_get_str(v, STR("RequestedRebootReason")),
                  (enum boot_reason) json_get_int(v, STR("RequestedBootReason"), BOOT_NONE));
    arm(a);
}

static void on_zedagent_again(void *arg, struct str key, const struct json *v,
                              const struct json *old)
{
    (void) old;
    on_zedagent(arg, key, v);
}

/* ---- what the vault's owner says ------------------------------------------------------------ */

static void on_vault(void *arg, struct str key, const struct json *v)
{
    struct nodeagent *a = arg;
    if (!str_eq(key, VAULT_NAME))
        return;
    const bool is_open = json_get_bool(v, STR("ConversionComplete"), false) &&
                         json_get_int(v, STR("Status"), 0) != VAULT_ERROR;
    lockup_note(&a->lockup, !is_open, /* is_reached= */ false, now_us(a));
    check_vault(a);
    arm(a);
}

static void on_vault_again(void *arg, struct str key, const struct json *v, const struct json *old)
{
    (void) old;
    on_vault(arg, key, v);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    if (changes & NODE_ITEMS)
        arm(CONTAINER_OF(w, struct nodeagent, watch));
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_topics(struct nodeagent *a)
{
    static const struct subscription_handlers handlers = {.on_create = on_zedagent,
                                                          .on_modify = on_zedagent_again};
    static const struct subscription_handlers vault_handlers = {.on_create = on_vault,
                                                                .on_modify = on_vault_again};
    const struct pubsub_name vault = {.agent = STR("vaultmgr"), .topic = STR("VaultStatus")};
    const struct pubsub_name status = {.agent = NAME, .topic = STR("NodeAgentStatus")};
    const struct pubsub_name zedagent = {.agent = STR("zedagent"), .topic = STR("ZedAgentStatus")};
    int r = publication_new(a->node->pubsub, &status, &a->status);
    if (r < 0)
        return r;
    r = baseos_new(a->node, &a->baseos);
    if (r < 0 && r != -EADDRINUSE)
        return r;
    r = subscription_new(a->node->pubsub, &zedagent, &handlers, a, &a->zedagent);
    return r < 0 ? r : subscription_new(a->node->pubsub, &vault, &vault_handlers, a, &a->vault);
}

int nodeagent_new(struct node *n, struct nodeagent **ret)
{
    struct nodeagent *a = NEW(struct nodeagent);
    a->node = n;
    a->soon.fn = on_soon;
    a->watch.on_change = on_change;
    a->arena = arena_new_with(512);
    a->timer = loop_timer_new(n->loop, on_timer, a);
    a->outage.since_us = now_us(a);
    const int r = open_topics(a);
    if (r < 0) {
        nodeagent_free(a);
        return r;
    }
    a->reasons = reasons_take(n, a->arena);
    publish(a);
    node_watch(n, &a->watch);
    arm(a);
    *ret = a;
    return 0;
}

void nodeagent_free(struct nodeagent *a)
{
    if (!a)
        return;
    node_unwatch(&a->watch);
    loop_undefer(a->node->loop, &a->soon);
    loop_timer_free(a->timer);
    for (size_t i = 0; i < HALTINGS; i++)
        subscription_free(a->halting[i]);
    subscription_free(a->zedagent);
    subscription_free(a->vault);
    baseos_free(a->baseos);
    publication_free(a->status);
    mem_free(a->why);
    arena_free(a->arena);
    mem_free(a);
}
