/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerRevisions in the index: of the template only its digest is kept. */
#include "base/alloc.h"
#include "pki/pki.h"
#include "workloads/index_internal.h"

static void sort_deeply(struct json *v)
{
    json_sort_members(v);
    JSON_FOR_EACH_MEMBER (v, m)
        sort_deeply(&m->value);
    JSON_FOR_EACH_ITEM (v, item)
        sort_deeply(item);
}

void workload_index_digest(struct arena *a, const struct json *template,
                           unsigned char out[INDEX_DIGEST_BYTES])
{
    struct json sorted = template ? json_clone(a, template) : json_null();
    sort_deeply(&sorted);
    pki_sha256(json_text(a, &sorted), out);
}

static void put(struct workload_index *ix, struct arena *a, const struct json *object,
                struct str owner_uid)
{
    const struct json *meta = json_get(object, STR("metadata"));
    const int64_t version = index_version(object);
    struct revision *r = map_get(&ix->revisions, json_get_str(meta, STR("uid")));
    if (r && version < r->version)
        return;
    if (r && !str_eq(str_of(r->owner->uid), owner_uid)) {
        index_revision_free(ix, r);
        r = NULL;
    }
    if (!r) {
        r = NEW(struct revision);
        r->uid = str_dup(json_get_str(meta, STR("uid")));
        r->name = str_dup(json_get_str(meta, STR("name")));
        r->hash =
            str_dup(json_get_str(json_get(meta, STR("labels")), STR(WORKLOAD_LABEL_REVISION)));
        r->owner = index_owner(ix, owner_uid);
        list_append(&r->owner->revisions, &r->link);
        (void) map_put(&ix->revisions, str_of(r->uid), r);
        workload_index_digest(a, json_at(object, "data", "spec", "template", NULL), r->digest);
    }
    r->version = version;
    r->number = json_get_int(object, STR("revision"), 0);
}

static void take(struct workload_index *ix, struct arena *a, const struct json *object)
{
    bool has_controller = false;
    const struct str owner = index_controller(object, &has_controller);
    struct revision *r =
        map_get(&ix->revisions, json_str(json_at(object, "metadata", "uid", NULL)));
    if (owner.n)
        put(ix, a, object, owner);
    else if (r)
        index_revision_free(ix, r);
}

void index_revision_event(struct workload_index *ix, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    struct revision *r = map_get(&ix->revisions, e->uid);
    if (e->type == KUBE_DELETED && r) {
        index_wake(ix, r->owner);
        index_revision_free(ix, r);
        return;
    }
    /* Most are those of Kubernetes's own kinds, or nobody's. */
    if (e->type == KUBE_DELETED || (!r && !e->has_owners))
        return;
    const struct json *object = kube_event_object(e, a);
    ix->revision_version = MAX(ix->revision_version, index_version(object));
    if (object)
        take(ix, a, object);
}

void workload_index_learn_revision(struct workload_index *ix, const struct json *object)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&ix->lock);
    if (index_version(object) > ix->revision_version)
        take(ix, a, object);
    (void) pthread_mutex_unlock(&ix->lock);
}
