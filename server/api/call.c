/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

#include <errno.h>

#include "api/admission/admission.h"
#include "api/names.h"
#include "base/alloc.h"

static void (*const verbs[])(struct call *c) = {
    [VERB_GET] = verb_get,       [VERB_LIST] = verb_list,
    [VERB_WATCH] = verb_watch,   [VERB_CREATE] = verb_create,
    [VERB_UPDATE] = verb_update, [VERB_PATCH] = verb_patch,
    [VERB_DELETE] = verb_delete, [VERB_DELETE_COLLECTION] = verb_delete_collection,
};

void call_warn(struct call *c, struct str text)
{
    for (struct call_warning *w = c->warnings; w; w = w->next)
        if (str_eq(w->text, text))
            return;
    struct call_warning *w = ARENA_NEW(c->arena, struct call_warning);
    w->text = text;
    *c->last_warning = w;
    c->last_warning = &w->next;
}

static void hook_warn(struct hook_context *h, struct str text)
{
    call_warn(h->request, text);
}

struct hook_context call_hook_context(struct call *c, enum write_operation operation)
{
    return (struct hook_context){
        .arena = c->arena,
        .kind = c->kind,
        .operation = operation,
        .subresource = c->subresource ? c->subresource->name : STR(""),
        .name = c->in.path.name,
        .namespace = c->in.path.namespace,
        .now_us = api_clock(c->api)->wall_us(api_clock(c->api)),
        .is_dry_run = c->is_dry_run,
        .warn = hook_warn,
        .user = &c->in.user,
        .request = c,
    };
}

struct str call_key(struct call *c, struct str name)
{
    const struct str parts[] = {c->kind->collection, STR("/"), c->in.path.namespace, STR("/"),
                                name};
    return arena_join(c->arena, parts, N_ELEMENTS(parts));
}

void call_input_copy(struct arena *a, struct call_input *in)
{
    struct str *const strings[] = {&in->path.group,       &in->path.version,   &in->path.resource,
                                   &in->path.subresource, &in->path.namespace, &in->path.name,
                                   &in->path.extra,       &in->accept,         &in->content_type,
                                   &in->user_agent};
    for (size_t i = 0; i < N_ELEMENTS(strings); i++)
        if (strings[i]->p)
            *strings[i] = arena_str(a, *strings[i]);
    in->user = user_copy(a, &in->user);
    struct request_parameter *copies = ARENA_ARRAY(a, struct request_parameter, in->query.n + 1);
    for (size_t i = 0; i < in->query.n; i++) {
        copies[i].name = arena_str(a, in->query.parameters[i].name);
        copies[i].value = arena_str(a, in->query.parameters[i].value);
    }
    in->query.parameters = copies;
}

void call_fail(struct call *c)
{
    c->on_done(c);
}

static void on_store_done(struct store_write *w)
{
    struct call *c = CONTAINER_OF(w, struct call, write);
    c->resume(c);
}

void call_submit(struct call *c, void (*on_written)(struct call *c))
{
    c->on_written = on_written;
    c->write.on_done = on_store_done;
    store_submit(api_store(c->api), &c->write);
}

void call_continue(struct call *c)
{
    c->on_written(c);
}

void call_done(struct call *c)
{
    if (c->on_release)
        c->on_release(c);
    admission_release(c);
    object_unref(TAKE(c->write.committed));
    for (size_t i = 0; i < c->reply.n_slices; i++)
        slice_unref(c->reply.body[i]);
    mem_free(TAKE(c->reply.body));
    c->reply.n_slices = 0;
    registry_unref(TAKE(c->registry));
}

/* ---- routing ------------------------------------------------------------------------------ */

/* The path must fit the kind's scope, its name a path. */
static int check_path(struct call *c)
{
    const struct request_path *p = &c->in.path;
    bool is_item = c->in.verb != VERB_CREATE && c->in.verb != VERB_LIST &&
                   c->in.verb != VERB_WATCH && c->in.verb != VERB_DELETE_COLLECTION;
    if (p->extra.n || (!c->kind->is_namespaced && p->namespace.n) ||
        (p->name.n && !kind_has_items(c->kind)))
        return status_no_resource(&c->status);
    if (c->kind->is_namespaced && !p->namespace.n) {
        /* All namespaces at once can be read, nothing else. */
        if (is_item || p->name.n)
            return status_no_resource(&c->status);
        if (c->in.verb != VERB_LIST && c->in.verb != VERB_WATCH)
            return status_no_method(&c->status);
    }
    struct name_errors wrong = name_path_segment(c->arena, p->name);
    if (p->name.n && wrong.n)
        return status_bad_request(&c->status, "Name parameter invalid: %.*s: %.*s",
                                  STR_ARG(status_quote(c->arena, p->name)),
                                  STR_ARG(name_errors_text(c->arena, &wrong)));
    return 0;
}

static int refuse_verb(struct call *c)
{
    if (c->kind->is_native)
        return status_no_method(&c->status);
    struct str resource = status_resource(c->arena, c->kind);
    (void) status_fail(&c->status, 405, "MethodNotAllowed",
                       "%.*s is not supported on resources of kind \"%.*s\"",
                       STR_ARG(verb_name(c->in.verb)), STR_ARG(resource));
    c->status.has_details = true;
    c->status.group = c->kind->group;
    c->status.kind = c->kind->plural;
    return -ENOTSUP;
}

static int find_kind(struct call *c)
{
    const struct request_path *p = &c->in.path;
    c->kind = registry_find(c->registry, p->group, p->version, p->resource);
    if (!c->kind)
        return status_no_resource(&c->status);
    unsigned verbs_served = c->kind->verbs;
    if (p->subresource.n) {
        if (!kind_has_subresource(c->kind, p->subresource, &c->subresource))
            return c->kind->is_native ? status_no_resource(&c->status)
                                      : status_not_found(&c->status, c->kind, p->name);
        verbs_served = c->subresource->verbs;
    }
    int r = check_path(c);
    if (r < 0)
        return r;
    return verbs_served & VERB_BIT(c->in.verb) ? 0 : refuse_verb(c);
}

/* Go's time.ParseDuration: numbers with units. Requests are over long before any limit could
 * matter, so only its form counts. */
static bool is_duration(struct str s)
{
    static const struct str units[] = {{"ns", 2}, {"us", 2}, {"ms", 2},
                                       {"s", 1},  {"m", 1},  {"h", 1}};
    s = s.n && (s.p[0] == '-' || s.p[0] == '+') ? str_from(s, 1) : s;
    if (str_is(s, "0"))
        return true;
    bool has_part = false;
    while (s.n) {
        size_t n = 0;
        while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
            n++;
        struct str rest = str_from(s, n);
        size_t unit = 0;
        for (size_t i = 0; i < N_ELEMENTS(units) && !unit; i++)
            unit = str_starts_with(rest, units[i]) ? units[i].n : 0;
        if (!n || !unit)
            return false;
        s = str_from(rest, unit);
        has_part = true;
    }
    return has_part;
}

static int check_timeout(struct call *c)
{
    struct str timeout = request_parameter(&c->in.query, "timeout");
    if (!timeout.n || is_duration(timeout))
        return 0;
    return status_bad_request(
        &c->status, "invalid timeout specified in the request URL - time: invalid duration %.*s",
        STR_ARG(status_quote(c->arena, timeout)));
}

static int choose_media(struct call *c)
{
    bool is_collection = !c->in.path.name.n;
    enum media_endpoint endpoint = !c->kind->is_native ? MEDIA_CUSTOM
                                   : is_collection     ? MEDIA_NATIVE_LIST
                                                       : MEDIA_NATIVE;
    return c->in.verb == VERB_WATCH
               ? media_choose_watch(c->in.accept, endpoint, &c->media, &c->status)
               : media_choose(c->in.accept, endpoint, &c->media, &c->status);
}

void call_run(struct call *c)
{
    status_init(&c->status, c->arena);
    c->last_warning = &c->warnings;
    c->registry = api_registry(c->api);
    if (find_kind(c) < 0 || check_timeout(c) < 0 || choose_media(c) < 0) {
        call_fail(c);
        return;
    }
    if (c->kind->is_deprecated)
        call_warn(c, c->kind->deprecation_warning);
    c->key = call_key(c, c->in.path.name);
    verbs[c->in.verb](c);
}
