/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/admission/webhooks_internal.h"
#include "base/base64.h"

#define REVIEW_GROUP "admission.k8s.io/"

/* ---- the request -------------------------------------------------------------------------- */

static void add(struct arena *a, struct json *object, const char *key, struct json value)
{
    (void) json_append_member(a, object, str_of(key), value);
}

static void add_text(struct arena *a, struct json *object, const char *key, struct str text)
{
    if (text.n)
        add(a, object, key, json_string(text));
}

static struct json triple(struct arena *a, struct str group, struct str version, const char *key,
                          struct str name)
{
    struct json o = json_object();
    add(a, &o, "group", json_string(group));
    add(a, &o, "version", json_string(version));
    add(a, &o, key, json_string(name));
    return o;
}

/* The kind of what is sent: a subresource may speak another one. */
static struct json kind_triple(const struct call *c, const struct kind *k)
{
    const struct kind_subresource *s = NULL;
    if (c->subresource && kind_has_subresource(k, c->subresource->name, &s) && s->kind.n)
        return triple(c->arena, s->group, s->version, "kind", s->kind);
    return triple(c->arena, k->group, k->version, "kind", k->kind);
}

static struct json texts(struct arena *a, const struct str *list, size_t n)
{
    struct json array = json_array();
    for (size_t i = 0; i < n; i++)
        (void) json_push(a, &array, json_string(list[i]));
    return array;
}

static struct json user_info(struct arena *a, const struct user *u)
{
    struct json o = json_object();
    add_text(a, &o, "username", u->name);
    add_text(a, &o, "uid", u->uid);
    if (u->n_groups)
        add(a, &o, "groups", texts(a, u->groups, u->n_groups));
    if (u->n_extra) {
        struct json extra = json_object();
        for (size_t i = 0; i < u->n_extra; i++)
            (void) json_set(a, &extra, u->extra[i].key,
                            texts(a, u->extra[i].values, u->extra[i].n_values));
        add(a, &o, "extra", extra);
    }
    return o;
}

static struct json dry_run_list(struct arena *a)
{
    struct json list = json_array();
    (void) json_push(a, &list, json_string(STR("All")));
    return list;
}

/* CreateOptions or UpdateOptions; a patch becomes one of them, too. */
static struct json options_of(const struct webhook_question *q)
{
    const struct call *c = q->a->call;
    struct json o = json_object();
    if (q->a->options)
        return *q->a->options;
    add(c->arena, &o, "kind",
        json_string(q->operation == ADMISSION_CREATE ? STR("CreateOptions")
                                                     : STR("UpdateOptions")));
    add(c->arena, &o, "apiVersion", json_string(STR("meta.k8s.io/v1")));
    if (c->is_dry_run)
        add(c->arena, &o, "dryRun", dry_run_list(c->arena));
    add_text(c->arena, &o, "fieldManager", request_parameter(&c->in.query, "fieldManager"));
    add_text(c->arena, &o, "fieldValidation", request_parameter(&c->in.query, "fieldValidation"));
    return o;
}

static const char *operation_name(enum admission_operation operation)
{
    switch (operation) {
    case ADMISSION_CREATE:
        return "CREATE";
    case ADMISSION_UPDATE:
        return "UPDATE";
    case ADMISSION_DELETE:
        return "DELETE";
    case ADMISSION_CONNECT:
        break;
    }
    return "CONNECT";
}

static struct json view_or_null(const struct webhook_question *q, const struct json *object,
                                const struct kind *k)
{
    return object ? *webhook_view(q, object, k) : json_null();
}

static struct json request_of(const struct webhook_question *q, const struct kind *k,
                              struct str uid)
{
    const struct call *c = q->a->call;
    struct arena *a = c->arena;
    const struct json *object = q->a->object;
    struct str subresource = c->subresource ? c->subresource->name : STR("");
    /* A sweep has no name; a new object may have none yet. */
    struct str name =
        object ? json_str(json_at(object, "metadata", "name", NULL)) : c->in.path.name;
    struct json o = json_object();
    add(a, &o, "uid", json_string(uid));
    add(a, &o, "kind", kind_triple(c, k));
    add(a, &o, "resource", triple(a, k->group, k->version, "resource", k->plural));
    add_text(a, &o, "subResource", subresource);
    add(a, &o, "requestKind", kind_triple(c, c->kind));
    add(a, &o, "requestResource",
        triple(a, c->kind->group, c->kind->version, "resource", c->kind->plural));
    add_text(a, &o, "requestSubResource", subresource);
    add_text(a, &o, "name", name);
    add_text(a, &o, "namespace", q->namespace);
    add(a, &o, "operation", json_string(str_of(operation_name(q->operation))));
    add(a, &o, "userInfo", user_info(a, &c->in.user));
    add(a, &o, "object", view_or_null(q, object, k));
    add(a, &o, "oldObject", view_or_null(q, q->a->old, k));
    add(a, &o, "dryRun", json_bool(c->is_dry_run));
    add(a, &o, "options", options_of(q));
    return o;
}

struct str webhook_review_text(const struct webhook_question *q, const struct webhook *h,
                               const struct kind *k, struct str uid)
{
    struct arena *a = q->a->call->arena;
    struct json review = json_object();
    add(a, &review, "kind", json_string(STR("AdmissionReview")));
    add(a, &review, "apiVersion",
        json_string(arena_printf(a, REVIEW_GROUP "%.*s", STR_ARG(h->review_version))));
    add(a, &review, "request", request_of(q, k, uid));
    return json_text(a, &review);
}

/* ---- the answer --------------------------------------------------------------------------- */

struct parser {
    struct arena *arena;
    struct str error;
};

static int fail(struct parser *p, const char *format, ...) PRINTF_LIKE(2, 3);
static int fail(struct parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    p->error = arena_vprintf(p->arena, format, args);
    va_end(args);
    return -EINVAL;
}

static bool is_list_of_texts(const struct json *v)
{
    if (!json_is(v, JSON_ARRAY))
        return false;
    JSON_FOR_EACH_ITEM (v, item)
        if (item->type != JSON_STRING)
            return false;
    return true;
}

static bool is_map_of_texts(const struct json *v)
{
    if (!json_is(v, JSON_OBJECT))
        return false;
    JSON_FOR_EACH_MEMBER (v, m)
        if (m->value.type != JSON_STRING)
            return false;
    return true;
}

static bool is_text(const struct json *v)
{
    return json_is(v, JSON_STRING);
}

static bool is_flag(const struct json *v)
{
    return json_is(v, JSON_BOOL);
}

static bool is_object(const struct json *v)
{
    return json_is(v, JSON_OBJECT);
}

/* Go's decoder refuses a member of a wrong type; null counts as absent. */
static int check_types(struct parser *p, const struct json *response)
{
    static const struct {
        const char *name;
        bool (*fits)(const struct json *v);
        const char *type;
    } members[] = {
        {"uid", is_text, "types.UID"},
        {"allowed", is_flag, "bool"},
        {"status", is_object, "v1.Status"},
        {"patch", is_text, "[]uint8"},
        {"patchType", is_text, "v1.PatchType"},
        {"auditAnnotations", is_map_of_texts, "map[string]string"},
        {"warnings", is_list_of_texts, "[]string"},
    };
    for (size_t i = 0; i < N_ELEMENTS(members); i++) {
        const struct json *v = json_get(response, str_of(members[i].name));
        if (v && v->type != JSON_NULL && !members[i].fits(v))
            return fail(p,
                        "failed to call webhook: json: cannot unmarshal value into Go struct field "
                        "AdmissionResponse.response.%s of type %s",
                        members[i].name, members[i].type);
    }
    return 0;
}

static struct str gvk_text(struct arena *a, struct str api_version, struct str kind)
{
    return arena_printf(a, "%.*s, Kind=%.*s", STR_ARG(api_version), STR_ARG(kind));
}

static int check_review(struct parser *p, const struct json *review, struct str version)
{
    struct str api_version = json_get_str(review, STR("apiVersion")),
               kind = json_get_str(review, STR("kind"));
    struct str wanted = arena_printf(p->arena, REVIEW_GROUP "%.*s", STR_ARG(version));
    const struct json *response = json_get(review, STR("response"));
    if (!kind.n)
        return fail(p, "failed to call webhook: Object 'Kind' is missing in the answer");
    if (!json_is(response, JSON_OBJECT))
        return fail(p, "received invalid webhook response: webhook response was absent");
    if (!str_eq(api_version, wanted) || !str_is(kind, "AdmissionReview"))
        return fail(p,
                    "received invalid webhook response: expected webhook response of %.*s, got "
                    "%.*s",
                    STR_ARG(gvk_text(p->arena, wanted, STR("AdmissionReview"))),
                    STR_ARG(gvk_text(p->arena, api_version, kind)));
    return check_types(p, response);
}

/* A validating webhook has none; a mutating one both or none, but of old the type could be left
 * out. */
static int check_patch(struct parser *p, const struct json *response, bool is_v1,
                       enum webhook_phase phase)
{
    const struct json *type = json_get(response, STR("patchType"));
    const bool has_patch = json_get_str(response, STR("patch")).n > 0;
    const bool has_type = type && type->type != JSON_NULL;
    if (phase == WEBHOOK_VALIDATING) {
        if (is_v1 && (has_patch || has_type))
            return fail(p,
                        "received invalid webhook response: validating webhook may not return "
                        "response.%s",
                        has_patch ? "patch" : "patchType");
        return 0;
    }
    if (is_v1 && has_patch != has_type)
        return fail(p,
                    "received invalid webhook response: webhook returned response.%s but not "
                    "response.%s",
                    has_patch ? "patch" : "patchType", has_patch ? "patchType" : "patch");
    if (has_patch && has_type && !type->n)
        return fail(p, "received invalid webhook response: webhook returned invalid "
                       "response.patchType of \"\"");
    return 0;
}

/* The operations, or NULL when there is nothing to do. */
static int read_patch(struct parser *p, const struct json *response, const struct json **ret)
{
    struct str encoded = json_get_str(response, STR("patch")), text = STR_NONE;
    struct str type = json_get_str(response, STR("patchType"));
    struct json_parse_result parsed = {0};
    *ret = NULL;
    if (!encoded.n)
        return 0;
    if (base64_decode(p->arena, encoded, BASE64_STANDARD, &text, NULL) < 0)
        return fail(p, "failed to call webhook: illegal base64 data in response.patch");
    if (json_parse(p->arena, text, &parsed) < 0)
        return fail(p, "received undecodable patch in webhook response: %.*s",
                    STR_ARG(parsed.error));
    if (parsed.value->type == JSON_NULL)
        return 0;
    if (parsed.value->type != JSON_ARRAY)
        return fail(p, "received undecodable patch in webhook response: json: cannot unmarshal "
                       "value into Go value of type jsonpatch.Patch");
    if (!parsed.value->n)
        return 0;
    if (type.n && !str_is(type, "JSONPatch"))
        return fail(p, "unsupported patch type %.*s", STR_ARG(status_quote(p->arena, type)));
    *ret = parsed.value;
    return 0;
}

static const struct json *member_or_null(const struct json *object, const char *name)
{
    const struct json *v = json_get(object, str_of(name));
    return v && v->type != JSON_NULL ? v : NULL;
}

static int parse(struct parser *p, struct str text, struct str version, struct str uid,
                 enum webhook_phase phase, struct webhook_answer *ret)
{
    struct json_parse_result parsed = {0};
    if (json_parse(p->arena, text, &parsed) < 0)
        return fail(p, "failed to call webhook: couldn't get version/kind; json parse error: %.*s",
                    STR_ARG(parsed.error));
    int r = check_review(p, parsed.value, version);
    if (r < 0)
        return r;
    const struct json *response = json_get(parsed.value, STR("response"));
    const bool is_v1 = str_is(version, "v1");
    struct str given = json_get_str(response, STR("uid"));
    /* The old version did not have to repeat it. */
    if (!str_eq(given, uid) && (is_v1 || given.n))
        return fail(p, "received invalid webhook response: expected response.uid=%.*s, got %.*s",
                    STR_ARG(status_quote(p->arena, uid)), STR_ARG(status_quote(p->arena, given)));
    struct webhook_answer answer = {
        .is_allowed = json_get_bool(response, STR("allowed"), false),
        .status = member_or_null(response, "status"),
        .warnings = member_or_null(response, "warnings"),
        .annotations = member_or_null(response, "auditAnnotations"),
    };
    r = check_patch(p, response, is_v1, phase);
    if (r == 0 && phase == WEBHOOK_MUTATING && answer.is_allowed)
        r = read_patch(p, response, &answer.patch);
    if (r == 0)
        *ret = answer;
    return r;
}

int webhook_answer_parse(struct arena *a, struct str text, struct str version, struct str uid,
                         enum webhook_phase phase, struct webhook_answer *ret,
                         struct str *ret_error)
{
    struct parser p = {.arena = a};
    int r = parse(&p, text, version, uid, phase, ret);
    if (r < 0)
        *ret_error = p.error;
    return r;
}
