/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

/* One that is going is told of by an event; this is for an event that was missed. */
#define GOING_US ((int64_t) 30 * 1000000)

static struct object_place place_of(struct run *run, struct str name)
{
    return (struct object_place){
        registry_find(run->kinds, STR(WORKLOAD_GROUP), STR("v1beta1"), STR("applications")),
        run->at.namespace, name};
}

bool children_is_open(int error)
{
    return error < 0 && error != -EPERM && error != -EINVAL && error != -EEXIST &&
           error != -ENOENT && error != -ESTALE && error != -ENOSPC;
}

/* ---- owners of objects --------------------------------------------------------------------- */

struct str children_controller_uid(const struct json *object)
{
    JSON_FOR_EACH_ITEM (object_meta_at(object, "ownerReferences"), reference)
        if (json_get_bool(reference, STR("controller"), false))
            return json_get_str(reference, STR("uid"));
    return STR_NONE;
}

struct json children_reference(struct run *run)
{
    struct json r = json_object();
    struct arena *a = run->arena;
    (void) json_append_member(a, &r, STR("apiVersion"), json_string(STR(WORKLOAD_API_VERSION)));
    (void) json_append_member(a, &r, STR("kind"),
                              json_string(str_of(workload_kinds[run->kind].kind)));
    (void) json_append_member(a, &r, STR("name"), json_string(run->at.name));
    (void) json_append_member(a, &r, STR("uid"), json_string(run->uid));
    (void) json_append_member(a, &r, STR("controller"), json_bool(true));
    (void) json_append_member(a, &r, STR("blockOwnerDeletion"), json_bool(true));
    return r;
}

static int write_owners(struct run *run, const struct object_place *at, struct json **object,
                        struct json references)
{
    struct json meta = json_object(), body = json_object();
    struct status st;
    status_init(&st, run->arena);
    (void) json_append_member(run->arena, &meta, STR("uid"), *object_meta_at(*object, "uid"));
    (void) json_append_member(run->arena, &meta, STR("resourceVersion"),
                              *object_meta_at(*object, "resourceVersion"));
    (void) json_append_member(run->arena, &meta, STR("ownerReferences"), references);
    (void) json_append_member(run->arena, &body, STR("metadata"), meta);
    struct kube_request r = objects_request(VERB_PATCH, at);
    r.content_type = STR("application/merge-patch+json");
    r.body = &body;
    return kube_request(run->ctx->client, run->arena, &r, object, &st);
}

int children_adopt(struct run *run, const struct object_place *at, struct json **object)
{
    struct json references = json_array();
    JSON_FOR_EACH_ITEM (object_meta_at(*object, "ownerReferences"), reference)
        (void) json_push(run->arena, &references, *reference);
    (void) json_push(run->arena, &references, children_reference(run));
    return write_owners(run, at, object, references);
}

static int release(struct run *run, const struct object_place *at, struct json **object)
{
    struct json references = json_array();
    JSON_FOR_EACH_ITEM (object_meta_at(*object, "ownerReferences"), reference)
        if (!str_eq(json_get_str(reference, STR("uid")), run->uid))
            (void) json_push(run->arena, &references, *reference);
    return write_owners(run, at, object, references);
}

/* ---- claiming ------------------------------------------------------------------------------ */

static int claim_one(struct run *run, const struct index_application *app, bool is_to_be_ours)
{
    const struct object_place at = place_of(run, app->name);
    struct json *object = NULL;
    int r = objects_get(run->ctx, run->arena, &at, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (!str_eq(object_meta_text(object, "uid"), app->uid) || object_is_deleting(object))
        return 0;
    const struct str controller = children_controller_uid(object);
    if (is_to_be_ours && !controller.n)
        r = children_adopt(run, &at, &object);
    else if (!is_to_be_ours && str_eq(controller, run->uid))
        r = release(run, &at, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    workload_index_learn_application(run->ix, object);
    return 0;
}

int children_claim(struct run *run)
{
    int r = 0;
    size_t n = 0;
    for (size_t i = 0; i < run->view.n_applications && r == 0; i++) {
        const struct index_application *app = &run->view.applications[i];
        if (app->is_ours || app->is_deleting)
            continue;
        n++;
        r = claim_one(run, app, /* is_to_be_ours= */ false);
    }
    for (size_t i = 0; i < run->view.n_candidates && r == 0; i++, n++)
        r = claim_one(run, &run->view.candidates[i], /* is_to_be_ours= */ true);
    if (n)
        run_refresh(run);
    return r;
}

/* ---- settling ------------------------------------------------------------------------------ */

static void gone_by_name(struct run *run, struct str name)
{
    for (size_t i = 0; i < run->view.n_applications; i++)
        if (str_eq(run->view.applications[i].name, name))
            workload_index_gone(run->ix, run->view.applications[i].uid);
}

static int look_at(struct run *run, struct str name)
{
    const struct object_place at = place_of(run, name);
    struct json *object = NULL, *again = NULL;
    int r = objects_get(run->ctx, run->arena, &at, &object);
    if (r == -ENOENT) {
        gone_by_name(run, name);
        return 0;
    }
    if (r < 0)
        return r;
    workload_index_found(run->ix, object);
    r = objects_get(run->ctx, run->arena, &at, &again);
    if (r < 0 && r != -ENOENT)
        return r;
    const struct str uid = object_meta_text(object, "uid");
    if (r == -ENOENT || !str_eq(uid, object_meta_text(again, "uid")))
        workload_index_gone(run->ix, uid);
    return 0;
}

int children_settle(struct run *run)
{
    size_t n = run->view.n_doubts;
    for (size_t i = 0; i < run->view.n_doubts; i++) {
        int r = look_at(run, run->view.doubts[i]);
        if (r < 0)
            return r;
    }
    if (n)
        workload_index_clear_doubts(run->ix, run->uid);
    for (size_t i = 0; i < run->view.n_applications; i++) {
        const struct index_application *app = &run->view.applications[i];
        if (!app->is_deleting)
            continue;
        run_again(run, GOING_US / 1000);
        if (run->now_us - app->deleted_us < GOING_US)
            continue;
        n++;
        int r = look_at(run, app->name);
        if (r < 0)
            return r;
    }
    if (n)
        run_refresh(run);
    return 0;
}

/* ---- making -------------------------------------------------------------------------------- */

struct json *children_draft(struct run *run, struct str name, const struct json *template,
                            struct str hash)
{
    struct arena *a = run->arena;
    const struct json *given = json_get(template, STR("metadata"));
    const struct json *labels = json_get(given, STR("labels")),
                      *annotations = json_get(given, STR("annotations")),
                      *spec = json_get(template, STR("spec"));
    struct json *draft = json_new(a, json_object());
    struct json meta = json_object(), owners = json_array();
    struct json own_labels = labels ? json_clone(a, labels) : json_object();
    (void) json_set(a, &own_labels, STR(WORKLOAD_LABEL_REVISION), json_string(hash));
    (void) json_push(a, &owners, children_reference(run));
    (void) json_append_member(a, &meta, STR("name"), json_string(name));
    (void) json_append_member(a, &meta, STR("namespace"), json_string(run->at.namespace));
    (void) json_append_member(a, &meta, STR("labels"), own_labels);
    if (json_count(annotations))
        (void) json_append_member(a, &meta, STR("annotations"), json_clone(a, annotations));
    (void) json_append_member(a, &meta, STR("ownerReferences"), owners);
    (void) json_append_member(a, draft, STR("apiVersion"), json_string(STR(WORKLOAD_API_VERSION)));
    (void) json_append_member(a, draft, STR("kind"), json_string(STR("Application")));
    (void) json_append_member(a, draft, STR("metadata"), meta);
    (void) json_append_member(a, draft, STR("spec"), spec ? json_clone(a, spec) : json_object());
    return draft;
}

static void note_created(struct run *run, struct str name)
{
    struct index_memory *m = &run->memory;
    m->n_created++;
    (void) snprintf(m->last_created, sizeof(m->last_created), "%.*s", STR_ARG(name));
}

/* One of the name is there: ours, if an answer was lost. */
static int meet_namesake(struct run *run, const struct object_place *at)
{
    struct json *object = NULL;
    int r = objects_get(run->ctx, run->arena, at, &object);
    if (r < 0)
        return r;
    if (!str_eq(children_controller_uid(object), run->uid)) {
        run->failure = arena_printf(run->arena,
                                    "the Application \"%.*s\" exists and is not of this "
                                    "%s",
                                    STR_ARG(at->name), workload_kinds[run->kind].kind);
        return -EEXIST;
    }
    return look_at(run, at->name);
}

int children_create(struct run *run, const struct json *draft)
{
    const struct object_place at = place_of(run, object_meta_text(draft, "name"));
    struct json *object = NULL;
    struct status st;
    if (!run_may_write(run))
        return 1;
    status_init(&st, run->arena);
    struct kube_request request = objects_request(VERB_CREATE, &at);
    request.name = STR_NONE;
    request.body = draft;
    int r = kube_request(run->ctx->client, run->arena, &request, &object, &st);
    if (r == -EEXIST)
        return meet_namesake(run, &at);
    if (children_is_open(r))
        workload_index_doubt(run->ix, run->uid, at.name);
    if (r < 0) {
        run->failure = st.message.n ? st.message : str_of(log_errno_text(r));
        return r;
    }
    workload_index_learn_application(run->ix, object);
    note_created(run, at.name);
    return 0;
}

/* ---- taking away --------------------------------------------------------------------------- */

static void note_deleted(struct run *run, struct str name)
{
    struct index_memory *m = &run->memory;
    m->n_deleted++;
    (void) snprintf(m->last_deleted, sizeof(m->last_deleted), "%.*s", STR_ARG(name));
}

static struct json delete_body(struct run *run, const struct index_application *app)
{
    struct json body = json_object(), preconditions = json_object();
    (void) json_append_member(run->arena, &preconditions, STR("uid"), json_string(app->uid));
    (void) json_append_member(run->arena, &body, STR("preconditions"), preconditions);
    return body;
}

int children_delete(struct run *run, const struct index_application *app)
{
    const struct object_place at = place_of(run, app->name);
    struct json *object = NULL;
    struct status st;
    if (!run_may_write(run))
        return 1;
    status_init(&st, run->arena);
    const struct json body = delete_body(run, app);
    struct kube_request request = objects_request(VERB_DELETE, &at);
    request.body = &body;
    int r = kube_request(run->ctx->client, run->arena, &request, &object, &st);
    /* A conflict: a namesake, perhaps, and this one gone. */
    if (children_is_open(r) || r == -ESTALE)
        workload_index_doubt(run->ix, run->uid, app->name);
    if (r < 0 && r != -ENOENT) {
        run->delete_failure = st.message.n ? st.message : str_of(log_errno_text(r));
        return r;
    }
    if (r == 0)
        note_deleted(run, app->name);
    if (r == 0 && json_count(object_meta_at(object, "finalizers")))
        workload_index_learn_application(run->ix, object);
    else
        workload_index_gone(run->ix, app->uid);
    return 0;
}

/* ---- judging ------------------------------------------------------------------------------- */

bool children_is_available(struct run *run, const struct index_application *app)
{
    const int64_t min_us = json_get_int(run->spec, STR("minReadySeconds"), 0) * 1000000;
    if (!app->is_ready || app->is_deleting)
        return false;
    const int64_t left_us = app->ready_since_us + min_us - run->now_us;
    if (min_us == 0 || left_us <= 0)
        return true;
    run_again(run, left_us / 1000 + 1);
    return false;
}

bool children_stands(struct run *run, const struct index_application *app)
{
    return children_is_available(run, app) || (app->is_offline && !app->is_deleting);
}

bool children_is_new(const struct run *run, const struct index_application *app)
{
    return run->has_update && str_eq(app->revision, run->update.hash);
}

static int to_delete(const void *a, const void *b)
{
    const struct index_application *x = *(struct index_application *const *) a,
                                   *y = *(struct index_application *const *) b;
    if (x->is_scheduled != y->is_scheduled)
        return x->is_scheduled ? 1 : -1;
    if (x->is_ready != y->is_ready)
        return x->is_ready ? 1 : -1;
    if (x->created_us != y->created_us)
        return x->created_us > y->created_us ? -1 : 1;
    return str_cmp(y->name, x->name);
}

void children_sort_to_delete(struct index_application **apps, size_t n)
{
    qsort(apps, n, sizeof(struct index_application *), to_delete);
}
