/* SPDX-License-Identifier: Apache-2.0 */
#include "api/delete_options.h"

#include <errno.h>

#include "api/admission/admission.h"
#include "api/body.h"
#include "api/codec.h"

#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_ORPHAN "orphan"

/* ---- parsing ------------------------------------------------------------------------------ */

/* The body as an object; an empty one when there is none. */
static int parse_body(struct call *c, struct json **ret)
{
    struct json *value = NULL;
    *ret = json_new(c->arena, json_object());
    if (!c->in.body.n && !c->in.value)
        return 0;
    int r = body_document(
        c, protobuf_find(c->registry->protobuf, STR("meta.k8s.io/v1"), STR("DeleteOptions")),
        &value);
    if (r < 0 || value->type == JSON_NULL)
        return r;
    struct str kind = json_get_str(value, STR("kind"));
    struct str version = json_get_str(value, STR("apiVersion"));
    if (value->type != JSON_OBJECT || (kind.n && !str_is(kind, "DeleteOptions")))
        return status_bad_request(&c->status, "no kind \"%.*s\" is registered for version \"%.*s\"",
                                  STR_ARG(kind), STR_ARG(version));
    *ret = value;
    return 0;
}

static int parse_propagation(struct call *c, const struct json *body, enum propagation *ret)
{
    static const struct str names[] = {
        {"", 0}, {"Background", 10}, {"Foreground", 10}, {"Orphan", 6}};
    struct str policy = request_parameter(&c->in.query, "propagationPolicy");
    const struct json *orphan = json_get(body, STR("orphanDependents"));
    bool has_orphan = json_is(orphan, JSON_BOOL);
    policy = policy.n ? policy : json_get_str(body, STR("propagationPolicy"));
    struct causes causes;
    causes_init(&causes, c->arena);
    struct field_path at = FIELD_NAME(NULL, STR("propagationPolicy"));
    struct json value = json_string(policy.p ? policy : STR(""));
    if (policy.n && has_orphan)
        causes_add(&causes, CAUSE_INVALID, &at, &value,
                   "orphanDependents and deletionPropagation cannot be both set");
    *ret = !has_orphan ? PROPAGATION_DEFAULT
           : orphan->b ? PROPAGATION_ORPHAN
                       : PROPAGATION_BACKGROUND;
    bool known = !policy.n;
    for (size_t i = 1; i < N_ELEMENTS(names); i++) {
        if (str_eq(policy, names[i])) {
            *ret = (enum propagation) i;
            known = true;
        }
    }
    if (!known) {
        static const struct str supported[] = {
            {"Foreground", 10}, {"Background", 10}, {"Orphan", 6}, {"nil", 3}};
        causes_add_not_supported(&causes, &at, &value, supported, N_ELEMENTS(supported));
    }
    return causes.n ? status_invalid(&c->status, STR("meta.k8s.io"), STR("DeleteOptions"), STR(""),
                                     &causes)
                    : 0;
}

static int parse_dry_run(struct call *c, const struct json *body)
{
    struct str asked = request_parameter(&c->in.query, "dryRun");
    const struct json *list = json_get(body, STR("dryRun"));
    if (!asked.p && json_count(list))
        asked = json_str(&list->items[0]);
    c->is_dry_run = str_is(asked, "All");
    if (!asked.p || c->is_dry_run)
        return 0;
    static const struct str supported[] = {{"All", 3}};
    struct causes causes;
    causes_init(&causes, c->arena);
    struct json value = json_array();
    (void) json_push(c->arena, &value, json_string(asked));
    causes_add_not_supported(&causes, &FIELD_NAME(NULL, STR("dryRun")), &value, supported, 1);
    return status_invalid(&c->status, STR("meta.k8s.io"), STR("DeleteOptions"), STR(""), &causes);
}

/* The body with what the query says instead, as a DeleteOptions. */
static const struct json *document_of(struct call *c, const struct json *body)
{
    struct str policy = request_parameter(&c->in.query, "propagationPolicy"),
               grace = request_parameter(&c->in.query, "gracePeriodSeconds");
    struct json *o = json_new(c->arena, json_clone(c->arena, body));
    int64_t seconds = 0;
    (void) json_set(c->arena, o, STR("kind"), json_string(STR("DeleteOptions")));
    (void) json_set(c->arena, o, STR("apiVersion"), json_string(STR("meta.k8s.io/v1")));
    if (policy.n)
        (void) json_set(c->arena, o, STR("propagationPolicy"), json_string(policy));
    if (grace.n && str_to_i64(grace, &seconds) == 0)
        (void) json_set(c->arena, o, STR("gracePeriodSeconds"), json_int(seconds));
    if (c->is_dry_run) {
        struct json list = json_array();
        (void) json_push(c->arena, &list, json_string(STR("All")));
        (void) json_set(c->arena, o, STR("dryRun"), list);
    }
    return o;
}

int delete_options_parse(struct call *c, struct delete_options *ret)
{
    struct json *body = NULL;
    struct str grace = request_parameter(&c->in.query, "gracePeriodSeconds");
    int64_t seconds = 0;
    int r = parse_body(c, &body);
    if (r < 0)
        return r;
    if (grace.n && str_to_i64(grace, &seconds) < 0)
        return status_bad_request(&c->status, "strconv.ParseInt: parsing %.*s: invalid syntax",
                                  STR_ARG(status_quote(c->arena, grace)));
    r = parse_propagation(c, body, &ret->propagation);
    if (r == 0)
        r = parse_dry_run(c, body);
    const struct json *preconditions = json_get(body, STR("preconditions"));
    ret->uid = json_get_str(preconditions, STR("uid"));
    ret->revision = json_get_str(preconditions, STR("resourceVersion"));
    ret->document = document_of(c, body);
    return r;
}

/* ---- meaning ------------------------------------------------------------------------------ */

static int fail_precondition(struct call *c, struct str name, const char *what, struct str given,
                             struct str current, const char *perhaps)
{
    (void) status_fail(&c->status, 409, "Conflict",
                       "Operation cannot be fulfilled on %.*s \"%.*s\": the %s in the precondition "
                       "(%.*s) does not "
                       "match the %s in record (%.*s). The object might have been %s",
                       STR_ARG(c->kind->kind), STR_ARG(name), what, STR_ARG(given), what,
                       STR_ARG(current), perhaps);
    c->status.has_details = true;
    c->status.name = name;
    c->status.group = c->kind->group;
    c->status.kind = c->kind->kind;
    return -ESTALE;
}

static int check_preconditions(struct call *c, const struct delete_options *o,
                               const struct json *meta)
{
    struct str name = json_get_str(meta, STR("name"));
    struct str uid = json_get_str(meta, STR("uid")),
               revision = json_get_str(meta, STR("resourceVersion"));
    if (o->uid.n && !str_eq(o->uid, uid))
        return fail_precondition(c, name, "UID", o->uid, uid, "deleted and then recreated");
    if (o->revision.n && !str_eq(o->revision, revision))
        return fail_precondition(c, name, "ResourceVersion", o->revision, revision, "modified");
    return 0;
}

static bool has_finalizer(const struct json *finalizers, const char *name)
{
    JSON_FOR_EACH_ITEM (finalizers, f) {
        if (str_is(json_str(f), name))
            return true;
    }
    return false;
}

/* The finalizers a deletion leaves: the garbage collector's own two follow the policy, all others
 * stay. */
static struct json finalizers_for(struct call *c, enum propagation policy,
                                  const struct json *finalizers)
{
    bool orphan = policy == PROPAGATION_ORPHAN ||
                  (policy == PROPAGATION_DEFAULT && has_finalizer(finalizers, FINALIZER_ORPHAN));
    bool foreground =
        policy == PROPAGATION_FOREGROUND ||
        (policy == PROPAGATION_DEFAULT && has_finalizer(finalizers, FINALIZER_FOREGROUND));
    struct json kept = json_array();
    JSON_FOR_EACH_ITEM (finalizers, f) {
        if (!str_is(json_str(f), FINALIZER_ORPHAN) && !str_is(json_str(f), FINALIZER_FOREGROUND))
            (void) json_push(c->arena, &kept, *f);
    }
    if (orphan)
        (void) json_push(c->arena, &kept, json_string(STR(FINALIZER_ORPHAN)));
    if (foreground)
        (void) json_push(c->arena, &kept, json_string(STR(FINALIZER_FOREGROUND)));
    return kept;
}

static void mark(struct call *c, struct hook_context *h, struct json *object,
                 struct json finalizers)
{
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    if (!json_get(meta, STR("deletionTimestamp"))) {
        char now[CLOCK_SECONDS_BYTES];
        clock_format_seconds(h->now_us, now);
        (void) json_set(c->arena, meta, STR("deletionTimestamp"),
                        json_string(arena_str(c->arena, str_of(now))));
        (void) json_set(c->arena, meta, STR("deletionGracePeriodSeconds"), json_int(0));
        int64_t generation = json_get_int(meta, STR("generation"), 0);
        if (generation > 0)
            (void) json_set(c->arena, meta, STR("generation"), json_int(generation + 1));
    }
    if (json_count(&finalizers))
        (void) json_set(c->arena, meta, STR("finalizers"), finalizers);
    else
        (void) json_remove(meta, STR("finalizers"));
    if (c->kind->hooks && c->kind->hooks->prepare_delete)
        c->kind->hooks->prepare_delete(h, object);
}

int delete_plan(struct call *c, const struct delete_options *o, const struct json *object,
                struct json **ret_marked)
{
    struct hook_context h = call_hook_context(c, WRITE_UPDATE);
    const struct kind_hooks *hooks = c->kind->hooks;
    const struct json *meta = json_get(object, STR("metadata"));
    int r = check_preconditions(c, o, meta);
    if (r < 0)
        return r;
    struct str refusal = hooks && hooks->check_delete ? hooks->check_delete(&h, object) : STR_NONE;
    if (refusal.n)
        return status_forbidden(&c->status, c->kind, json_get_str(meta, STR("name")), "%.*s",
                                STR_ARG(refusal));

    const struct json *old_finalizers = json_get(meta, STR("finalizers"));
    struct json finalizers = finalizers_for(c, o->propagation, old_finalizers);
    bool must_stay =
        json_count(&finalizers) || (hooks && hooks->must_stay && hooks->must_stay(object));
    if (!must_stay)
        return DELETE_REMOVE;
    bool same = json_count(&finalizers) == json_count(old_finalizers) &&
                (!old_finalizers || json_equal(&finalizers, old_finalizers));
    if (json_get(meta, STR("deletionTimestamp")) && same)
        return DELETE_WAIT;
    struct json *marked = json_new(c->arena, json_clone(c->arena, object));
    mark(c, &h, marked, finalizers);
    *ret_marked = marked;
    return DELETE_MARK;
}

int delete_admit(struct call *c, const struct delete_options *o, const struct object *current,
                 const struct json *stored)
{
    bool is_stored = c->kind == registry_collection(c->registry, c->kind->collection);
    struct admission admission = {
        .call = c,
        .old = is_stored ? stored : codec_decode(c->arena, current, c->kind),
        .name = object_span(current, current->head.name),
        .options = o->document,
    };
    return admission_delete(&admission);
}
