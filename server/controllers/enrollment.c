/* SPDX-License-Identifier: Apache-2.0 */
/* EnrollmentRequests go when they have served: approved ones soon after their Device was made, so
 * that a Device deleted later is not let in again by an old approval; those nobody decided, and
 * denied ones, when their time is over. What approves them makes the Device (device/onboarding). */
#include "controllers/enrollment.h"

#include <errno.h>

#include "controllers/conditions.h"
#include "controllers/objects.h"
#include "settings/settings.h"

#define GROUP STR("eve.lfedge.org")
#define COLLECTION "enrollmentrequests.eve.lfedge.org"
#define SPONSOR STR("EnrollmentRequest/")
#define MINUTE_US ((int64_t) 60 * 1000000)
#define DAY_US (24 * 60 * MINUTE_US)
/* Long enough for whoever approved it to see what became of it. */
#define ENROLLED_US MINUTE_US
#define PENDING_US (7 * DAY_US) /* since the device last asked */
#define DENIED_US (30 * DAY_US)
#define MAX_WAIT_MS ((int64_t) 3600 * 1000)

/* ---- waking -------------------------------------------------------------------------------- */

static void enqueue(struct controller_queue *q, struct str namespace, struct str name)
{
    ARENA_AUTO a = arena_new();
    controller_enqueue(q, arena_printf(a, "%.*s/%.*s", STR_ARG(namespace), STR_ARG(name)), 0);
}

/* The Device of a request is gone: so is its approval. */
static void on_device_gone(const struct kube_event *e, struct controller_queue *q)
{
    ARENA_AUTO a = arena_new();
    if (str_find_str(e->text, STR(SETTINGS_ONBOARDED_BY)) < 0)
        return;
    const struct json *annotations =
        json_at(json_parse_quick(a, e->text), "metadata", "annotations", NULL);
    const struct str by = json_get_str(annotations, STR(SETTINGS_ONBOARDED_BY));
    if (str_starts_with(by, SPONSOR))
        enqueue(q, STR(SETTINGS_GLOBAL_NAMESPACE), str_from(by, SPONSOR.n));
}

/* Keys are "<namespace>/<name>". */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    const bool is_gone = e->type == KUBE_DELETED;
    if (str_is(e->collection, COLLECTION) && !is_gone)
        enqueue(q, e->namespace, e->name);
    else if (str_is(e->collection, "devices.eve.lfedge.org") && is_gone)
        on_device_gone(e, q);
}

/* ---- when it goes -------------------------------------------------------------------------- */

static int64_t time_of(const struct json *text, int64_t or_else_us)
{
    int64_t at_us = 0;
    return clock_parse(json_str(text), &at_us) == 0 ? at_us : or_else_us;
}

static int64_t decided_us(struct json *conditions, const char *type, int64_t created_us)
{
    const struct json *c = conditions_find(conditions, type);
    return time_of(json_get(c, STR("lastTransitionTime")), created_us);
}

/* 1: there is one; 0: none any more; negative: nobody knows. */
static int has_device(const struct controller_context *ctx, struct arena *a,
                      const struct registry *kinds, const struct json *request)
{
    const struct str namespace = json_str(json_at(request, "status", "namespace", NULL));
    const struct object_place at = {registry_find(kinds, GROUP, STR("v1beta1"), STR("devices")),
                                    namespace.n ? namespace : STR("default"),
                                    json_str(json_at(request, "status", "device", NULL))};
    struct json *device = NULL;
    const int r = objects_get(ctx, a, &at, &device);
    return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* When the request may go; INT64_MAX: not before something happens to it. */
static int64_t deadline_us(struct json *request, int64_t created_us)
{
    struct json *conditions = json_at(request, "status", "conditions", NULL);
    const int64_t asked_us =
        time_of(json_at(request, "status", "lastRequestTime", NULL), created_us);
    if (conditions_is_true(conditions, "Denied"))
        return decided_us(conditions, "Denied", created_us) + DENIED_US;
    if (!conditions_is_true(conditions, "Approved"))
        return asked_us + PENDING_US;
    /* One that could not be let in waits for whoever can mend that. */
    if (!json_str(json_at(request, "status", "device", NULL)).n)
        return INT64_MAX;
    return decided_us(conditions, "Approved", created_us) + ENROLLED_US;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct str rest = key, namespace = STR_NONE;
    (void) str_split(&rest, '/', &namespace);
    const struct object_place at = {
        registry_find(kinds, GROUP, STR("v1beta1"), STR("enrollmentrequests")), namespace, rest};
    struct json *request = NULL;
    const int r = objects_get(ctx, a, &at, &request);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const int64_t now_us = ctx->clock->wall_us(ctx->clock);
    const int64_t created_us = time_of(object_meta_at(request, "creationTimestamp"), now_us);
    int64_t until_us = deadline_us(request, created_us);
    if (json_str(json_at(request, "status", "device", NULL)).n && until_us > now_us) {
        const int there = has_device(ctx, a, kinds, request);
        if (there < 0)
            return there;
        until_us = there ? until_us : now_us;
    }
    if (until_us == INT64_MAX || object_is_deleting(request))
        return 0;
    if (until_us > now_us)
        return MIN((until_us - now_us) / 1000 + 1, MAX_WAIT_MS);
    const struct delete_terms terms = {.uid = object_meta_text(request, "uid"),
                                       .revision = object_meta_text(request, "resourceVersion")};
    return objects_delete(ctx, a, &at, &terms);
}

const struct controller enrollment_controller = {
    .name = "enrollment-cleanup", .on_event = on_event, .reconcile = reconcile};
