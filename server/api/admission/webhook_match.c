/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/webhooks_internal.h"

/* ---- rules -------------------------------------------------------------------------------- */

static bool is_namespaces(struct str group, struct str resource)
{
    return !group.n && str_is(resource, "namespaces");
}

/* Absent means that it does not matter. */
static bool has_or_star(const struct json *list, struct str wanted)
{
    if (!wanted.p)
        return true;
    JSON_FOR_EACH_ITEM (list, item)
        if (str_is(json_str(item), "*") || str_eq(json_str(item), wanted))
            return true;
    return false;
}

/* "things" and "*" mean no subresource, "things/" followed by "*" any or none. */
static bool resource_fits(struct str pattern, const struct webhook_target *t)
{
    const ptrdiff_t slash = str_find(pattern, '/');
    const struct str resource = slash < 0 ? pattern : str_sub(pattern, 0, (size_t) slash),
                     subresource = slash < 0 ? STR("") : str_from(pattern, (size_t) slash + 1);
    return (str_is(resource, "*") || str_eq(resource, t->resource)) &&
           (str_is(subresource, "*") || str_eq(subresource, t->subresource));
}

/* A Namespace is cluster-wide, although it counts as being in itself. */
static bool scope_fits(const struct webhook_rule *r, const struct webhook_target *t)
{
    const bool is_cluster_wide = !t->namespace.n || is_namespaces(t->group, t->resource);
    return r->scope == WEBHOOK_ANY_SCOPE || (r->scope == WEBHOOK_CLUSTER) == is_cluster_wide;
}

static bool rule_matches(const struct webhook_rule *r, const struct webhook_target *t)
{
    if (!(r->operations & t->operations) || !scope_fits(r, t) ||
        !has_or_star(r->groups, t->group) || !has_or_star(r->versions, t->version))
        return false;
    JSON_FOR_EACH_ITEM (r->resources, pattern)
        if (resource_fits(json_str(pattern), t))
            return true;
    return false;
}

bool webhook_rules_match(const struct webhook *h, const struct webhook_target *t)
{
    for (size_t i = 0; i < h->n_rules; i++)
        if (rule_matches(&h->rules[i], t))
            return true;
    return false;
}

bool webhook_is_exempt(const struct kind *k)
{
    static const char *const exempt[] = {
        "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
        "validatingadmissionpolicies",   "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",     "mutatingadmissionpolicybindings",
    };
    if (k->hooks && k->hooks->review)
        return true;
    if (!str_is(k->group, "admissionregistration.k8s.io"))
        return false;
    for (size_t i = 0; i < N_ELEMENTS(exempt); i++)
        if (str_is(k->plural, exempt[i]))
            return true;
    return false;
}

/* ---- questions ---------------------------------------------------------------------------- */

struct webhook_question webhook_question_of(struct admission *a)
{
    const struct call *c = a->call;
    const bool is_namespace = is_namespaces(c->kind->group, c->kind->plural);
    const struct json *shown = a->object ? a->object : a->old;
    return (struct webhook_question){
        .a = a,
        .operation = !a->object ? ADMISSION_DELETE
                     : a->old   ? ADMISSION_UPDATE
                                : ADMISSION_CREATE,
        .namespace = is_namespace ? json_str(json_at(shown, "metadata", "name", NULL))
                                  : c->in.path.namespace,
    };
}

static struct webhook_target target_of(const struct webhook_question *q, const struct kind *k)
{
    const struct call *c = q->a->call;
    return (struct webhook_target){.operations = q->operation,
                                   .group = k->group,
                                   .version = k->version,
                                   .resource = k->plural,
                                   .subresource = c->subresource ? c->subresource->name : STR(""),
                                   .namespace = q->namespace};
}

/* The same objects in another version or group, if the webhook takes them so. */
static const struct kind *find_equivalent(const struct webhook_question *q, const struct webhook *h)
{
    const struct call *c = q->a->call;
    const struct registry *r = c->registry;
    for (size_t i = 0; i < r->n_groups; i++)
        for (size_t j = 0; j < r->groups[i].n_versions; j++)
            for (size_t n = 0; n < r->groups[i].versions[j].n_kinds; n++) {
                const struct kind *k = r->groups[i].versions[j].kinds[n];
                const struct webhook_target t = target_of(q, k);
                if (k != c->kind && str_eq(k->collection, c->kind->collection) &&
                    (!c->subresource || kind_has_subresource(k, c->subresource->name, NULL)) &&
                    webhook_rules_match(h, &t))
                    return k;
            }
    return NULL;
}

/* ---- selectors ---------------------------------------------------------------------------- */

static int refuse_missing(struct call *c, struct str name)
{
    const struct kind *namespaces =
        registry_find(c->registry, STR(""), STR("v1"), STR("namespaces"));
    return namespaces ? status_not_found(&c->status, namespaces, name)
                      : status_no_resource(&c->status);
}

static int namespace_fits(const struct webhook_question *q, const struct webhook *h)
{
    struct call *c = q->a->call;
    const bool is_namespace = is_namespaces(c->kind->group, c->kind->plural);
    if (selector_is_empty(&h->namespaces) || (!q->namespace.n && !is_namespace))
        return 1;
    /* A Namespace that is being written has its labels from this very write. */
    if (is_namespace && q->a->object && !c->subresource)
        return selector_matches_labels(&h->namespaces,
                                       json_at(q->a->object, "metadata", "labels", NULL));
    struct str key = arena_printf(c->arena, "namespaces//%.*s", STR_ARG(q->namespace));
    CLEANUP(object_unrefp) struct object *o = store_get(api_store(c->api), key);
    return o ? selector_matches(&h->namespaces, o) : refuse_missing(c, q->namespace);
}

static bool labels_fit(const struct webhook_question *q, const struct webhook *h,
                       const struct json *object)
{
    /* A Scale has no labels. */
    const bool is_view = q->a->call->subresource && str_is(q->a->call->subresource->name, "scale");
    return object && selector_matches_labels(
                         &h->objects, is_view ? NULL : json_at(object, "metadata", "labels", NULL));
}

static bool object_fits(const struct webhook_question *q, const struct webhook *h)
{
    return selector_is_empty(&h->objects) || labels_fit(q, h, q->a->object) ||
           labels_fit(q, h, q->a->old);
}

int webhook_matches(const struct webhook_question *q, const struct webhook *h,
                    const struct kind **ret_kind)
{
    const struct kind *k = q->a->call->kind;
    const struct webhook_target t = target_of(q, k);
    if (!webhook_rules_match(h, &t))
        k = h->is_exact ? NULL : find_equivalent(q, h);
    if (!k)
        return 0;
    int r = namespace_fits(q, h);
    if (r <= 0 || !object_fits(q, h))
        return r < 0 ? r : 0;
    *ret_kind = k;
    return 1;
}
