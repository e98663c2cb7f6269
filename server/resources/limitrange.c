/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/resources.h"

/* ---- defaults ----------------------------------------------------------------------------- */

/* Amounts of `from` that `to` does not have yet. */
static void copy_missing(struct arena *a, const struct json *from, struct json *to)
{
    JSON_FOR_EACH_MEMBER (from, m)
        if (!json_get(to, json_str(&m->key)))
            (void) json_append_member(a, to, json_str(&m->key), m->value);
    json_sort_members(to);
}

static struct json copy_of(struct arena *a, const struct json *v)
{
    return json_is(v, JSON_OBJECT) ? json_clone(a, v) : json_object();
}

/* A container's limit comes from the most it may have, its request from its limit or the least. */
static void default_item(struct arena *a, struct json *item)
{
    if (!str_is(json_get_str(item, STR("type")), "Container"))
        return;
    struct json limit = copy_of(a, json_get(item, STR("default")));
    struct json request = copy_of(a, json_get(item, STR("defaultRequest")));
    copy_missing(a, json_get(item, STR("max")), &limit);
    copy_missing(a, &limit, &request);
    copy_missing(a, json_get(item, STR("min")), &request);
    if (limit.n > 0)
        (void) json_set(a, item, STR("default"), limit);
    if (request.n > 0)
        (void) json_set(a, item, STR("defaultRequest"), request);
}

static void set_defaults(struct hook_context *h, struct json *object)
{
    const struct json *limits = json_at(object, "spec", "limits", NULL);
    JSON_FOR_EACH_ITEM (limits, item)
        default_item(h->arena, item);
}

/* ---- rules -------------------------------------------------------------------------------- */

/* One entry of spec.limits, by its five maps. */
struct limit {
    const struct json *type, *max, *min, *limit, *request, *ratio;
    const struct field_path *at;
    struct causes *causes;
};

static void check_type(struct causes *causes, const struct field_path *at, struct str type)
{
    static const char *const standard[] = {"Pod", "Container", "PersistentVolumeClaim"};
    const struct json value = shown(type);
    const struct name_errors errors = name_qualified(causes->arena, type);
    object_meta_add_errors(causes, at, type, &errors);
    bool is_known = errors.n > 0 || str_find(type, '/') >= 0;
    for (size_t i = 0; i < N_ELEMENTS(standard); i++)
        is_known |= str_is(type, standard[i]);
    if (!is_known)
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "must be a standard limit type or fully qualified");
}

static void check_names(const struct limit *l, const char *member, const struct json *amounts)
{
    const struct field_path at = FIELD_NAME(l->at, str_of(member));
    const bool is_container =
        str_is(json_str(l->type), "Pod") || str_is(json_str(l->type), "Container");
    JSON_FOR_EACH_MEMBER (amounts, m) {
        const struct field_path at_key = FIELD_KEY(&at, json_str(&m->key));
        if (is_container)
            check_container_resource_name(l->causes, &at_key, json_str(&m->key));
        else
            check_resource_name(l->causes, &at_key, json_str(&m->key));
    }
}

static void forbid_for_pod(const struct limit *l, const char *member, const struct json *amounts)
{
    if (json_count(amounts) > 0)
        causes_add(l->causes, CAUSE_FORBIDDEN, &FIELD_NAME(l->at, str_of(member)), NULL,
                   "may not be specified when `type` is 'Pod'");
}

/* One comparison: a must not be greater than b; the field and value that the message shows. */
struct order {
    const struct json *a, *b;
    const char *text_a, *text_b;
    const char *member;
    const struct json *value;
};

static void check_order(const struct limit *l, struct str key, struct order o)
{
    if (!o.a || !o.b)
        return;
    const struct quantity a = check_quantity(o.a), b = check_quantity(o.b);
    const struct field_path at = FIELD_NAME(l->at, str_of(o.member));
    if (quantity_compare(&a, &b) > 0)
        causes_add(l->causes, CAUSE_INVALID, &FIELD_KEY(&at, key), o.value,
                   "%s value %.*s is greater than %s value %.*s", o.text_a, STR_ARG(json_str(o.a)),
                   o.text_b, STR_ARG(json_str(o.b)));
}

static void check_ratio(const struct limit *l, struct str key)
{
    const struct json *ratio = json_get(l->ratio, key);
    const struct json *min = json_get(l->min, key), *max = json_get(l->max, key);
    const struct field_path at = FIELD_NAME(l->at, STR("maxLimitRequestRatio"));
    if (!ratio)
        return;
    const struct quantity q = check_quantity(ratio), one = quantity_from_int(1);
    if (quantity_compare(&q, &one) < 0)
        causes_add(l->causes, CAUSE_INVALID, &FIELD_KEY(&at, key), ratio,
                   "ratio %.*s is less than 1", STR_ARG(json_str(ratio)));
    if (!min || !max)
        return;
    const struct quantity low = check_quantity(min), high = check_quantity(max);
    const double most = quantity_double(&high) / quantity_double(&low);
    if (quantity_sign(&low) != 0 && quantity_double(&q) > most)
        causes_add(l->causes, CAUSE_INVALID, &FIELD_KEY(&at, key), ratio,
                   "ratio %.*s is greater than max/min = %f", STR_ARG(json_str(ratio)), most);
}

static void check_resource(const struct limit *l, struct str key)
{
    const struct json *min = json_get(l->min, key), *max = json_get(l->max, key);
    const struct json *limit = json_get(l->limit, key), *request = json_get(l->request, key);
    check_order(l, key, (struct order){min, max, "min", "max", "min", min});
    check_order(l, key,
                (struct order){min, request, "min", "default request", "defaultRequest", request});
    check_order(l, key,
                (struct order){request, max, "default request", "max", "defaultRequest", request});
    check_order(l, key,
                (struct order){request, limit, "default request", "default limit", "defaultRequest",
                               request});
    check_order(l, key, (struct order){min, limit, "min", "default", "default", min});
    check_order(l, key, (struct order){limit, max, "default", "max", "default", max});
    check_ratio(l, key);
    if (resource_can_overcommit(key) || !limit || !request)
        return;
    const struct quantity a = check_quantity(limit), b = check_quantity(request);
    const struct field_path at = FIELD_NAME(l->at, STR("defaultRequest"));
    if (quantity_compare(&a, &b) != 0)
        causes_add(l->causes, CAUSE_INVALID, &FIELD_KEY(&at, key), request,
                   "default value %.*s must equal to defaultRequest value %.*s in %.*s",
                   STR_ARG(json_str(limit)), STR_ARG(json_str(request)), STR_ARG(key));
}

/* Every resource that any of the maps names, once. */
static void check_resources(const struct limit *l)
{
    const struct json *const maps[] = {l->max, l->min, l->limit, l->request, l->ratio};
    for (size_t i = 0; i < N_ELEMENTS(maps); i++)
        JSON_FOR_EACH_MEMBER (maps[i], m) {
            bool is_known = false;
            for (size_t j = 0; j < i; j++)
                is_known |= json_get(maps[j], json_str(&m->key)) != NULL;
            if (!is_known)
                check_resource(l, json_str(&m->key));
        }
}

static void check_item(struct causes *causes, const struct field_path *at, const struct json *item)
{
    const struct json type = shown(json_get_str(item, STR("type")));
    const bool is_pod = str_is(json_str(&type), "Pod");
    struct limit l = {
        .type = &type,
        .max = json_get(item, STR("max")),
        .min = json_get(item, STR("min")),
        .limit = is_pod ? NULL : json_get(item, STR("default")),
        .request = is_pod ? NULL : json_get(item, STR("defaultRequest")),
        .ratio = json_get(item, STR("maxLimitRequestRatio")),
        .at = at,
        .causes = causes,
    };
    check_names(&l, "max", l.max);
    check_names(&l, "min", l.min);
    if (is_pod) {
        forbid_for_pod(&l, "default", json_get(item, STR("default")));
        forbid_for_pod(&l, "defaultRequest", json_get(item, STR("defaultRequest")));
    }
    check_names(&l, "default", l.limit);
    check_names(&l, "defaultRequest", l.request);
    if (str_is(json_str(&type), "PersistentVolumeClaim") && !json_get(l.min, STR("storage")) &&
        !json_get(l.max, STR("storage")))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, STR("limits")), NULL,
                   "either minimum or maximum storage value is required, but neither was provided");
    check_names(&l, "maxLimitRequestRatio", l.ratio);
    check_resources(&l);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at = FIELD_NAME(&at_spec, STR("limits"));
    const struct json *limits = json_at(object, "spec", "limits", NULL);
    for (size_t i = 0; i < json_count(limits); i++) {
        const struct field_path at_item = FIELD_INDEX(&at, (int64_t) i);
        const struct field_path at_type = FIELD_NAME(&at_item, STR("type"));
        const struct json type = shown(json_get_str(&limits->items[i], STR("type")));
        check_type(causes, &at_type, json_str(&type));
        for (size_t j = 0; j < i; j++)
            if (str_eq(json_get_str(&limits->items[j], STR("type")), json_str(&type))) {
                causes_add(causes, CAUSE_DUPLICATE, &at_type, &type, "%s", "");
                break;
            }
        check_item(causes, &at_item, &limits->items[i]);
    }
}

const struct kind_hooks limitrange_hooks = {
    .group = STR(""),
    .plural = STR("limitranges"),
    .set_defaults = set_defaults,
    .validate = validate,
    .creates_on_update = true,
};
