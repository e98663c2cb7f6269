/* SPDX-License-Identifier: Apache-2.0 */
#include "api/watch.h"

/* Only what is asked is settled here; the host streams the answer. */
void verb_watch(struct call *c)
{
    struct watch_request *w = ARENA_NEW(c->arena, struct watch_request);
    if (list_options_parse(c, true, &w->options) < 0 || reply_form_of(c, &w->form) < 0) {
        call_fail(c);
        return;
    }
    if (c->media.form == MEDIA_PARTIAL_LIST)
        w->form.media.form = MEDIA_PARTIAL;
    w->collection = c->kind->collection;
    w->namespace = c->in.path.namespace.n ? c->in.path.namespace : STR_NONE;
    w->registry = c->registry;
    bool asks_initial = w->options.has_initial_events && w->options.sends_initial_events;
    bool is_legacy = !w->options.has_initial_events && w->options.revision <= 0;
    w->is_from_start = asks_initial || is_legacy;
    /* One object by its old path, or by name. */
    if (c->in.path.name.n) {
        struct str ignored = STR_NONE;
        struct str text = arena_printf(c->arena, "metadata.name=%.*s", STR_ARG(c->in.path.name));
        (void) selector_parse_fields(c->arena, text, c->kind, &w->options.selector, &ignored);
    }
    c->reply.code = 200;
    c->reply.content_type = STR("application/json");
    c->reply.watch = w;
    c->on_done(c);
}
