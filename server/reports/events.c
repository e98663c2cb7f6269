/* SPDX-License-Identifier: Apache-2.0 */
/* What a device may cause to be told about objects: bounded, whatever it reports. */
#include "api/event_record.h"
#include "base/log.h"
#include "reports/reports_internal.h"

static bool may_cause(struct reports *r, struct contact *c)
{
    int64_t now_us = reports_mono_us(r);
    int64_t n_new = (now_us - c->event_tokens_at_us) / REPORTS_EVENT_EVERY_US;
    if (n_new > 0) {
        c->n_event_tokens =
            (unsigned) MIN((int64_t) REPORTS_EVENT_BURST, (int64_t) c->n_event_tokens + n_new);
        c->event_tokens_at_us += n_new * REPORTS_EVENT_EVERY_US;
    }
    if (!c->n_event_tokens)
        return false;
    c->n_event_tokens--;
    return true;
}

static struct event_subject subject_of(const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    return (struct event_subject){.api_version = json_get_str(object, STR("apiVersion")),
                                  .kind = json_get_str(object, STR("kind")),
                                  .namespace = json_get_str(meta, STR("namespace")),
                                  .name = json_get_str(meta, STR("name")),
                                  .uid = json_get_str(meta, STR("uid"))};
}

void events_tell(struct reports *r, struct contact *cause, const struct json *object,
                 const struct derived_event *e)
{
    if (!may_cause(r, cause)) {
        (void) atomic_fetch_add_explicit(&r->counters.n_events_shed, 1, memory_order_relaxed);
        return;
    }
    struct event_notice n = {.about = subject_of(object),
                             .is_warning = e->is_warning,
                             .reason = e->reason,
                             .message = e->message,
                             .key = e->key};
    int result = event_record(r->client, r->clock, &n);
    if (result == 0)
        (void) atomic_fetch_add_explicit(&r->counters.n_events, 1, memory_order_relaxed);
    else
        log_debug("event not written", LOG_TEXT("reason", e->reason), LOG_ERRNO(result));
}
