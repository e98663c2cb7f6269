/* SPDX-License-Identifier: Apache-2.0 */
/* What runs, what else is installed, and how an update goes: the two partitions first, then images
 * that have none. */
#include "report/info.h"

#define MAX_IMAGES 16

/* By status and partition, what a user wants to know. */
static void set_installed(struct world *w, Eve__Info__ZInfoDevSW *s)
{
    const struct str partition = pb_text(s->partitionstate);
    if (str_is(partition, "active")) {
        s->userstatus =
            s->activated ? EVE__INFO__BASE_OS_STATUS__UPDATED : EVE__INFO__BASE_OS_STATUS__FALLBACK;
    } else if (str_is(partition, "updating")) {
        s->userstatus = EVE__INFO__BASE_OS_STATUS__UPDATING;
        s->substatus = EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_REBOOTING;
        s->substatusstr = make_text(w, STR("About to reboot"));
    } else if (str_is(partition, "inprogress") && s->activated) {
        const struct json *node = world_only(w, REPORT_NODEAGENT);
        s->userstatus = EVE__INFO__BASE_OS_STATUS__UPDATING;
        s->substatus = EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_TESTING;
        s->substatusprogress = (uint32_t) (NUMBER(node, "RemainingTestTime") / 1000000000);
        s->substatusstr = make_text(
            w, arena_printf(w->arena, "Testing for %u more seconds", s->substatusprogress));
    } else if (str_is(partition, "inprogress")) {
        s->userstatus = EVE__INFO__BASE_OS_STATUS__FAILED;
    }
}

static void set_downloading(struct world *w, Eve__Info__ZInfoDevSW *s, uint32_t percent)
{
    s->userstatus = EVE__INFO__BASE_OS_STATUS__DOWNLOADING;
    s->substatus = EVE__INFO__BASE_OS_SUB_STATUS__DOWNLOAD_INPROGRESS;
    s->substatusprogress = percent;
    s->substatusstr = make_text(w, arena_printf(w->arena, "Download %u%% done", percent));
}

static void set_delivered(struct world *w, Eve__Info__ZInfoDevSW *s, bool is_too_early)
{
    if (s->activated) {
        s->userstatus = EVE__INFO__BASE_OS_STATUS__DOWNLOAD_DONE;
        s->substatusstr = make_text(w, STR("Downloaded and verified"));
    } else if (is_too_early) {
        s->userstatus = EVE__INFO__BASE_OS_STATUS__UPDATING;
        s->substatus = EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_DEFERRED;
        s->substatusstr = make_text(w, STR("Waiting for the test of the current image to end"));
    }
}

static void set_user_status(struct world *w, Eve__Info__ZInfoDevSW *s, bool is_too_early)
{
    switch (s->status) {
    case EVE__INFO__ZSW_STATE__INITIAL:
        if (!*s->shortversion ||
            (str_is(pb_text(s->partitionstate), "unused") && pb_text(s->partitionlabel).n))
            break;
        s->userstatus = EVE__INFO__BASE_OS_STATUS__UPDATING;
        s->substatus = EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_INITIALIZING;
        s->substatusstr = make_text(w, STR("Initializing update"));
        break;
    case EVE__INFO__ZSW_STATE__DOWNLOAD_STARTED:
        set_downloading(w, s, s->downloadprogress);
        break;
    case EVE__INFO__ZSW_STATE__DOWNLOADED:
        if (s->activated)
            set_downloading(w, s, 100);
        break;
    case EVE__INFO__ZSW_STATE__DELIVERED:
        set_delivered(w, s, is_too_early);
        break;
    case EVE__INFO__ZSW_STATE__INSTALLED:
        set_installed(w, s);
        break;
    default:
        break;
    }
    if (s->swerr && pb_text(s->swerr->description).n)
        s->userstatus = EVE__INFO__BASE_OS_STATUS__FAILED;
}

static Eve__Info__ZInfoDevSW *from_base_os(struct world *w, const struct json *status)
{
    Eve__Info__ZInfoDevSW *s = MAKE(w, Eve__Info__ZInfoDevSW, eve__info__zinfo_dev_sw);
    const struct json *content =
        world_value(w, REPORT_CONTENT, json_get_str(status, STR("ContentTreeUUID")));
    s->activated = FLAG(status, "Activated");
    s->partitionlabel = TEXT(w, status, "PartitionLabel");
    s->partitiondevice = TEXT(w, status, "PartitionDevice");
    s->partitionstate = TEXT(w, status, "PartitionState");
    s->shortversion = TEXT(w, status, "BaseOsVersion");
    s->status = make_state((int64_t) NUMBER(status, "State"));
    s->downloadprogress = (uint32_t) NUMBER(content, "Progress");
    s->swerr = make_error(w, status);
    if (!*s->shortversion) {
        s->status = EVE__INFO__ZSW_STATE__INITIAL;
        s->downloadprogress = 0;
    }
    set_user_status(w, s, FLAG(status, "TooEarly"));
    return s;
}

static Eve__Info__ZInfoDevSW *from_partition(struct world *w, const struct json *status)
{
    Eve__Info__ZInfoDevSW *s = MAKE(w, Eve__Info__ZInfoDevSW, eve__info__zinfo_dev_sw);
    s->activated = FLAG(status, "CurrentPartition");
    s->partitionlabel = TEXT(w, status, "PartitionLabel");
    s->partitiondevice = TEXT(w, status, "PartitionDevname");
    s->partitionstate = TEXT(w, status, "PartitionState");
    s->shortversion = TEXT(w, status, "ShortVersion");
    s->longversion = TEXT(w, status, "LongVersion");
    s->status = *s->shortversion ? EVE__INFO__ZSW_STATE__INSTALLED : EVE__INFO__ZSW_STATE__INITIAL;
    s->downloadprogress = *s->shortversion ? 100 : 0;
    set_user_status(w, s, /* is_too_early= */ false);
    return s;
}

/* Where no image of EVE runs there is one system, and it runs. */
static Eve__Info__ZInfoDevSW *from_machine(struct world *w)
{
    Eve__Info__ZInfoDevSW *s = MAKE(w, Eve__Info__ZInfoDevSW, eve__info__zinfo_dev_sw);
    s->activated = true;
    s->partitionlabel = make_text(w, STR("IMGA"));
    s->partitionstate = make_text(w, STR("active"));
    s->shortversion = make_text(w, world_identity(w)->eve_version);
    s->status = EVE__INFO__ZSW_STATE__INSTALLED;
    s->downloadprogress = 100;
    set_user_status(w, s, /* is_too_early= */ false);
    return s;
}

static Eve__Info__ZInfoDevSW *make_partition(struct world *w, const struct json *partition)
{
    const struct str label = json_get_str(partition, STR("PartitionLabel"));
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_BASE_OS), m)
        if (str_eq(json_get_str(&m->value, STR("PartitionLabel")), label))
            return from_base_os(w, &m->value);
    return from_partition(w, partition);
}

void info_device_software(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct json *partitions = world_topic(w, REPORT_ZBOOT);
    /* The one that runs first. */
    for (int is_current = 1; is_current >= 0; is_current--)
        JSON_FOR_EACH_MEMBER (partitions, m)
            if (FLAG(&m->value, "CurrentPartition") == is_current && d->n_swlist < MAX_IMAGES)
                PUSH(w, d, swlist, make_partition(w, &m->value));
    if (!d->n_swlist)
        PUSH(w, d, swlist, from_machine(w));
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_BASE_OS), m)
        if (!json_get_str(&m->value, STR("PartitionLabel")).n && d->n_swlist < MAX_IMAGES)
            PUSH(w, d, swlist, from_base_os(w, &m->value));
}
