/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of kinds and of the discovery documents, named and described as kube-apiserver
 * does. */
#include <ctype.h>

#include "api/openapi_internal.h"

#define STATUS_DEFINITION META_PREFIX "Status"

#define WRITE_PARAMETERS \
    (PARAMETER_BIT(PARAMETER_DRY_RUN) | PARAMETER_BIT(PARAMETER_FIELD_VALIDATION))
#define DELETE_PARAMETERS \
    (PARAMETER_BIT(PARAMETER_DRY_RUN) | PARAMETER_BIT(PARAMETER_GRACE_PERIOD_SECONDS) | \
     PARAMETER_BIT(PARAMETER_IGNORE_STORE_READ_ERROR_WITH_CLUSTER_BREAKING_POTENTIAL) | \
     PARAMETER_BIT(PARAMETER_ORPHAN_DEPENDENTS) | PARAMETER_BIT(PARAMETER_PROPAGATION_POLICY))
#define SELECT_PARAMETERS \
    (PARAMETER_BIT(PARAMETER_CONTINUE) | PARAMETER_BIT(PARAMETER_FIELD_SELECTOR) | \
     PARAMETER_BIT(PARAMETER_LABEL_SELECTOR) | PARAMETER_BIT(PARAMETER_LIMIT) | \
     PARAMETER_BIT(PARAMETER_RESOURCE_VERSION) | PARAMETER_BIT(PARAMETER_RESOURCE_VERSION_MATCH) | \
     PARAMETER_BIT(PARAMETER_SEND_INITIAL_EVENTS) | PARAMETER_BIT(PARAMETER_SHARD_SELECTOR) | \
     PARAMETER_BIT(PARAMETER_TIMEOUT_SECONDS))
#define LIST_PARAMETERS \
    (SELECT_PARAMETERS | PARAMETER_BIT(PARAMETER_ALLOW_WATCH_BOOKMARKS) | \
     PARAMETER_BIT(PARAMETER_WATCH))

/* One line per verb: how it is asked, called and answered. */
struct verb_form {
    enum verb verb;
    const char *method, *action;
    const char *prefix;  /* of the operation's id */
    const char *tail;    /* between group version and the rest of the id */
    const char *words;   /* of the description */
    unsigned parameters; /* `pretty` is everywhere */
    enum openapi_body body;
    bool answers_status;
    bool can_create, can_accept; /* 201, 202 */
};

static const struct verb_form forms[] = {
    {VERB_LIST, "get", "list", "list", "", "list", LIST_PARAMETERS, BODY_NONE, false, false, false},
    {VERB_CREATE, "post", "post", "create", "", "create",
     WRITE_PARAMETERS | PARAMETER_BIT(PARAMETER_FIELD_MANAGER), BODY_OBJECT, false, true, true},
    {VERB_DELETE_COLLECTION, "delete", "deletecollection", "delete", "Collection",
     "delete collection of", DELETE_PARAMETERS | SELECT_PARAMETERS, BODY_DELETE_OPTIONS, true,
     false, false},
    {VERB_GET, "get", "get", "read", "", "read", 0, BODY_NONE, false, false, false},
    {VERB_UPDATE, "put", "put", "replace", "", "replace",
     WRITE_PARAMETERS | PARAMETER_BIT(PARAMETER_FIELD_MANAGER), BODY_OBJECT, false, true, false},
    {VERB_DELETE, "delete", "delete", "delete", "", "delete", DELETE_PARAMETERS,
     BODY_DELETE_OPTIONS, true, false, true},
    {VERB_PATCH, "patch", "patch", "patch", "", "partially update",
     WRITE_PARAMETERS | PARAMETER_BIT(PARAMETER_FIELD_MANAGER_PATCH) |
         PARAMETER_BIT(PARAMETER_FORCE),
     BODY_PATCH, false, true, false},
};

/* ---- names -------------------------------------------------------------------------------- */

/* Letters and digits, what follows anything else in upper case. */
static void append_identifier(struct buf *out, struct str s, bool capitalize)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char) s.p[i];
        if (isalpha(c) || c == '_' || (i > 0 && isdigit(c))) {
            buf_append_char(out, (char) (capitalize ? toupper(c) : c));
            capitalize = false;
        } else {
            capitalize = true;
        }
    }
}

static struct str short_group(struct str group)
{
    if (!group.n)
        return STR("core");
    const struct str suffix = STR(".k8s.io");
    return str_ends_with(group, suffix) ? str_sub(group, 0, group.n - suffix.n) : group;
}

/* "CoordinationV1", with its first letter as asked. */
static void append_group_version(struct buf *out, struct str group, struct str version)
{
    append_identifier(out, short_group(group), true);
    append_identifier(out, version, true);
}

static struct str make_tag(struct arena *a, struct str group, struct str version)
{
    BUF_AUTO b = {0};
    append_identifier(&b, short_group(group), false);
    if (version.n) {
        buf_append_char(&b, '_');
        append_identifier(&b, version, false);
    }
    return arena_str(a, buf_str(&b));
}

static struct str make_id(struct arena *a, const struct verb_form *f, const struct kind *k,
                          struct str subresource, bool all_namespaces)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, str_of(f->prefix));
    append_group_version(&b, k->group, k->version);
    buf_append_str(&b, str_of(f->tail));
    if (k->is_namespaced && !all_namespaces)
        buf_append_str(&b, STR("Namespaced"));
    append_identifier(&b, k->kind, true);
    append_identifier(&b, subresource, true);
    if (all_namespaces)
        buf_append_str(&b, STR("ForAllNamespaces"));
    return arena_str(a, buf_str(&b));
}

/* " a ", " an ", or a blank before a plural. */
static const char *article(struct str noun)
{
    if (str_ends_with(noun, STR("s")) && !str_ends_with(noun, STR("ss")))
        return " ";
    return noun.n && strchr("aeiouAEIOU", noun.p[0]) ? " an " : " a ";
}

static struct str make_description(struct arena *a, const struct verb_form *f, const struct kind *k,
                                   struct str subresource)
{
    const char *between = " the specified ";
    const char *words = f->words;
    if (f->verb == VERB_LIST) {
        between = " objects of kind ";
        words = k->is_native ? "list or watch" : "list";
    } else if (f->verb == VERB_CREATE || f->verb == VERB_DELETE) {
        between = article(k->kind);
    } else if (f->verb == VERB_DELETE_COLLECTION) {
        between = " ";
    }
    if (subresource.n)
        return arena_printf(a, "%s %.*s of%s%.*s", words, STR_ARG(subresource), between,
                            STR_ARG(k->kind));
    return arena_printf(a, "%s%s%.*s", words, between, STR_ARG(k->kind));
}

/* ---- operations --------------------------------------------------------------------------- */

static void add_response(struct openapi_operation *o, int code, const char *text,
                         struct str definition)
{
    o->responses[o->n_responses++] = (struct openapi_response){code, text, definition};
}

static void add_responses(struct openapi_operation *o, const struct verb_form *f,
                          struct str definition)
{
    add_response(o, 200, "OK", definition);
    /* Of custom resources kube-apiserver does not say that a patch can create. */
    if (f->can_create && (o->is_native || f->verb != VERB_PATCH))
        add_response(o, 201, "Created", definition);
    if (f->can_accept)
        add_response(o, 202, "Accepted", definition);
    add_response(o, 401, "Unauthorized", STR_NONE);
}

static unsigned verb_parameters(const struct verb_form *f, const struct kind *k)
{
    unsigned parameters = f->parameters | PARAMETER_BIT(PARAMETER_PRETTY);
    if (k->is_native)
        return parameters;
    if (f->verb == VERB_GET)
        parameters |= PARAMETER_BIT(PARAMETER_RESOURCE_VERSION);
    if (f->verb == VERB_DELETE_COLLECTION)
        parameters = LIST_PARAMETERS | PARAMETER_BIT(PARAMETER_PRETTY);
    return parameters;
}

/* The definition of an object that a subresource speaks. */
static struct str subresource_definition(struct openapi_builder *b, const struct kind *k,
                                         const struct kind_subresource *s)
{
    if (str_eq(s->kind, k->kind) && str_eq(s->group, k->group))
        return k->definition;
    const struct str api_version =
        s->group.n ? arena_printf(b->a, "%.*s/%.*s", STR_ARG(s->group), STR_ARG(s->version))
                   : s->version;
    const struct kind *other = registry_find_kind(b->registry, api_version, s->kind);
    if (other) {
        openapi_add_kind(b, other);
        return other->definition;
    }
    struct str package = short_group(s->group);
    const ptrdiff_t dot = str_find(package, '.');
    if (dot > 0)
        package = str_sub(package, 0, (size_t) dot);
    const struct str definition = arena_printf(b->a, "io.k8s.api.%.*s.%.*s.%.*s", STR_ARG(package),
                                               STR_ARG(s->version), STR_ARG(s->kind));
    openapi_add_opaque(b, definition, s->group, s->version, s->kind);
    return definition;
}

static void add_operation(struct openapi_builder *b, struct openapi_path *p,
                          const struct verb_form *f, const struct kind *k,
                          const struct kind_subresource *s, bool all_namespaces)
{
    struct openapi_operation *o = &p->operations[p->n_operations++];
    const struct str subresource = s ? s->name : STR("");
    const struct str definition = s ? subresource_definition(b, k, s) : k->definition;
    const bool has_own_kind = s && k->is_native;
    *o = (struct openapi_operation){
        .method = f->method,
        .action = f->action,
        .id = make_id(b->a, f, k, subresource, all_namespaces),
        .tag = make_tag(b->a, k->group, k->version),
        .description = make_description(b->a, f, k, subresource),
        .parameters = verb_parameters(f, k),
        .body = f->body,
        .body_definition = f->body == BODY_PATCH            ? STR(META_PREFIX "Patch")
                           : f->body == BODY_DELETE_OPTIONS ? STR(META_PREFIX "DeleteOptions")
                                                            : definition,
        .is_native = k->is_native,
        .is_list = f->verb == VERB_LIST,
        .group = has_own_kind ? s->group : k->group,
        .version = has_own_kind ? s->version : k->version,
        .kind = has_own_kind ? s->kind : k->kind,
    };
    if (!k->is_native && f->verb == VERB_DELETE_COLLECTION)
        o->body = BODY_NONE;
    add_responses(o, f,
                  f->answers_status ? STR(STATUS_DEFINITION)
                  : o->is_list      ? openapi_list_definition(b->a, k)
                                    : definition);
}

/* Parameters that all operations have are said once, at the path. */
static void finish_path(struct openapi_builder *b, struct openapi_path *p)
{
    if (p->n_operations == 0)
        return;
    unsigned common = ~0u;
    for (size_t i = 0; i < p->n_operations; i++)
        common &= p->operations[i].parameters;
    for (size_t i = 0; i < p->n_operations; i++)
        p->operations[i].parameters &= ~common;
    p->parameters = common;
    if (b->version == OPENAPI_V2)
        openapi_v2_add_path(b, p);
    else
        openapi_v3_add_path(b, p);
}

static void add_verbs(struct openapi_builder *b, struct openapi_path *p, unsigned verbs,
                      const struct kind *k, const struct kind_subresource *s)
{
    for (size_t i = 0; i < N_ELEMENTS(forms); i++)
        if (verbs & VERB_BIT(forms[i].verb))
            add_operation(b, p, &forms[i], k, s, /* all_namespaces= */ false);
}

static void add_subresource(struct openapi_builder *b, const struct kind *k, struct str item,
                            const struct kind_subresource *s)
{
    struct openapi_path p = {.path =
                                 arena_printf(b->a, "%.*s/%.*s", STR_ARG(item), STR_ARG(s->name)),
                             .name_of = s->kind,
                             .has_namespace = k->is_namespaced};
    add_verbs(b, &p, s->verbs, k, s);
    finish_path(b, &p);
}

static void add_kind_paths(struct openapi_builder *b, const struct kind *k, struct str root)
{
    const unsigned of_collection =
        VERB_BIT(VERB_LIST) | VERB_BIT(VERB_CREATE) | VERB_BIT(VERB_DELETE_COLLECTION);
    openapi_add_kind(b, k);
    struct str collection = arena_printf(b->a, "%.*s/%.*s", STR_ARG(root), STR_ARG(k->plural));
    if (k->is_namespaced) {
        if (k->verbs & VERB_BIT(VERB_LIST)) {
            struct openapi_path all = {.path = collection};
            add_operation(b, &all, &forms[0], k, NULL, /* all_namespaces= */ true);
            finish_path(b, &all);
        }
        collection = arena_printf(b->a, "%.*s/namespaces/{namespace}/%.*s", STR_ARG(root),
                                  STR_ARG(k->plural));
    }
    struct openapi_path whole = {.path = collection, .has_namespace = k->is_namespaced};
    add_verbs(b, &whole, k->verbs & of_collection, k, NULL);
    finish_path(b, &whole);

    struct openapi_path item = {.path = arena_printf(b->a, "%.*s/{name}", STR_ARG(collection)),
                                .name_of = k->kind,
                                .has_namespace = k->is_namespaced};
    add_verbs(b, &item, k->verbs & ~of_collection & ~VERB_BIT(VERB_WATCH), k, NULL);
    finish_path(b, &item);

    for (size_t i = 0; i < k->n_subresources; i++)
        add_subresource(b, k, item.path, &k->subresources[i]);
}

/* ---- discovery ---------------------------------------------------------------------------- */

static void add_document(struct openapi_builder *b, struct str path, struct str id, struct str tag,
                         const char *description, struct str definition)
{
    struct openapi_path p = {.path = path, .n_operations = 1};
    struct openapi_operation *o = &p.operations[0];
    *o = (struct openapi_operation){.method = "get",
                                    .id = id,
                                    .tag = tag,
                                    .description = str_of(description),
                                    .is_native = true};
    add_response(o, 200, "OK", definition);
    add_response(o, 401, "Unauthorized", STR_NONE);
    finish_path(b, &p);
}

void openapi_add_core_versions(struct openapi_builder *b)
{
    add_document(b, STR("/api/"), STR("getCoreAPIVersions"), STR("core"),
                 "get available API versions", STR(META_PREFIX "APIVersions"));
}

void openapi_add_groups(struct openapi_builder *b)
{
    add_document(b, STR("/apis/"), STR("getAPIVersions"), STR("apis"), "get available API versions",
                 STR(META_PREFIX "APIGroupList"));
}

void openapi_add_release(struct openapi_builder *b)
{
    add_document(b, STR("/version/"), STR("getCodeVersion"), STR("version"),
                 "get the version information for this server",
                 STR("io.k8s.apimachinery.pkg.version.Info"));
}

void openapi_add_group(struct openapi_builder *b, const struct registry_group *g)
{
    BUF_AUTO id = {0};
    buf_append_str(&id, STR("get"));
    append_identifier(&id, short_group(g->name), true);
    buf_append_str(&id, STR("APIGroup"));
    add_document(b, arena_printf(b->a, "/apis/%.*s/", STR_ARG(g->name)),
                 arena_str(b->a, buf_str(&id)), make_tag(b->a, g->name, STR("")),
                 "get information of a group", STR(META_PREFIX "APIGroup"));
}

static void add_resources(struct openapi_builder *b, struct str root,
                          const struct registry_group *g, const struct registry_version *v)
{
    BUF_AUTO id = {0};
    buf_append_str(&id, STR("get"));
    append_group_version(&id, g->name, v->version);
    buf_append_str(&id, STR("APIResources"));
    add_document(b, arena_printf(b->a, "%.*s/", STR_ARG(root)), arena_str(b->a, buf_str(&id)),
                 make_tag(b->a, g->name, v->version), "get available resources",
                 STR(META_PREFIX "APIResourceList"));
}

void openapi_add_group_version(struct openapi_builder *b, const struct registry_group *g,
                               const struct registry_version *v)
{
    const struct str root =
        g->name.n ? arena_printf(b->a, "/apis/%.*s/%.*s", STR_ARG(g->name), STR_ARG(v->version))
                  : arena_printf(b->a, "/api/%.*s", STR_ARG(v->version));
    bool has_native = false;
    for (size_t i = 0; i < v->n_kinds; i++) {
        add_kind_paths(b, v->kinds[i], root);
        has_native = has_native || v->kinds[i]->is_native;
    }
    if (has_native)
        add_resources(b, root, g, v);
}
