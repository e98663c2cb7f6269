/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoDevice.swList: which version runs, and how the way to the wanted one goes. The first entry
 * is the running partition, the second the other one, further ones are images without partition. */
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

#define MAX_ENTRIES 16

/* Percentages change all the time; tens are enough and are not written so often. */
static unsigned tens(uint32_t percent)
{
    return MIN(percent, 100u) / 10 * 10;
}

static const Eve__Info__ZInfoDevSW *find_version(const Eve__Info__ZInfoDevice *m,
                                                 struct str version)
{
    for (size_t i = 0; i < MIN(m->n_swlist, (size_t) MAX_ENTRIES); i++)
        if (str_eq(pb_text(m->swlist[i]->shortversion), version))
            return m->swlist[i];
    return NULL;
}

static struct str sub_status(struct arena *a, const Eve__Info__ZInfoDevSW *sw)
{
    struct str words = words_clean(a, pb_text(sw->substatusstr), WORDS_MAX_NAME);
    if (words.n)
        return words;
    switch (sw->substatus) {
    case EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_REBOOTING:
        return STR("rebooting into it");
    case EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_TESTING:
        return STR("runs and is being tested");
    case EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_DEFERRED:
        return STR("deferred by the device");
    default:
        return STR("being installed");
    }
}

/* The state of the wanted version's entry, when it does not run for good yet. */
static struct condition progress(struct arena *a, const Eve__Info__ZInfoDevSW *sw)
{
    struct condition c = {.type = "BaseOSUpdated", .status = "False"};
    if (words_is_fatal(sw->swerr) || sw->userstatus == EVE__INFO__BASE_OS_STATUS__FAILED) {
        c.reason = STR("Failed");
        c.message = words_has_error(sw->swerr)
                        ? words_error(a, sw->swerr)
                        : STR("the device went back to the version that ran before");
        return c;
    }
    switch (sw->userstatus) {
    case EVE__INFO__BASE_OS_STATUS__DOWNLOADING:
        c.reason = STR("Downloading");
        c.message =
            arena_printf(a, "%u %% downloaded",
                         tens(sw->downloadprogress ? sw->downloadprogress : sw->substatusprogress));
        break;
    case EVE__INFO__BASE_OS_STATUS__DOWNLOAD_DONE:
        c.reason = STR("Downloaded");
        break;
    case EVE__INFO__BASE_OS_STATUS__UPDATING:
        c.reason = STR("Updating");
        c.message = sub_status(a, sw);
        break;
    case EVE__INFO__BASE_OS_STATUS__FALLBACK:
        c.reason = STR("Fallback");
        c.message = STR("installed, but the device fell back to another version");
        break;
    default:
        c.reason = STR("Preparing");
    }
    return c;
}

static struct condition waiting(struct arena *a, struct str running, struct str target)
{
    return (struct condition){"BaseOSUpdated", "False", STR("Waiting"),
                              arena_printf(a, "%.*s runs; the device has not begun with %.*s",
                                           STR_ARG(running), STR_ARG(target))};
}

static struct condition judge(struct derivation *d, const Eve__Info__ZInfoDevice *m,
                              struct str running)
{
    struct arena *a = d->arena;
    struct str target = json_str(json_at(d->object, "spec", "eve-os-version", NULL));
    struct condition good = {"BaseOSUpdated", "True", STR("Updated"),
                             arena_printf(a, "%.*s runs", STR_ARG(running))};
    if (!target.n) {
        good.reason = STR("NoTarget");
        return good;
    }
    const Eve__Info__ZInfoDevSW *sw = find_version(m, target);
    /* A running partition that says nothing of updates is no update under way. */
    bool is_settled = sw && (sw->userstatus == EVE__INFO__BASE_OS_STATUS__UPDATED ||
                             sw->userstatus == EVE__INFO__BASE_OS_STATUS__NONE);
    if (is_settled && sw == m->swlist[0] && !words_is_fatal(sw->swerr))
        return good;
    if (sw)
        return progress(a, sw);
    return waiting(a, running, target);
}

void derive_base_os(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    if (!m->n_swlist)
        return;
    struct arena *a = d->arena;
    struct str running = words_name(a, m->swlist[0]->shortversion);
    struct str old = json_get_str(d->status, STR("eve-os-version"));
    if (running.n && !str_eq(old, running)) {
        if (old.n)
            derive_event(
                d, false, "BaseOSChanged",
                arena_printf(a, "%.*s runs, before it %.*s", STR_ARG(running), STR_ARG(old)));
        derive_text(a, d->status, "eve-os-version", running);
    }
    struct condition c = judge(d, m, running);
    if (derive_condition(d, &c) && str_is(c.reason, "Failed"))
        derive_event(d, true, "BaseOSUpdateFailed", c.message);
}

void derive_base_os_target(struct derivation *d)
{
    const struct str target = json_str(json_at(d->object, "spec", "eve-os-version", NULL));
    const struct str running = json_get_str(d->status, STR("eve-os-version"));
    const struct json *old = derive_find_condition(d->status, "BaseOSUpdated");
    const bool is_updated = str_is(json_get_str(old, STR("status")), "True");
    if (!old || !running.n || !is_updated)
        return;
    if (target.n && !str_eq(target, running)) {
        const struct condition c = waiting(d->arena, running, target);
        (void) derive_condition(d, &c);
    }
}
