/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas as documents show them. A kind's schema is written in one form, that of CRDs; v3 takes it
 * nearly as it is, v2 without what it cannot say. Parts of native kinds that Kubernetes names
 * become definitions of their own. */

#include "api/openapi_internal.h"

#define CONVENTIONS \
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

/* Where a node stands. */
struct place {
    bool is_native;
    bool is_root;          /* a definition itself */
    bool is_element;       /* an item of a list, a value of a map */
    bool is_required;      /* a property its parent requires */
    struct str definition; /* publish the node under this name; STR_NONE: in place */
};

static struct json convert(struct openapi_builder *b, const struct json *node,
                           const struct place *at);

/* ---- references --------------------------------------------------------------------------- */

static void add_definition(struct openapi_builder *b, struct str name, struct json definition)
{
    json_append_member(b->a, &b->definitions, name, definition);
}

/* True when the caller must now add it. */
static bool claim_definition(struct openapi_builder *b, struct str name)
{
    if (map_get(&b->known_definitions, name))
        return false;
    const struct str key = arena_str(b->a, name);
    map_put(&b->known_definitions, key, (void *) key.p);
    return true;
}

/* Kinds such as DeleteOptions belong to every group version; a v3 document names its own. */
static void set_every_group(struct openapi_builder *b, struct json *definition, struct str kind)
{
    struct json list = json_array();
    if (b->group_version) {
        json_push(b->a, &list,
                  openapi_group_version_kind(b, b->group->name, b->group_version->version, kind));
    } else {
        for (size_t g = 0; g < b->registry->n_groups; g++) {
            const struct registry_group *group = &b->registry->groups[g];
            for (size_t v = 0; v < group->n_versions; v++)
                json_push(
                    b->a, &list,
                    openapi_group_version_kind(b, group->name, group->versions[v].version, kind));
        }
    }
    openapi_set(b, definition, "x-kubernetes-group-version-kind", list);
}

static bool add_meta_definition(struct openapi_builder *b, struct str name)
{
    bool is_of_every_group = false;
    const struct json source = openapi_meta_definition(b->a, name, &is_of_every_group);
    if (source.type == JSON_NULL)
        return false;
    if (!claim_definition(b, name))
        return true;
    const struct place at = {.is_native = true, .is_root = true};
    struct json definition = convert(b, &source, &at);
    if (is_of_every_group)
        set_every_group(b, &definition, str_from(name, (size_t) str_find_last(name, '.') + 1));
    add_definition(b, name, definition);
    return true;
}

struct json openapi_reference(struct openapi_builder *b, struct str definition)
{
    if (!map_get(&b->known_definitions, definition))
        (void) add_meta_definition(b, definition);
    const char *prefix = b->version == OPENAPI_V2 ? "#/definitions/" : "#/components/schemas/";
    struct json node = json_object();
    openapi_set_string(b, &node, "$ref", arena_printf(b->a, "%s%.*s", prefix, STR_ARG(definition)));
    return node;
}

/* A reference with a description and a default (each may be absent): beside $ref v3 allows nothing,
 * so it wraps. */
static struct json described_reference(struct openapi_builder *b, struct str definition,
                                       struct str description, const struct json *default_value)
{
    struct json reference = openapi_reference(b, definition), node = json_object();
    if (b->version == OPENAPI_V2) {
        if (description.n)
            openapi_set_string(b, &node, "description", description);
        openapi_set(b, &node, "$ref", reference.members[0].value);
        return node;
    }
    if (!description.n && !default_value)
        return reference;
    if (description.n)
        openapi_set_string(b, &node, "description", description);
    if (default_value)
        openapi_set(b, &node, "default", *default_value);
    struct json all = json_array();
    json_push(b->a, &all, reference);
    openapi_set(b, &node, "allOf", all);
    return node;
}

/* ---- native kinds ------------------------------------------------------------------------- */

/* The name Kubernetes has for what this node describes; STR_NONE: none. */
static struct str native_definition(const struct json *node, const struct place *at)
{
    const struct json *named = json_get(node, STR("x-seth-definition"));
    if (json_is(named, JSON_STRING))
        return json_str(named);
    if (json_is(named, JSON_OBJECT))
        return json_get_str(named, STR("name"));
    const struct str format = json_get_str(node, STR("format"));
    if (json_get_bool(node, STR("x-kubernetes-int-or-string"), false))
        return str_is(format, "quantity") ? STR("io.k8s.apimachinery.pkg.api.resource.Quantity")
                                          : STR("io.k8s.apimachinery.pkg.util.intstr.IntOrString");
    if (str_is(format, "micro-time"))
        return STR(META_PREFIX "MicroTime");
    if (str_is(format, "date-time"))
        return STR(META_PREFIX "Time");
    return json_get(node, STR("properties")) ? at->definition : STR_NONE;
}

/* Publishes the node itself as a definition. */
static void add_native_definition(struct openapi_builder *b, struct str name,
                                  const struct json *node)
{
    if (map_get(&b->known_definitions, name) || add_meta_definition(b, name) ||
        !claim_definition(b, name))
        return;
    struct json source = json_object();
    JSON_FOR_EACH_MEMBER (node, m) {
        if (!str_is(json_str(&m->key), "x-seth-definition") &&
            !str_is(json_str(&m->key), "default"))
            json_append_member(b->a, &source, json_str(&m->key), m->value);
    }
    const struct str description =
        json_get_str(json_get(node, STR("x-seth-definition")), STR("description"));
    if (description.n)
        json_set(b->a, &source, STR("description"), json_string(description));
    const struct place at = {.is_native = true, .is_root = true};
    add_definition(b, name, convert(b, &source, &at));
}

static struct json native_reference(struct openapi_builder *b, struct str name,
                                    const struct json *node, const struct place *at)
{
    add_native_definition(b, name, node);
    const struct json *default_value = json_get(node, STR("default"));
    if (json_is(default_value, JSON_NULL))
        default_value = NULL;
    const bool is_object = json_get(node, STR("properties")) ||
                           json_is(json_get(node, STR("x-seth-definition")), JSON_STRING);
    struct json empty = json_object();
    if (!default_value && at->is_element && is_object)
        default_value = &empty;
    return described_reference(
        b, name, at->is_element ? STR_NONE : json_get_str(node, STR("description")), default_value);
}

/* Go fields that are no pointers have their zero value as default. */
static void set_zero_default(struct openapi_builder *b, struct json *out, const struct place *at)
{
    if (!at->is_native || b->version == OPENAPI_V2 || (!at->is_element && !at->is_required) ||
        json_get(out, STR("default")))
        return;
    const struct str type = json_get_str(out, STR("type"));
    if (str_is(type, "string") && !json_get(out, STR("format")))
        openapi_set_string(b, out, "default", STR(""));
    else if (str_is(type, "integer") || str_is(type, "number"))
        openapi_set(b, out, "default", json_int(0));
    else if (str_is(type, "boolean"))
        openapi_set(b, out, "default", json_bool(false));
}

/* ---- nodes -------------------------------------------------------------------------------- */

static bool contains(const struct json *list, struct str text)
{
    JSON_FOR_EACH_ITEM (list, item) {
        if (str_eq(json_str(item), text))
            return true;
    }
    return false;
}

static struct json convert_properties(struct openapi_builder *b, const struct json *node,
                                      const struct json *properties, const struct place *at)
{
    struct json out = json_object();
    const struct json *required = json_get(node, STR("required"));
    JSON_FOR_EACH_MEMBER (properties, m) {
        const struct place below = {.is_native = at->is_native,
                                    .is_required = contains(required, json_str(&m->key))};
        json_append_member(b->a, &out, json_str(&m->key), convert(b, &m->value, &below));
    }
    json_sort_members(&out);
    return out;
}

/* v2 has no null: a property that may be null is not required. */
static struct json v2_required(struct openapi_builder *b, const struct json *node,
                               const struct json *required)
{
    struct json out = json_array();
    const struct json *properties = json_get(node, STR("properties"));
    if (json_get_bool(json_get(node, STR("additionalProperties")), STR("nullable"), false))
        return out;
    JSON_FOR_EACH_ITEM (required, item) {
        if (!json_get_bool(json_get(properties, json_str(item)), STR("nullable"), false))
            json_push(b->a, &out, *item);
    }
    return out;
}

struct v2_losses {
    bool children; /* items and properties: kubectl cannot cope with them beside an open type */
    bool type;
};

static struct v2_losses find_v2_losses(const struct json *node, bool is_native)
{
    const bool is_nullable = !is_native && json_get_bool(node, STR("nullable"), false);
    const bool is_open = json_get_bool(node, STR("x-kubernetes-preserve-unknown-fields"), false);
    const struct str type = json_get_str(node, STR("type"));
    const bool children = is_nullable || is_open;
    const bool is_bare_array = str_is(type, "array") && (children || !json_get(node, STR("items")));
    return (struct v2_losses){
        .children = children,
        .type = is_nullable || is_bare_array || (is_open && str_is(type, "object")),
    };
}

static bool is_dropped_in_v2(struct str key, const struct v2_losses *losses)
{
    static const char *const unknown[] = {"allOf", "anyOf", "oneOf", "not", "nullable", "default"};
    for (size_t i = 0; i < N_ELEMENTS(unknown); i++)
        if (str_is(key, unknown[i]))
            return true;
    return (losses->type && str_is(key, "type")) ||
           (losses->children && (str_is(key, "items") || str_is(key, "properties")));
}

/* What says how native kinds behave in Go, and is not shown: pointers, and fields that are written
 * as null. */
static bool is_dropped_in_v3(const struct json *node, const struct json_member *m, bool is_native)
{
    const struct str key = json_str(&m->key);
    return is_native &&
           (str_is(key, "nullable") || (str_is(key, "default") && m->value.type == JSON_NULL) ||
            (str_is(key, "type") && json_get(node, STR("oneOf"))));
}

/* An object within an object: apiVersion, kind and metadata are there too. */
static void set_embedded(struct openapi_builder *b, struct json *out)
{
    struct json *properties = json_ensure_object(b->a, out, STR("properties"));
    struct json text = json_object();
    openapi_set_string(b, &text, "type", STR("string"));
    struct json api_version = json_clone(b->a, &text), kind = json_clone(b->a, &text);
    openapi_set_string(
        b, &api_version, "description",
        STR("apiVersion defines the versioned schema of this representation of an object. More "
            "info: " CONVENTIONS "#resources"));
    openapi_set_string(
        b, &kind, "description",
        STR("kind is a string value representing the type of this object. In CamelCase. More "
            "info: " CONVENTIONS "#types-kinds"));
    json_set(b->a, properties, STR("apiVersion"), api_version);
    json_set(b->a, properties, STR("kind"), kind);
    json_set(b->a, properties, STR("metadata"),
             described_reference(
                 b, STR(META_PREFIX "ObjectMeta"),
                 STR("Standard object's metadata. More info: " CONVENTIONS "#metadata"), NULL));
    json_sort_members(properties);

    struct json required = json_array();
    static const char *const names[] = {"kind", "apiVersion"};
    JSON_FOR_EACH_ITEM (json_get(out, STR("required")), item)
        json_push(b->a, &required, *item);
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (!contains(&required, str_of(names[i])))
            json_push(b->a, &required, json_string(str_of(names[i])));
    json_set(b->a, out, STR("required"), required);
}

static void set_int_or_string(struct openapi_builder *b, struct json *out)
{
    static const char *const types[] = {"integer", "string"};
    struct json any = json_array();
    for (size_t i = 0; i < N_ELEMENTS(types); i++) {
        struct json type = json_object();
        openapi_set_string(b, &type, "type", str_of(types[i]));
        json_push(b->a, &any, type);
    }
    openapi_set(b, out, "anyOf", any);
}

static void convert_member(struct openapi_builder *b, const struct json *node,
                           const struct json_member *m, const struct place *at, struct json *out)
{
    const struct str key = json_str(&m->key);
    struct json value = m->value;
    if (str_is(key, "properties")) {
        value = convert_properties(b, node, &m->value, at);
    } else if ((str_is(key, "items") || str_is(key, "additionalProperties")) &&
               m->value.type == JSON_OBJECT) {
        const struct place below = {.is_native = at->is_native, .is_element = true};
        value = convert(b, &m->value, &below);
    } else if (str_is(key, "required") && b->version == OPENAPI_V2 && !at->is_native) {
        value = v2_required(b, node, &m->value);
        if (value.n == 0)
            return;
    }
    json_append_member(b->a, out, key, value);
}

static struct json convert(struct openapi_builder *b, const struct json *node,
                           const struct place *at)
{
    const struct str name = at->is_native && !at->is_root ? native_definition(node, at) : STR_NONE;
    if (name.n)
        return native_reference(b, name, node, at);

    const bool is_v2 = b->version == OPENAPI_V2;
    const struct v2_losses losses = find_v2_losses(node, at->is_native);
    struct json out = json_object();
    JSON_FOR_EACH_MEMBER (node, m) {
        const struct str key = json_str(&m->key);
        if (str_starts_with(key, STR("x-seth-")) ||
            (is_v2 ? is_dropped_in_v2(key, &losses) : is_dropped_in_v3(node, m, at->is_native)))
            continue;
        convert_member(b, node, m, at, &out);
    }
    set_zero_default(b, &out, at);
    const bool is_open = json_get_bool(node, STR("x-kubernetes-preserve-unknown-fields"), false);
    if (json_get_bool(node, STR("x-kubernetes-embedded-resource"), false) && !(is_v2 && is_open))
        set_embedded(b, &out);
    if (!is_v2 && json_get_bool(node, STR("x-kubernetes-int-or-string"), false) &&
        !json_get(node, STR("anyOf")))
        set_int_or_string(b, &out);
    return out;
}

/* ---- kinds -------------------------------------------------------------------------------- */

struct str openapi_list_definition(struct arena *a, const struct kind *k)
{
    const struct str package =
        str_sub(k->definition, 0, (size_t) str_find_last(k->definition, '.') + 1);
    return arena_printf(a, "%.*s%.*s", STR_ARG(package), STR_ARG(k->list_kind));
}

static void set_kind_extension(struct openapi_builder *b, struct json *out, const struct kind *k,
                               struct str kind)
{
    struct json list = json_array();
    json_push(b->a, &list, openapi_group_version_kind(b, k->group, k->version, kind));
    openapi_set(b, out, "x-kubernetes-group-version-kind", list);
}

static void set_type_meta(struct openapi_builder *b, struct json *properties)
{
    static const char *const names[] = {"apiVersion", "kind"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct json p = json_object();
        openapi_set_string(b, &p, "description", openapi_type_meta_description(str_of(names[i])));
        openapi_set_string(b, &p, "type", STR("string"));
        json_set(b->a, properties, str_of(names[i]), p);
    }
}

static void set_metadata(struct openapi_builder *b, struct json *properties, const struct kind *k,
                         bool is_list, struct str description)
{
    const struct json empty = json_object();
    json_set(b->a, properties, STR("metadata"),
             described_reference(
                 b, is_list ? STR(META_PREFIX "ListMeta") : STR(META_PREFIX "ObjectMeta"),
                 description, k->is_native ? &empty : NULL));
}

/* The parts of native kinds that are definitions by the custom of their names: LeaseSpec,
 * LeaseStatus. */
static struct str part_definition(struct arena *a, const struct kind *k, struct str property)
{
    if (!k->is_native)
        return STR_NONE;
    if (str_is(property, "spec"))
        return arena_printf(a, "%.*sSpec", STR_ARG(k->definition));
    return str_is(property, "status") ? arena_printf(a, "%.*sStatus", STR_ARG(k->definition))
                                      : STR_NONE;
}

static struct json kind_properties(struct openapi_builder *b, const struct kind *k,
                                   const struct json *source)
{
    struct json out = json_object();
    const struct json *properties = json_get(source, STR("properties"));
    const struct json *required = json_get(source, STR("required"));
    JSON_FOR_EACH_MEMBER (properties, m) {
        const struct place at = {.is_native = k->is_native,
                                 .is_required = contains(required, json_str(&m->key)),
                                 .definition = part_definition(b->a, k, json_str(&m->key))};
        if (!str_is(json_str(&m->key), "metadata"))
            json_append_member(b->a, &out, json_str(&m->key), convert(b, &m->value, &at));
    }
    struct str description =
        json_get_str(json_get(properties, STR("metadata")), STR("description"));
    if (!k->is_native || !description.n)
        description = STR("Standard object's metadata. More info: " CONVENTIONS "#metadata");
    set_type_meta(b, &out);
    set_metadata(b, &out, k, /* is_list= */ false, description);
    json_sort_members(&out);
    return out;
}

static struct json kind_definition(struct openapi_builder *b, const struct kind *k)
{
    const struct json *source = k->schema ? k->schema->source : NULL;
    const bool is_open = json_get_bool(source, STR("x-kubernetes-preserve-unknown-fields"), false);
    struct json out = json_object();
    if (!source || (b->version == OPENAPI_V2 && is_open && !k->is_native)) {
        /* Not even metadata: kubectl would refuse every other field. */
        openapi_set_string(b, &out, "type", STR("object"));
    } else {
        struct json shell = json_object();
        JSON_FOR_EACH_MEMBER (source, m) {
            if (!str_is(json_str(&m->key), "properties"))
                json_append_member(b->a, &shell, json_str(&m->key), m->value);
        }
        const struct place at = {.is_native = k->is_native, .is_root = true};
        out = convert(b, &shell, &at);
        json_set(b->a, &out, STR("type"), json_string(STR("object")));
        json_set(b->a, &out, STR("properties"), kind_properties(b, k, source));
    }
    set_kind_extension(b, &out, k, k->kind);
    return out;
}

static struct json list_definition(struct openapi_builder *b, const struct kind *k)
{
    struct json out = json_object(), required = json_array(), properties = json_object(),
                items = json_object();
    openapi_set_string(
        b, &out, "description",
        arena_printf(b->a, "%.*s is a list of %.*s", STR_ARG(k->list_kind), STR_ARG(k->kind)));
    openapi_set_string(b, &out, "type", STR("object"));
    json_push(b->a, &required, json_string(STR("items")));
    openapi_set(b, &out, "required", required);

    openapi_set_string(
        b, &items, "description",
        arena_printf(b->a, "List of %.*s. More info: " CONVENTIONS, STR_ARG(k->plural)));
    openapi_set_string(b, &items, "type", STR("array"));
    const struct json empty = json_object();
    openapi_set(b, &items, "items",
                described_reference(b, k->definition, STR_NONE, k->is_native ? &empty : NULL));
    json_append_member(b->a, &properties, STR("items"), items);
    set_type_meta(b, &properties);
    set_metadata(b, &properties, k, /* is_list= */ true,
                 STR("Standard list metadata. More info: " CONVENTIONS "#types-kinds"));
    json_sort_members(&properties);
    openapi_set(b, &out, "properties", properties);
    set_kind_extension(b, &out, k, k->list_kind);
    return out;
}

void openapi_add_kind(struct openapi_builder *b, const struct kind *k)
{
    if (!claim_definition(b, k->definition))
        return;
    add_definition(b, k->definition, kind_definition(b, k));
    const struct str list = openapi_list_definition(b->a, k);
    if ((k->verbs & VERB_BIT(VERB_LIST)) && k->list_kind.n && claim_definition(b, list))
        add_definition(b, list, list_definition(b, k));
}

void openapi_add_opaque(struct openapi_builder *b, struct str definition, struct str group,
                        struct str version, struct str kind)
{
    if (map_get(&b->known_definitions, definition) || add_meta_definition(b, definition) ||
        !claim_definition(b, definition))
        return;
    struct json out = json_object(), list = json_array();
    openapi_set_string(b, &out, "type", STR("object"));
    json_push(b->a, &list, openapi_group_version_kind(b, group, version, kind));
    openapi_set(b, &out, "x-kubernetes-group-version-kind", list);
    add_definition(b, definition, out);
}
