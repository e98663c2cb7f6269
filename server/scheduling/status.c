/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/status.h"

#include "controllers/conditions.h"

struct writing {
    struct arena *arena;
    struct json *application, *conditions;
    int64_t now_us;
};

static void set_condition(struct writing *w, const struct condition *c)
{
    const struct json *generation = json_at(w->application, "metadata", "generation", NULL);
    (void) conditions_set(w->arena, w->conditions, c, w->now_us);
    if (generation)
        (void) json_set(w->arena, conditions_find(w->conditions, c->type),
                        STR("observedGeneration"), *generation);
}

/* What the old device said is not true of the new one. The history stays: it is the
 * Application's. */
static void forget_device(struct writing *w, struct json *status, struct str from)
{
    static const char *const spoken[] = {"Composed", "Delivered", "Ready"};
    (void) json_remove(status, STR("state"));
    (void) json_remove(status, STR("addresses"));
    for (size_t i = 0; i < N_ELEMENTS(spoken); i++)
        if (conditions_find(w->conditions, spoken[i]))
            set_condition(
                w, &(struct condition){.type = spoken[i],
                                       .status = "Unknown",
                                       .reason = STR("Moved"),
                                       .message = arena_printf(
                                           w->arena, "it has left device '%.*s'", STR_ARG(from))});
}

void scheduling_set_status(struct arena *a, struct json *application, const struct view_outcome *o,
                           int64_t now_us)
{
    struct writing w = {.arena = a, .application = application, .now_us = now_us};
    w.conditions = conditions_of(a, application);
    struct json *status = json_get(application, STR("status"));
    const struct json *generation = json_at(application, "metadata", "generation", NULL);
    const struct str from = json_get_str(status, STR("device"));
    set_condition(&w,
                  &(struct condition){.type = "Accepted",
                                      .status = o->is_accepted ? "True" : "False",
                                      .reason = o->is_accepted ? STR("Accepted") : STR("Invalid"),
                                      .message = o->fault});
    set_condition(&w, &(struct condition){.type = "Scheduled",
                                          .status = o->is_placed ? "True" : "False",
                                          .reason = o->reason,
                                          .message = o->message});
    if (from.n && !str_eq(from, o->device))
        forget_device(&w, status, from);
    if (o->device.n)
        (void) json_set(a, status, STR("device"), json_string(o->device));
    else
        (void) json_remove(status, STR("device"));
    if (generation)
        (void) json_set(a, status, STR("observedGeneration"), *generation);
}
