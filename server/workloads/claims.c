/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/claims.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "workloads/children.h"
#include "workloads/names.h"

static const struct json *templates_of(const struct run *run)
{
    return json_get(run->spec, STR("volumeClaimTemplates"));
}

static struct str claim_name(struct run *run, const struct json *template, int64_t ordinal)
{
    return names_fit(run->arena, arena_printf(run->arena, "%.*s-%.*s-%" PRId64,
                                              STR_ARG(object_meta_text(template, "name")),
                                              STR_ARG(run->at.name), ordinal));
}

static struct object_place place_of(struct run *run, struct str name)
{
    return (struct object_place){
        registry_find(run->kinds, STR(""), STR("v1"), STR("persistentvolumeclaims")),
        run->at.namespace, name};
}

static bool does_delete(const struct run *run, const char *when)
{
    return str_is(json_str(json_at(run->spec, "persistentVolumeClaimRetentionPolicy", when, NULL)),
                  "Delete");
}

static struct json set_reference(struct run *run)
{
    struct json r = children_reference(run);
    (void) json_remove(&r, STR("controller"));
    return r;
}

/* Written by us, for one of the Applications. */
static bool is_of_application(const struct run *run, const struct json *reference)
{
    return str_is(json_get_str(reference, STR("kind")), "Application") &&
           workload_ordinal(run->at.name, json_get_str(reference, STR("name"))) >= 0;
}

/* Written by us, for the set or one of its Applications. */
static bool is_by_policy(const struct run *run, const struct json *reference)
{
    return is_of_application(run, reference) ||
           (str_is(json_get_str(reference, STR("kind")), workload_kinds[run->kind].kind) &&
            str_eq(json_get_str(reference, STR("name")), run->at.name));
}

/* ---- making -------------------------------------------------------------------------------- */

/* It goes with an Application that is gone: the next of the number has to wait for that. */
static bool is_stale(const struct run *run, const struct json *claim)
{
    JSON_FOR_EACH_ITEM (object_meta_at(claim, "ownerReferences"), reference)
        if (is_of_application(run, reference))
            return true;
    return object_is_deleting(claim);
}

/* Labels of the set's selector tell whose they are, as in apps/v1. */
static struct json claim_labels(struct run *run, const struct json *template)
{
    const struct json *given = object_meta_at(template, "labels");
    struct json labels = given ? json_clone(run->arena, given) : json_object();
    JSON_FOR_EACH_MEMBER (json_at(run->spec, "selector", "matchLabels", NULL), m)
        (void) json_set(run->arena, &labels, json_str(&m->key), m->value);
    return labels;
}

static struct json *claim_draft(struct run *run, const struct json *template, struct str name)
{
    struct arena *a = run->arena;
    struct json *draft = json_new(a, json_object());
    struct json meta = json_object(), owners = json_array();
    const struct json *annotations = object_meta_at(template, "annotations"),
                      *spec = json_get(template, STR("spec"));
    (void) json_append_member(a, &meta, STR("name"), json_string(name));
    (void) json_append_member(a, &meta, STR("namespace"), json_string(run->at.namespace));
    (void) json_append_member(a, &meta, STR("labels"), claim_labels(run, template));
    if (json_count(annotations))
        (void) json_append_member(a, &meta, STR("annotations"), json_clone(a, annotations));
    if (does_delete(run, "whenDeleted")) {
        (void) json_push(a, &owners, set_reference(run));
        (void) json_append_member(a, &meta, STR("ownerReferences"), owners);
    }
    (void) json_append_member(a, draft, STR("apiVersion"), json_string(STR("v1")));
    (void) json_append_member(a, draft, STR("kind"), json_string(STR("PersistentVolumeClaim")));
    (void) json_append_member(a, draft, STR("metadata"), meta);
    (void) json_append_member(a, draft, STR("spec"), spec ? json_clone(a, spec) : json_object());
    return draft;
}

static int make_one(struct run *run, const struct json *template, int64_t ordinal)
{
    const struct object_place at = place_of(run, claim_name(run, template, ordinal));
    struct status st;
    struct json *there = NULL;
    status_init(&st, run->arena);
    int r = objects_get(run->ctx, run->arena, &at, &there);
    if (r == 0)
        return is_stale(run, there) ? -EAGAIN : 0;
    if (r != -ENOENT)
        return r;
    struct kube_request request = {.verb = VERB_CREATE,
                                   .group = at.kind->group,
                                   .version = at.kind->version,
                                   .resource = at.kind->plural,
                                   .namespace = at.namespace,
                                   .body = claim_draft(run, template, at.name)};
    r = kube_request(run->ctx->client, run->arena, &request, NULL, &st);
    if (r == -EEXIST)
        return 0;
    if (r < 0)
        run->failure = st.message.n ? st.message : str_of(log_errno_text(r));
    return r;
}

int claims_make(struct run *run, int64_t ordinal)
{
    int r = 0;
    JSON_FOR_EACH_ITEM (templates_of(run), template) {
        r = make_one(run, template, ordinal);
        if (r < 0)
            break;
    }
    return r;
}

static struct json volume_of(struct run *run, const struct json *template, int64_t ordinal)
{
    struct json volume = json_object(), claim = json_object();
    (void) json_append_member(run->arena, &claim, STR("claimName"),
                              json_string(claim_name(run, template, ordinal)));
    (void) json_append_member(run->arena, &volume, STR("name"),
                              json_string(object_meta_text(template, "name")));
    (void) json_append_member(run->arena, &volume, STR("persistentVolumeClaim"), claim);
    return volume;
}

void claims_mount(struct run *run, int64_t ordinal, struct json *draft)
{
    struct json *spec = json_get(draft, STR("spec"));
    struct json volumes = json_array();
    if (!json_count(templates_of(run)))
        return;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("volumes")), volume) {
        bool is_claimed = false;
        JSON_FOR_EACH_ITEM (templates_of(run), template)
            is_claimed |=
                str_eq(json_get_str(volume, STR("name")), object_meta_text(template, "name"));
        if (!is_claimed)
            (void) json_push(run->arena, &volumes, *volume);
    }
    JSON_FOR_EACH_ITEM (templates_of(run), template)
        (void) json_push(run->arena, &volumes, volume_of(run, template, ordinal));
    (void) json_set(run->arena, spec, STR("volumes"), volumes);
}

/* ---- owners -------------------------------------------------------------------------------- */

static struct json application_reference(struct run *run, const struct index_application *app)
{
    struct json r = json_object();
    (void) json_append_member(run->arena, &r, STR("apiVersion"),
                              json_string(STR(WORKLOAD_API_VERSION)));
    (void) json_append_member(run->arena, &r, STR("kind"), json_string(STR("Application")));
    (void) json_append_member(run->arena, &r, STR("name"), json_string(app->name));
    (void) json_append_member(run->arena, &r, STR("uid"), json_string(app->uid));
    (void) json_append_member(run->arena, &r, STR("blockOwnerDeletion"), json_bool(true));
    return r;
}

/* Objects stay as long as one of their owners is there: only one is named. */
static struct json references_for(struct run *run, const struct json *claim,
                                  const struct index_application *app)
{
    struct json references = json_array();
    JSON_FOR_EACH_ITEM (object_meta_at(claim, "ownerReferences"), reference)
        if (!is_by_policy(run, reference))
            (void) json_push(run->arena, &references, *reference);
    if (app && does_delete(run, "whenScaled"))
        (void) json_push(run->arena, &references, application_reference(run, app));
    else if (does_delete(run, "whenDeleted"))
        (void) json_push(run->arena, &references, set_reference(run));
    return references;
}

static int set_owners_of(struct run *run, const struct object_place *at,
                         const struct index_application *app)
{
    struct json *claim = NULL;
    const struct json none = json_array();
    int r = objects_get(run->ctx, run->arena, at, &claim);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const struct json *there = object_meta_at(claim, "ownerReferences");
    const struct json wanted = references_for(run, claim, app);
    if (json_equal(there ? there : &none, &wanted))
        return 0;
    r = objects_patch_metadata(run->ctx, run->arena, at, claim, "ownerReferences", wanted);
    return r == -ENOENT ? 0 : r;
}

int claims_set_owners(struct run *run, int64_t ordinal, const struct index_application *app)
{
    int r = 0;
    JSON_FOR_EACH_ITEM (templates_of(run), template) {
        const struct object_place at = place_of(run, claim_name(run, template, ordinal));
        r = set_owners_of(run, &at, app);
        if (r < 0)
            break;
    }
    return r;
}
