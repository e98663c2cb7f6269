/* SPDX-License-Identifier: Apache-2.0 */
/* What an object refers to must exist and fit; what is in use is not deleted. A reference that the
 * object had before is not asked for again, so that an object whose world has changed can still be
 * written. */
#include <errno.h>

#include "api/admission/admission.h"
#include "api/admission/references.h"

/* ---- reading ------------------------------------------------------------------------------- */

struct reader {
    struct reference_reader base; /* first */
    struct call *call;
};

static const struct json *read_key(struct call *c, struct str key, bool *ret_is_deleting)
{
    const struct overlay_item *item = overlay_find(c->overlay, key);
    if (item)
        return item->object;
    CLEANUP(object_unrefp) struct object *o = store_get(api_store(c->api), key);
    if (!o)
        return NULL;
    *ret_is_deleting = o->head.is_deleting;
    return json_parse_quick(c->arena, object_text(o));
}

static const struct json *reader_get(struct reference_reader *r, struct str collection,
                                     struct str namespace, struct str name)
{
    const struct reference wanted = {
        .collection = collection, .namespace = namespace, .name = name};
    struct call *c = ((struct reader *) r)->call;
    bool is_deleting = false;
    return read_key(c, reference_key(c->arena, &wanted), &is_deleting);
}

static struct str kind_name(struct call *c, struct str collection)
{
    const struct kind *kind = registry_collection(c->registry, collection);
    return kind ? kind->kind : collection;
}

/* ---- what an object refers to -------------------------------------------------------------- */

static int claim_use(struct admission *a, struct str key)
{
    struct call *c = a->call;
    struct reference_claim *claim = ARENA_NEW(c->arena, struct reference_claim);
    *claim = (struct reference_claim){.key = key,
                                      .user = call_key(c, a->name),
                                      .is_question = c->is_dry_run,
                                      .next = c->reference_claims};
    const int r = references_claim_use(api_references(c->api), claim);
    if (r == 0)
        c->reference_claims = claim;
    return r;
}

/* The object referred to, in use from now on; NULL, perhaps with a cause, when there is none. */
static const struct json *take(struct admission *a, const struct reference *r,
                               struct causes *causes, struct str how)
{
    struct call *c = a->call;
    const struct str key = reference_key(c->arena, r);
    const struct json name = json_string(r->name);
    bool is_deleting = false;
    const int busy = claim_use(a, key);
    const struct json *target = read_key(c, key, &is_deleting);
    if (target && busy == 0 && !is_deleting)
        return target;
    if (!(r->flags & REFERENCE_OPTIONAL))
        causes_add_text(causes, target ? CAUSE_INVALID : CAUSE_NOT_FOUND, r->field, &name,
                        target ? arena_printf(c->arena, "this %.*s is being deleted",
                                              STR_ARG(kind_name(c, r->collection)))
                               : how);
    return NULL;
}

/* What the target needs in the namespace of those that use it. */
static void inherit(struct admission *a, const struct reference *r, const struct json *target,
                    struct causes *causes)
{
    struct call *c = a->call;
    const struct kind *kind = registry_collection(c->registry, r->collection);
    struct reference_list list = {.arena = c->arena};
    struct reader reader = {{c->arena, reader_get}, c};
    if (kind && kind->hooks && kind->hooks->refer)
        kind->hooks->refer(&list, target);
    for (size_t i = 0; i < list.n; i++) {
        struct reference *needed = &list.items[i];
        if (!(needed->flags & REFERENCE_OF_USERS))
            continue;
        needed->namespace = c->in.path.namespace;
        needed->field = r->field;
        const struct str how = arena_printf(
            c->arena, "%.*s \"%.*s\" needs this %.*s in the namespace", STR_ARG(kind->kind),
            STR_ARG(r->name), STR_ARG(kind_name(c, needed->collection)));
        const struct json *found = take(a, needed, causes, how);
        if (found && needed->check)
            needed->check(&reader.base, needed, found, causes);
    }
}

static bool had(const struct reference_list *before, const struct reference *r)
{
    for (size_t i = 0; i < before->n; i++) {
        const struct reference *b = &before->items[i];
        if (str_eq(b->name, r->name) && str_eq(b->collection, r->collection) &&
            str_eq(b->namespace, r->namespace) && str_eq(b->detail, r->detail))
            return true;
    }
    return false;
}

static void warn(struct call *c, const struct reference *r)
{
    struct str *users = NULL;
    struct reference provider = *r;
    provider.collection = r->wants;
    if (!references_users(api_references(c->api), c->arena, reference_key(c->arena, &provider),
                          /* max= */ 1, &users))
        call_warn(c, r->warning);
}

static void check(struct admission *a, const struct reference *r, struct causes *causes)
{
    struct reader reader = {{a->call->arena, reader_get}, a->call};
    if (r->warning.n)
        warn(a->call, r);
    if (r->flags & (REFERENCE_WEAK | REFERENCE_OF_USERS))
        return;
    const struct json *target = take(a, r, causes, STR_NONE);
    if (!target)
        return;
    if (r->check)
        r->check(&reader.base, r, target, causes);
    if (r->flags & REFERENCE_INHERITS)
        inherit(a, r, target, causes);
}

static bool is_going(const struct json *object)
{
    const struct json *when = json_at(object, "metadata", "deletionTimestamp", NULL);
    return when && when->type != JSON_NULL;
}

/* "Application edge/web" */
static struct str name_user(struct call *c, struct str key)
{
    struct str collection = STR_NONE;
    (void) str_split(&key, '/', &collection);
    if (key.n && key.p[0] == '/')
        key = str_from(key, 1);
    return arena_printf(c->arena, "%.*s %.*s", STR_ARG(kind_name(c, collection)), STR_ARG(key));
}

static struct str holder_of(struct admission *a, const struct kind_hold *hold)
{
    struct call *c = a->call;
    struct str *users = NULL;
    const struct reference self = {
        .collection = c->kind->collection, .namespace = c->in.path.namespace, .name = a->name};
    const size_t n = references_users(api_references(c->api), c->arena,
                                      reference_key(c->arena, &self), SIZE_MAX, &users);
    for (size_t i = 0; i < n; i++)
        if (str_starts_with(users[i], hold->collection) && users[i].p[hold->collection.n] == '/')
            return users[i];
    return STR_NONE;
}

/* Users look at the object again when it changes; what was made of it once cannot. */
static void check_hold(struct admission *a, struct causes *causes)
{
    const struct kind_hold *hold = a->call->kind->hooks->hold;
    struct str holder = STR_NONE;
    if (!hold || !a->old)
        return;
    const struct json *was = json_get(a->old, STR("spec")), *is = json_get(a->object, STR("spec"));
    for (const char *const *f = hold->fields; *f; f++) {
        const struct json *before = json_get(was, str_of(*f)), *after = json_get(is, str_of(*f));
        if (before == after || (before && after && json_equal(before, after)))
            continue;
        holder = holder.n ? holder : holder_of(a, hold);
        if (!holder.n)
            return;
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&FIELD_NAME(NULL, STR("spec")), str_of(*f)),
                   NULL, "%.*s %s", STR_ARG(name_user(a->call, holder)), hold->why);
    }
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (!c->kind->hooks || !c->kind->hooks->refer || c->subresource || is_going(a->object))
        return 0;
    struct reference_list now = {.arena = c->arena, .wants_fields = true},
                          before = {.arena = c->arena};
    struct causes causes;
    causes_init(&causes, c->arena);
    c->kind->hooks->refer(&now, a->object);
    if (a->old)
        c->kind->hooks->refer(&before, a->old);
    if (now.is_full)
        causes_add(&causes, CAUSE_TOO_MANY, &FIELD_NAME(NULL, STR("spec")),
                   &(struct json){.type = JSON_INT, .i = (int64_t) now.n + 1},
                   "must refer to at most %d objects", REFERENCES_MAX);
    for (size_t i = 0; i < now.n; i++)
        if (!had(&before, &now.items[i]))
            check(a, &now.items[i], &causes);
    check_hold(a, &causes);
    return causes.n ? status_invalid(&c->status, c->kind->group, c->kind->kind, a->name, &causes)
                    : 0;
}

/* ---- what is in use ------------------------------------------------------------------------ */

/* " (spec.containers[0].image)", where the user names it. */
static struct str where(struct call *c, const struct reference_use *use, struct str key)
{
    struct str rest = use->user, collection = STR_NONE;
    bool is_deleting = false;
    (void) str_split(&rest, '/', &collection);
    const struct kind *kind = registry_collection(c->registry, collection);
    const struct json *user = use->is_pending ? NULL : read_key(c, use->user, &is_deleting);
    struct reference_list list = {.arena = c->arena, .wants_fields = true};
    if (user && kind && kind->hooks && kind->hooks->refer)
        kind->hooks->refer(&list, user);
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(reference_key(c->arena, &list.items[i]), use->by.n ? use->by : key))
            return arena_printf(c->arena, " (%.*s)", STR_ARG(list.items[i].field));
    return STR("");
}

static int refuse(struct admission *a, const struct reference_use *use, struct str key)
{
    struct call *c = a->call;
    const struct str way =
        use->by.n ? arena_printf(c->arena, " by %.*s", STR_ARG(name_user(c, use->by))) : STR("");
    const struct str why =
        arena_printf(c->arena, "%.*s uses it%.*s%.*s", STR_ARG(name_user(c, use->user)),
                     STR_ARG(way), STR_ARG(where(c, use, key)));
    (void) status_conflict(&c->status, c->kind, a->name, "%.*s", STR_ARG(why));
    c->status.cause_reason = STR("InUse");
    c->status.cause_message = why;
    c->status.cause_field = STR("metadata.name");
    return -ESTALE;
}

/* With its namespace everything in it goes, in any order. */
static bool goes_with_namespace(struct call *c, struct str namespace)
{
    const struct str key = arena_printf(c->arena, "namespaces//%.*s", STR_ARG(namespace));
    CLEANUP(object_unrefp)
    struct object *o = namespace.n ? store_get(api_store(c->api), key) : NULL;
    return o && o->head.is_deleting;
}

static int remove_object(struct admission *a)
{
    struct call *c = a->call;
    const struct kind_hooks *hooks = c->kind->hooks;
    if (!hooks || !hooks->has_users || is_going(a->old) ||
        (hooks->may_dangle && hooks->may_dangle(a->old)))
        return 0;
    const struct reference self = {.collection = c->kind->collection,
                                   .namespace =
                                       json_str(json_at(a->old, "metadata", "namespace", NULL)),
                                   .name = a->name};
    struct reference_claim *claim = ARENA_NEW(c->arena, struct reference_claim);
    struct reference_use use = {.user = STR_NONE};
    *claim = (struct reference_claim){.key = reference_key(c->arena, &self),
                                      .is_question = c->is_dry_run,
                                      .next = c->reference_claims};
    const int r = references_claim_removal(api_references(c->api), c->arena, claim, &use);
    if (r == 0)
        c->reference_claims = claim;
    /* Who uses it is changed together with it. */
    const bool is_freed = r < 0 && overlay_find(c->overlay, use.user);
    return r < 0 && !is_freed && !goes_with_namespace(c, self.namespace)
               ? refuse(a, &use, claim->key)
               : 0;
}

static void release(struct call *c)
{
    struct reference_claim *claim = TAKE(c->reference_claims);
    for (; claim; claim = claim->next)
        references_release(api_references(c->api), claim);
}

const struct admission_hook reference_rules = {
    .name = "references", .validate = validate, .remove = remove_object, .release = release};
