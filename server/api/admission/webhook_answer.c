/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a webhook's answer: warnings, audit annotations, a refusal. */
#include <errno.h>

#include "api/admission/webhooks_internal.h"

#define MAX_TEXT_BYTES 65536 /* of a refusal's message; the rest is cut off */

/* At most so many bytes, without half a character at the end. */
static struct str shorten(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char) s.p[max] & 0xc0) == 0x80)
        max--;
    return str_sub(s, 0, max);
}

/* ---- beside the judgement ----------------------------------------------------------------- */

void webhook_annotate(struct call *c, struct str key, struct str value)
{
    struct call_annotation **last = &c->annotations;
    for (; *last; last = &(*last)->next)
        if (str_eq((*last)->key, key))
            return; /* the first one stays, as in kube-apiserver */
    *last = ARENA_NEW(c->arena, struct call_annotation);
    (*last)->key = key;
    (*last)->value = value;
}

static size_t warning_bytes(const struct call *c)
{
    size_t n = 0;
    for (const struct call_warning *w = c->warnings; w; w = w->next)
        n += w->text.n;
    return n;
}

void webhook_answer_note(struct call *c, const struct webhook *h, const struct webhook_answer *w)
{
    size_t n_warnings = 0, n_annotations = 0;
    JSON_FOR_EACH_ITEM (w->warnings, warning) {
        struct str text = shorten(json_str(warning), WEBHOOK_MAX_WARNING_BYTES);
        if (n_warnings++ == WEBHOOK_MAX_WARNINGS ||
            warning_bytes(c) + text.n > WEBHOOK_MAX_WARNINGS_BYTES)
            break;
        call_warn(c, text);
    }
    JSON_FOR_EACH_MEMBER (w->annotations, m) {
        if (n_annotations++ == WEBHOOK_MAX_ANNOTATIONS ||
            m->key.n > WEBHOOK_MAX_ANNOTATION_KEY_BYTES)
            break;
        webhook_annotate(
            c, arena_printf(c->arena, "%.*s/%.*s", STR_ARG(h->name), STR_ARG(json_str(&m->key))),
            shorten(json_str(&m->value), WEBHOOK_MAX_ANNOTATION_BYTES));
    }
}

/* ---- refusals ----------------------------------------------------------------------------- */

static bool cause_type_of(struct str reason, enum cause_type *ret)
{
    for (int type = CAUSE_REQUIRED; type <= CAUSE_MANAGER_CONFLICT; type++) {
        if (str_eq(cause_reason((enum cause_type) type), reason)) {
            *ret = (enum cause_type) type;
            return true;
        }
    }
    return false;
}

static const struct cause *causes_of(struct arena *a, const struct json *list)
{
    struct cause *first = NULL, **last = &first;
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        enum cause_type type;
        if (!cause_type_of(json_get_str(item, STR("reason")), &type) || n++ == WEBHOOK_MAX_CAUSES)
            continue;
        *last = ARENA_NEW(a, struct cause);
        **last =
            (struct cause){.type = type,
                           .field = json_get_str(item, STR("field")),
                           .message = shorten(json_get_str(item, STR("message")), MAX_TEXT_BYTES)};
        last = &(*last)->next;
    }
    return first;
}

static void take_details(struct status *st, const struct json *details)
{
    if (!json_is(details, JSON_OBJECT))
        return;
    st->has_details = true;
    st->name = json_get_str(details, STR("name"));
    st->group = json_get_str(details, STR("group"));
    st->kind = json_get_str(details, STR("kind"));
    st->uid = json_get_str(details, STR("uid"));
    st->causes = causes_of(st->arena, json_get(details, STR("causes")));
    int64_t retry = json_get_int(details, STR("retryAfterSeconds"), 0);
    st->retry_after_s = retry > 0 && retry < INT32_MAX ? (int) retry : 0;
}

int webhook_answer_refuse(struct call *c, const struct webhook *h, const struct webhook_answer *w)
{
    struct status *st = &c->status;
    struct str name = status_quote(c->arena, h->name);
    struct str reason = shorten(json_get_str(w->status, STR("reason")), WEBHOOK_MAX_WARNING_BYTES),
               message = shorten(json_get_str(w->status, STR("message")), MAX_TEXT_BYTES);
    int64_t code = json_get_int(w->status, STR("code"), 0);
    struct str why = message.n ? message : reason;
    /* A refusal is no success, whatever the webhook calls it, and no number that HTTP lacks. */
    st->code = code < 400 || code > 599 ? 400 : (int) code;
    st->reason = reason.n ? reason : STR_NONE;
    st->message = why.n ? arena_printf(c->arena, "admission webhook %.*s denied the request: %.*s",
                                       STR_ARG(name), STR_ARG(why))
                        : arena_printf(c->arena,
                                       "admission webhook %.*s denied the request without "
                                       "explanation",
                                       STR_ARG(name));
    take_details(st, json_get(w->status, STR("details")));
    return -EPERM;
}
