/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of native kinds that a path alone cannot give. */
#include <ctype.h>
#include <inttypes.h>

#include "api/table_internal.h"

#define ANNOTATION_CLASS "volume.beta.kubernetes.io/storage-class"
#define ANNOTATION_DEFAULT "storageclass.kubernetes.io/is-default-class"
#define ANNOTATION_DEFAULT_BETA "storageclass.beta.kubernetes.io/is-default-class"

static void write_str(const struct table_cell *c, struct str s)
{
    json_write_str(c->out, s.p ? s : STR(""));
}

static void write_buf(const struct table_cell *c, const struct buf *b)
{
    json_write_str(c->out, buf_str(b));
}

static const struct json *meta_of(const struct table_cell *c)
{
    return json_get(c->object, STR("metadata"));
}

static bool is_annotated(const struct table_cell *c, const char *key)
{
    return str_is(json_get_str(json_get(meta_of(c), STR("annotations")), str_of(key)), "true");
}

static struct str lower_case(struct arena *a, struct str s)
{
    char *copy = arena_strz(a, s);
    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char) tolower((unsigned char) copy[i]);
    return str_range(copy, s.n);
}

/* ---- any kind ----------------------------------------------------------------------------- */

static void cell_name(const struct table_cell *c)
{
    write_str(c, json_get_str(meta_of(c), STR("name")));
}

static void cell_age(const struct table_cell *c)
{
    table_write_since(c, json_get(meta_of(c), STR("creationTimestamp")));
}

static void cell_created_at(const struct table_cell *c)
{
    write_str(c, json_get_str(meta_of(c), STR("creationTimestamp")));
}

static void cell_count_data(const struct table_cell *c)
{
    const size_t n = json_count(json_get(c->object, STR("data"))) +
                     json_count(json_get(c->object, STR("binaryData")));
    buf_printf(c->out, "%zu", n);
}

static void cell_count_webhooks(const struct table_cell *c)
{
    buf_printf(c->out, "%zu", json_count(json_get(c->object, STR("webhooks"))));
}

/* kind.group/name of the owner that is marked as controller. */
static void cell_controller(const struct table_cell *c)
{
    const struct json *owners = json_get(meta_of(c), STR("ownerReferences"));
    JSON_FOR_EACH_ITEM (owners, owner) {
        if (!json_get_bool(owner, STR("controller"), false))
            continue;
        const struct str api_version = json_get_str(owner, STR("apiVersion"));
        const ptrdiff_t slash = str_find(api_version, '/');
        const struct str group = str_sub(api_version, 0, slash < 0 ? 0 : (size_t) slash);
        const struct str kind = json_get_str(owner, STR("kind"));
        const struct str text = arena_printf(c->arena, "%.*s%s%.*s", STR_ARG(kind),
                                             group.n > 0 ? "." : "", STR_ARG(group));
        write_str(c, arena_printf(c->arena, "%.*s/%.*s", STR_ARG(lower_case(c->arena, text)),
                                  STR_ARG(json_get_str(owner, STR("name")))));
        return;
    }
    write_str(c, STR("<none>"));
}

/* ---- events: core, or events.k8s.io with its own names ------------------------------------ */

static const struct json *either(const struct json *object, struct str name, struct str other)
{
    const struct json *v = json_get(object, name);
    return v ? v : json_get(object, other);
}

static bool is_set(const struct json *time)
{
    return time && time->type != JSON_NULL;
}

static const struct json *event_first(const struct table_cell *c)
{
    const struct json *first =
        either(c->object, STR("firstTimestamp"), STR("deprecatedFirstTimestamp"));
    return is_set(first) ? first : json_get(c->object, STR("eventTime"));
}

static void cell_event_first_seen(const struct table_cell *c)
{
    table_write_since(c, event_first(c));
}

static void cell_event_last_seen(const struct table_cell *c)
{
    const struct json *series = json_get(c->object, STR("series"));
    const struct json *last =
        either(c->object, STR("lastTimestamp"), STR("deprecatedLastTimestamp"));
    if (json_is(series, JSON_OBJECT))
        table_write_since(c, json_get(series, STR("lastObservedTime")));
    else
        table_write_since(c, is_set(last) ? last : event_first(c));
}

static void cell_event_object(const struct table_cell *c)
{
    const struct json *about = either(c->object, STR("involvedObject"), STR("regarding"));
    const struct str kind = lower_case(c->arena, json_get_str(about, STR("kind")));
    const struct str name = json_get_str(about, STR("name"));
    write_str(c, name.n == 0 ? kind
                             : arena_printf(c->arena, "%.*s/%.*s", STR_ARG(kind), STR_ARG(name)));
}

static void cell_event_source(const struct table_cell *c)
{
    const struct json *source = either(c->object, STR("source"), STR("deprecatedSource"));
    struct str component = json_get_str(source, STR("component"));
    struct str instance = json_get_str(source, STR("host"));
    if (component.n == 0)
        component =
            json_str(either(c->object, STR("reportingComponent"), STR("reportingController")));
    if (instance.n == 0)
        instance = json_get_str(c->object, STR("reportingInstance"));
    if (instance.n == 0)
        write_str(c, component);
    else
        write_str(c, arena_printf(c->arena, "%.*s, %.*s", STR_ARG(component), STR_ARG(instance)));
}

static void cell_event_message(const struct table_cell *c)
{
    write_str(c, str_trim(json_str(either(c->object, STR("message"), STR("note")))));
}

static void cell_event_count(const struct table_cell *c)
{
    const struct json *series = json_get(c->object, STR("series"));
    const struct json *count = either(c->object, STR("count"), STR("deprecatedCount"));
    int64_t n = json_is(count, JSON_INT) && count->i != 0 ? count->i : 1;
    if (json_is(series, JSON_OBJECT))
        n = json_get_int(series, STR("count"), 0);
    buf_printf(c->out, "%" PRId64, n);
}

/* ---- volumes and claims ------------------------------------------------------------------- */

static const struct json *spec_of(const struct table_cell *c)
{
    return json_get(c->object, STR("spec"));
}

static void cell_volume_phase(const struct table_cell *c)
{
    const bool is_deleting = is_set(json_get(meta_of(c), STR("deletionTimestamp")));
    write_str(c, is_deleting ? STR("Terminating")
                             : json_str(json_at(c->object, "status", "phase", NULL)));
}

static void write_modes(const struct table_cell *c, const struct json *modes)
{
    static const struct {
        const char *mode, *text;
    } table[] = {{"ReadWriteOnce", "RWO"},
                 {"ReadOnlyMany", "ROX"},
                 {"ReadWriteMany", "RWX"},
                 {"ReadWriteOncePod", "RWOP"}};
    BUF_AUTO b = {0};
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        JSON_FOR_EACH_ITEM (modes, mode)
            if (str_is(json_str(mode), table[i].mode)) {
                buf_printf(&b, "%s%s", b.n > 0 ? "," : "", table[i].text);
                break;
            }
    write_buf(c, &b);
}

static void write_storage(const struct table_cell *c, const struct json *capacity)
{
    const struct str storage = json_get_str(capacity, STR("storage"));
    write_str(c, storage.n > 0 ? storage : STR("0"));
}

/* A claim shows what its volume has, so nothing until it is bound. */
static bool is_bound(const struct table_cell *c)
{
    return json_get_str(spec_of(c), STR("volumeName")).n > 0;
}

static void cell_claim_capacity(const struct table_cell *c)
{
    if (is_bound(c))
        write_storage(c, json_at(c->object, "status", "capacity", NULL));
    else
        write_str(c, STR(""));
}

static void cell_claim_access_modes(const struct table_cell *c)
{
    write_modes(c, is_bound(c) ? json_at(c->object, "status", "accessModes", NULL) : NULL);
}

static void cell_volume_capacity(const struct table_cell *c)
{
    write_storage(c, json_get(spec_of(c), STR("capacity")));
}

static void cell_volume_access_modes(const struct table_cell *c)
{
    write_modes(c, json_get(spec_of(c), STR("accessModes")));
}

static void cell_volume_class(const struct table_cell *c)
{
    const struct json *annotated =
        json_get(json_get(meta_of(c), STR("annotations")), STR(ANNOTATION_CLASS));
    write_str(c,
              annotated ? json_str(annotated) : json_get_str(spec_of(c), STR("storageClassName")));
}

static void write_or_unset(const struct table_cell *c, const struct json *v)
{
    write_str(c, is_set(v) ? json_str(v) : STR("<unset>"));
}

static void cell_attributes_class(const struct table_cell *c)
{
    write_or_unset(c, json_get(spec_of(c), STR("volumeAttributesClassName")));
}

static void cell_volume_mode(const struct table_cell *c)
{
    write_or_unset(c, json_get(spec_of(c), STR("volumeMode")));
}

static void cell_volume_claim(const struct table_cell *c)
{
    const struct json *claim = json_get(spec_of(c), STR("claimRef"));
    if (!is_set(claim))
        write_str(c, STR(""));
    else
        write_str(c, arena_printf(c->arena, "%.*s/%.*s",
                                  STR_ARG(json_get_str(claim, STR("namespace"))),
                                  STR_ARG(json_get_str(claim, STR("name")))));
}

static void cell_storage_class_name(const struct table_cell *c)
{
    const bool is_default =
        is_annotated(c, ANNOTATION_DEFAULT) || is_annotated(c, ANNOTATION_DEFAULT_BETA);
    const struct str name = json_get_str(meta_of(c), STR("name"));
    write_str(c, is_default ? arena_printf(c->arena, "%.*s (default)", STR_ARG(name)) : name);
}

static void cell_allow_expansion(const struct table_cell *c)
{
    const bool is_allowed = json_get_bool(c->object, STR("allowVolumeExpansion"), false);
    buf_append_str(c->out, is_allowed ? STR("true") : STR("false"));
}

/* ---- quotas ------------------------------------------------------------------------------- */

static void write_quota(const struct table_cell *c, bool wants_limits)
{
    BUF_AUTO b = {0};
    const struct json *hard = json_at(c->object, "status", "hard", NULL);
    const struct json *used = json_at(c->object, "status", "used", NULL);
    struct json sorted = hard ? json_clone(c->arena, hard) : json_object();
    json_sort_members(&sorted);
    JSON_FOR_EACH_MEMBER (&sorted, m) {
        const struct str name = json_str(&m->key), amount = json_get_str(used, name);
        if (str_starts_with(name, STR("limits")) == wants_limits)
            buf_printf(&b, "%s%.*s: %.*s/%.*s", b.n > 0 ? ", " : "", STR_ARG(name),
                       STR_ARG(amount.n > 0 ? amount : STR("0")), STR_ARG(json_str(&m->value)));
    }
    write_buf(c, &b);
}

static void cell_quota_requests(const struct table_cell *c)
{
    write_quota(c, /* wants_limits= */ false);
}

static void cell_quota_limits(const struct table_cell *c)
{
    write_quota(c, /* wants_limits= */ true);
}

/* ---- bindings ----------------------------------------------------------------------------- */

static void cell_binding_role(const struct table_cell *c)
{
    const struct json *role = json_get(c->object, STR("roleRef"));
    write_str(c, arena_printf(c->arena, "%.*s/%.*s", STR_ARG(json_get_str(role, STR("kind"))),
                              STR_ARG(json_get_str(role, STR("name")))));
}

static void write_subjects(const struct table_cell *c, const char *kind)
{
    BUF_AUTO b = {0};
    const bool is_account = str_is(str_of(kind), "ServiceAccount");
    const struct json *subjects = json_get(c->object, STR("subjects"));
    JSON_FOR_EACH_ITEM (subjects, subject) {
        if (!str_is(json_get_str(subject, STR("kind")), kind))
            continue;
        if (b.n > 0)
            buf_append_str(&b, STR(", "));
        if (is_account)
            buf_printf(&b, "%.*s/", STR_ARG(json_get_str(subject, STR("namespace"))));
        buf_append_str(&b, json_get_str(subject, STR("name")));
    }
    write_buf(c, &b);
}

static void cell_binding_users(const struct table_cell *c)
{
    write_subjects(c, "User");
}

static void cell_binding_groups(const struct table_cell *c)
{
    write_subjects(c, "Group");
}

static void cell_binding_accounts(const struct table_cell *c)
{
    write_subjects(c, "ServiceAccount");
}

/* ---- certificate requests ----------------------------------------------------------------- */

static void cell_signer_name(const struct table_cell *c)
{
    const struct str name = json_get_str(spec_of(c), STR("signerName"));
    write_str(c, name.n ? name : STR("<none>"));
}

static void cell_requested_duration(const struct table_cell *c)
{
    char text[TABLE_AGE_BYTES];
    const struct json *seconds = json_get(spec_of(c), STR("expirationSeconds"));
    write_str(c,
              json_is(seconds, JSON_INT) ? table_age(seconds->i * 1000000, text) : STR("<none>"));
}

static bool has_condition(const struct json *status, const char *type)
{
    JSON_FOR_EACH_ITEM (json_get(status, STR("conditions")), condition)
        if (str_is(json_get_str(condition, STR("type")), type))
            return true;
    return false;
}

static void cell_request_condition(const struct table_cell *c)
{
    const struct json *status = json_get(c->object, STR("status"));
    const char *decision = has_condition(status, "Denied")     ? "Denied"
                           : has_condition(status, "Approved") ? "Approved"
                                                               : "Pending";
    write_str(c, arena_printf(c->arena, "%s%s%s", decision,
                              has_condition(status, "Failed") ? ",Failed" : "",
                              json_get_str(status, STR("certificate")).n ? ",Issued" : ""));
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct table_function functions[] = {
    {"name", cell_name},
    {"age", cell_age},
    {"created-at", cell_created_at},
    {"count-data", cell_count_data},
    {"count-webhooks", cell_count_webhooks},
    {"controller", cell_controller},
    {"event-first-seen", cell_event_first_seen},
    {"event-last-seen", cell_event_last_seen},
    {"event-object", cell_event_object},
    {"event-source", cell_event_source},
    {"event-message", cell_event_message},
    {"event-count", cell_event_count},
    {"volume-phase", cell_volume_phase},
    {"volume-capacity", cell_volume_capacity},
    {"volume-access-modes", cell_volume_access_modes},
    {"volume-class", cell_volume_class},
    {"volume-mode", cell_volume_mode},
    {"volume-claim", cell_volume_claim},
    {"attributes-class", cell_attributes_class},
    {"claim-capacity", cell_claim_capacity},
    {"claim-access-modes", cell_claim_access_modes},
    {"storage-class-name", cell_storage_class_name},
    {"allow-expansion", cell_allow_expansion},
    {"quota-requests", cell_quota_requests},
    {"quota-limits", cell_quota_limits},
    {"binding-role", cell_binding_role},
    {"binding-users", cell_binding_users},
    {"binding-groups", cell_binding_groups},
    {"binding-accounts", cell_binding_accounts},
    {"signer-name", cell_signer_name},
    {"requested-duration", cell_requested_duration},
    {"request-condition", cell_request_condition},
};

const struct table_function *table_function_find(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(functions); i++)
        if (str_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}
