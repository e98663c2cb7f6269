/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanges: how much storage a claim may ask for, and must. Their other types speak of Pods. */
#include "api/admission/admission.h"
#include "api/quantity.h"

#define CLAIMS "persistentvolumeclaims"
#define CLAIM_TYPE "PersistentVolumeClaim"

/* What a LimitRange has against a claim; several reasons are given at once. */
struct complaints {
    struct arena *arena;
    const struct json *requests;
    struct str text;
    size_t n;
};

static void complain(struct complaints *cs, struct str why)
{
    cs->text =
        cs->n++ ? arena_printf(cs->arena, "%.*s, %.*s", STR_ARG(cs->text), STR_ARG(why)) : why;
}

static struct quantity amount(const struct json *v)
{
    struct quantity q = quantity_from_int(0);
    struct str ignored = STR_NONE;
    (void) quantity_parse(json_str(v), &q, &ignored); /* validated when it was written */
    return q;
}

/* sign: -1 when less than the bound is wrong, 1 when more is. */
static void check_bound(struct complaints *cs, struct str resource, const struct json *bound,
                        int sign)
{
    const char *extreme = sign < 0 ? "minimum" : "maximum";
    const struct json *given = json_get(cs->requests, resource);
    struct quantity enforced = amount(bound), request = amount(given);
    struct str limit = quantity_text(cs->arena, &enforced);
    int order = quantity_compare(&request, &enforced);
    if (!given)
        complain(cs,
                 arena_printf(cs->arena,
                              "%s %.*s usage per " CLAIM_TYPE " is %.*s.  No request is specified",
                              extreme, STR_ARG(resource), STR_ARG(limit)));
    else if (order * sign > 0)
        complain(cs, arena_printf(cs->arena,
                                  "%s %.*s usage per " CLAIM_TYPE " is %.*s, but request is %.*s",
                                  extreme, STR_ARG(resource), STR_ARG(limit),
                                  STR_ARG(quantity_text(cs->arena, &request))));
}

static void check_range(struct complaints *cs, const struct json *range)
{
    JSON_FOR_EACH_ITEM (json_at(range, "spec", "limits", NULL), limit) {
        if (!str_is(json_get_str(limit, STR("type")), CLAIM_TYPE))
            continue;
        JSON_FOR_EACH_MEMBER (json_get(limit, STR("min")), m)
            check_bound(cs, json_str(&m->key), &m->value, -1);
        JSON_FOR_EACH_MEMBER (json_get(limit, STR("max")), m)
            check_bound(cs, json_str(&m->key), &m->value, 1);
    }
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (!str_is(c->kind->collection, CLAIMS) || c->subresource ||
        json_at(a->old, "metadata", "deletionTimestamp", NULL))
        return 0;
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range all = {.collection = STR("limitranges"), .namespace = c->in.path.namespace};
    int r = store_list(api_store(c->api), &all, &page);
    if (r < 0)
        return status_from_store(&c->status, c->kind, a->name, r);
    for (size_t i = 0; i < page.n; i++) {
        struct complaints cs = {.arena = c->arena,
                                .requests =
                                    json_at(a->object, "spec", "resources", "requests", NULL)};
        check_range(&cs, json_parse_quick(c->arena, object_text(page.objects[i])));
        if (cs.n)
            return status_forbidden(&c->status, c->kind, a->name, cs.n > 1 ? "[%.*s]" : "%.*s",
                                    STR_ARG(cs.text));
    }
    return 0;
}

const struct admission_hook limit_range = {.name = "limit range", .validate = validate};
