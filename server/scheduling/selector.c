/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/selector.h"

#define REQUIRED STR("requiredDuringSchedulingIgnoredDuringExecution")
#define PREFERRED STR("preferredDuringSchedulingIgnoredDuringExecution")

/* The Device as selectors see it. */
struct candidate {
    struct str name;
    const struct json *labels;
};

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* `name` is always the Device's name, whatever its labels say. STR_NONE: no such label. */
static struct str label_of(const struct candidate *d, struct str key)
{
    return str_is(key, "name") ? d->name : json_get_str(d->labels, key);
}

/* ---- one expression -------------------------------------------------------------------------- */

static bool is_among(struct str value, const struct json *values)
{
    JSON_FOR_EACH_ITEM (values, v)
        if (str_eq(json_str(v), value))
            return true;
    return false;
}

static bool is_ordered(struct str value, const struct json *values, bool is_greater)
{
    int64_t here, there;
    if (json_count(values) != 1 || str_to_i64(value, &here) < 0 ||
        str_to_i64(json_str(&values->items[0]), &there) < 0)
        return false;
    return is_greater ? here > there : here < there;
}

static bool is_unread(const struct json *values)
{
    return !is_absent(values) && !json_is(values, JSON_ARRAY);
}

static bool expression_holds(const struct json *expression, const struct candidate *d)
{
    const struct str key = json_get_str(expression, STR("key")), operator= json_get_str(
                                                                     expression, STR("operator"));
    const struct json *values = json_get(expression, STR("values"));
    if (!key.n || is_unread(values))
        return false;
    const struct str value = label_of(d, key);
    const size_t n = json_count(values);
    if (str_is(operator, "In"))
        return n > 0 && value.p && is_among(value, values);
    if (str_is(operator, "NotIn"))
        return n > 0 && !(value.p && is_among(value, values));
    if (str_is(operator, "Exists"))
        return n == 0 && value.p;
    if (str_is(operator, "DoesNotExist"))
        return n == 0 && !value.p;
    if (str_is(operator, "Gt") || str_is(operator, "Lt"))
        return value.p && is_ordered(value, values, str_is(operator, "Gt"));
    return false;
}

static bool field_holds(const struct json *field, const struct candidate *d)
{
    const struct str operator= json_get_str(field, STR("operator"));
    const struct json *values = json_get(field, STR("values"));
    if (!str_is(json_get_str(field, STR("key")), "metadata.name") || !json_is(values, JSON_ARRAY) ||
        values->n != 1)
        return false;
    if (str_is(operator, "In"))
        return is_among(d->name, values);
    return str_is(operator, "NotIn") && !is_among(d->name, values);
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* As in Kubernetes, a term that says nothing matches nothing. */
static bool term_holds(const struct json *term, const struct candidate *d)
{
    const struct json *expressions = json_get(term, STR("matchExpressions")),
                      *fields = json_get(term, STR("matchFields"));
    if (is_unread(expressions) || is_unread(fields) ||
        json_count(expressions) + json_count(fields) == 0)
        return false;
    JSON_FOR_EACH_ITEM (expressions, e)
        if (!expression_holds(e, d))
            return false;
    JSON_FOR_EACH_ITEM (fields, f)
        if (!field_holds(f, d))
            return false;
    return true;
}

static bool node_selector_holds(const struct json *selector, const struct candidate *d)
{
    if (is_absent(selector))
        return true;
    if (!json_is(selector, JSON_OBJECT))
        return false;
    JSON_FOR_EACH_MEMBER (selector, m) {
        const struct str value = label_of(d, json_str(&m->key));
        if (!value.p || !json_is(&m->value, JSON_STRING) || !str_eq(value, json_str(&m->value)))
            return false;
    }
    return true;
}

static bool required_holds(const struct json *required, const struct candidate *d)
{
    if (is_absent(required))
        return true;
    JSON_FOR_EACH_ITEM (json_get(required, STR("nodeSelectorTerms")), term)
        if (term_holds(term, d))
            return true;
    return false;
}

static const struct json *node_affinity(const struct json *spec)
{
    return json_at(spec, "affinity", "nodeAffinity", NULL);
}

bool device_selector_matches(const struct json *spec, struct str device_name,
                             const struct json *labels)
{
    const struct candidate d = {.name = device_name, .labels = labels};
    return node_selector_holds(json_get(spec, STR("nodeSelector")), &d) &&
           required_holds(json_get(node_affinity(spec), REQUIRED), &d);
}

int64_t device_selector_preference(const struct json *spec, struct str device_name,
                                   const struct json *labels)
{
    const struct candidate d = {.name = device_name, .labels = labels};
    int64_t sum = 0;
    JSON_FOR_EACH_ITEM (json_get(node_affinity(spec), PREFERRED), p) {
        const int64_t weight = json_get_int(p, STR("weight"), 0);
        if (weight >= 1 && weight <= SELECTOR_WEIGHT_MAX &&
            term_holds(json_get(p, STR("preference")), &d))
            sum += weight;
    }
    return sum;
}
