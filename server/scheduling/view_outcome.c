/* SPDX-License-Identifier: Apache-2.0 */
/* What Applications are told of the choice. */
#include <inttypes.h>

#include "controllers/conditions.h"
#include "scheduling/view_internal.h"

/* ---- words ----------------------------------------------------------------------------------- */

static const struct {
    const char *reason, *words;
} refusal_words[] = {
    [REFUSAL_SELECTOR] = {"NoMatchingDevice", "didn't match its nodeSelector or nodeAffinity"},
    [REFUSAL_LEAVING] = {"NoActiveDevice", "being deleted"},
    [REFUSAL_INACTIVE] = {"NoActiveDevice", "not active"},
    [REFUSAL_NETWORK] = {"MissingNetwork", "without its networks"},
    [REFUSAL_VOLUME] = {"VolumeElsewhere", "without the volumes it claims"},
    [REFUSAL_MEMORY] = {"InsufficientResources", "with insufficient memory"},
    [REFUSAL_CPU] = {"InsufficientResources", "with insufficient cpu"},
};

static void add_demand(struct buf *b, const struct demand *d)
{
    const bool is_mebi = d->memory_kib % 1024 == 0;
    buf_printf(b, " It asks for %" PRId64 "%s of memory and %" PRId64 " cpu.",
               is_mebi ? d->memory_kib / 1024 : d->memory_kib, is_mebi ? "Mi" : "Ki",
               d->cpu_milli / 1000);
}

static struct str refusal_message(struct arena *a, const struct wish *w)
{
    BUF_AUTO b = {0};
    const char *divider = ": ";
    buf_printf(&b, "0/%" PRIu32 " devices are available", w->tenant->present.n);
    for (int i = 0; i < REFUSALS; i++)
        if (w->refused[i]) {
            buf_printf(&b, "%s%" PRIu32 " %s", divider, w->refused[i], refusal_words[i].words);
            divider = ", ";
        }
    buf_append_char(&b, '.');
    if (w->refused[REFUSAL_MEMORY] || w->refused[REFUSAL_CPU])
        add_demand(&b, &w->demand);
    return arena_str(a, buf_str(&b));
}

/* That of the device which came closest. */
static struct str refusal_reason(const struct wish *w)
{
    for (int i = REFUSALS; i-- > 0;)
        if (w->refused[i])
            return str_of(refusal_words[i].reason);
    return str_of(refusal_words[REFUSAL_SELECTOR].reason);
}

struct view_outcome view_choice_outcome(struct arena *a, const struct application *app)
{
    struct view_outcome o = {.is_accepted = !app->fault,
                             .fault = app->fault ? str_of(app->fault) : STR(""),
                             .device = STR("")};
    if (app->device) {
        o.is_placed = true;
        o.device = arena_str(a, app->device->name);
        o.reason = STR("Scheduled");
        o.message = arena_printf(a, "assigned to device '%.*s'", STR_ARG(o.device));
    } else if (app->fault) {
        o.reason = STR("NotAccepted");
        o.message = o.fault;
    } else {
        o.reason = refusal_reason(app->wish);
        o.message = refusal_message(a, app->wish);
    }
    return o;
}

/* ---- whether it is said already -------------------------------------------------------------- */

static uint64_t hash_of(const struct str *parts, size_t n)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < n; i++) {
        buf_append_str(&b, parts[i]);
        buf_append_char(&b, '\n');
    }
    return map_hash(buf_str(&b));
}

static struct str truth(bool is_true)
{
    return is_true ? STR("True") : STR("False");
}

uint64_t view_outcome_hash(const struct view_outcome *o)
{
    const struct str parts[] = {
        o->device,  truth(o->is_accepted), o->fault, truth(o->is_placed), o->reason,
        o->message, STR("observed")};
    return hash_of(parts, N_ELEMENTS(parts));
}

uint64_t view_outcome_hash_of(const struct json *object)
{
    const struct json *status = json_get(object, STR("status"));
    struct json *conditions = json_get(status, STR("conditions"));
    const struct json *accepted = conditions_find(conditions, "Accepted"),
                      *scheduled = conditions_find(conditions, "Scheduled");
    const bool is_observed = json_get_int(status, STR("observedGeneration"), -1) ==
                             json_get_int(json_get(object, STR("metadata")), STR("generation"), 0);
    const struct str parts[] = {
        json_get_str(status, STR("device")),    json_get_str(accepted, STR("status")),
        json_get_str(accepted, STR("message")), json_get_str(scheduled, STR("status")),
        json_get_str(scheduled, STR("reason")), json_get_str(scheduled, STR("message")),
        is_observed ? STR("observed") : STR("")};
    return hash_of(parts, N_ELEMENTS(parts));
}
