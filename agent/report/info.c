/* SPDX-License-Identifier: Apache-2.0 */
/* Which message tells of what, and the small ones. */
#include "report/info.h"

#include "base/base64.h"

#define MAX_NTP_SOURCES 64

static const struct {
    Eve__Info__ZInfoTypes type;
    int topic; /* -1: none */
} kinds[KINDS] = {
    [KIND_DEVICE] = {EVE__INFO__ZINFO_TYPES__ZiDevice, -1},
    [KIND_APP] = {EVE__INFO__ZINFO_TYPES__ZiApp, REPORT_APP},
    [KIND_NETWORK_INSTANCE] = {EVE__INFO__ZINFO_TYPES__ZiNetworkInstance, REPORT_NETWORK_INSTANCE},
    [KIND_VOLUME] = {EVE__INFO__ZINFO_TYPES__ZiVolume, REPORT_VOLUME},
    [KIND_CONTENT] = {EVE__INFO__ZINFO_TYPES__ZiContentTree, REPORT_CONTENT},
    [KIND_BLOB] = {EVE__INFO__ZINFO_TYPES__ZiBlobList, REPORT_BLOB},
    [KIND_METADATA] = {EVE__INFO__ZINFO_TYPES__ZiAppInstMetaData, REPORT_METADATA},
    [KIND_HARDWARE] = {EVE__INFO__ZINFO_TYPES__ZiHardware, -1},
    [KIND_PATCH] = {EVE__INFO__ZINFO_TYPES__ZiPatchEnvelope, REPORT_PATCH},
    [KIND_EDGEVIEW] = {EVE__INFO__ZINFO_TYPES__ZiEdgeview, REPORT_EDGEVIEW},
    [KIND_LOCATION] = {EVE__INFO__ZINFO_TYPES__ZiLocation, REPORT_WWAN_LOCATION},
    [KIND_NTP] = {EVE__INFO__ZINFO_TYPES__ZiNTPSources, -1},
};

/* ---- the small ones ------------------------------------------------------------------------- */

/* What the application posted, as it is; without data it has been taken back. */
static Eve__Info__ZInfoAppInstMetaData *make_metadata(struct world *w, const struct json *value,
                                                      bool is_gone)
{
    Eve__Info__ZInfoAppInstMetaData *m =
        MAKE(w, Eve__Info__ZInfoAppInstMetaData, eve__info__zinfo_app_inst_meta_data);
    struct str data;
    m->uuid = TEXT(w, value, "AppInstUUID");
    m->type = (Eve__Info__AppInstMetaDataType) NUMBER(value, "Type");
    if (!is_gone && base64_decode(w->arena, json_get_str(value, STR("Data")), BASE64_STANDARD,
                                  &data, NULL) == 0)
        m->data = pb_data(data);
    return m;
}

static Eve__Info__ZInfoPatchEnvelope *make_patch(struct world *w, const struct json *value)
{
    Eve__Info__ZInfoPatchEnvelope *p =
        MAKE(w, Eve__Info__ZInfoPatchEnvelope, eve__info__zinfo_patch_envelope);
    p->name = TEXT(w, value, "Name");
    p->id = TEXT(w, value, "PatchID");
    p->version = TEXT(w, value, "Version");
    /* EVE's own numbers begin with the error, the API's with what is not known. */
    p->state = (Eve__Info__EVEPATCHENVELOPESTATE) (NUMBER(value, "State") + 1);
    p->n_errors = make_texts(w, json_get(value, STR("Errors")), NULL, &p->errors);
    JSON_FOR_EACH_ITEM (json_get(value, STR("BinaryBlobs")), blob)
        p->size += NUMBER(blob, "size");
    return p;
}

static Eve__Info__ZInfoEdgeview *make_edgeview(struct world *w, const struct json *value)
{
    Eve__Info__ZInfoEdgeview *e = MAKE(w, Eve__Info__ZInfoEdgeview, eve__info__zinfo_edgeview);
    e->expire_time = make_time(w, (int64_t) NUMBER(value, "ExpireOn") * 1000000);
    e->started_time = TIME(w, value, "StartedOn");
    e->count_dev = (uint32_t) NUMBER(value, "CmdCountDev");
    e->count_app = (uint32_t) NUMBER(value, "CmdCountApp");
    e->count_ext = (uint32_t) NUMBER(value, "CmdCountExt");
    return e;
}

static Eve__Info__LocReliability reliability(const struct json *value, const char *name)
{
    static const char *const words[] = {"", "very-low", "low", "medium", "high"};
    const struct str text = json_get_str(value, str_of(name));
    for (size_t i = 1; i < N_ELEMENTS(words); i++)
        if (str_is(text, words[i]))
            return (Eve__Info__LocReliability) i;
    return EVE__INFO__LOC_RELIABILITY__LOC_RELIABILITY_UNSPECIFIED;
}

static Eve__Info__ZInfoLocation *make_location(struct world *w, const struct json *value)
{
    Eve__Info__ZInfoLocation *l = MAKE(w, Eve__Info__ZInfoLocation, eve__info__zinfo_location);
    l->logicallabel = TEXT(w, value, "logical-label");
    l->latitude = make_double(value, STR("latitude"));
    l->longitude = make_double(value, STR("longitude"));
    l->altitude = make_double(value, STR("altitude"));
    l->utc_timestamp = make_time(w, (int64_t) NUMBER(value, "utc-timestamp") * 1000);
    l->horizontal_reliability = reliability(value, "hor-reliability");
    l->vertical_reliability = reliability(value, "vert-reliability");
    l->horizontal_uncertainty = (float) make_double(value, STR("hor-uncertainty"));
    l->vertical_uncertainty = (float) make_double(value, STR("vert-uncertainty"));
    return l;
}

static Eve__Info__NTPSourceState ntp_state(char letter)
{
    static const char letters[] = "*?x~+-";
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (Eve__Info__NTPSourceState) (at - letters + 1)
              : EVE__INFO__NTPSOURCE_STATE__NTP_SOURCE_STATE_UNSPECIFIED;
}

static Eve__Info__ZInfoNTPSources *make_ntp(struct world *w, const struct info_subject *s)
{
    Eve__Info__ZInfoNTPSources *all =
        MAKE(w, Eve__Info__ZInfoNTPSources, eve__info__zinfo_ntpsources);
    for (size_t i = 0; i < MIN(s->n_ntp_sources, (size_t) MAX_NTP_SOURCES); i++) {
        const struct ntp_source *from = &s->ntp_sources[i];
        Eve__Info__NTPSource *n = MAKE(w, Eve__Info__NTPSource, eve__info__ntpsource);
        n->mode = from->mode == '^'   ? EVE__INFO__NTPSOURCE_MODE__NTP_SOURCE_MODE_CLIENT
                  : from->mode == '=' ? EVE__INFO__NTPSOURCE_MODE__NTP_SOURCE_MODE_PEER
                                      : EVE__INFO__NTPSOURCE_MODE__NTP_SOURCE_MODE_REF;
        n->state = ntp_state(from->state);
        n->hostname = make_text(w, from->name);
        n->stratum = from->stratum;
        n->poll = from->poll;
        n->reachability = from->reach;
        n->reachable = from->reach & 1;
        n->offset = from->offset_s;
        PUSH(w, all, sources, n);
    }
    return all;
}

/* ---- the message ---------------------------------------------------------------------------- */

/* Content of a cluster that another node holds is that node's to report. */
static bool is_elsewhere(enum report_kind kind, const struct json *value)
{
    if (kind == KIND_CONTENT)
        return !json_get_bool(value, STR("IsLocal"), true);
    return kind == KIND_APP && FLAG(value, "NoUploadStatsToController");
}

static const struct json *find_patch(struct world *w, struct str id)
{
    JSON_FOR_EACH_ITEM (json_get(world_only(w, REPORT_PATCH_LIST), STR("Envelopes")), envelope)
        if (str_eq(json_get_str(envelope, STR("PatchID")), id))
            return envelope;
    return NULL;
}

/* A volume that is made anew has another key and the same UUID: that one is what there is. */
static const struct json *find_volume(struct world *w, struct str uuid)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_VOLUME), m)
        if (uuid.n && str_eq(json_get_str(&m->value, STR("VolumeID")), uuid))
            return &m->value;
    return NULL;
}

static const struct json *value_of(struct world *w, const struct info_subject *s)
{
    if (kinds[s->kind].topic < 0)
        return NULL;
    const struct json *value = world_value(w, (enum report_topic) kinds[s->kind].topic, s->key);
    if (!value && s->kind == KIND_PATCH)
        return find_patch(w, s->key);
    if (!value && s->kind == KIND_VOLUME)
        return find_volume(w, json_get_str(s->last, STR("VolumeID")));
    return value;
}

static void fill(struct world *w, Eve__Info__ZInfoMsg *m, const struct info_subject *s,
                 const struct json *value, bool is_gone)
{
#define SET(tag, member, made) \
    m->info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_##tag; \
    m->member = made; \
    break
    switch (s->kind) {
    case KIND_DEVICE:
        SET(DINFO, dinfo, info_device(w));
    case KIND_APP:
        SET(AINFO, ainfo, info_app(w, s->key, is_gone ? NULL : value));
    case KIND_NETWORK_INSTANCE:
        SET(NIINFO, niinfo, info_network_instance(w, value, is_gone));
    case KIND_VOLUME:
        SET(VINFO, vinfo, info_volume(w, value, is_gone));
    case KIND_CONTENT:
        SET(CINFO, cinfo, info_content(w, value, is_gone));
    case KIND_BLOB:
        SET(BINFO, binfo, info_blob(w, value, is_gone));
    case KIND_METADATA:
        SET(AMDINFO, amdinfo, make_metadata(w, value, is_gone));
    case KIND_HARDWARE:
        SET(HWINFO, hwinfo, info_hardware(w));
    case KIND_PATCH:
        SET(PATCH_INFO, patchinfo, make_patch(w, value));
    case KIND_EDGEVIEW:
        SET(EVINFO, evinfo, make_edgeview(w, value));
    case KIND_LOCATION:
        SET(LOCINFO, locinfo, make_location(w, value));
    case KIND_NTP:
        SET(NTP_SOURCES, ntp_sources, make_ntp(w, s));
    case KINDS:
        break;
    }
#undef SET
}

/* Of these there is no message that says they are gone. */
static bool has_no_end(enum report_kind kind)
{
    return kind == KIND_PATCH || kind == KIND_EDGEVIEW || kind == KIND_LOCATION;
}

Eve__Info__ZInfoMsg *info_make(struct world *w, const struct info_subject *s)
{
    const struct json *now = value_of(w, s);
    const struct json *value = now ? now : s->last;
    const bool is_gone = !now;
    if (kinds[s->kind].topic >= 0 &&
        (!value || is_elsewhere(s->kind, value) || (is_gone && has_no_end(s->kind))))
        return NULL;
    Eve__Info__ZInfoMsg *m = MAKE(w, Eve__Info__ZInfoMsg, eve__info__zinfo_msg);
    m->ztype = kinds[s->kind].type;
    m->devid = make_text(w, w->ground->device);
    m->attimestamp = make_time(w, w->now_us);
    fill(w, m, s, value, is_gone);
    return m;
}

struct str info_queue_key(struct world *w, const struct info_subject *s)
{
    const struct str device = w->ground->device;
    switch (s->kind) {
    case KIND_DEVICE:
        return device;
    case KIND_HARDWARE:
        return arena_printf(w->arena, "%.*shwinfo", STR_ARG(device));
    case KIND_LOCATION:
        return arena_printf(w->arena, "location:%.*s", STR_ARG(device));
    case KIND_NTP:
        return arena_printf(w->arena, "ntpsources:%.*s", STR_ARG(device));
    case KIND_METADATA:
        return arena_printf(w->arena, "appInstMetadataInfo:%.*s", STR_ARG(s->key));
    case KIND_EDGEVIEW:
        return STR("global");
    case KIND_VOLUME:
    case KIND_CONTENT: {
        /* `uuid#generation` of the topic: the controller knows the UUID. */
        const ptrdiff_t mark = str_find(s->key, '#');
        return mark < 0 ? s->key : str_sub(s->key, 0, (size_t) mark);
    }
    default:
        return s->key;
    }
}
