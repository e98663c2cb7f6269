/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoApp: the state of an application, its addresses, its errors. */
#include "base/clock.h"
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

enum phase { PREPARING, STARTING, RUNNING, STOPPED, STOPPING, FAILED };

static enum phase phase_of(int state)
{
    switch (state) {
    case EVE__INFO__ZSW_STATE__RUNNING:
        return RUNNING;
    case EVE__INFO__ZSW_STATE__BOOTING:
    case EVE__INFO__ZSW_STATE__START_DELAYED:
    case EVE__INFO__ZSW_STATE__AWAITNETWORKINSTANCE:
    case EVE__INFO__ZSW_STATE__PENDING:
    case EVE__INFO__ZSW_STATE__SCHEDULING:
    case EVE__INFO__ZSW_STATE__RESTARTING:
        return STARTING;
    case EVE__INFO__ZSW_STATE__INSTALLED:
    case EVE__INFO__ZSW_STATE__HALTED:
        return STOPPED;
    case EVE__INFO__ZSW_STATE__HALTING:
        return STOPPING;
    case EVE__INFO__ZSW_STATE__ERROR:
        return FAILED;
    default:
        return PREPARING;
    }
}

static bool is_deleted(const Eve__Info__ZInfoApp *m)
{
    return m->state == EVE__INFO__ZSW_STATE__INVALID && !pb_text(m->appname).n;
}

/* ---- state --------------------------------------------------------------------------------- */

int64_t derive_application_newest(const struct json *application)
{
    const struct json *list = json_at(application, "status", "statuses", NULL);
    int64_t at_us = 0;
    if (!json_is(list, JSON_ARRAY) || !list->n)
        return 0;
    struct str text = json_get_str(&list->items[list->n - 1], STR("timestamp"));
    return clock_parse(text, &at_us) == 0 ? at_us : 0;
}

static void set_state(struct derivation *d, struct str state)
{
    struct arena *a = d->arena;
    if (str_eq(json_get_str(d->status, STR("state")), state))
        return;
    derive_text(a, d->status, "state", state);
    struct json *list = json_get(d->status, STR("statuses"));
    if (!json_is(list, JSON_ARRAY))
        list = json_set(a, d->status, STR("statuses"), json_array());
    while (list->n >= DERIVE_MAX_STATUSES)
        json_remove_at(list, 0);
    struct json entry = json_object();
    (void) json_append_member(a, &entry, STR("state"), json_string(state));
    (void) json_append_member(a, &entry, STR("timestamp"),
                              json_string(words_stamp_exact(a, d->at_us)));
    (void) json_push(a, list, entry);
}

static void set_addresses(struct derivation *d, const Eve__Info__ZInfoApp *m)
{
    struct json list = json_array();
    for (size_t i = 0; i < m->n_network && json_count(&list) < DERIVE_MAX_ADDRESSES; i++)
        derive_addresses(d->arena, &list, m->network[i]->ipaddrs, m->network[i]->n_ipaddrs);
    if (json_count(&list))
        (void) json_set(d->arena, d->status, STR("addresses"), list);
    else
        (void) json_remove(d->status, STR("addresses"));
}

/* ---- conditions ---------------------------------------------------------------------------- */

static struct condition from_phase(struct derivation *d, const Eve__Info__ZInfoApp *m,
                                   struct str state)
{
    static const char *const reasons[] = {
        [PREPARING] = "Preparing", [STARTING] = "Starting", [RUNNING] = "Running",
        [STOPPED] = "Stopped",     [STOPPING] = "Stopping", [FAILED] = "Failed"};
    enum phase phase = phase_of((int) m->state);
    struct condition c = {"Ready", phase == RUNNING ? "True" : "False", str_of(reasons[phase]),
                          state};
    bool is_wanted = json_get_bool(json_get(d->object, STR("spec")), STR("activate"), true);
    if (phase == RUNNING && words_time(m->boottime))
        c.message = arena_printf(d->arena, "running since %.*s",
                                 STR_ARG(words_stamp(d->arena, words_time(m->boottime))));
    if (phase == STOPPED)
        c.message = is_wanted ? arena_printf(d->arena, "%.*s: ready on the device, and not running",
                                             STR_ARG(state))
                              : arena_printf(d->arena, "%.*s: stopped as wanted", STR_ARG(state));
    return c;
}

/* A notice or a warning is a hint beside the state; an error takes its place. */
static struct condition judge(struct derivation *d, const Eve__Info__ZInfoApp *m, struct str state)
{
    const Eve__Info__ErrorInfo *e = words_worst(m->apperr, m->n_apperr);
    struct condition c = from_phase(d, m, state);
    if (!e)
        return c;
    struct str words = words_error(d->arena, e);
    if (words_is_fatal(e))
        return (struct condition){"Ready", "False", STR("DeviceError"), words};
    c.message = arena_printf(d->arena, "%.*s; %.*s", STR_ARG(c.message), STR_ARG(words));
    return c;
}

static void tell(struct derivation *d, const Eve__Info__ZInfoApp *m, const struct condition *now,
                 const struct condition *before)
{
    const Eve__Info__ErrorInfo *e = words_worst(m->apperr, m->n_apperr);
    if (words_is_fatal(e)) {
        derive_event(d, true, "DeviceError", now->message);
        return;
    }
    if (e)
        derive_event(d, e->severity == EVE__INFO__SEVERITY__SEVERITY_WARNING, "DeviceHint",
                     words_error(d->arena, e));
    bool was_running = str_is(before->reason, "Running");
    bool is_running = str_is(now->reason, "Running");
    if (is_running && was_running && !e && str_starts_with(before->message, STR("running since")))
        derive_event(d, false, "Restarted", now->message);
    else if (is_running && !was_running)
        derive_event(d, false, "Running", now->message);
    else if (was_running && !is_running)
        derive_event(d, false, "NotRunning", now->message);
}

static void set_deleted(struct derivation *d)
{
    struct condition ready = {"Ready", "False", STR("Deleted"), STR("the device has it no more")};
    struct condition delivered = {"Delivered", "False", STR("Deleted"), ready.message};
    set_state(d, STR("INVALID"));
    (void) json_remove(d->status, STR("addresses"));
    (void) derive_condition(d, &delivered);
    if (derive_condition(d, &ready))
        derive_event(d, false, "DeletedOnDevice", ready.message);
}

/* What was fetched tells more; this is for Applications that came another way, or back. */
static void note_on_device(struct derivation *d, const Eve__Info__ZInfoApp *m)
{
    const struct str reason = derive_condition_text(d->status, "Delivered", "reason");
    const struct str version = words_name(d->arena, m->appversion);
    struct condition c = {"Delivered", "True", STR("OnDevice"),
                          version.n ? arena_printf(d->arena, "version %.*s", STR_ARG(version))
                                    : STR_NONE};
    if (!reason.n || str_is(reason, "Deleted") || str_is(reason, "OnDevice"))
        (void) derive_condition(d, &c);
}

void derive_app_delivery(struct derivation *d, const struct app_delivery *v)
{
    const struct json *generation = json_at(d->object, "metadata", "generation", NULL);
    const int64_t now = json_get_int(json_get(d->object, STR("metadata")), STR("generation"), 1);
    const bool has_it = v->generation == APP_GENERATION_ANY || v->generation == now;
    struct condition c = {"Delivered", "True", STR("Fetched"), STR_NONE};
    if (!has_it) {
        c.status = "False";
        c.reason = STR("Outdated");
        c.message = STR("the device has not fetched it as it is now");
    }
    if (v->is_current && !v->generation) {
        c.reason = STR("NotInConfiguration");
        c.message = STR("the device has its newest configuration, which does not have it");
    }
    /* Of one that never was delivered there is nothing to take back. */
    if (!has_it && !v->is_current && !derive_find_condition(d->status, "Delivered"))
        return;
    (void) derive_condition(d, &c);
    struct json *told = derive_find_condition(d->status, "Delivered");
    if (generation)
        (void) json_set(d->arena, told, STR("observedGeneration"), *generation);
}

void derive_application(struct derivation *d, const Eve__Info__ZInfoApp *m)
{
    if (is_deleted(m)) {
        set_deleted(d);
        return;
    }
    struct str state = words_enum(d->arena, &eve__info__zsw_state__descriptor, (int) m->state);
    set_state(d, state);
    set_addresses(d, m);
    note_on_device(d, m);
    struct condition before = {.reason = derive_condition_text(d->status, "Ready", "reason"),
                               .message = derive_condition_text(d->status, "Ready", "message")};
    struct condition c = judge(d, m, state);
    if (derive_condition(d, &c))
        tell(d, m, &c, &before);
}
