/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoVolume: how far a volume is, and how large. */
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

static bool is_deleted(const Eve__Info__ZInfoVolume *m)
{
    return m->state == EVE__INFO__ZSW_STATE__INVALID && !pb_text(m->displayname).n;
}

static struct condition judge(struct arena *a, const Eve__Info__ZInfoVolume *m, struct str state)
{
    struct condition c = {"Ready", "False", STR("Preparing"), state};
    if (words_is_fatal(m->volumeerr)) {
        c.reason = STR("DeviceError");
        c.message = words_error(a, m->volumeerr);
        return c;
    }
    if (m->state == EVE__INFO__ZSW_STATE__CREATED_VOLUME) {
        c = (struct condition){"Ready", "True", STR("Created"), STR_NONE};
    } else if (m->state == EVE__INFO__ZSW_STATE__ERROR) {
        c.reason = STR("Failed");
    } else if (m->progresspercentage) {
        c.message = arena_printf(a, "%.*s, %u %%", STR_ARG(state),
                                 MIN(m->progresspercentage, 100u) / 10 * 10);
    }
    if (words_has_error(m->volumeerr))
        c.message =
            arena_printf(a, "%.*s; %.*s", STR_ARG(state), STR_ARG(words_error(a, m->volumeerr)));
    return c;
}

void derive_volume(struct derivation *d, const Eve__Info__ZInfoVolume *m)
{
    struct arena *a = d->arena;
    if (is_deleted(m)) {
        struct condition gone = {"Ready", "False", STR("Deleted"),
                                 STR("the device has it no more")};
        derive_text(a, d->status, "state", STR("INVALID"));
        (void) derive_condition(d, &gone);
        return;
    }
    struct str state = words_enum(a, &eve__info__zsw_state__descriptor, (int) m->state);
    derive_text(a, d->status, "state", state);
    if (m->resources && m->resources->maxsizebytes) {
        struct json *capacity = json_ensure_object(a, d->status, STR("capacity"));
        (void) json_set(a, capacity, STR("storage"),
                        json_string(words_bytes(a, m->resources->maxsizebytes)));
    }
    struct condition c = judge(a, m, state);
    if (derive_condition(d, &c) && words_has_error(m->volumeerr))
        derive_event(d, true, "DeviceError", c.message);
}
