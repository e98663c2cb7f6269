/* SPDX-License-Identifier: Apache-2.0 */
/* Events in their two forms over one collection: core/v1 is stored, events.k8s.io/v1 is read and
 * written through the conversion below. Rules are written for the stored form, whose field names
 * kube-apiserver's messages use for both. */
#include "resources/checks.h"
#include "resources/resources.h"

#define INSTANCE_MAX_BYTES 128
#define ACTION_MAX_BYTES 128
#define REASON_MAX_BYTES 128
#define NOTE_MAX_BYTES 1024

/* ---- the two forms ------------------------------------------------------------------------ */

/* In the order of each form's fields. Those with a zero value are there even when nothing was said.
 */
struct field {
    const char *stored, *newer;
    enum { ZERO_ABSENT, ZERO_NULL, ZERO_STRING, ZERO_OBJECT } zero_stored, zero_newer;
};

static const struct field fields[] = {
    {"involvedObject", "regarding", ZERO_OBJECT, ZERO_OBJECT},
    {"reason", "reason", ZERO_ABSENT, ZERO_ABSENT},
    {"message", "note", ZERO_ABSENT, ZERO_ABSENT},
    {"source", "deprecatedSource", ZERO_OBJECT, ZERO_OBJECT},
    {"firstTimestamp", "deprecatedFirstTimestamp", ZERO_NULL, ZERO_NULL},
    {"lastTimestamp", "deprecatedLastTimestamp", ZERO_NULL, ZERO_NULL},
    {"count", "deprecatedCount", ZERO_ABSENT, ZERO_ABSENT},
    {"type", "type", ZERO_ABSENT, ZERO_ABSENT},
    {"eventTime", "eventTime", ZERO_NULL, ZERO_NULL},
    {"series", "series", ZERO_ABSENT, ZERO_ABSENT},
    {"action", "action", ZERO_ABSENT, ZERO_ABSENT},
    {"related", "related", ZERO_ABSENT, ZERO_ABSENT},
    {"reportingComponent", "reportingController", ZERO_STRING, ZERO_ABSENT},
    {"reportingInstance", "reportingInstance", ZERO_STRING, ZERO_ABSENT},
};

static bool is_zero(const struct json *v)
{
    return !v || v->type == JSON_NULL || (v->type == JSON_STRING && v->n == 0);
}

static void add_zero(struct arena *a, struct json *out, struct str name, int zero)
{
    if (zero == ZERO_NULL)
        (void) json_append_member(a, out, name, json_null());
    else if (zero == ZERO_STRING)
        (void) json_append_member(a, out, name, json_string(STR("")));
    else if (zero == ZERO_OBJECT)
        (void) json_append_member(a, out, name, json_object());
}

static void convert(struct arena *a, struct json *object, bool to_newer)
{
    static const char *const head[] = {"apiVersion", "kind", "metadata"};
    struct json out = json_object();
    for (size_t i = 0; i < N_ELEMENTS(head); i++) {
        const struct json *v = json_get(object, str_of(head[i]));
        if (v)
            (void) json_append_member(a, &out, str_of(head[i]), *v);
    }
    for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
        const struct field *f = &fields[i];
        const struct json *v = json_get(object, str_of(to_newer ? f->stored : f->newer));
        const struct str name = str_of(to_newer ? f->newer : f->stored);
        if (is_zero(v))
            add_zero(a, &out, name, (int) (to_newer ? f->zero_newer : f->zero_stored));
        else
            (void) json_append_member(a, &out, name, *v);
    }
    *object = out;
}

static void from_stored(struct arena *a, struct json *object)
{
    convert(a, object, /* to_newer= */ true);
}

static void to_stored(struct arena *a, struct json *object)
{
    convert(a, object, /* to_newer= */ false);
}

/* ---- rules of both ------------------------------------------------------------------------ */

static const struct json no_text = {.type = JSON_STRING, .s = ""};

static void check_length(struct causes *causes, const struct json *event, const char *member,
                         const char *shown_as, size_t max_bytes)
{
    if (json_get_str(event, str_of(member)).n > max_bytes)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, str_of(shown_as)), &no_text,
                   "can have at most %zu characters", max_bytes);
}

static void require_text(struct causes *causes, const struct json *event, const char *member,
                         const char *shown_as)
{
    if (json_get_str(event, str_of(member)).n == 0)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(NULL, str_of(shown_as)), NULL, "%s", "");
}

static void fail_namespace(struct causes *causes, struct str about)
{
    const struct field_path at = FIELD_NAME(NULL, STR("involvedObject"));
    const struct json value = shown(about);
    causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("namespace")), &value,
               "does not match event.namespace");
}

/* An event with a time was made by the newer form's rules. */
static void check_timed(struct causes *causes, const struct json *event, struct str namespace,
                        struct str about)
{
    const struct str controller = json_get_str(event, STR("reportingComponent"));
    if (about.n == 0 && !str_is(namespace, "default") && !str_is(namespace, "kube-system"))
        fail_namespace(causes, about);
    require_text(causes, event, "reportingComponent", "reportingController");
    const struct name_errors errors = name_qualified(causes->arena, controller);
    object_meta_add_errors(causes, &FIELD_NAME(NULL, STR("reportingController")), controller,
                           &errors);
    require_text(causes, event, "reportingInstance", "reportingInstance");
    check_length(causes, event, "reportingInstance", "reportingInstance", INSTANCE_MAX_BYTES);
    require_text(causes, event, "action", "action");
    check_length(causes, event, "action", "action", ACTION_MAX_BYTES);
    require_text(causes, event, "reason", "reason");
    check_length(causes, event, "reason", "reason", REASON_MAX_BYTES);
    check_length(causes, event, "message", "message", NOTE_MAX_BYTES);
}

static void check_legacy(struct causes *causes, const struct json *event)
{
    const struct str namespace = json_str(json_at(event, "metadata", "namespace", NULL));
    const struct str about = json_str(json_at(event, "involvedObject", "namespace", NULL));
    const bool is_timed = !is_zero(json_get(event, STR("eventTime")));
    if (is_timed)
        check_timed(causes, event, namespace, about);
    else if (about.n == 0 && namespace.n > 0 && !str_is(namespace, "default"))
        fail_namespace(causes, about);
    else if (about.n > 0 && !str_eq(namespace, about))
        fail_namespace(causes, about);
    const struct name_errors errors = name_subdomain(causes->arena, namespace);
    object_meta_add_errors(causes, &FIELD_NAME(NULL, STR("namespace")), namespace, &errors);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    check_legacy(causes, object);
}

static struct name_errors check_name(struct arena *a, struct str name, bool is_prefix)
{
    (void) is_prefix;
    return name_path_segment(a, name);
}

/* ---- rules of the newer form -------------------------------------------------------------- */

static void check_series(struct causes *causes, const struct json *event)
{
    const struct json *series = json_get(event, STR("series"));
    if (!json_is(series, JSON_OBJECT))
        return;
    if (json_get_int(series, STR("count"), 0) < 2)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("series.count")), &no_text,
                   "should be at least 2");
    if (is_zero(json_get(series, STR("lastObservedTime"))))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(NULL, STR("series.lastObservedTime")), NULL,
                   "%s", "");
}

static void refuse(struct causes *causes, const char *member, bool is_set)
{
    if (is_set)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, str_of(member)), &no_text,
                   "needs to be unset");
}

static void check_strict(struct causes *causes, const struct json *event)
{
    const struct str type = json_get_str(event, STR("type"));
    const struct json *source = json_get(event, STR("source"));
    check_series(causes, event);
    if (is_zero(json_get(event, STR("eventTime"))))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(NULL, STR("eventTime")), NULL, "%s", "");
    if (!str_is(type, "Normal") && !str_is(type, "Warning"))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("type")), &no_text,
                   "has invalid value: %.*s", STR_ARG(type));
    refuse(causes, "firstTimestamp", !is_zero(json_get(event, STR("firstTimestamp"))));
    refuse(causes, "lastTimestamp", !is_zero(json_get(event, STR("lastTimestamp"))));
    refuse(causes, "count", json_get_int(event, STR("count"), 0) != 0);
    refuse(causes, "source",
           json_get_str(source, STR("component")).n > 0 || json_get_str(source, STR("host")).n > 0);
}

static struct json stored_form(struct arena *a, const struct json *object)
{
    struct json event = json_clone(a, object);
    to_stored(a, &event);
    return event;
}

static void validate_newer(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct json event = stored_form(h->arena, object);
    check_legacy(causes, &event);
    if (h->operation == WRITE_CREATE)
        check_strict(causes, &event);
}

static void validate_newer_update(struct hook_context *h, const struct json *old,
                                  const struct json *object, struct causes *causes)
{
    static const struct {
        const char *member, *shown_as;
    } frozen[] = {
        {"involvedObject", "involvedObject"},
        {"reason", "reason"},
        {"message", "message"},
        {"source", "source"},
        {"firstTimestamp", "firstTimestamp"},
        {"lastTimestamp", "lastTimestamp"},
        {"count", "count"},
        {"reason", "reason"}, /* judged twice, as kube-apiserver does */
        {"type", "type"},
        {"eventTime", "eventTime"},
        {"action", "action"},
        {"related", "related"},
        {"reportingComponent", "reportingController"},
        {"reportingInstance", "reportingInstance"},
    };
    const struct json before = stored_form(h->arena, old), after = stored_form(h->arena, object);
    if (!same_member(&before, &after, STR("series")))
        check_series(causes, &after);
    for (size_t i = 0; i < N_ELEMENTS(frozen); i++) {
        const struct str member = str_of(frozen[i].member);
        object_meta_check_immutable(causes, &FIELD_NAME(NULL, str_of(frozen[i].shown_as)),
                                    json_get(&before, member), json_get(&after, member));
    }
}

const struct kind_hooks event_hooks = {
    .group = STR(""),
    .plural = STR("events"),
    .validate = validate,
    .check_name = check_name,
    .creates_on_update = true,
    .judges_meta_once = true,
};

const struct kind_hooks event_v1_hooks = {
    .group = STR("events.k8s.io"),
    .plural = STR("events"),
    .validate = validate_newer,
    .validate_update = validate_newer_update,
    .creates_on_update = true,
    .from_stored = from_stored,
    .to_stored = to_stored,
};
