/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/scheduler.h"

#include <errno.h>

#include "api/event_record.h"
#include "base/alloc.h"
#include "controllers/conditions.h"
#include "controllers/objects.h"
#include "scheduling/budget.h"
#include "scheduling/status.h"
#include "scheduling/view.h"

#define GROUP STR("eve.lfedge.org")
#define VERSION STR("v1beta1")
/* Choices are made one after the other and written side by side. */
#define WORKERS 8
/* Others write to the status, too. */
#define MAX_ATTEMPTS 4
/* Events beside the status, which says the same: when a whole fleet is placed at once not all of it
 * is worth a write. */
#define EVENTS_AT_ONCE 1000
#define EVENTS_PER_S 20

struct scheduler {
    struct view *view;
    struct budget events;
};

/* ---- waking ---------------------------------------------------------------------------------- */

static void wake(void *queue, struct str key, int64_t delay_ms)
{
    controller_enqueue(queue, key, delay_ms);
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    struct scheduler *s = NEW(struct scheduler);
    s->view = view_new(wake, q);
    budget_init(&s->events, EVENTS_AT_ONCE, EVENTS_PER_S, ctx->clock->monotonic_us(ctx->clock));
    return s;
}

static void stop(void *state)
{
    struct scheduler *s = state;
    view_free(s->view);
    budget_done(&s->events);
    mem_free(s);
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct scheduler *s = state;
    (void) q;
    view_on_event(s->view, e);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The choice stands in the status already: who cannot tell goes on. */
static void tell(struct scheduler *s, const struct controller_context *ctx,
                 const struct json *application, const struct view_outcome *o)
{
    if (!budget_take(&s->events, ctx->clock->monotonic_us(ctx->clock)))
        return;
    const struct event_notice n = {
        .about = {.api_version = STR("eve.lfedge.org/v1beta1"),
                  .kind = STR("Application"),
                  .namespace = object_meta_text(application, "namespace"),
                  .name = object_meta_text(application, "name"),
                  .uid = object_meta_text(application, "uid")},
        .is_warning = !o->is_placed,
        .reason = o->is_placed ? "Scheduled" : "FailedScheduling",
        .message = o->message,
    };
    (void) event_record(ctx->client, ctx->clock, &n);
}

static bool is_said(const struct json *application, const struct view_outcome *o)
{
    struct json *conditions = json_at(application, "status", "conditions", NULL);
    const struct json *c = conditions_find(conditions, "Scheduled");
    return c && str_is(json_get_str(c, STR("status")), o->is_placed ? "True" : "False") &&
           str_eq(json_get_str(c, STR("message")), o->message);
}

/* Reads it, chooses, writes. 0, or a negative errno; -ESTALE: somebody else wrote meanwhile. */
static int write_choice(struct scheduler *s, const struct controller_context *ctx, struct arena *a,
                        const struct object_place *at)
{
    struct json *application = NULL, *written = NULL;
    struct view_outcome o;
    int r = objects_get(ctx, a, at, &application);
    if (r < 0 || !view_choose(s->view, a, application, &o)) {
        view_settle(s->view, at->namespace, at->name, NULL);
        return r == -ENOENT ? 0 : r;
    }
    const bool was_said = is_said(application, &o);
    scheduling_set_status(a, application, &o, ctx->clock->wall_us(ctx->clock));
    r = objects_update(ctx, a, at, "status", application, &written);
    view_settle(s->view, at->namespace, at->name, r < 0 ? NULL : written);
    if (r == 0 && !was_said)
        tell(s, ctx, application, &o);
    return r == -ENOENT ? 0 : r;
}

/* Keys are "<namespace>/<name>" of Applications, and "<namespace>/" for those that wait there. */
static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    struct scheduler *s = state;
    struct str namespace = STR_NONE, name = key;
    (void) str_split(&name, '/', &namespace);
    if (!name.n)
        return view_pass(s->view, namespace) ? 1 : 0;
    if (!view_needs_work(s->view, namespace, name))
        return 0;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    const struct object_place at = {registry_find(kinds, GROUP, VERSION, STR("applications")),
                                    namespace, name};
    int r = -ESTALE;
    for (int i = 0; i < MAX_ATTEMPTS && r == -ESTALE; i++)
        r = write_choice(s, ctx, a, &at);
    return r;
}

const struct controller scheduler_controller = {.name = "scheduler",
                                                .start = start,
                                                .on_event = on_event,
                                                .reconcile = reconcile,
                                                .stop = stop,
                                                .n_workers = WORKERS};
