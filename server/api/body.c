/* SPDX-License-Identifier: Apache-2.0 */
#include "api/body.h"

#include <errno.h>

#include "api/decode.h"
#include "json/yaml.h"

#define BODY_QUOTED_BYTES 30

static int fail_fields(struct call *c, struct str patched, struct str why);

int body_value(struct call *c, bool is_yaml, struct json_parse_result *ret)
{
    if (c->in.value) {
        *ret = (struct json_parse_result){
            .value = json_new(c->arena, json_clone(c->arena, c->in.value))};
        return 0;
    }
    return is_yaml ? yaml_parse(c->arena, c->in.body, ret) : json_parse(c->arena, c->in.body, ret);
}

/* The first bytes of the body as kube-apiserver quotes them. */
static struct str quoted_body(struct call *c)
{
    struct str body = c->in.body;
    if (!body.n)
        return STR("<empty>");
    struct str begin = str_sub(body, 0, MIN(body.n, (size_t) BODY_QUOTED_BYTES));
    BUF_AUTO text = {0};
    for (size_t i = 0; body.p[0] != '{' && i < begin.n; i++)
        buf_printf(&text, "%02x", (unsigned char) begin.p[i]);
    buf_append_str(&text, body.p[0] == '{' ? begin : STR(""));
    buf_append_str(&text, body.n > begin.n ? STR(" ...") : STR(""));
    return arena_str(c->arena, buf_str(&text));
}

static int unrecognized(struct call *c, enum media_encoding encoding, struct str why)
{
    return status_bad_request(
        &c->status, "the object provided is unrecognized (must be of type %.*s): %s%.*s (%.*s)",
        STR_ARG(c->kind->kind),
        encoding == MEDIA_JSON ? "couldn't get version/kind; json parse error: " : "", STR_ARG(why),
        STR_ARG(quoted_body(c)));
}

static const char *go_type_name(const struct json *v)
{
    switch ((enum json_type) v->type) {
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_BOOL:
        return "bool";
    case JSON_INT:
    case JSON_DOUBLE:
        return "number";
    default:
        return "object";
    }
}

static int wrong_kind(struct call *c, struct str version, struct str kind, struct str api_version)
{
    return status_bad_request(
        &c->status,
        "%.*s in version \"%.*s\" cannot be handled as a %.*s: no kind \"%.*s\" is "
        "registered for version \"%.*s\"",
        STR_ARG(kind), STR_ARG(version), STR_ARG(c->kind->kind), STR_ARG(kind),
        STR_ARG(api_version));
}

static struct str version_of(struct str api_version)
{
    ptrdiff_t slash = str_find(api_version, '/');
    return slash < 0 ? api_version : str_from(api_version, (size_t) slash + 1);
}

/* Without the schema of its version nothing of an object is known. */
static void warn_unknown_version(struct call *c, const struct json *object)
{
    struct str api_version = json_get_str(object, STR("apiVersion"));
    ptrdiff_t slash = str_find(api_version, '/');
    if (slash < 0 || !str_eq(str_sub(api_version, 0, (size_t) slash), c->kind->group) ||
        registry_find_kind(c->registry, api_version, json_get_str(object, STR("kind"))))
        return;
    JSON_FOR_EACH_MEMBER (object, m) {
        struct str key = json_str(&m->key);
        if (!str_is(key, "apiVersion") && !str_is(key, "kind") && !str_is(key, "metadata"))
            call_warn(c, arena_printf(c->arena, "unknown field \"%.*s\"", STR_ARG(key)));
    }
}

int body_check_type(struct call *c, const struct json *object)
{
    struct str api_version = json_get_str(object, STR("apiVersion")),
               kind = json_get_str(object, STR("kind"));
    struct causes causes;
    causes_init(&causes, c->arena);
    struct json value = json_null();
    struct str name = json_str(json_at(object, "metadata", "name", NULL));
    if (!str_eq(kind, c->kind->kind)) {
        value = json_string(kind);
        causes_add(&causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("kind")), &value, "must be %.*s",
                   STR_ARG(c->kind->kind));
    } else if (!str_eq(api_version, c->kind->api_version)) {
        value = json_string(api_version);
        warn_unknown_version(c, object);
        causes_add(&causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("apiVersion")), &value,
                   "must be %.*s", STR_ARG(c->kind->api_version));
    }
    return causes.n ? status_invalid(&c->status, c->kind->group, kind.n ? kind : c->kind->kind,
                                     name, &causes)
                    : 0;
}

/* apiVersion and kind must be the request's; natives may leave either out, custom resources
 * neither. */
static int check_type_meta(struct call *c, struct json *object)
{
    struct str api_version = json_get_str(object, STR("apiVersion"));
    struct str kind = json_get_str(object, STR("kind"));
    if (!c->kind->is_native) {
        const char *missing = !kind.n ? "Kind" : !api_version.n ? "apiVersion" : NULL;
        if (missing)
            return status_bad_request(&c->status, "Object '%s' is missing in '%.*s'", missing,
                                      STR_ARG(json_text(c->arena, object)));
    }
    api_version = api_version.n ? api_version : c->kind->api_version;
    kind = kind.n ? kind : c->kind->kind;
    if (!str_eq(api_version, c->kind->api_version) && !c->kind->is_native) {
        warn_unknown_version(c, object);
        return status_bad_request(
            &c->status,
            "the API version in the data (%.*s) does not match the expected API version (%.*s)",
            STR_ARG(api_version), STR_ARG(c->kind->api_version));
    }
    if (!c->kind->is_native)
        return body_check_type(c, object);
    if (!str_eq(api_version, c->kind->api_version) || !str_eq(kind, c->kind->kind))
        return wrong_kind(c, version_of(api_version), kind, api_version);
    (void) json_set(c->arena, object, STR("apiVersion"), json_string(api_version));
    (void) json_set(c->arena, object, STR("kind"), json_string(kind));
    return 0;
}

/* Messages of meta.k8s.io are part of every group version. */
static bool is_type_of(const struct protobuf_envelope *e, const struct protobuf_message *message)
{
    bool any_version = !e->api_version.n || str_is(message->group_version, "meta.k8s.io/v1");
    return (!e->kind.n || str_eq(e->kind, message->name)) &&
           (any_version || str_eq(e->api_version, message->group_version));
}

/* An error with a value is one of the object itself: its type is known. */
static int protobuf_value(struct call *c, const struct protobuf_message *message,
                          struct json_parse_result *ret)
{
    struct protobuf_envelope e;
    int r = protobuf_open(c->arena, c->in.body, &e, &ret->error);
    if (r < 0)
        return r;
    struct json *object = ret->value = json_new(c->arena, json_object());
    if (e.api_version.n)
        (void) json_set(c->arena, object, STR("apiVersion"), json_string(e.api_version));
    if (e.kind.n)
        (void) json_set(c->arena, object, STR("kind"), json_string(e.kind));
    return is_type_of(&e, message)
               ? protobuf_decode(c->arena, message, e.object, object, &ret->error)
               : 0;
}

int body_document(struct call *c, const struct protobuf_message *message, struct json **ret_value)
{
    enum media_encoding encoding = MEDIA_JSON;
    struct json_parse_result parsed = {0};
    int r = media_body_encoding(c->in.content_type, &encoding, &c->status);
    if (r < 0)
        return r;
    r = encoding == MEDIA_PROTOBUF ? protobuf_value(c, message, &parsed)
                                   : body_value(c, encoding == MEDIA_YAML, &parsed);
    if (r < 0)
        return status_bad_request(
            &c->status, "%s%.*s",
            encoding == MEDIA_JSON ? "couldn't get version/kind; json parse error: " : "",
            STR_ARG(parsed.error));
    *ret_value = parsed.value;
    return 0;
}

/* Unknown fields of protobuf have no names to tell. */
static int protobuf_object(struct call *c, struct json **ret_object)
{
    const struct protobuf_message *message =
        protobuf_find(c->registry->protobuf, c->kind->api_version, c->kind->kind);
    struct json_parse_result parsed = {0};
    if (!message)
        return media_refuse_body(&c->status);
    if (protobuf_value(c, message, &parsed) < 0)
        return parsed.value ? fail_fields(c, STR_NONE, parsed.error)
                            : unrecognized(c, MEDIA_PROTOBUF, parsed.error);
    int r = check_type_meta(c, parsed.value);
    if (r < 0)
        return r;
    schema_prune(c->arena, c->kind->schema, parsed.value, NULL);
    *ret_object = parsed.value;
    return body_check_types(c, parsed.value, false);
}

int body_object(struct call *c, struct json **ret_object)
{
    enum media_encoding encoding = MEDIA_JSON;
    int r = media_body_encoding(c->in.content_type, &encoding, &c->status);
    if (r < 0)
        return r;
    if (encoding == MEDIA_PROTOBUF)
        return protobuf_object(c, ret_object);
    struct json_parse_result parsed = {0};
    if (body_value(c, encoding == MEDIA_YAML, &parsed) < 0)
        return unrecognized(c, encoding, parsed.error);
    struct json *object = parsed.value;
    if (object->type == JSON_NULL)
        *object = json_object();
    if (object->type != JSON_OBJECT)
        return unrecognized(c, MEDIA_JSON,
                            arena_printf(c->arena, "json: cannot unmarshal %s into Go value",
                                         go_type_name(object)));
    r = check_type_meta(c, object);
    if (r == 0)
        r = body_check_fields(c, object, parsed.duplicates, false);
    if (r == 0)
        r = body_check_types(c, object, false);
    *ret_object = object;
    return r;
}

/* ---- field validation --------------------------------------------------------------------- */

static enum field_validation validation_mode(struct call *c)
{
    struct str asked = request_parameter(&c->in.query, "fieldValidation");
    return str_is(asked, "Strict")   ? FIELDS_STRICT
           : str_is(asked, "Ignore") ? FIELDS_IGNORE
                                     : FIELDS_WARN;
}

static void sort_deep(struct json *v)
{
    if (v->type == JSON_OBJECT)
        json_sort_members(v);
    JSON_FOR_EACH_MEMBER (v, m)
        sort_deep(&m->value);
    JSON_FOR_EACH_ITEM (v, item)
        sort_deep(item);
}

/* An object as messages quote it: Go prints maps with their keys in order. */
static struct str body_quote(struct call *c, const struct json *object)
{
    struct json sorted = json_clone(c->arena, object);
    sort_deep(&sorted);
    return json_text(c->arena, &sorted);
}

/* A failure that a patch caused quotes the object it would have made; any other names the kind. */
static int fail_fields(struct call *c, struct str patched, struct str why)
{
    if (!patched.p)
        return status_bad_request(&c->status,
                                  "%.*s in version \"%.*s\" cannot be handled as a %.*s: %.*s",
                                  STR_ARG(c->kind->kind), STR_ARG(c->kind->version),
                                  STR_ARG(c->kind->kind), STR_ARG(why));
    struct causes causes;
    causes_init(&causes, c->arena);
    struct json quoted = json_string(patched);
    struct field_path at = FIELD_NAME(NULL, STR("patch"));
    causes_add(&causes, CAUSE_INVALID, &at, &quoted, "%.*s", STR_ARG(why));
    return status_invalid(&c->status, STR(""), STR(""), STR(""), &causes);
}

#define FINDINGS_MAX 1000

struct finding {
    struct str text;
    size_t place; /* of its top-level member in the text */
};

struct findings {
    struct arena *arena;
    const struct json *names; /* the top-level members as sent */
    struct finding list[FINDINGS_MAX];
    size_t n;
};

static size_t place_of(const struct json *names, struct str path)
{
    size_t n = 0;
    while (n < path.n && path.p[n] != '.' && path.p[n] != '[')
        n++;
    JSON_FOR_EACH_ITEM (names, name) {
        if (str_eq(json_str(name), str_sub(path, 0, n)))
            return (size_t) (name - names->items);
    }
    return names->n;
}

static void find(struct findings *f, const char *what, struct str path)
{
    if (f->n == FINDINGS_MAX)
        return;
    f->list[f->n++] = (struct finding){
        arena_printf(f->arena, "%s field \"%.*s\"", what, STR_ARG(path)), place_of(f->names, path)};
}

static bool is_unknown(const struct unknown_field *unknown, struct str path)
{
    for (; unknown; unknown = unknown->next)
        if (str_eq(unknown->path, path))
            return true;
    return false;
}

/* Stable: equal places keep their order. */
static void sort_findings(struct findings *f)
{
    for (size_t i = 1; i < f->n; i++) {
        struct finding one = f->list[i];
        size_t at = i;
        for (; at > 0 && f->list[at - 1].place > one.place; at--)
            f->list[at] = f->list[at - 1];
        f->list[at] = one;
    }
}

static struct json member_names(struct arena *a, const struct json *object)
{
    struct json names = json_array();
    JSON_FOR_EACH_MEMBER (object, m)
        (void) json_push(a, &names, m->key);
    return names;
}

/* Go's decoder of native kinds reports in the order of the text, that of custom resources
 * duplicates first; an unknown field is not reported as a duplicate too. */
static void gather_findings(struct call *c, struct findings *f,
                            const struct json_duplicate *duplicates,
                            const struct unknown_field *unknown)
{
    for (const struct json_duplicate *d = duplicates; d && f->n < FINDINGS_MAX; d = d->next) {
        if (d->yaml_message.n)
            f->list[f->n++] = (struct finding){d->yaml_message, 0};
        else if (!is_unknown(unknown, d->path))
            find(f, "duplicate", d->path);
    }
    for (const struct unknown_field *u = unknown; u; u = u->next)
        find(f, "unknown", u->path);
    if (c->kind->is_native)
        sort_findings(f);
}

int body_check_fields(struct call *c, struct json *object, const struct json_duplicate *duplicates,
                      bool from_patch)
{
    struct unknown_field *unknown = NULL;
    enum field_validation mode = validation_mode(c);
    struct str patched = from_patch && mode == FIELDS_STRICT ? body_quote(c, object) : STR_NONE;
    struct json names = mode == FIELDS_IGNORE ? json_array() : member_names(c->arena, object);
    schema_prune(c->arena, c->kind->schema, object, mode == FIELDS_IGNORE ? NULL : &unknown);
    if (mode == FIELDS_IGNORE || (!unknown && !duplicates))
        return 0;

    struct findings *f = ARENA_NEW(c->arena, struct findings);
    f->arena = c->arena;
    f->names = &names;
    gather_findings(c, f, duplicates, unknown);
    BUF_AUTO text = {0};
    for (size_t i = 0; i < f->n; i++) {
        if (mode == FIELDS_WARN)
            call_warn(c, f->list[i].text);
        buf_printf(&text, "%s%.*s", i ? ", " : "", STR_ARG(f->list[i].text));
    }
    if (mode == FIELDS_WARN)
        return 0;
    return fail_fields(
        c, patched, arena_printf(c->arena, "strict decoding error: %.*s", STR_ARG(buf_str(&text))));
}

int body_check_duplicates(struct call *c, const struct json_duplicate *duplicates)
{
    enum field_validation mode = validation_mode(c);
    BUF_AUTO text = {0};
    for (const struct json_duplicate *d = duplicates; d; d = d->next) {
        struct str one = d->yaml_message.n
                             ? d->yaml_message
                             : arena_printf(c->arena, "duplicate field \"%.*s\"", STR_ARG(d->path));
        if (mode == FIELDS_WARN)
            call_warn(c, one);
        buf_printf(&text, "%s%.*s", text.n ? ", " : "", STR_ARG(one));
    }
    if (mode != FIELDS_STRICT || !duplicates)
        return 0;
    return status_bad_request(&c->status, "error strict decoding YAML: %.*s",
                              STR_ARG(buf_str(&text)));
}

int body_fail_quoted(struct call *c, struct str value, struct str why)
{
    return fail_fields(c, value, why);
}

int body_fail_patched(struct call *c, const struct json *object, struct str why)
{
    return fail_fields(c, body_quote(c, object), why);
}

int body_check_types(struct call *c, struct json *object, bool from_patch)
{
    struct str why = STR_NONE;
    if (decode_object(c->arena, c->kind, object, &why) == 0)
        return 0;
    return fail_fields(c, from_patch ? body_quote(c, object) : STR_NONE, why);
}
