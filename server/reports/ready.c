/* SPDX-License-Identifier: Apache-2.0 */
/* Condition Ready of a Device. True: it is in touch and says nothing against it. False: it is in
 * touch and says itself that it does not run applications now (maintenance, booting, on its way
 * down); an update of the base OS leaves it True, for applications run until the reboot. Unknown:
 * it was never seen, or not for three polls; devices never say that they are offline. */
#include "base/clock.h"
#include "reports/derive.h"
#include "reports/words.h"

/* Of maintenance mode, by number. */
static const char *const reason_words[] = {
    [1] = "requested by a user",  [2] = "the vault is locked",
    [3] = "low disk space",       [4] = "encryption with the TPM failed",
    [5] = "the TPM quote failed", [6] = "the device's certificates were refused",
};

static struct str maintenance_words(struct arena *a, uint16_t reasons)
{
    BUF_AUTO b = {0};
    buf_printf(&b, "maintenance mode");
    for (unsigned i = 1; i < 16; i++) {
        if (!(reasons & (1u << i)))
            continue;
        buf_printf(&b, "%s", reasons & ((1u << i) - 1) ? ", " : ": ");
        if (i < N_ELEMENTS(reason_words))
            buf_printf(&b, "%s", reason_words[i]);
        else
            buf_printf(&b, "reason %u", i);
    }
    return arena_str(a, buf_str(&b));
}

static struct condition from_word(struct arena *a, const struct device_word *w)
{
    struct condition c = {.type = "Ready", .status = "False"};
    struct str name = words_enum(a, &eve__info__zdevice_state__descriptor, w->state);
    c.reason = words_reason(a, name, "ZDEVICE_STATE_");
    switch (w->state) {
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_MAINTENANCE_MODE:
        c.message = maintenance_words(a, w->reasons);
        return c;
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_REBOOTING:
        c.message = STR("the device is rebooting");
        return c;
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_BOOTING:
        c.message = STR("the device has no configuration yet");
        return c;
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_PREPARING_POWEROFF:
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_POWERING_OFF:
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_PREPARED_POWEROFF:
        c.message = STR("the device is being shut down");
        return c;
    case EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_BASEOS_UPDATING:
        c.message = STR("the base OS is being updated");
        break;
    default:
        c.reason = STR("Online");
    }
    c.status = "True";
    return c;
}

static struct condition judge(struct arena *a, const struct contact_view *v)
{
    if (v->contact == CONTACT_HEARD)
        return from_word(a, &v->word);
    if (v->contact == CONTACT_NEVER)
        return (struct condition){"Ready", "Unknown", STR("NeverSeen"),
                                  STR("the device has not been in touch yet")};
    struct str seen = v->last_seen_us ? words_stamp(a, v->last_seen_us) : STR("unknown");
    return (struct condition){"Ready", "Unknown", STR("Silent"),
                              arena_printf(a, "lastSeen: %.*s", STR_ARG(seen))};
}

void derive_ready(struct derivation *d, const struct contact_view *v)
{
    struct condition c = judge(d->arena, v);
    struct str old = derive_condition_text(d->status, "Ready", "status");
    if (!derive_condition(d, &c) || str_is(old, c.status))
        return;
    bool is_good = str_is(str_of(c.status), "True");
    if (!is_good && v->contact == CONTACT_NEVER)
        return;
    derive_event(d, !is_good, is_good ? "DeviceReady" : "DeviceNotReady",
                 c.message.n
                     ? arena_printf(d->arena, "%.*s: %.*s", STR_ARG(c.reason), STR_ARG(c.message))
                     : c.reason);
}

void derive_heartbeat(struct derivation *d, int64_t last_seen_us)
{
    struct json *ready = derive_find_condition(d->status, "Ready");
    struct str old = json_get_str(ready, STR("lastHeartbeatTime"));
    int64_t old_us = 0;
    if (!ready || !last_seen_us)
        return;
    bool is_old = !old.n || clock_parse(old, &old_us) < 0 ||
                  last_seen_us - old_us >= DERIVE_HEARTBEAT_US || last_seen_us < old_us;
    if (is_old || derivation_has_changed(d))
        (void) json_set(d->arena, ready, STR("lastHeartbeatTime"),
                        json_string(words_stamp(d->arena, last_seen_us)));
}
