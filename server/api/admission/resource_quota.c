/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuotas: a write that would use more of something than its namespace may is refused. */
#include "api/admission/admission.h"
#include "api/admission/quota_ledger.h"

/* The write being judged. */
struct demand {
    struct admission *a;
    struct quota_facts before, after;
};

/* The parts of a refusal: every limit of one quota that the write exceeds. */
struct excess {
    struct buf requested, used, limited;
};

static void excess_done(struct excess *x)
{
    buf_done(&x->requested);
    buf_done(&x->used);
    buf_done(&x->limited);
}

static void note(struct arena *a, struct buf *b, struct str resource, const struct quantity *q)
{
    buf_printf(b, "%s%.*s=%.*s", b->n ? "," : "", STR_ARG(resource), STR_ARG(quantity_text(a, q)));
}

static struct quantity amount(const struct json *v)
{
    struct quantity q = quantity_from_int(0);
    struct str ignored = STR_NONE;
    (void) quantity_parse(json_str(v), &q, &ignored); /* validated when it was written */
    return q;
}

/* How much more of it would be used. */
static struct quantity growth(const struct demand *d, const struct quota_limit *l)
{
    struct quantity now = quota_charge(l, &d->after);
    if (!d->a->old)
        return now;
    struct quantity was = quota_charge(l, &d->before);
    was.mantissa = -was.mantissa;
    return quantity_add(&now, &was);
}

/* Without "count/", only what Kubernetes itself counts has a name. */
static bool is_about(const struct quota_limit *l, const struct kind *kind)
{
    return str_eq(l->collection, kind->collection) && (l->is_count_asked || !kind->group.n);
}

static int check_limit(const struct demand *d, const struct json *quota,
                       const struct json_member *m, struct excess *x)
{
    struct call *c = d->a->call;
    struct str resource = json_str(&m->key);
    struct quota_limit limit = quota_limit_of(quota, resource);
    if (!is_about(&limit, c->kind))
        return 0;
    struct quantity more = growth(d, &limit), hard = amount(&m->value), used;
    if (quantity_sign(&more) <= 0)
        return 0;
    int r = quota_ledger_used(api_quota_ledger(c->api), api_store(c->api), &limit,
                              c->in.path.namespace, &used);
    if (r < 0)
        return status_from_store(&c->status, c->kind, d->a->name, r);
    struct quantity then = quantity_add(&used, &more);
    if (quantity_compare(&then, &hard) <= 0)
        return 0;
    note(c->arena, &x->requested, resource, &more);
    note(c->arena, &x->used, resource, &used);
    note(c->arena, &x->limited, resource, &hard);
    return 0;
}

static int check_quota(const struct demand *d, const struct json *quota)
{
    struct call *c = d->a->call;
    CLEANUP(excess_done) struct excess x = {0};
    JSON_FOR_EACH_MEMBER (json_at(quota, "spec", "hard", NULL), m) {
        int r = check_limit(d, quota, m, &x);
        if (r < 0)
            return r;
    }
    if (!x.requested.n)
        return 0;
    struct str name = json_str(json_at(quota, "metadata", "name", NULL));
    return status_forbidden(&c->status, c->kind, d->a->name,
                            "exceeded quota: %.*s, requested: %.*s, used: %.*s, limited: %.*s",
                            STR_ARG(name), STR_ARG(buf_str(&x.requested)),
                            STR_ARG(buf_str(&x.used)), STR_ARG(buf_str(&x.limited)));
}

/* What other threads read of this write. The object itself goes on changing. */
static struct quota_pending *pending_for(const struct demand *d)
{
    struct call *c = d->a->call;
    struct quota_pending *p = ARENA_NEW(c->arena, struct quota_pending);
    *p = (struct quota_pending){.collection = c->kind->collection,
                                .namespace = c->in.path.namespace,
                                .name = arena_str(c->arena, d->a->name),
                                .key = call_key(c, d->a->name),
                                .facts = d->after};
    p->facts.class = arena_str(c->arena, d->after.class);
    p->facts.attributes_class = arena_str(c->arena, d->after.attributes_class);
    p->facts.storage.text = STR_NONE;
    return p;
}

/* Checks and takes in one step, so that nobody comes between. */
static int take(const struct demand *d, const struct json *const *quotas, size_t n)
{
    struct call *c = d->a->call;
    struct quota_ledger *ledger = api_quota_ledger(c->api);
    int r = 0;
    quota_ledger_begin(ledger);
    for (size_t i = 0; i < n && r == 0; i++)
        r = check_quota(d, quotas[i]);
    if (r == 0 && !c->is_dry_run) {
        c->quota_pending = pending_for(d);
        quota_ledger_add(ledger, c->quota_pending);
    }
    quota_ledger_end(ledger);
    return r;
}

/* The quota as it limits this write, or NULL when it does not. */
static const struct json *quota_for(const struct demand *d, const struct object *o)
{
    struct call *c = d->a->call;
    struct json *quota = json_parse_quick(c->arena, object_text(o));
    struct json *hard = json_at(quota, "spec", "hard", NULL);
    bool has_any = false;
    JSON_FOR_EACH_MEMBER (hard, m) {
        struct quota_limit limit = quota_limit_of(quota, json_str(&m->key));
        struct quantity more = growth(d, &limit);
        has_any |= is_about(&limit, c->kind) && quantity_sign(&more) > 0;
    }
    if (has_any)
        json_sort_members(hard); /* refusals name them in order */
    return has_any ? quota : NULL;
}

static int check_all(struct admission *a, const struct store_page *page)
{
    struct call *c = a->call;
    struct demand d = {.a = a,
                       .before = quota_facts_of(c->kind->collection, a->old),
                       .after = quota_facts_of(c->kind->collection, a->object)};
    const struct json **quotas = ARENA_ARRAY(c->arena, const struct json *, page->n);
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++) {
        quotas[n] = quota_for(&d, page->objects[i]);
        n += quotas[n] != NULL;
    }
    return n ? take(&d, quotas, n) : 0;
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    bool may_grow = !a->old || str_is(c->kind->collection, QUOTA_CLAIMS);
    if (!c->kind->is_namespaced || c->subresource || !may_grow)
        return 0;
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range all = {.collection = STR("resourcequotas"),
                              .namespace = c->in.path.namespace};
    int r = store_list(api_store(c->api), &all, &page);
    if (r < 0)
        return status_from_store(&c->status, c->kind, a->name, r);
    return page.n ? check_all(a, &page) : 0;
}

static void release(struct call *c)
{
    struct quota_pending *p = TAKE(c->quota_pending);
    if (p)
        quota_ledger_remove(api_quota_ledger(c->api), p);
}

const struct admission_hook resource_quota = {
    .name = "resource quota", .validate = validate, .release = release};
