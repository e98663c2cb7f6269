/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the configuration. A device acknowledges none: it asks again with the hash of what
 * it took over (received, perhaps refused in part), lists the settings it rejects, says which port
 * configuration it runs on, and in its metrics up to when it has worked in what it received. */
#include "base/clock.h"
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

#define MAX_ITEMS 1000 /* settings looked at */
#define MAX_PORTS 64

#define REJECTED "ItemsRejected"
#define FALLBACK "NetworkFallback"
#define PORT_ERROR "PortError"
#define MAINTENANCE "MaintenanceMode"
#define UPDATING "BaseOSUpdating"
#define IGNORED "Ignored"
#define NOT_YET "the device has not yet said that it worked it in"

/* A device works in what it fetched within moments; its metrics come once a minute. */
#define PROCESSING_US ((int64_t) 90 * 1000000)

static bool has_reason(const struct derivation *d, const char *type, const char *reason)
{
    return str_is(derive_condition_text(d->status, type, "reason"), reason);
}

/* ---- what the device says ------------------------------------------------------------------ */

static void add_item(struct arena *a, struct buf *b, const char *key, struct str words)
{
    if (b->n < WORDS_MAX_MESSAGE)
        buf_printf(b, "%s%.*s: %.*s", b->n ? "; " : "", STR_ARG(words_name(a, key)),
                   STR_ARG(words));
}

static struct str rejected_items(struct arena *a, const Eve__Info__ZInfoConfigItemStatus *s)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < MIN(s->n_configitems, (size_t) MAX_ITEMS); i++) {
        const Eve__Info__ZInfoConfigItem *item = s->configitems[i]->value;
        struct str words = item ? words_clean(a, pb_text(item->error), WORDS_MAX_NAME) : STR_NONE;
        if (words.n)
            add_item(a, &b, s->configitems[i]->key, words);
    }
    for (size_t i = 0; i < MIN(s->n_unknownconfigitems, (size_t) MAX_ITEMS); i++) {
        const Eve__Info__ZInfoConfigItem *item = s->unknownconfigitems[i]->value;
        struct str words = item ? words_clean(a, pb_text(item->error), WORDS_MAX_NAME) : STR_NONE;
        add_item(a, &b, s->unknownconfigitems[i]->key,
                 words.n ? words : STR("not known to the device"));
    }
    return words_clean(a, buf_str(&b), WORDS_MAX_MESSAGE);
}

static void judge_items(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct str rejected =
        m->configitemstatus ? rejected_items(d->arena, m->configitemstatus) : STR_NONE;
    struct condition c = {"ConfigAccepted", "False", STR(REJECTED), rejected};
    if (rejected.n) {
        if (derive_condition(d, &c))
            derive_event(d, true, "ConfigItemsRejected", rejected);
        return;
    }
    if (has_reason(d, "ConfigAccepted", REJECTED)) {
        c = (struct condition){"ConfigAccepted", "True", STR("Received"), STR_NONE};
        (void) derive_condition(d, &c);
    }
}

static struct str port_errors(struct arena *a, const Eve__Info__DevicePortStatus *s)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < MIN(s->n_ports, (size_t) MAX_PORTS); i++)
        if (words_is_fatal(s->ports[i]->err))
            add_item(a, &b, s->ports[i]->name, words_error(a, s->ports[i]->err));
    return words_clean(a, buf_str(&b), WORDS_MAX_MESSAGE);
}

static struct condition judge_ports(struct arena *a, const Eve__Info__SystemAdapterInfo *s)
{
    struct condition c = {.type = "ConfigApplied", .status = "False"};
    if (!s || !s->n_status)
        return c;
    if (s->currentindex > 0) {
        struct str words = words_clean(a, pb_text(s->status[0]->lasterror), WORDS_MAX_MESSAGE / 2);
        c.reason = STR(FALLBACK);
        c.message = arena_printf(a, "the newest port configuration does not work%s%.*s",
                                 words.n ? ": " : "", STR_ARG(words));
        return c;
    }
    c.message = port_errors(a, s->status[0]);
    c.reason = c.message.n ? STR(PORT_ERROR) : STR_NONE;
    return c;
}

/* What a device leaves undone while it is in maintenance mode or on its way to another version of
 * itself. */
static struct condition judge_state(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct condition c = {.type = "ConfigApplied", .status = "False"};
    const struct str update = derive_condition_text(d->status, "BaseOSUpdated", "reason");
    if (m->maintenance_mode ||
        m->state == EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_MAINTENANCE_MODE) {
        c.reason = STR(MAINTENANCE);
        c.message = STR("in maintenance mode a device takes over settings and commands alone");
    } else if (m->state == EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_BASEOS_UPDATING ||
               str_is(update, "Preparing") || str_is(update, "Downloading") ||
               str_is(update, "Downloaded") || str_is(update, "Updating")) {
        c.reason = STR(UPDATING);
        c.message = STR("applications and disks wait until the update of the base OS has ended");
    }
    return c;
}

/* The worst that it says; no reason: nothing. */
static struct condition judge_applied(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    const struct condition state = judge_state(d, m);
    if (str_is(state.reason, MAINTENANCE))
        return state;
    const struct condition ports = judge_ports(d->arena, m->systemadapter);
    return ports.reason.n ? ports : state;
}

void derive_config_word(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    judge_items(d, m);
    struct condition c = judge_applied(d, m);
    if (c.reason.n) {
        const bool is_error = str_is(c.reason, FALLBACK) || str_is(c.reason, PORT_ERROR);
        if (derive_condition(d, &c) && is_error)
            derive_event(d, true, str_is(c.reason, FALLBACK) ? FALLBACK : PORT_ERROR, c.message);
        return;
    }
    if (has_reason(d, "ConfigApplied", FALLBACK) || has_reason(d, "ConfigApplied", PORT_ERROR)) {
        c = (struct condition){"ConfigApplied", "True", STR("Processed"), STR_NONE};
        (void) derive_condition(d, &c);
    } else if (has_reason(d, "ConfigApplied", MAINTENANCE) ||
               has_reason(d, "ConfigApplied", UPDATING)) {
        c = (struct condition){"ConfigApplied", "Unknown", STR("Fetched"), STR(NOT_YET)};
        (void) derive_condition(d, &c);
    }
}

/* last_* are the times of configurations, or of taking them: either way the device is done when the
 * one has reached the other and what it was given. One that it does not get to it ignores, and says
 * no more about it. */
void derive_processed(struct derivation *d, int64_t received_us, int64_t processed_us)
{
    const struct json *given = json_get(d->status, STR("config"));
    const bool is_open =
        str_is(derive_condition_text(d->status, "ConfigApplied", "status"), "Unknown") ||
        has_reason(d, "ConfigApplied", IGNORED);
    int64_t rendered_us = 0, fetched_us = 0;
    if (!is_open || !processed_us)
        return;
    if (clock_parse(json_get_str(given, STR("renderedAt")), &rendered_us) < 0)
        rendered_us = 0;
    if (clock_parse(json_get_str(given, STR("fetchedAt")), &fetched_us) < 0)
        fetched_us = 0;
    struct condition c = {"ConfigApplied", "True", STR("Processed"), STR_NONE};
    if (processed_us < received_us || processed_us < rendered_us) {
        if (!rendered_us || !fetched_us || d->at_us - fetched_us < PROCESSING_US)
            return;
        c = (struct condition){
            "ConfigApplied", "False", STR(IGNORED),
            arena_printf(d->arena,
                         "the device fetched it and went on with that of %.*s: it cannot read the "
                         "new one, or has one that is newer",
                         STR_ARG(words_stamp(d->arena, processed_us)))};
    }
    if (derive_condition(d, &c) && str_is(c.reason, IGNORED))
        derive_event(d, true, "ConfigIgnored", c.message);
}

/* ---- what we see ---------------------------------------------------------------------------- */

static struct str version_text(struct arena *a, int64_t version)
{
    return version ? arena_printf(a, "%lld", (long long) version) : STR_NONE;
}

/* What the device itself says holds until it says otherwise, whatever it fetches meanwhile. */
static bool is_in_the_way(const struct derivation *d)
{
    static const char *const reasons[] = {MAINTENANCE, UPDATING, FALLBACK, PORT_ERROR};
    for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
        if (has_reason(d, "ConfigApplied", reasons[i]))
            return true;
    return false;
}

void derive_delivery(struct derivation *d, const struct delivery *v)
{
    struct arena *a = d->arena;
    struct json *config = json_ensure_object(a, d->status, STR("config"));
    bool is_new = !str_eq(json_get_str(config, STR("hash")), v->hash);
    if (is_new) {
        derive_text(a, config, "hash", v->hash);
        derive_text(a, config, "version", version_text(a, v->version));
        derive_text(a, config, "renderedAt",
                    v->rendered_s ? words_stamp(a, v->rendered_s * 1000000) : STR_NONE);
        derive_text(a, config, "fetchedAt", words_stamp(a, v->at_us));
        struct condition applied = {"ConfigApplied", "Unknown", STR("Fetched"), STR(NOT_YET)};
        if (!is_in_the_way(d))
            (void) derive_condition(d, &applied);
    }
    struct condition accepted = {"ConfigAccepted", "True", STR("Received"), STR_NONE};
    /* Asking again with the same hash does not take back what it rejected. */
    if (v->is_confirmed && (is_new || !has_reason(d, "ConfigAccepted", REJECTED)))
        (void) derive_condition(d, &accepted);
}

void derive_delivered(struct derivation *d, const struct delivery *v)
{
    struct str wanted = json_get_str(d->status, STR("hash"));
    bool is_current = !wanted.n || str_eq(wanted, v->hash);
    struct str version = version_text(d->arena, v->version);
    struct condition c = {"Delivered", is_current ? "True" : "False",
                          is_current ? STR("Fetched") : STR("Outdated"),
                          arena_printf(d->arena, "the device has version %.*s",
                                       STR_ARG(version.n ? version : v->hash))};
    (void) derive_condition(d, &c);
}

void derive_attested(struct derivation *d, bool is_good, struct str message)
{
    struct str words = words_clean(d->arena, message, WORDS_MAX_MESSAGE);
    struct condition c = {"Attested", is_good ? "True" : "False",
                          is_good ? STR("QuoteVerified") : STR("QuoteRefused"), words};
    if (derive_condition(d, &c))
        derive_event(d, !is_good, is_good ? "Attested" : "AttestationFailed",
                     words.n ? words : STR("the quote is good"));
}
