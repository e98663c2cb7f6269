/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>

#include "api/continue.h"
#include "api/list_options.h"
#include "api/reply.h"

#define LIST_TOO_OLD \
    "The provided continue parameter is too old to display a consistent list result. You can " \
    "start a new " \
    "list without the continue parameter, or use the continue token in this response to retrieve " \
    "the " \
    "remainder of the results. Continuing with the provided token results in an inconsistent " \
    "list - objects " \
    "that were created, modified, or deleted between the time the first chunk was returned and " \
    "now may show " \
    "up in the list."

static int fail_range(struct call *c, const struct list_options *o, const struct store_range *range,
                      int error)
{
    if (error == -EAGAIN)
        return status_too_large_version(&c->status, range->at, store_revision(api_store(c->api)));
    if (!o->continue_token.n)
        return status_expired(&c->status, "The resourceVersion for the provided list is too old.");
    (void) status_expired(&c->status, LIST_TOO_OLD);
    /* This one begins at the same place, in whatever state is newest then. */
    c->status.continue_token = continue_encode(c->arena, CONTINUE_NEWEST, range->after);
    return -ERANGE;
}

/* Where to read: from a continue token, an exact version, or the newest state. */
static int range_of(struct call *c, const struct list_options *o, struct store_range *range)
{
    int64_t current = store_revision(api_store(c->api));
    if (o->continue_token.n) {
        if (o->revision > 0)
            return status_bad_request(
                &c->status, "specifying resource version is not allowed when using continue");
        if (continue_decode(c->arena, o->continue_token, &range->at, &range->after) < 0)
            return status_bad_request(&c->status,
                                      "invalid continue token: continue key is not valid: "
                                      "it was not issued by this server");
        if (range->at == CONTINUE_NEWEST)
            range->at = 0;
        return 0;
    }
    if (o->revision > current)
        return status_too_large_version(&c->status, o->revision, current);
    if (o->match == MATCH_EXACT)
        range->at = o->revision;
    return 0;
}

static struct str key_of_last(struct call *c, const struct store_page *page)
{
    const struct object *last = page->objects[page->n - 1];
    return arena_printf(c->arena, "%.*s/%.*s", STR_ARG(object_span(last, last->head.namespace)),
                        STR_ARG(object_span(last, last->head.name)));
}

void verb_list(struct call *c)
{
    struct list_options o = {0};
    struct reply_form form = {0};
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range range = {.collection = c->kind->collection};
    if (list_options_parse(c, false, &o) < 0 || reply_form_of(c, &form) < 0 ||
        range_of(c, &o, &range) < 0) {
        call_fail(c);
        return;
    }
    range.namespace = c->in.path.namespace.n ? c->in.path.namespace : STR_NONE;
    range.limit = (size_t) o.limit;
    selector_restrict(&o.selector, &range);
    int r = store_list(api_store(c->api), &range, &page);
    if (r < 0) {
        (void) fail_range(c, &o, &range, r);
        call_fail(c);
        return;
    }
    struct reply_list_meta meta = {.revision = page.revision, .n_remaining = page.n_remaining};
    if (page.has_more && page.n)
        meta.continue_token = continue_encode(c->arena, page.revision, key_of_last(c, &page));
    call_reply_list(c, &form, page.objects, page.n, &meta);
}
