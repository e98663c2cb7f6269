/* SPDX-License-Identifier: Apache-2.0 */
/* Applications in the index, from events and from what own requests answered. */
#include "base/alloc.h"
#include "base/clock.h"
#include "workloads/index_internal.h"
#include "workloads/labels.h"

int64_t index_version(const struct json *object)
{
    int64_t version = 0;
    (void) str_to_i64(json_str(json_at(object, "metadata", "resourceVersion", NULL)), &version);
    return version;
}

static const struct json *controller_of(const struct json *object)
{
    JSON_FOR_EACH_ITEM (json_at(object, "metadata", "ownerReferences", NULL), reference)
        if (json_get_bool(reference, STR("controller"), false))
            return reference;
    return NULL;
}

static bool is_our_reference(const struct json *reference)
{
    return str_starts_with(json_get_str(reference, STR("apiVersion")), STR(WORKLOAD_GROUP "/")) &&
           workload_kind_of(json_get_str(reference, STR("kind"))) != WORKLOAD_KINDS;
}

struct str index_controller(const struct json *object, bool *ret_has_controller)
{
    const struct json *reference = controller_of(object);
    *ret_has_controller = reference != NULL;
    return reference && is_our_reference(reference) ? json_get_str(reference, STR("uid"))
                                                    : STR_NONE;
}

/* ---- what counts of an object -------------------------------------------------------------- */

struct facts {
    struct str revision, device, owner_uid;
    const struct json *labels;
    int64_t created_us, deleted_us, ready_since_us;
    bool is_scheduled, is_ready, is_deleting;
};

static int64_t time_at(const struct json *object, const char *key)
{
    int64_t us = 0;
    (void) clock_parse(json_get_str(object, str_of(key)), &us);
    return us;
}

static void read_ready(const struct json *object, struct facts *f)
{
    JSON_FOR_EACH_ITEM (json_at(object, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Ready")) {
            f->is_ready = str_is(json_get_str(c, STR("status")), "True");
            f->ready_since_us = f->is_ready ? time_at(c, "lastTransitionTime") : 0;
        }
}

/* An Application of an ApplicationDaemonSet belongs where it is pinned to, scheduled or not. */
static struct str device_of(const struct json *object)
{
    const struct str running = json_str(json_at(object, "status", "device", NULL));
    const struct str pin = json_str(json_at(object, "spec", "nodeSelector", "name", NULL));
    const bool is_daemon =
        workload_kind_of(json_get_str(controller_of(object), STR("kind"))) == WORKLOAD_DAEMON_SET;
    return is_daemon && pin.n ? pin : running;
}

static struct facts read_facts(const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    struct facts f = {.labels = json_get(meta, STR("labels")),
                      .created_us = time_at(meta, "creationTimestamp"),
                      .deleted_us = time_at(meta, "deletionTimestamp"),
                      .device = device_of(object)};
    bool has_controller = false;
    f.owner_uid = index_controller(object, &has_controller);
    f.revision = json_get_str(f.labels, STR(WORKLOAD_LABEL_REVISION));
    f.is_deleting = json_get_str(meta, STR("deletionTimestamp")).n > 0;
    f.is_scheduled = json_str(json_at(object, "status", "device", NULL)).n > 0;
    read_ready(object, &f);
    return f;
}

static bool is_same(const struct app *app, const struct facts *f)
{
    const struct str owner = app->place == APP_OF_OWNER ? str_of(app->owner->uid) : STR_NONE;
    const struct str device = app->device ? str_of(app->device->name) : STR_NONE;
    return app->is_ready == f->is_ready && app->is_scheduled == f->is_scheduled &&
           app->is_deleting == f->is_deleting && app->ready_since_us == f->ready_since_us &&
           app->created_us == f->created_us && str_eq(owner, f->owner_uid) &&
           str_eq(device, f->device) && str_eq(str_of(app->revision), f->revision) &&
           labels_equal(app->labels, f->labels);
}

/* ---- linking ------------------------------------------------------------------------------- */

static void set_facts(struct app *app, const struct facts *f)
{
    labels_free(app->labels);
    mem_free(app->revision);
    app->labels = labels_pack(f->labels);
    app->revision = str_dup(f->revision);
    app->created_us = f->created_us;
    app->deleted_us = f->deleted_us;
    app->ready_since_us = f->ready_since_us;
    app->is_scheduled = f->is_scheduled;
    app->is_ready = f->is_ready;
    app->is_deleting = f->is_deleting;
}

static void link_app(struct workload_index *ix, struct app *app, const struct facts *f)
{
    if (f->device.n) {
        app->device = index_device(ix, str_of(app->space->name), f->device);
        list_append(&app->device->applications, &app->device_link);
    }
    if (!f->owner_uid.n) {
        index_orphan_place(ix, app);
        return;
    }
    app->place = APP_OF_OWNER;
    app->owner = index_owner(ix, f->owner_uid);
    app->is_ours = index_fits(app->owner, app);
    app->owner->n_applications++;
    list_append(&app->owner->applications, &app->link);
    index_wake(ix, app->owner);
}

static struct app *new_app(struct workload_index *ix, const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    struct app *app = NEW(struct app);
    app->uid = str_dup(json_get_str(meta, STR("uid")));
    app->name = str_dup(json_get_str(meta, STR("name")));
    app->space = index_space(ix, json_get_str(meta, STR("namespace")));
    list_init(&app->link);
    list_init(&app->device_link);
    (void) map_put(&ix->apps, str_of(app->uid), app);
    return app;
}

static void put(struct workload_index *ix, const struct json *object)
{
    const struct facts f = read_facts(object);
    const int64_t version = index_version(object);
    struct app *app = map_get(&ix->apps, json_str(json_at(object, "metadata", "uid", NULL)));
    if (app && (app->is_gone || version < app->version))
        return;
    const bool is_new = !app;
    if (is_new)
        app = new_app(ix, object);
    app->version = version;
    if (!is_new && is_same(app, &f))
        return;
    if (!is_new) {
        /* The owner it had, which may be another from now on. */
        if (app->place == APP_OF_OWNER && !str_is(f.owner_uid, app->owner->uid))
            index_wake(ix, app->owner);
        index_app_unlink(ix, app);
    }
    set_facts(app, &f);
    link_app(ix, app, &f);
}

static void end(struct workload_index *ix, struct str uid)
{
    struct app *app = map_get(&ix->apps, uid);
    if (!app)
        return;
    if (app->place == APP_OF_OWNER)
        index_wake(ix, app->owner);
    index_app_free(ix, app);
}

/* ---- entrances ----------------------------------------------------------------------------- */

/* Somebody else's, whom we need not know. */
static bool is_foreign(const struct json *object)
{
    bool has_controller = false;
    return !index_controller(object, &has_controller).n && has_controller;
}

void index_application_event(struct workload_index *ix, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = kube_event_object(e, a);
    ix->app_version = MAX(ix->app_version, index_version(object));
    if (e->type == KUBE_DELETED || is_foreign(object))
        end(ix, e->uid);
    else if (object)
        put(ix, object);
}

void workload_index_learn_application(struct workload_index *ix, const struct json *object)
{
    (void) pthread_mutex_lock(&ix->lock);
    /* Events come in order: one that is later has told of this already, and perhaps of its end. */
    if (index_version(object) > ix->app_version)
        put(ix, object);
    (void) pthread_mutex_unlock(&ix->lock);
}

void workload_index_found(struct workload_index *ix, const struct json *object)
{
    (void) pthread_mutex_lock(&ix->lock);
    put(ix, object);
    (void) pthread_mutex_unlock(&ix->lock);
}

void workload_index_gone(struct workload_index *ix, struct str uid)
{
    (void) pthread_mutex_lock(&ix->lock);
    struct app *app = map_get(&ix->apps, uid);
    if (app && !app->is_gone) {
        app->is_gone = true;
        if (app->place == APP_OF_OWNER)
            index_wake(ix, app->owner);
    }
    (void) pthread_mutex_unlock(&ix->lock);
}
