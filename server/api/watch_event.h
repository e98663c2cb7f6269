/* SPDX-License-Identifier: Apache-2.0 */
/* One watch event in the forms its watchers want, each form written once. */
#pragma once

#include "api/reply.h"
#include "store/store.h"

enum watch_event_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED };

#define WATCH_EVENT_MAX_SLICES 4
#define WATCH_EVENT_FORMS 8

/* Lives for one event; zeroed to begin. */
struct watch_event_cache {
    struct watch_event_form {
        const struct kind *kind;
        const struct object *object;
        enum media_form form;
        enum table_include include;
        bool is_v1, with_columns;
        enum watch_event_type type;
        struct slice text;
    } forms[WATCH_EVENT_FORMS];
    size_t n_forms;
    struct object *departed;
};
void watch_event_cache_done(struct watch_event_cache *cache);

/* At most WATCH_EVENT_MAX_SLICES slices, references and all. */
size_t watch_event_slices(struct watch_event_cache *cache, const struct reply_form *f,
                          enum watch_event_type type, struct object *o, bool with_columns,
                          struct slice *ret_slices);
/* The previous state at the revision of the event, for a watcher whose selection the object has
 * left. */
struct object *watch_event_departed(struct watch_event_cache *cache, const struct store_event *e);
