/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quota.h"

#define STORAGE "requests.storage"
#define COUNT_PREFIX STR("count/")
#define CLASS_SUFFIX STR(".storageclass.storage.k8s.io/")
#define CLASS_ANNOTATION "volume.beta.kubernetes.io/storage-class"
#define ATTRIBUTES_SCOPE "VolumeAttributesClass"

/* "gold.storageclass.storage.k8s.io/requests.storage": what stands before and behind the suffix. */
static bool split_class(struct str resource, struct str *ret_class, struct str *ret_rest)
{
    ptrdiff_t slash = str_find(resource, '/');
    struct str before = str_sub(resource, 0, slash < 0 ? 0 : (size_t) slash + 1);
    if (!str_ends_with(before, CLASS_SUFFIX))
        return false;
    *ret_class = str_sub(before, 0, before.n - CLASS_SUFFIX.n);
    *ret_rest = str_from(resource, before.n);
    return true;
}

struct quota_limit quota_limit_of(const struct json *quota, struct str resource)
{
    struct quota_limit l = {.collection = resource, .class = STR_NONE, .quota = quota};
    struct str rest = resource;
    bool has_class = split_class(resource, &l.class, &rest);
    l.is_count_asked = str_starts_with(resource, COUNT_PREFIX);
    l.is_storage = str_is(rest, STORAGE);
    if (l.is_count_asked)
        l.collection = str_from(resource, COUNT_PREFIX.n);
    else if (has_class || l.is_storage)
        l.collection = STR(QUOTA_CLAIMS);
    return l;
}

static const struct json *scopes_of(const struct quota_limit *l)
{
    return json_at(l->quota, "spec", "scopes", NULL);
}

static const struct json *selector_of(const struct quota_limit *l)
{
    return json_at(l->quota, "spec", "scopeSelector", "matchExpressions", NULL);
}

bool quota_limit_is_plain(const struct quota_limit *l)
{
    return !l->class.p && !l->is_storage && !json_count(scopes_of(l)) &&
           !json_count(selector_of(l));
}

/* ---- objects ------------------------------------------------------------------------------ */

static struct quantity whole(const struct json *v)
{
    struct quantity q = quantity_from_int(0);
    struct str ignored = STR_NONE;
    if (quantity_parse(json_str(v), &q, &ignored) < 0)
        return quantity_from_int(0);
    quantity_round_whole(&q);
    return q;
}

/* A claim that was enlarged in vain goes on to occupy what it was given. */
static struct quantity storage_of(const struct json *claim)
{
    struct quantity asked = whole(json_at(claim, "spec", "resources", "requests", "storage", NULL));
    struct quantity given = whole(json_at(claim, "status", "allocatedResources", "storage", NULL));
    return quantity_compare(&given, &asked) > 0 ? given : asked;
}

struct quota_facts quota_facts_of(struct str collection, const struct json *object)
{
    struct quota_facts f = {.is_claim = str_is(collection, QUOTA_CLAIMS)};
    if (!f.is_claim)
        return f;
    const struct json *annotated =
        json_at(object, "metadata", "annotations", CLASS_ANNOTATION, NULL);
    f.class = json_str(annotated ? annotated : json_at(object, "spec", "storageClassName", NULL));
    f.attributes_class = json_str(json_at(object, "spec", "volumeAttributesClassName", NULL));
    f.storage = storage_of(object);
    return f;
}

/* ---- scopes ------------------------------------------------------------------------------- */

static bool has_text(const struct json *list, struct str text)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), text))
            return true;
    return false;
}

static bool matches(const struct json *condition, const struct quota_facts *f)
{
    struct str comparison = json_get_str(condition, STR("operator"));
    const struct json *values = json_get(condition, STR("values"));
    bool exists = f->attributes_class.n > 0;
    if (str_is(comparison, "Exists"))
        return exists;
    if (str_is(comparison, "DoesNotExist"))
        return !exists;
    bool is_listed = exists && has_text(values, f->attributes_class);
    return str_is(comparison, "In") ? is_listed : !is_listed;
}

/* All other scopes are about Pods, so a quota that has one says nothing of anything else. */
static bool is_in_scope(const struct quota_limit *l, const struct quota_facts *f)
{
    JSON_FOR_EACH_ITEM (scopes_of(l), scope)
        if (!f->is_claim || !str_is(json_str(scope), ATTRIBUTES_SCOPE) || !f->attributes_class.n)
            return false;
    JSON_FOR_EACH_ITEM (selector_of(l), condition)
        if (!f->is_claim || !str_is(json_get_str(condition, STR("scopeName")), ATTRIBUTES_SCOPE) ||
            !matches(condition, f))
            return false;
    return true;
}

struct quantity quota_charge(const struct quota_limit *l, const struct quota_facts *f)
{
    if ((l->class.p && !str_eq(l->class, f->class)) || !is_in_scope(l, f))
        return quantity_from_int(0);
    return l->is_storage ? f->storage : quantity_from_int(1);
}
