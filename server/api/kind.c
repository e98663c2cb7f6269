/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kind.h"

#include <errno.h>
#include <stdlib.h>

#include "api/hooks.h"
#include "api/registry.h"
#include "api/version.h"

/* What `kubectl get` shows when a definition names no columns. The text is part of the wire. */
#define CREATION_TIMESTAMP_DESCRIPTION \
    "CreationTimestamp is a timestamp representing the server time when this object was created. " \
    "It is not " \
    "guaranteed to be set in happens-before order across separate operations. Clients may not " \
    "set this value. It is " \
    "represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for " \
    "lists. More info: " \
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"

static const struct str verb_names[VERB_COUNT] = {
    [VERB_GET] = STR("get"),       [VERB_LIST] = STR("list"),
    [VERB_WATCH] = STR("watch"),   [VERB_CREATE] = STR("create"),
    [VERB_UPDATE] = STR("update"), [VERB_PATCH] = STR("patch"),
    [VERB_DELETE] = STR("delete"), [VERB_DELETE_COLLECTION] = STR("deletecollection"),
};

#define VERBS_ALL ((1u << VERB_COUNT) - 1)
#define VERBS_OF_STATUS (VERB_BIT(VERB_GET) | VERB_BIT(VERB_PATCH) | VERB_BIT(VERB_UPDATE))

struct str verb_name(enum verb v)
{
    return v < VERB_COUNT ? verb_names[v] : STR_NONE;
}

bool kind_has_subresource(const struct kind *k, struct str name,
                          const struct kind_subresource **ret)
{
    for (size_t i = 0; i < k->n_subresources; i++)
        if (str_eq(k->subresources[i].name, name)) {
            if (ret)
                *ret = &k->subresources[i];
            return true;
        }
    return false;
}

static struct str selectable_text(struct arena *a, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        return STR("");
    return v->type == JSON_STRING ? json_str(v) : json_text(a, v);
}

struct str kind_selectable_value(struct arena *a, const struct kind_selectable *field,
                                 const struct json *object)
{
    const struct str text = selectable_text(a, jsonpath_first(field->jsonpath, object));
    if (text.n > 0 || !field->or_else)
        return text;
    return selectable_text(a, jsonpath_first(field->or_else, object));
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* One manifest on its way to kinds; `version` changes from kind to kind. */
struct compiler {
    struct arena *arena;
    const struct json *spec;
    const struct json *names;
    const struct json *native; /* the `seth` key or NULL */
    const struct json *version;
    struct str *ret_error;
    int64_t since_revision; /* of the CRD; 0: built in */
    bool is_terminating;
};

static int fail(struct compiler *c, struct str what, struct str why)
{
    *c->ret_error = arena_printf(
        c->arena, "%.*s.%.*s: %.*s: %.*s", STR_ARG(json_get_str(c->names, STR("plural"))),
        STR_ARG(json_get_str(c->spec, STR("group"))), STR_ARG(what), STR_ARG(why));
    return -EINVAL;
}

static const struct str *string_list(struct arena *a, const struct json *list, size_t *ret_n)
{
    struct str *out = ARENA_ARRAY(a, struct str, json_count(list));
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, item)
        out[n++] = json_str(item);
    *ret_n = n;
    return out;
}

static unsigned verb_bits(const struct json *list)
{
    unsigned bits = 0;
    JSON_FOR_EACH_ITEM (list, item)
        for (unsigned v = 0; v < VERB_COUNT; v++)
            if (str_eq(json_str(item), verb_names[v]))
                bits |= VERB_BIT(v);
    return bits;
}

static int compile_path(struct compiler *c, struct str text, const struct jsonpath **ret_path)
{
    struct jsonpath *path;
    struct str error = STR("");
    const int r = jsonpath_compile(c->arena, text, &path, &error);
    if (r < 0)
        return fail(c, text, error);
    *ret_path = path;
    return 0;
}

/* ---- columns ---- */

static struct str column_description(struct compiler *c, const struct json *source)
{
    const struct str given = json_get_str(source, STR("description"));
    if (given.n > 0)
        return given;
    const struct str function = json_get_str(source, STR("function"));
    if (str_is(function, "age") || str_is(function, "created-at"))
        return STR(CREATION_TIMESTAMP_DESCRIPTION);
    return arena_printf(c->arena, "Custom resource definition column (in JSONPath format): %.*s",
                        STR_ARG(json_get_str(source, STR("jsonPath"))));
}

static int compile_column(struct compiler *c, const struct json *source, struct kind_column *column)
{
    *column = (struct kind_column){
        .name = json_get_str(source, STR("name")),
        .type = json_get_str(source, STR("type")),
        .format = json_get_str(source, STR("format")),
        .description = column_description(c, source),
        .priority = json_get_int(source, STR("priority"), 0),
        .function = json_get_str(source, STR("function")),
    };
    if (column->function.n > 0)
        return 0;
    return compile_path(c, json_get_str(source, STR("jsonPath")), &column->path);
}

static int compile_columns(struct compiler *c, struct kind *k)
{
    const struct json *list = json_get(c->native, STR("columns"));
    if (!list)
        list = json_get(c->version, STR("additionalPrinterColumns"));
    const size_t n = MAX(json_count(list), 1u);
    struct kind_column *columns = ARENA_ARRAY(c->arena, struct kind_column, n);
    k->columns = columns;
    k->n_columns = n;
    if (json_count(list) == 0) {
        columns[0] = (struct kind_column){.name = STR("Age"),
                                          .type = STR("date"),
                                          .description = STR(CREATION_TIMESTAMP_DESCRIPTION)};
        return compile_path(c, STR(".metadata.creationTimestamp"), &columns[0].path);
    }
    for (size_t i = 0; i < n; i++) {
        const int r = compile_column(c, &list->items[i], &columns[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- field selectors ---- */

/* A plain path ("spec.mode"), or an object with `jsonPath` and perhaps `field` and `orElse`. */
static int compile_selectable(struct compiler *c, const struct json *source,
                              struct kind_selectable *field)
{
    struct str path = json_get_str(source, STR("jsonPath"));
    if (json_is(source, JSON_STRING))
        path = arena_printf(c->arena, ".%.*s", STR_ARG(json_str(source)));
    field->path = json_get_str(source, STR("field"));
    if (field->path.n == 0)
        field->path = str_starts_with(path, STR(".")) ? str_from(path, 1) : path;
    const struct str or_else = json_get_str(source, STR("orElse"));
    const int r = compile_path(c, path, &field->jsonpath);
    if (r < 0 || or_else.n == 0)
        return r;
    return compile_path(c, or_else, &field->or_else);
}

static int compile_selectables(struct compiler *c, struct kind *k)
{
    const struct json *list = json_get(c->native, STR("selectableFields"));
    if (!list)
        list = json_get(c->version, STR("selectableFields"));
    struct kind_selectable *fields =
        ARENA_ARRAY(c->arena, struct kind_selectable, json_count(list));
    k->selectable = fields;
    JSON_FOR_EACH_ITEM (list, item) {
        const int r = compile_selectable(c, item, &fields[k->n_selectable]);
        if (r < 0)
            return r;
        k->n_selectable++;
    }
    return 0;
}

/* ---- subresources ---- */

static int compile_scale(struct compiler *c, const struct json *source, struct kind *k)
{
    struct kind_scale *scale = ARENA_NEW(c->arena, struct kind_scale);
    scale->spec_replicas_text = json_get_str(source, STR("specReplicasPath"));
    scale->status_replicas_text = json_get_str(source, STR("statusReplicasPath"));
    scale->label_selector_text = json_get_str(source, STR("labelSelectorPath"));
    k->scale = scale;
    int r = compile_path(c, scale->spec_replicas_text, &scale->spec_replicas);
    if (r < 0)
        return r;
    r = compile_path(c, scale->status_replicas_text, &scale->status_replicas);
    if (r < 0 || scale->label_selector_text.n == 0)
        return r;
    return compile_path(c, scale->label_selector_text, &scale->label_selector);
}

static struct kind_subresource native_subresource(const struct kind *k, const struct json *source)
{
    struct kind_subresource s = {
        .name = json_get_str(source, STR("name")),
        .group = json_get_str(source, STR("group")),
        .version = json_get_str(source, STR("version")),
        .kind = json_get_str(source, STR("kind")),
        .verbs = verb_bits(json_get(source, STR("verbs"))),
        .writes_status = json_get_bool(source, STR("writesStatus"), false),
    };
    if (s.kind.n == 0) {
        s.group = k->group;
        s.version = k->version;
        s.kind = k->kind;
    }
    return s;
}

static int compare_subresources(const void *a, const void *b)
{
    return str_cmp(((const struct kind_subresource *) a)->name,
                   ((const struct kind_subresource *) b)->name);
}

static int compile_subresources(struct compiler *c, struct kind *k)
{
    const struct json *source = json_get(c->version, STR("subresources"));
    const struct json *extra = json_get(c->native, STR("subresources"));
    struct kind_subresource *list =
        ARENA_ARRAY(c->arena, struct kind_subresource, json_count(extra) + 2);
    size_t n = 0;
    if (json_is(json_get(source, STR("status")), JSON_OBJECT)) {
        k->has_status = true;
        list[n++] = (struct kind_subresource){.name = STR("status"),
                                              .group = k->group,
                                              .version = k->version,
                                              .kind = k->kind,
                                              .verbs = VERBS_OF_STATUS,
                                              .writes_status = true};
    }
    const struct json *scale = json_get(source, STR("scale"));
    if (json_is(scale, JSON_OBJECT)) {
        const int r = compile_scale(c, scale, k);
        if (r < 0)
            return r;
        list[n++] = (struct kind_subresource){.name = STR("scale"),
                                              .group = STR("autoscaling"),
                                              .version = STR("v1"),
                                              .kind = STR("Scale"),
                                              .verbs = VERBS_OF_STATUS};
    }
    JSON_FOR_EACH_ITEM (extra, item)
        list[n++] = native_subresource(k, item);
    qsort(list, n, sizeof(*list), compare_subresources);
    k->subresources = list;
    k->n_subresources = n;
    return 0;
}

/* ---- names ---- */

/* example.org -> org.example, as OpenAPI names definitions. */
static struct str reverse_group(struct arena *a, struct str group)
{
    BUF_AUTO out = {0};
    struct str rest = group;
    while (rest.n > 0) {
        const ptrdiff_t dot = str_find_last(rest, '.');
        if (out.n > 0)
            buf_append_char(&out, '.');
        buf_append_str(&out, str_from(rest, (size_t) (dot + 1)));
        rest = str_sub(rest, 0, dot < 0 ? 0 : (size_t) dot);
    }
    return arena_str(a, buf_str(&out));
}

static void compile_names(struct compiler *c, struct kind *k)
{
    struct arena *a = c->arena;
    k->group = json_get_str(c->spec, STR("group"));
    k->version = json_get_str(c->version, STR("name"));
    k->api_version = k->group.n == 0
                         ? k->version
                         : arena_printf(a, "%.*s/%.*s", STR_ARG(k->group), STR_ARG(k->version));
    k->plural = json_get_str(c->names, STR("plural"));
    k->singular = json_get_str(c->names, STR("singular"));
    k->kind = json_get_str(c->names, STR("kind"));
    k->list_kind = json_get_str(c->names, STR("listKind"));
    if (k->list_kind.n == 0)
        k->list_kind = arena_printf(a, "%.*sList", STR_ARG(k->kind));
    k->short_names = string_list(a, json_get(c->names, STR("shortNames")), &k->n_short_names);
    k->categories = string_list(a, json_get(c->names, STR("categories")), &k->n_categories);

    k->collection = json_get_str(c->native, STR("storedAs"));
    if (k->collection.n == 0)
        k->collection = k->group.n == 0
                            ? k->plural
                            : arena_printf(a, "%.*s.%.*s", STR_ARG(k->plural), STR_ARG(k->group));
    k->definition = json_get_str(c->native, STR("definition"));
    if (k->definition.n == 0) {
        const struct str reversed = reverse_group(a, k->group);
        k->definition = arena_printf(a, "%.*s.%.*s.%.*s", STR_ARG(reversed), STR_ARG(k->version),
                                     STR_ARG(k->kind));
    }
}

/* ---- the whole ---- */

/* Names the best version that is served and not deprecated, if it ranks above this one. */
static struct str deprecation_text(struct compiler *c, const struct kind *k)
{
    struct str best = k->version;
    JSON_FOR_EACH_ITEM (json_get(c->spec, STR("versions")), version) {
        struct str name = json_get_str(version, STR("name"));
        if (json_get_bool(version, STR("served"), false) &&
            !json_get_bool(version, STR("deprecated"), false) && version_compare(name, best) > 0)
            best = name;
    }
    if (str_eq(best, k->version))
        return arena_printf(c->arena, "%.*s %.*s is deprecated", STR_ARG(k->api_version),
                            STR_ARG(k->kind));
    return arena_printf(c->arena, "%.*s %.*s is deprecated; use %.*s/%.*s %.*s",
                        STR_ARG(k->api_version), STR_ARG(k->kind), STR_ARG(k->group), STR_ARG(best),
                        STR_ARG(k->kind));
}

static void compile_flags(struct compiler *c, struct kind *k)
{
    k->since_revision = c->since_revision;
    k->is_terminating = c->is_terminating;
    k->is_native = json_get_bool(c->native, STR("native"), false);
    k->is_namespaced = str_is(json_get_str(c->spec, STR("scope")), "Namespaced");
    k->is_served = json_get_bool(c->version, STR("served"), false);
    k->is_storage = json_get_bool(c->version, STR("storage"), false);
    k->has_generation = json_get_bool(c->native, STR("generation"), !k->is_native);
    k->is_deprecated = json_get_bool(c->version, STR("deprecated"), false);
    if (k->is_deprecated) {
        k->deprecation_warning = json_get_str(c->version, STR("deprecationWarning"));
        if (!k->deprecation_warning.p)
            k->deprecation_warning = deprecation_text(c, k);
    }
    const struct json *verbs = json_get(c->native, STR("verbs"));
    k->verbs = verbs ? verb_bits(verbs) : VERBS_ALL;
}

static void attach_hooks(struct compiler *c, struct kind *k)
{
    k->hooks = kind_hooks_find(k->group, k->plural);
    if (k->hooks && json_get(c->native, STR("storedAs"))) {
        k->from_stored = k->hooks->from_stored;
        k->to_stored = k->hooks->to_stored;
    }
}

static int compile_schema(struct compiler *c, struct kind *k)
{
    const struct json *source = json_at(c->version, "schema", "openAPIV3Schema", NULL);
    if (!json_is(source, JSON_OBJECT))
        return 0;
    struct str error = STR("");
    if (schema_compile(c->arena, source, &k->schema, &error) < 0)
        return fail(c, STR("schema"), error);
    return 0;
}

static int compile_version(struct compiler *c, const struct kind **ret_kind)
{
    struct kind *k = ARENA_NEW(c->arena, struct kind);
    compile_names(c, k);
    compile_flags(c, k);
    attach_hooks(c, k);
    int (*const steps[])(struct compiler *, struct kind *) = {
        compile_schema, compile_columns, compile_selectables, compile_subresources};
    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        const int r = steps[i](c, k);
        if (r < 0)
            return r;
    }
    *ret_kind = k;
    return 0;
}

int kind_compile(struct arena *a, const struct json *manifest, const struct kind ***kinds,
                 size_t *n_kinds, struct str *ret_error)
{
    struct compiler c = {
        .arena = a,
        .spec = json_get(manifest, STR("spec")),
        .native = json_get(manifest, STR("seth")),
        .ret_error = ret_error,
        .is_terminating = json_str(json_at(manifest, "metadata", "deletionTimestamp", NULL)).n > 0,
    };
    (void) str_to_i64(json_str(json_at(manifest, "metadata", "resourceVersion", NULL)),
                      &c.since_revision);
    /* What was accepted may lag behind what is asked for, after a conflict of names. */
    c.names = json_at(manifest, "status", "acceptedNames", NULL);
    if (json_get_str(c.names, STR("plural")).n == 0)
        c.names = json_get(c.spec, STR("names"));
    if (json_get_str(c.names, STR("plural")).n == 0 || json_get_str(c.names, STR("kind")).n == 0)
        return fail(&c, STR("names"), STR("plural and kind are required"));

    const struct json *versions = json_get(c.spec, STR("versions"));
    JSON_FOR_EACH_ITEM (versions, version) {
        c.version = version;
        const struct kind *k;
        const int r = compile_version(&c, &k);
        if (r < 0)
            return r;
        *kinds = arena_grow(a, (void *) *kinds, *n_kinds, sizeof(k));
        (*kinds)[(*n_kinds)++] = k;
    }
    return 0;
}
