/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/revisions.h"

#include <errno.h>
#include <inttypes.h>

#include "workloads/children.h"
#include "workloads/names.h"

/* The name of a revision that is taken by another template is an accident; this many are none. */
#define MAX_COLLISIONS 16

static struct object_place place_of(struct run *run, struct str name)
{
    return (struct object_place){
        registry_find(run->kinds, STR("apps"), STR("v1"), STR("controllerrevisions")),
        run->at.namespace, name};
}

const struct index_revision *revisions_by_name(const struct run *run, struct str name)
{
    for (size_t i = 0; i < run->view.n_revisions; i++)
        if (str_eq(run->view.revisions[i].name, name))
            return &run->view.revisions[i];
    return NULL;
}

const struct index_revision *revisions_by_hash(const struct run *run, struct str hash)
{
    for (size_t i = 0; i < run->view.n_revisions; i++)
        if (str_eq(run->view.revisions[i].hash, hash))
            return &run->view.revisions[i];
    return NULL;
}

/* The latest of the same template. */
static const struct index_revision *find_equal(const struct run *run, const unsigned char *digest)
{
    for (size_t i = run->view.n_revisions; i-- > 0;)
        if (memcmp(run->view.revisions[i].digest, digest, INDEX_DIGEST_BYTES) == 0)
            return &run->view.revisions[i];
    return NULL;
}

static int64_t highest(const struct run *run)
{
    return run->view.n_revisions ? run->view.revisions[run->view.n_revisions - 1].number : 0;
}

/* ---- making -------------------------------------------------------------------------------- */

static struct json *draft(struct run *run, struct str name, const char *hash)
{
    struct arena *a = run->arena;
    const struct json *labels = json_at(run->template, "metadata", "labels", NULL);
    struct json *o = json_new(a, json_object());
    struct json meta = json_object(), data = json_object(), spec = json_object(),
                owners = json_array();
    struct json own_labels = labels ? json_clone(a, labels) : json_object();
    (void) json_set(a, &own_labels, STR(WORKLOAD_LABEL_REVISION),
                    json_string(arena_str(a, str_of(hash))));
    (void) json_push(a, &owners, children_reference(run));
    (void) json_append_member(a, &meta, STR("name"), json_string(name));
    (void) json_append_member(a, &meta, STR("namespace"), json_string(run->at.namespace));
    (void) json_append_member(a, &meta, STR("labels"), own_labels);
    (void) json_append_member(a, &meta, STR("ownerReferences"), owners);
    (void) json_append_member(a, &spec, STR("template"), json_clone(a, run->template));
    (void) json_append_member(a, &data, STR("spec"), spec);
    (void) json_append_member(a, o, STR("apiVersion"), json_string(STR("apps/v1")));
    (void) json_append_member(a, o, STR("kind"), json_string(STR("ControllerRevision")));
    (void) json_append_member(a, o, STR("metadata"), meta);
    (void) json_append_member(a, o, STR("data"), data);
    (void) json_append_member(a, o, STR("revision"), json_int(highest(run) + 1));
    return o;
}

/* One of the name is there: ours, if its event is late or an answer was lost; an orphan of a former
 * owner of our name; or a template that happens to hash alike. -EEXIST in the last case. */
static int meet_namesake(struct run *run, const struct object_place *at,
                         const unsigned char *digest, struct json **ret)
{
    unsigned char other[INDEX_DIGEST_BYTES];
    int r = objects_get(run->ctx, run->arena, at, ret);
    if (r < 0)
        return r;
    const struct str controller = children_controller_uid(*ret);
    workload_index_digest(run->arena, json_at(*ret, "data", "spec", "template", NULL), other);
    if (memcmp(other, digest, sizeof(other)) != 0 ||
        (controller.n && !str_eq(controller, run->uid)))
        return -EEXIST;
    return controller.n ? 0 : children_adopt(run, at, ret);
}

static int create(struct run *run, const unsigned char *digest, struct json **ret)
{
    char hash[NAMES_HASH_BYTES];
    BUF_AUTO seed = {0};
    struct status st;
    status_init(&st, run->arena);
    buf_append(&seed, digest, INDEX_DIGEST_BYTES);
    if (run->n_collisions)
        buf_printf(&seed, "%" PRId64, run->n_collisions);
    names_hash(buf_str(&seed), hash);
    const struct str name =
        names_fit(run->arena, arena_printf(run->arena, "%.*s-%s", STR_ARG(run->at.name), hash));
    const struct object_place at = place_of(run, name);
    struct kube_request request = {.verb = VERB_CREATE,
                                   .group = at.kind->group,
                                   .version = at.kind->version,
                                   .resource = at.kind->plural,
                                   .namespace = at.namespace,
                                   .body = draft(run, name, hash)};
    int r = kube_request(run->ctx->client, run->arena, &request, ret, &st);
    return r == -EEXIST ? meet_namesake(run, &at, digest, ret) : r;
}

static int create_with_collisions(struct run *run, const unsigned char *digest)
{
    struct json *object = NULL;
    int r = create(run, digest, &object);
    for (int i = 0; r == -EEXIST && i < MAX_COLLISIONS; i++) {
        run->n_collisions++;
        r = create(run, digest, &object);
    }
    if (r < 0)
        return r;
    workload_index_learn_revision(run->ix, object);
    run->update = (struct index_revision){
        .name = object_meta_text(object, "name"),
        .uid = object_meta_text(object, "uid"),
        .hash = json_get_str(object_meta_at(object, "labels"), STR(WORKLOAD_LABEL_REVISION)),
        .number = json_get_int(object, STR("revision"), 0)};
    memcpy(run->update.digest, digest, INDEX_DIGEST_BYTES);
    run->has_update = true;
    run_refresh(run);
    return 0;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* A template that returns becomes the newest. */
static int renumber(struct run *run, const struct index_revision *revision)
{
    const struct object_place at = place_of(run, revision->name);
    struct json body = json_object(), *object = NULL;
    struct status st;
    status_init(&st, run->arena);
    (void) json_append_member(run->arena, &body, STR("revision"), json_int(highest(run) + 1));
    struct kube_request request = {.verb = VERB_PATCH,
                                   .group = at.kind->group,
                                   .version = at.kind->version,
                                   .resource = at.kind->plural,
                                   .namespace = at.namespace,
                                   .name = at.name,
                                   .content_type = STR("application/merge-patch+json"),
                                   .body = &body};
    int r = kube_request(run->ctx->client, run->arena, &request, &object, &st);
    if (r < 0)
        return r;
    workload_index_learn_revision(run->ix, object);
    run->update.number = highest(run) + 1;
    run_refresh(run);
    return 0;
}

int revisions_sync(struct run *run)
{
    unsigned char digest[INDEX_DIGEST_BYTES];
    workload_index_digest(run->arena, run->template, digest);
    const struct index_revision *equal = find_equal(run, digest);
    const bool may_roll = !run->behaviour->may_roll || run->behaviour->may_roll(run);
    run->n_collisions =
        json_get_int(json_get(run->object, STR("status")), STR("collisionCount"), 0);
    if (!equal)
        return may_roll ? create_with_collisions(run, digest) : 0;
    run->update = *equal;
    run->has_update = true;
    return may_roll && equal->number != highest(run) ? renumber(run, equal) : 0;
}

int revisions_template(struct run *run, const struct index_revision *revision,
                       const struct json **ret_template)
{
    const struct object_place at = place_of(run, revision->name);
    struct json *object = NULL;
    if (run->has_update && str_eq(revision->name, run->update.name)) {
        *ret_template = run->template;
        return 0;
    }
    int r = objects_get(run->ctx, run->arena, &at, &object);
    if (r < 0)
        return r;
    *ret_template = json_at(object, "data", "spec", "template", NULL);
    return *ret_template ? 0 : -EINVAL;
}

/* ---- forgetting ---------------------------------------------------------------------------- */

static bool is_used(const struct run *run, const struct index_revision *revision)
{
    const struct str current = json_str(json_at(run->object, "status", "currentRevision", NULL));
    if ((run->has_update && str_eq(revision->name, run->update.name)) ||
        str_eq(revision->name, current))
        return true;
    for (size_t i = 0; i < run->view.n_applications; i++)
        if (str_eq(run->view.applications[i].revision, revision->hash))
            return true;
    return false;
}

int revisions_trim(struct run *run)
{
    int64_t n_idle = 0;
    const int64_t limit = json_get_int(run->spec, STR("revisionHistoryLimit"), 10);
    /* Mostly there are fewer than that altogether. */
    if ((int64_t) run->view.n_revisions <= limit)
        return 0;
    bool *used = ARENA_ARRAY(run->arena, bool, run->view.n_revisions);
    for (size_t i = 0; i < run->view.n_revisions; i++) {
        used[i] = is_used(run, &run->view.revisions[i]);
        n_idle += !used[i];
    }
    for (size_t i = 0; i < run->view.n_revisions && n_idle > limit; i++) {
        if (used[i])
            continue;
        const struct object_place at = place_of(run, run->view.revisions[i].name);
        const struct delete_terms terms = {.uid = run->view.revisions[i].uid};
        int r = objects_delete(run->ctx, run->arena, &at, &terms);
        if (r < 0)
            return r;
        n_idle--;
    }
    return 0;
}
