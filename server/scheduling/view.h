/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, Applications and what binds them, kept in memory from events, with every choice counted
 * from the moment it is made: two that are made at once never take the same room. It makes the
 * choices; it writes nothing.
 *
 * Every function may be called from any thread. */
#pragma once

#include "api/client.h"

struct view;

/* Something is to be done about the key: an Application's "<namespace>/<name>", or
 * "<namespace>/" for a pass over what waits there. Called under the view's lock. */
typedef void view_wake(void *ctx, struct str key, int64_t delay_ms);

struct view *view_new(view_wake *wake, void *ctx);
void view_free(struct view *v); /* NULL allowed */
void view_on_event(struct view *v, const struct kube_event *e);

/* What is to stand in the status of an Application. Strings are static or in the arena. */
struct view_outcome {
    bool is_accepted, is_placed;
    struct str device;          /* empty unless placed */
    struct str reason, message; /* of condition Scheduled */
    struct str fault;           /* when not accepted */
};

/* Whether its status may have to be written. */
bool view_needs_work(struct view *v, struct str namespace, struct str name);
/* Chooses for an Application, as it was just read. False: there is nothing to say of it. True: what
 * is chosen counts as taken until view_settle(), which must follow. */
bool view_choose(struct view *v, struct arena *a, const struct json *application,
                 struct view_outcome *ret);
/* application: as it was written; NULL: it was not, and what was taken for it is free again. */
void view_settle(struct view *v, struct str namespace, struct str name,
                 const struct json *application);
/* Chooses for those that wait and may fit now, and wakes them. True: there is more to do. */
bool view_pass(struct view *v, struct str namespace);
