/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about rights: may somebody, may I, what may I. Answered from the same index that
 * decides about requests. */
#include "api/auth/rbac.h"
#include "api/call.h"
#include "resources/checks.h"
#include "resources/resources.h"

#define AUTHORIZATION_GROUP "authorization.k8s.io"

/* ---- rules of a question ------------------------------------------------------------------- */

/* The value as Go prints the struct behind it. */
static struct json shown_path(struct arena *a, const struct json *attributes)
{
    struct json value = json_object();
    struct str path = json_get_str(attributes, STR("path")),
               verb = json_get_str(attributes, STR("verb"));
    (void) json_append_member(a, &value, STR("Path"), json_string(path.p ? path : STR("")));
    (void) json_append_member(a, &value, STR("Verb"), json_string(verb.p ? verb : STR("")));
    return value;
}

static const struct json *member(const struct json *object, const char *key)
{
    const struct json *m = json_get(object, str_of(key));
    return json_is(m, JSON_OBJECT) ? m : NULL;
}

static void check_selector(struct causes *causes, const struct field_path *at,
                           const struct json *selector)
{
    if (!selector)
        return;
    struct str raw = json_get_str(selector, STR("rawSelector"));
    size_t n = json_count(json_get(selector, STR("requirements")));
    const struct json value = json_string(raw);
    if (raw.n && n)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("rawSelector")), &value,
                   "may not specified at the same time as requirements");
    if (!raw.n && !n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, STR("requirements")), NULL,
                   "when spec.resourceAttributes.%.*s is specified, requirements or rawSelector is "
                   "required",
                   STR_ARG(at->name));
}

static void check_attributes(struct causes *causes, const struct json *spec)
{
    const struct json *resource = member(spec, "resourceAttributes"),
                      *path = member(spec, "nonResourceAttributes");
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_resource = FIELD_NAME(&at, STR("resourceAttributes"));
    const struct json none = json_null(), shown = shown_path(causes->arena, path);
    if (resource && path)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("nonResourceAttributes")), &shown,
                   "cannot be specified in combination with resourceAttributes");
    if (!resource && !path)
        causes_add(causes, CAUSE_INVALID, &at_resource, &none,
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
}

static void check_selectors(struct causes *causes, const struct json *spec)
{
    const struct json *resource = member(spec, "resourceAttributes");
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_resource = FIELD_NAME(&at, STR("resourceAttributes"));
    check_selector(causes, &FIELD_NAME(&at_resource, STR("fieldSelector")),
                   member(resource, "fieldSelector"));
    check_selector(causes, &FIELD_NAME(&at_resource, STR("labelSelector")),
                   member(resource, "labelSelector"));
}

static void check_subject(struct causes *causes, const struct json *spec)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json none = json_string(STR(""));
    if (!json_get_str(spec, STR("user")).n && !json_count(json_get(spec, STR("groups"))))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("user")), &none,
                   "at least one of user or group must be specified");
}

static void check_metadata(struct causes *causes, const struct json *object, bool has_namespace)
{
    const struct json *meta = json_get(object, STR("metadata"));
    bool is_empty = true;
    JSON_FOR_EACH_MEMBER (meta, m) {
        struct str key = json_str(&m->key);
        is_empty &= str_is(key, "managedFields") || (has_namespace && str_is(key, "namespace"));
    }
    if (is_empty)
        return;
    /* Go prints a struct there: members in their own order. */
    struct str shown = str_sub(json_text(causes->arena, meta), 0, CAUSE_VALUE_MAX_BYTES);
    causes_add_text(causes, CAUSE_INVALID, STR("metadata"), /* value= */ NULL,
                    arena_printf(causes->arena, "%.*s: must be empty%s", STR_ARG(shown),
                                 has_namespace ? " except for namespace" : ""));
}

static void check_local(struct causes *causes, const struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *resource = member(spec, "resourceAttributes"),
                      *path = member(spec, "nonResourceAttributes");
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_resource = FIELD_NAME(&at, STR("resourceAttributes"));
    struct str namespace = json_get_str(resource, STR("namespace"));
    const struct json value = json_string(namespace.p ? namespace : STR(""));
    const struct json shown = shown_path(causes->arena, path);
    if (resource &&
        !str_eq(namespace, json_get_str(json_get(object, STR("metadata")), STR("namespace"))))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at_resource, STR("namespace")), &value,
                   "must match metadata.namespace");
    if (path)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("nonResourceAttributes")), &shown,
                   "disallowed on this kind of request");
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct str text(const struct json *object, const char *key)
{
    struct str s = json_get_str(object, str_of(key));
    return s.p ? s : STR("");
}

static struct access_question question_of(const struct json *spec, const struct user *u)
{
    const struct json *resource = member(spec, "resourceAttributes"),
                      *path = member(spec, "nonResourceAttributes");
    if (!resource)
        return (struct access_question){
            .user = u, .verb = text(path, "verb"), .path = text(path, "path")};
    return (struct access_question){
        .user = u,
        .verb = text(resource, "verb"),
        .is_resource = true,
        .group = text(resource, "group"),
        .resource = text(resource, "resource"),
        .subresource = text(resource, "subresource"),
        .namespace = text(resource, "namespace"),
        .name = text(resource, "name"),
    };
}

/* Fails with the causes, or answers in the object's status. */
static int answer(struct call *c, struct json *object, const struct user *u,
                  const struct causes *causes)
{
    if (causes->n)
        return status_invalid(&c->status, STR(AUTHORIZATION_GROUP), STR(""), STR(""), causes);
    struct access_question q = question_of(json_get(object, STR("spec")), u);
    struct str reason = STR("");
    bool is_allowed = rbac_allows(api_rbac(c->api), &q, c->arena, &reason);
    struct json status = json_object();
    (void) json_append_member(c->arena, &status, STR("allowed"), json_bool(is_allowed));
    if (reason.n)
        (void) json_append_member(c->arena, &status, STR("reason"), json_string(reason));
    (void) json_set(c->arena, object, STR("status"), status);
    return 0;
}

/* The user a question is about. Who they are otherwise is of no account to roles. */
static struct user asked_user(struct arena *a, const struct json *spec)
{
    const struct json *list = json_get(spec, STR("groups"));
    struct str *groups = ARENA_ARRAY(a, struct str, json_count(list) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, group)
        groups[n++] = json_str(group);
    return (struct user){
        .name = text(spec, "user"), .groups = groups, .n_groups = n, .uid = text(spec, "uid")};
}

static int review_subject(struct call *c, struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    struct causes causes;
    causes_init(&causes, c->arena);
    check_attributes(&causes, spec);
    check_subject(&causes, spec);
    check_selectors(&causes, spec);
    check_metadata(&causes, object, /* has_namespace= */ false);
    struct user u = asked_user(c->arena, spec);
    return answer(c, object, &u, &causes);
}

static int review_local(struct call *c, struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    struct causes causes;
    causes_init(&causes, c->arena);
    check_attributes(&causes, spec);
    check_subject(&causes, spec);
    check_selectors(&causes, spec);
    check_metadata(&causes, object, /* has_namespace= */ true);
    check_local(&causes, object);
    struct user u = asked_user(c->arena, spec);
    return answer(c, object, &u, &causes);
}

static int review_self(struct call *c, struct json *object)
{
    struct causes causes;
    causes_init(&causes, c->arena);
    check_attributes(&causes, json_get(object, STR("spec")));
    check_selectors(&causes, json_get(object, STR("spec")));
    check_metadata(&causes, object, /* has_namespace= */ false);
    return answer(c, object, &c->in.user, &causes);
}

/* ---- rules --------------------------------------------------------------------------------- */

struct rule_lists {
    struct arena *arena;
    struct json resources, urls;
};

static void set_texts(struct arena *a, struct json *object, struct str key,
                      const struct rbac_texts *t)
{
    struct json array = json_array();
    for (size_t i = 0; i < t->n; i++)
        (void) json_push(a, &array, json_string(arena_str(a, t->items[i])));
    if (t->n)
        (void) json_append_member(a, object, key, array);
}

static void add_rule(void *ctx, const struct rbac_rule *rule)
{
    struct rule_lists *l = ctx;
    struct json object = json_object();
    set_texts(l->arena, &object, STR("verbs"), &rule->verbs);
    if (rule->urls.n) {
        set_texts(l->arena, &object, STR("nonResourceURLs"), &rule->urls);
        (void) json_push(l->arena, &l->urls, object);
    } else if (rule->resources.n) {
        set_texts(l->arena, &object, STR("apiGroups"), &rule->groups);
        set_texts(l->arena, &object, STR("resources"), &rule->resources);
        set_texts(l->arena, &object, STR("resourceNames"), &rule->names);
        (void) json_push(l->arena, &l->resources, object);
    }
}

/* Of what was sent nothing comes back, as in kube-apiserver. */
static int review_rules(struct call *c, struct json *object)
{
    struct arena *a = c->arena;
    struct str namespace = text(json_get(object, STR("spec")), "namespace");
    if (!namespace.n)
        return status_bad_request(&c->status, "no namespace on request");
    struct rule_lists lists = {a, json_array(), json_array()};
    rbac_visit_rules(api_rbac(c->api), &c->in.user, namespace, add_rule, &lists);
    struct json status = json_object();
    (void) json_append_member(a, &status, STR("resourceRules"), lists.resources);
    (void) json_append_member(a, &status, STR("nonResourceRules"), lists.urls);
    (void) json_append_member(a, &status, STR("incomplete"), json_bool(false));
    (void) json_set(a, object, STR("metadata"), json_object());
    (void) json_set(a, object, STR("spec"), json_object());
    (void) json_set(a, object, STR("status"), status);
    return 0;
}

const struct kind_hooks subjectaccessreview_hooks = {
    .group = STR(AUTHORIZATION_GROUP),
    .plural = STR("subjectaccessreviews"),
    .review = review_subject,
};

const struct kind_hooks localsubjectaccessreview_hooks = {
    .group = STR(AUTHORIZATION_GROUP),
    .plural = STR("localsubjectaccessreviews"),
    .review = review_local,
};

const struct kind_hooks selfsubjectaccessreview_hooks = {
    .group = STR(AUTHORIZATION_GROUP),
    .plural = STR("selfsubjectaccessreviews"),
    .review = review_self,
};

const struct kind_hooks selfsubjectrulesreview_hooks = {
    .group = STR(AUTHORIZATION_GROUP),
    .plural = STR("selfsubjectrulesreviews"),
    .review = review_rules,
};
