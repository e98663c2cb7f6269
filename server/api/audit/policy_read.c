/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file in YAML, read strictly: what we do not understand might have been meant to hide or
 * to show something. */
#include <errno.h>
#include <stdio.h>

#include "api/audit/policy_internal.h"
#include "base/alloc.h"
#include "base/file.h"
#include "json/yaml.h"

struct reader {
    const char *path; /* of the file */
    struct arena *arena;
    char **ret_error;
};

static int fail(struct reader *r, struct str where, const char *format, ...) PRINTF_LIKE(3, 4);

static int fail(struct reader *r, struct str where, const char *format, ...)
{
    BUF_AUTO b = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&b, "audit policy %s: %.*s%s", r->path, STR_ARG(where), where.n ? ": " : "");
    buf_vprintf(&b, format, args);
    va_end(args);
    *r->ret_error = buf_take(&b);
    return -EINVAL;
}

static struct str child(struct reader *r, struct str where, struct str name)
{
    return arena_printf(r->arena, "%.*s%s%.*s", STR_ARG(where), where.n ? "." : "", STR_ARG(name));
}

static struct str at(struct reader *r, struct str where, size_t i)
{
    return arena_printf(r->arena, "%.*s[%zu]", STR_ARG(where), i);
}

/* ---- values --------------------------------------------------------------------------------- */

static int read_text(struct reader *r, struct str where, const struct json *v, void *to)
{
    if (!json_is(v, JSON_STRING))
        return fail(r, where, "must be a string");
    *(struct str *) to = json_str(v);
    return 0;
}

static int read_flag(struct reader *r, struct str where, const struct json *v, void *to)
{
    if (!json_is(v, JSON_BOOL))
        return fail(r, where, "must be true or false");
    *(bool *) to = v->b;
    return 0;
}

static int read_names(struct reader *r, struct str where, const struct json *v, void *to)
{
    struct policy_names *names = to;
    if (json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY))
        return fail(r, where, "must be a list of strings");
    names->items = ARENA_ARRAY(r->arena, struct str, v->n);
    JSON_FOR_EACH_ITEM (v, item) {
        int result = read_text(r, at(r, where, names->n), item, &names->items[names->n]);
        if (result < 0)
            return result;
        names->n++;
    }
    return 0;
}

static int read_paths(struct reader *r, struct str where, const struct json *v, void *to)
{
    struct policy_names *names = to;
    int result = read_names(r, where, v, to);
    for (size_t i = 0; result == 0 && i < names->n; i++) {
        struct str path = names->items[i];
        ptrdiff_t star = str_find(path, '*');
        if (str_is(path, "*"))
            continue;
        if (!str_starts_with(path, STR("/")))
            result = fail(r, at(r, where, i), "'%.*s' must begin with a '/'", STR_ARG(path));
        else if (star >= 0 && (size_t) star + 1 != path.n)
            result =
                fail(r, at(r, where, i), "'%.*s': a '*' must be the last character", STR_ARG(path));
    }
    return result;
}

/* The number of a word in a list that ends with NULL; -1: there is none. */
static int number_of(const char *const *words, struct str s)
{
    for (int i = 0; words[i]; i++)
        if (str_is(s, words[i]))
            return i;
    return -1;
}

static int read_level(struct reader *r, struct str where, const struct json *v, void *to)
{
    static const char *const levels[] = {"None", "Metadata", "Request", "RequestResponse", NULL};
    struct str text = STR_NONE;
    int result = read_text(r, where, v, &text);
    if (result < 0)
        return result;
    int level = number_of(levels, text);
    if (level < 0)
        return fail(r, where, "'%.*s' is none of None, Metadata, Request, RequestResponse",
                    STR_ARG(text));
    *(enum audit_level *) to = (enum audit_level) level;
    return 0;
}

static int read_stages(struct reader *r, struct str where, const struct json *v, void *to)
{
    static const char *const stages[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                         "Panic", NULL};
    struct policy_names names = {0};
    int result = read_names(r, where, v, &names);
    for (size_t i = 0; result == 0 && i < names.n; i++) {
        int stage = number_of(stages, names.items[i]);
        if (stage < 0)
            return fail(
                r, at(r, where, i),
                "'%.*s' is none of RequestReceived, ResponseStarted, ResponseComplete, Panic",
                STR_ARG(names.items[i]));
        *(unsigned *) to |= 1u << stage;
    }
    return result;
}

/* ---- objects -------------------------------------------------------------------------------- */

struct field {
    const char *name;
    int (*read)(struct reader *r, struct str where, const struct json *v, void *to);
    size_t offset;
};

static const struct field *find_field(const struct field *fields, struct str name)
{
    for (; fields->name; fields++)
        if (str_is(name, fields->name))
            return fields;
    return NULL;
}

static int read_object(struct reader *r, struct str where, const struct json *v,
                       const struct field *fields, void *to)
{
    if (!json_is(v, JSON_OBJECT))
        return fail(r, where, "must be an object");
    JSON_FOR_EACH_MEMBER (v, m) {
        const struct field *f = find_field(fields, json_str(&m->key));
        struct str below = child(r, where, json_str(&m->key));
        if (!f)
            return fail(r, below, "unknown field");
        int result = f->read(r, below, &m->value, (char *) to + f->offset);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_resource(struct reader *r, struct str where, const struct json *v,
                         struct policy_resources *to)
{
    static const struct field fields[] = {
        {"group", read_text, offsetof(struct policy_resources, group)},
        {"resources", read_names, offsetof(struct policy_resources, resources)},
        {"resourceNames", read_names, offsetof(struct policy_resources, names)},
        {0},
    };
    int result = read_object(r, where, v, fields, to);
    if (result < 0)
        return result;
    if (str_find(to->group, '/') >= 0)
        return fail(r, child(r, where, STR("group")), "'%.*s' must be a group without its version",
                    STR_ARG(to->group));
    if (to->names.n && !to->resources.n)
        return fail(r, child(r, where, STR("resourceNames")), "needs at least one resource");
    return 0;
}

static int read_resources(struct reader *r, struct str where, const struct json *v, void *to)
{
    struct policy_rule *rule = to;
    if (json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY))
        return fail(r, where, "must be a list");
    rule->resources = ARENA_ARRAY(r->arena, struct policy_resources, v->n);
    JSON_FOR_EACH_ITEM (v, item) {
        size_t i = rule->n_resources++;
        int result = read_resource(r, at(r, where, i), item, &rule->resources[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_rule(struct reader *r, struct str where, const struct json *v,
                     struct policy_rule *to)
{
    static const struct field fields[] = {
        {"level", read_level, offsetof(struct policy_rule, level)},
        {"users", read_names, offsetof(struct policy_rule, users)},
        {"userGroups", read_names, offsetof(struct policy_rule, groups)},
        {"verbs", read_names, offsetof(struct policy_rule, verbs)},
        {"resources", read_resources, 0},
        {"namespaces", read_names, offsetof(struct policy_rule, namespaces)},
        {"nonResourceURLs", read_paths, offsetof(struct policy_rule, paths)},
        {"omitStages", read_stages, offsetof(struct policy_rule, omitted_stages)},
        {"omitManagedFields", read_flag, offsetof(struct policy_rule, omit_managed_fields)},
        {0},
    };
    int result = read_object(r, where, v, fields, to);
    if (result < 0)
        return result;
    if (!json_get(v, STR("level")))
        return fail(r, child(r, where, STR("level")), "is required");
    if (to->paths.n && (to->n_resources || to->namespaces.n))
        return fail(r, child(r, where, STR("nonResourceURLs")),
                    "a rule is for resources or for paths, not for both");
    return 0;
}

static int read_rules(struct reader *r, struct str where, const struct json *v, void *to)
{
    struct audit_policy *p = to;
    if (!json_is(v, JSON_ARRAY))
        return fail(r, where, "must be a list");
    p->rules = ARENA_ARRAY(r->arena, struct policy_rule, v->n);
    JSON_FOR_EACH_ITEM (v, item) {
        size_t i = p->n_rules++;
        int result = read_rule(r, at(r, where, i), item, &p->rules[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_metadata(struct reader *r, struct str where, const struct json *v, void *to)
{
    (void) to;
    return json_is(v, JSON_OBJECT) ? 0 : fail(r, where, "must be an object");
}

static int read_constant(struct reader *r, struct str where, const struct json *v,
                         const char *expected)
{
    if (!str_is(json_str(v), expected))
        return fail(r, where, "must be %s", expected);
    return 0;
}

static int read_api_version(struct reader *r, struct str where, const struct json *v, void *to)
{
    (void) to;
    return read_constant(r, where, v, "audit.k8s.io/v1");
}

static int read_kind(struct reader *r, struct str where, const struct json *v, void *to)
{
    (void) to;
    return read_constant(r, where, v, "Policy");
}

/* What the policy says of all rules holds unless a rule says otherwise; stages add up. */
static void inherit(struct audit_policy *p, const struct json *v)
{
    const struct json *rules = json_get(v, STR("rules"));
    for (size_t i = 0; i < p->n_rules; i++) {
        p->rules[i].omitted_stages |= p->omitted_stages;
        if (!json_get(&rules->items[i], STR("omitManagedFields")))
            p->rules[i].omit_managed_fields = p->omit_managed_fields;
    }
}

static int read_policy(struct reader *r, const struct json *v, struct audit_policy *p)
{
    static const struct field fields[] = {
        {"apiVersion", read_api_version, 0},
        {"kind", read_kind, 0},
        {"metadata", read_metadata, 0},
        {"rules", read_rules, 0},
        {"omitStages", read_stages, offsetof(struct audit_policy, omitted_stages)},
        {"omitManagedFields", read_flag, offsetof(struct audit_policy, omit_managed_fields)},
        {0},
    };
    static const char *const required[] = {"apiVersion", "kind", "rules"};
    int result = read_object(r, STR(""), v, fields, p);
    for (size_t i = 0; result == 0 && i < N_ELEMENTS(required); i++)
        if (!json_get(v, str_of(required[i])))
            result = fail(r, str_of(required[i]), "is required");
    if (result == 0 && !p->n_rules)
        result = fail(r, STR("rules"), "there is none, so nothing would be recorded");
    if (result == 0)
        inherit(p, v);
    return result;
}

int audit_policy_parse(const char *path, struct str text, struct audit_policy **ret_policy,
                       char **ret_error)
{
    ARENA_AUTO a = arena_new();
    struct reader r = {path, a, ret_error};
    struct json_parse_result parsed = {0};
    struct audit_policy *p = ARENA_NEW(a, struct audit_policy);
    if (yaml_parse(a, text, &parsed) < 0)
        return fail(&r, STR(""), "%.*s", STR_ARG(parsed.error));
    if (parsed.duplicates)
        return fail(&r, parsed.duplicates->path, "stands there twice");
    int result = read_policy(&r, parsed.value, p);
    if (result < 0)
        return result;
    p->arena = TAKE(a);
    *ret_policy = p;
    return 0;
}

int audit_policy_load(const char *path, struct audit_policy **ret_policy, char **ret_error)
{
    BUF_AUTO text = {0}, b = {0};
    int r = file_read(path, AUDIT_POLICY_MAX_BYTES, &text);
    if (r == 0)
        return audit_policy_parse(path, buf_str(&text), ret_policy, ret_error);
    buf_printf(&b, "audit policy %s: cannot read it: %s", path, strerror(-r));
    *ret_error = buf_take(&b);
    return r;
}
