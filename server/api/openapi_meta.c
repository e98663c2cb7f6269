/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of the API machinery that every document refers to, as a table. The words of
 * DeleteOptions are kube-apiserver's, which its parameters repeat. */
#include "api/openapi_internal.h"

/* Of a field. */
enum {
    REQUIRED = 1,
    LIST = 2, /* an array of the type */
    MAP = 4,  /* an object with values of the type */
    ATOMIC = 8,
    SET = 16,
    MERGE = 32, /* strategic merge patch merges the list */
    MERGE_BY_UID = 64,
    STRUCT = 128, /* always there in Go, so an empty object is its default */
};

struct meta_field {
    const char *name;
    const char *type; /* "string", "boolean", "int32", "int64"; NULL: ref */
    const char *ref;
    unsigned flags;
    const char *description;
};

/* Of a definition. */
enum {
    TYPE_META = 1,   /* has apiVersion and kind */
    EVERY_GROUP = 2, /* a kind in every group version */
    CORE_V1 = 4,     /* a kind of v1 */
    AUTOSCALING_V1 = 8,
    MAP_ATOMIC = 16,
    NUMBER_OR_STRING = 32,
    INT_OR_STRING = 64,
};

struct meta_definition {
    const char *name;
    const struct meta_field *fields;
    size_t n_fields;
    const char *type, *format; /* of one without fields */
    unsigned flags;
    const char *description;
};
#define FIELDS(f) f, N_ELEMENTS(f)
#define NO_FIELDS NULL, 0

#define CONVENTIONS \
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

/* clang-format off */
static const struct meta_field api_group_fields[] = {
    {"name", "string", NULL, REQUIRED,
     "The name of the group."},
    {"preferredVersion", NULL, META_PREFIX "GroupVersionForDiscovery", 0,
     "The version clients should use."},
    {"serverAddressByClientCIDRs", NULL, META_PREFIX "ServerAddressByClientCIDR", LIST | ATOMIC,
     "Which address of the server to use from which network."},
    {"versions", NULL, META_PREFIX "GroupVersionForDiscovery", REQUIRED | LIST | ATOMIC,
     "The versions of the group, the preferred one first."},
};

static const struct meta_field api_group_list_fields[] = {
    {"groups", NULL, META_PREFIX "APIGroup", REQUIRED | LIST | ATOMIC,
     "The groups."},
};

static const struct meta_field api_resource_fields[] = {
    {"categories", "string", NULL, LIST | ATOMIC,
     "Names of the sets it belongs to, such as \"all\"."},
    {"group", "string", NULL, 0,
     "The group of its objects when it is not that of the list."},
    {"kind", "string", NULL, REQUIRED,
     "The kind of its objects."},
    {"name", "string", NULL, REQUIRED,
     "The plural name."},
    {"namespaced", "boolean", NULL, REQUIRED,
     "Whether its objects live in namespaces."},
    {"shortNames", "string", NULL, LIST | ATOMIC,
     "Short names for the command line."},
    {"singularName", "string", NULL, REQUIRED,
     "The singular name."},
    {"storageVersionHash", "string", NULL, 0,
     "Changes when the form in which objects are stored changes; not to be interpreted."},
    {"verbs", "string", NULL, REQUIRED | LIST,
     "What can be done: get, list, watch, create, update, patch, delete, deletecollection."},
    {"version", "string", NULL, 0,
     "The version of its objects when it is not that of the list."},
};

static const struct meta_field api_resource_list_fields[] = {
    {"groupVersion", "string", NULL, REQUIRED,
     "The group and version, as in apiVersion."},
    {"resources", NULL, META_PREFIX "APIResource", REQUIRED | LIST | ATOMIC,
     "The resources and their subresources."},
};

static const struct meta_field api_versions_fields[] = {
    {"serverAddressByClientCIDRs", NULL, META_PREFIX "ServerAddressByClientCIDR", REQUIRED | LIST | ATOMIC,
     "Which address of the server to use from which network."},
    {"versions", "string", NULL, REQUIRED | LIST | ATOMIC,
     "The versions."},
};

static const struct meta_field condition_fields[] = {
    {"lastTransitionTime", NULL, META_PREFIX "Time", REQUIRED,
     "When the status last changed from one value to another."},
    {"message", "string", NULL, REQUIRED,
     "What a person should know about the last change."},
    {"observedGeneration", "int64", NULL, 0,
     "The metadata.generation the condition was judged by."},
    {"reason", "string", NULL, REQUIRED,
     "One word, in CamelCase, for the reason of the last change."},
    {"status", "string", NULL, REQUIRED,
     "True, False or Unknown."},
    {"type", "string", NULL, REQUIRED,
     "What was observed, in CamelCase."},
};

static const struct meta_field delete_options_fields[] = {
    {"dryRun", "string", NULL, LIST | ATOMIC,
     "When present, indicates that modifications should not be persisted. An invalid or "
     "unrecognized dryRun directive will result in an error response and no further processing "
     "of the request. Valid values are: - All: all dry run stages will be processed"},
    {"gracePeriodSeconds", "int64", NULL, 0,
     "The duration in seconds before the object should be deleted. Value must be non-negative "
     "integer. The value zero indicates delete immediately. If this value is nil, the default "
     "grace period for the specified type will be used. Defaults to a per object value if not "
     "specified. zero means delete immediately."},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", NULL, 0,
     "if set to true, it will trigger an unsafe deletion of the resource in case the normal "
     "deletion flow fails with a corrupt object error. A resource is considered corrupt if it "
     "can not be retrieved from the underlying storage successfully because of a) its data can "
     "not be transformed e.g. decryption failure, or b) it fails to decode into an object. "
     "NOTE: unsafe deletion ignores finalizer constraints, skips precondition checks, and "
     "removes the object from the storage. WARNING: This may potentially break the cluster if "
     "the workload associated with the resource being unsafe-deleted relies on normal deletion "
     "flow. Use only if you REALLY know what you are doing. The default value is false, and the "
     "user must opt in to enable it"},
    {"orphanDependents", "boolean", NULL, 0,
     "Deprecated: please use the PropagationPolicy, this field will be deprecated in 1.7. "
     "Should the dependent objects be orphaned. If true/false, the \"orphan\" finalizer will be "
     "added to/removed from the object's finalizers list. Either this field or "
     "PropagationPolicy may be set, but not both."},
    {"preconditions", NULL, META_PREFIX "Preconditions", 0,
     "Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict "
     "status will be returned."},
    {"propagationPolicy", "string", NULL, 0,
     "Whether and how garbage collection will be performed. Either this field or "
     "OrphanDependents may be set, but not both. The default policy is decided by the existing "
     "finalizer set in the metadata.finalizers and the resource-specific default policy. "
     "Acceptable values are: 'Orphan' - orphan the dependents; 'Background' - allow the garbage "
     "collector to delete the dependents in the background; 'Foreground' - a cascading policy "
     "that deletes all dependents in the foreground."},
};

static const struct meta_field group_version_for_discovery_fields[] = {
    {"groupVersion", "string", NULL, REQUIRED,
     "The group and version, as in apiVersion."},
    {"version", "string", NULL, REQUIRED,
     "The version alone."},
};

static const struct meta_field label_selector_fields[] = {
    {"matchExpressions", NULL, META_PREFIX "LabelSelectorRequirement", LIST | ATOMIC,
     "Conditions, all of which must hold."},
    {"matchLabels", "string", NULL, MAP,
     "Labels that must be there with exactly these values."},
};

static const struct meta_field label_selector_requirement_fields[] = {
    {"key", "string", NULL, REQUIRED,
     "The label."},
    {"operator", "string", NULL, REQUIRED,
     "In, NotIn, Exists or DoesNotExist."},
    {"values", "string", NULL, LIST | ATOMIC,
     "What In and NotIn compare with; empty for the others."},
};

static const struct meta_field list_meta_fields[] = {
    {"continue", "string", NULL, 0,
     "Not empty when there is more: send it with the same query to get the next part. It is "
     "valid for a while only."},
    {"remainingItemCount", "int64", NULL, 0,
     "How many items come after this part, where that is known."},
    {"resourceVersion", "string", NULL, 0,
     "The version of the whole collection at which the list was taken; a watch can begin there."},
    {"selfLink", "string", NULL, 0,
     "Not filled any more."},
};

static const struct meta_field managed_fields_entry_fields[] = {
    {"apiVersion", "string", NULL, 0,
     "The version in which the fields were written."},
    {"fieldsType", "string", NULL, 0,
     "The form of the set; always \"FieldsV1\"."},
    {"fieldsV1", NULL, META_PREFIX "FieldsV1", 0,
     "The fields."},
    {"manager", "string", NULL, 0,
     "The writer."},
    {"operation", "string", NULL, 0,
     "Apply or Update."},
    {"subresource", "string", NULL, 0,
     "The subresource written through; empty for the object itself."},
    {"time", NULL, META_PREFIX "Time", 0,
     "When the set last changed."},
};

static const struct meta_field object_meta_fields[] = {
    {"annotations", "string", NULL, MAP,
     "Notes of any kind, for programs that know their names. They cannot be searched."},
    {"creationTimestamp", NULL, META_PREFIX "Time", 0,
     "When the object was created. Set by the server."},
    {"deletionGracePeriodSeconds", "int64", NULL, 0,
     "How long the object has to end orderly once its deletion was asked for. Set by the server."},
    {"deletionTimestamp", NULL, META_PREFIX "Time", 0,
     "When the object is to be gone: its deletion was asked for and it goes once its finalizers "
     "are empty. Set by the server."},
    {"finalizers", "string", NULL, LIST | SET | MERGE,
     "Names of the parties that must agree before the object disappears. Each takes its own "
     "name out."},
    {"generateName", "string", NULL, 0,
     "A prefix from which the server makes a unique name when name is empty."},
    {"generation", "int64", NULL, 0,
     "Rises with every change of what is wanted. Set by the server."},
    {"labels", "string", NULL, MAP,
     "Names and values by which objects are selected."},
    {"managedFields", NULL, META_PREFIX "ManagedFieldsEntry", LIST | ATOMIC,
     "Who has set which fields; kept by the server for server-side apply."},
    {"name", "string", NULL, 0,
     "The name, unique among objects of the kind in the namespace. It cannot be changed."},
    {"namespace", "string", NULL, 0,
     "The namespace the object lives in; empty for kinds without one. It cannot be changed."},
    {"ownerReferences", NULL, META_PREFIX "OwnerReference", LIST | MERGE_BY_UID,
     "The objects this one depends on: when all are gone it is deleted too. At most one of them "
     "is the managing controller."},
    {"resourceVersion", "string", NULL, 0,
     "Changes with every change of the object. Send it back with an update to be refused when "
     "somebody else was faster."},
    {"selfLink", "string", NULL, 0,
     "Not filled any more."},
    {"uid", "string", NULL, 0,
     "Unique among all objects that ever were. Set by the server."},
};

static const struct meta_field owner_reference_fields[] = {
    {"apiVersion", "string", NULL, REQUIRED,
     "The API version of the owner."},
    {"blockOwnerDeletion", "boolean", NULL, 0,
     "Whether a deletion of the owner in the foreground waits for this object."},
    {"controller", "boolean", NULL, 0,
     "Whether the owner is the managing controller."},
    {"kind", "string", NULL, REQUIRED,
     "The kind of the owner."},
    {"name", "string", NULL, REQUIRED,
     "The name of the owner."},
    {"uid", "string", NULL, REQUIRED,
     "The uid of the owner."},
};

static const struct meta_field preconditions_fields[] = {
    {"resourceVersion", "string", NULL, 0,
     "The resourceVersion it must have."},
    {"uid", "string", NULL, 0,
     "The uid it must have."},
};

static const struct meta_field server_address_by_client_cidr_fields[] = {
    {"clientCIDR", "string", NULL, REQUIRED,
     "The network."},
    {"serverAddress", "string", NULL, REQUIRED,
     "Host and port, or host alone."},
};

static const struct meta_field status_fields[] = {
    {"code", "int32", NULL, 0,
     "The HTTP status."},
    {"details", NULL, META_PREFIX "StatusDetails", 0,
     "More, depending on the reason."},
    {"message", "string", NULL, 0,
     "What happened, for people."},
    {"metadata", NULL, META_PREFIX "ListMeta", STRUCT,
     "What every list says about itself."},
    {"reason", "string", NULL, 0,
     "One word for programs."},
    {"status", "string", NULL, 0,
     "Success or Failure."},
};

static const struct meta_field status_cause_fields[] = {
    {"field", "string", NULL, 0,
     "The field that caused it: \"name\", \"items[0].name\"."},
    {"message", "string", NULL, 0,
     "What is wrong, for people."},
    {"reason", "string", NULL, 0,
     "One word for programs."},
};

static const struct meta_field status_details_fields[] = {
    {"causes", NULL, META_PREFIX "StatusCause", LIST | ATOMIC,
     "The causes, where there are several."},
    {"group", "string", NULL, 0,
     "The group of the resource."},
    {"kind", "string", NULL, 0,
     "The resource."},
    {"name", "string", NULL, 0,
     "The name of the object."},
    {"retryAfterSeconds", "int32", NULL, 0,
     "When to try again."},
    {"uid", "string", NULL, 0,
     "The uid of the object."},
};

static const struct meta_field watch_event_fields[] = {
    {"object", NULL, "io.k8s.apimachinery.pkg.runtime.RawExtension", REQUIRED,
     "The object after the change, before it when it was deleted, a Status when type is ERROR."},
    {"type", "string", NULL, REQUIRED,
     "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."},
};

static const struct meta_field info_fields[] = {
    {"buildDate", "string", NULL, REQUIRED,
     "When it was built."},
    {"compiler", "string", NULL, REQUIRED,
     "The compiler."},
    {"emulationMajor", "string", NULL, 0,
     "Major version whose behaviour is shown."},
    {"emulationMinor", "string", NULL, 0,
     "Minor version whose behaviour is shown."},
    {"gitCommit", "string", NULL, REQUIRED,
     "The commit it was built from."},
    {"gitTreeState", "string", NULL, REQUIRED,
     "Whether that tree was clean."},
    {"gitVersion", "string", NULL, REQUIRED,
     "The version, with our own as its suffix."},
    {"goVersion", "string", NULL, REQUIRED,
     "The Go version, if any."},
    {"major", "string", NULL, REQUIRED,
     "Major version."},
    {"minCompatibilityMajor", "string", NULL, 0,
     "Major version of the oldest release it works beside."},
    {"minCompatibilityMinor", "string", NULL, 0,
     "Minor version of the oldest release it works beside."},
    {"minor", "string", NULL, REQUIRED,
     "Minor version."},
    {"platform", "string", NULL, REQUIRED,
     "Operating system and processor."},
};

static const struct meta_field scale_fields[] = {
    {"metadata", NULL, META_PREFIX "ObjectMeta", STRUCT,
     "What every stored object says about itself."},
    {"spec", NULL, "io.k8s.api.autoscaling.v1.ScaleSpec", STRUCT,
     "What is wanted."},
    {"status", NULL, "io.k8s.api.autoscaling.v1.ScaleStatus", STRUCT,
     "What is."},
};

static const struct meta_field scale_spec_fields[] = {
    {"replicas", "int32", NULL, 0,
     "The number wanted."},
};

static const struct meta_field scale_status_fields[] = {
    {"replicas", "int32", NULL, REQUIRED,
     "The number there is."},
    {"selector", "string", NULL, 0,
     "A label selector that finds the instances, as text."},
};

static const struct meta_definition definitions[] = {
    {META_PREFIX "APIGroup", FIELDS(api_group_fields), NULL, NULL, TYPE_META | CORE_V1,
     "A group of kinds and the versions it is served in."},
    {META_PREFIX "APIGroupList", FIELDS(api_group_list_fields), NULL, NULL, TYPE_META | CORE_V1,
     "The groups the server has, for clients that ask /apis."},
    {META_PREFIX "APIResource", FIELDS(api_resource_fields), NULL, NULL, 0,
     "A resource: its name, its scope and what can be done with it."},
    {META_PREFIX "APIResourceList", FIELDS(api_resource_list_fields), NULL, NULL, TYPE_META | CORE_V1,
     "The resources of one group version."},
    {META_PREFIX "APIVersions", FIELDS(api_versions_fields), NULL, NULL, TYPE_META | CORE_V1,
     "The versions of the core group, for clients that ask /api."},
    {META_PREFIX "Condition", FIELDS(condition_fields), NULL, NULL, 0,
     "One observation about the state of an object."},
    {META_PREFIX "DeleteOptions", FIELDS(delete_options_fields), NULL, NULL, TYPE_META | EVERY_GROUP,
     "DeleteOptions may be provided when deleting an API object."},
    {META_PREFIX "FieldsV1", NO_FIELDS, "object", NULL, 0,
     "A set of fields as a JSON tree: f:<name> is a field, k:<keys> the item of a list with "
     "these keys, v:<value> an item by value, i:<index> one by its place; . is the node itself."},
    {META_PREFIX "GroupVersionForDiscovery", FIELDS(group_version_for_discovery_fields), NULL, NULL, 0,
     "A version of a group."},
    {META_PREFIX "LabelSelector", FIELDS(label_selector_fields), NULL, NULL, MAP_ATOMIC,
     "A question about labels. All its parts must hold; an empty one is true of every object, "
     "none at all of no object."},
    {META_PREFIX "LabelSelectorRequirement", FIELDS(label_selector_requirement_fields), NULL, NULL, 0,
     "One condition on a label."},
    {META_PREFIX "ListMeta", FIELDS(list_meta_fields), NULL, NULL, 0,
     "What every list says about itself."},
    {META_PREFIX "ManagedFieldsEntry", FIELDS(managed_fields_entry_fields), NULL, NULL, 0,
     "Which fields one writer has set."},
    {META_PREFIX "MicroTime", NO_FIELDS, "string", "date-time", 0,
     "A point in time with microseconds."},
    {META_PREFIX "ObjectMeta", FIELDS(object_meta_fields), NULL, NULL, 0,
     "What every stored object says about itself."},
    {META_PREFIX "OwnerReference", FIELDS(owner_reference_fields), NULL, NULL, MAP_ATOMIC,
     "Names the owner of an object; the owner is in the same namespace or has none."},
    {META_PREFIX "Patch", NO_FIELDS, "object", NULL, 0,
     "A change to an object, in the form its Content-Type names."},
    {META_PREFIX "Preconditions", FIELDS(preconditions_fields), NULL, NULL, 0,
     "What must be true of an object before it is deleted."},
    {META_PREFIX "ServerAddressByClientCIDR", FIELDS(server_address_by_client_cidr_fields), NULL, NULL, 0,
     "An address of the server for clients of one network."},
    {META_PREFIX "Status", FIELDS(status_fields), NULL, NULL, TYPE_META | CORE_V1,
     "The outcome of a request that has no object to answer with."},
    {META_PREFIX "StatusCause", FIELDS(status_cause_fields), NULL, NULL, 0,
     "One of several causes of a failure."},
    {META_PREFIX "StatusDetails", FIELDS(status_details_fields), NULL, NULL, 0,
     "What a failure is about."},
    {META_PREFIX "Time", NO_FIELDS, "string", "date-time", 0,
     "A point in time, to the second."},
    {META_PREFIX "WatchEvent", FIELDS(watch_event_fields), NULL, NULL, EVERY_GROUP,
     "One event of a watch."},
    {"io.k8s.apimachinery.pkg.runtime.RawExtension", NO_FIELDS, "object", NULL, 0,
     "Any object."},
    {"io.k8s.apimachinery.pkg.api.resource.Quantity", NO_FIELDS, NULL, NULL, NUMBER_OR_STRING,
     "A number with a unit: 1.5, 500m, 2Gi, 3e6."},
    {"io.k8s.apimachinery.pkg.util.intstr.IntOrString", NO_FIELDS, NULL, NULL, INT_OR_STRING,
     "A number or a text."},
    {"io.k8s.apimachinery.pkg.version.Info", FIELDS(info_fields), NULL, NULL, 0,
     "What the server is and how it was built."},
    {"io.k8s.api.autoscaling.v1.Scale", FIELDS(scale_fields), NULL, NULL, TYPE_META | AUTOSCALING_V1,
     "How many instances there are and how many there should be."},
    {"io.k8s.api.autoscaling.v1.ScaleSpec", FIELDS(scale_spec_fields), NULL, NULL, 0,
     "How many instances are wanted."},
    {"io.k8s.api.autoscaling.v1.ScaleStatus", FIELDS(scale_status_fields), NULL, NULL, 0,
     "How many instances there are."},
};
/* clang-format on */

struct str openapi_type_meta_description(struct str property)
{
    if (str_is(property, "apiVersion"))
        return STR("APIVersion defines the versioned schema of this representation of an object. "
                   "Servers should convert "
                   "recognized schemas to the latest internal value, and may reject unrecognized "
                   "values. More "
                   "info: " CONVENTIONS "#resources");
    return STR(
        "Kind is a string value representing the REST resource this object represents. Servers may "
        "infer this "
        "from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More "
        "info: " CONVENTIONS "#types-kinds");
}

static void set(struct arena *a, struct json *object, const char *key, struct json value)
{
    json_append_member(a, object, str_of(key), value);
}

static void set_text(struct arena *a, struct json *object, const char *key, const char *value)
{
    set(a, object, key, json_string(str_of(value)));
}

static struct json scalar(struct arena *a, const struct meta_field *f)
{
    struct json node = json_object();
    if (f->ref) {
        set_text(a, &node, "x-seth-definition", f->ref);
    } else if (str_is(str_of(f->type), "int32") || str_is(str_of(f->type), "int64")) {
        set_text(a, &node, "type", "integer");
        set_text(a, &node, "format", f->type);
    } else {
        set_text(a, &node, "type", f->type);
    }
    return node;
}

static void set_list_rules(struct arena *a, struct json *node, unsigned flags)
{
    if (flags & (ATOMIC | SET))
        set_text(a, node, "x-kubernetes-list-type", flags & SET ? "set" : "atomic");
    if (flags & MERGE_BY_UID) {
        struct json keys = json_array();
        json_push(a, &keys, json_string(STR("uid")));
        set(a, node, "x-kubernetes-list-map-keys", keys);
        set_text(a, node, "x-kubernetes-list-type", "map");
        set_text(a, node, "x-kubernetes-patch-merge-key", "uid");
    }
    if (flags & (MERGE | MERGE_BY_UID))
        set_text(a, node, "x-kubernetes-patch-strategy", "merge");
}

static struct json field(struct arena *a, const struct meta_field *f)
{
    struct json node = json_object();
    if (f->flags & (LIST | MAP)) {
        set_text(a, &node, "type", f->flags & LIST ? "array" : "object");
        set(a, &node, f->flags & LIST ? "items" : "additionalProperties", scalar(a, f));
        set_list_rules(a, &node, f->flags);
    } else {
        node = scalar(a, f);
    }
    if (f->flags & STRUCT)
        set(a, &node, "default", json_object());
    set_text(a, &node, "description", f->description);
    return node;
}

static void set_fields(struct arena *a, const struct meta_definition *d, struct json *node)
{
    struct json properties = json_object(), required = json_array();
    for (size_t i = 0; i < d->n_fields; i++) {
        set(a, &properties, d->fields[i].name, field(a, &d->fields[i]));
        if (d->fields[i].flags & REQUIRED)
            json_push(a, &required, json_string(str_of(d->fields[i].name)));
    }
    if (d->flags & TYPE_META) {
        static const char *const names[] = {"apiVersion", "kind"};
        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
            struct json p = json_object();
            set(a, &p, "description", json_string(openapi_type_meta_description(str_of(names[i]))));
            set_text(a, &p, "type", "string");
            set(a, &properties, names[i], p);
        }
    }
    if (required.n)
        set(a, node, "required", required);
    set(a, node, "properties", properties);
}

static void set_group_version_kind(struct arena *a, const struct meta_definition *d,
                                   struct json *node)
{
    const struct str name = str_of(d->name);
    struct json gvk = json_object(), list = json_array();
    set_text(a, &gvk, "group", d->flags & AUTOSCALING_V1 ? "autoscaling" : "");
    set(a, &gvk, "kind", json_string(str_from(name, (size_t) str_find_last(name, '.') + 1)));
    set_text(a, &gvk, "version", "v1");
    json_push(a, &list, gvk);
    set(a, node, "x-kubernetes-group-version-kind", list);
}

/* Texts that may be numbers: v2 knows only a format for that. */
static void set_mixed(struct arena *a, const struct meta_definition *d, struct json *node)
{
    const bool is_int = d->flags & INT_OR_STRING;
    struct json number = json_object(), text = json_object(), either = json_array();
    set_text(a, &number, "type", is_int ? "integer" : "number");
    set_text(a, &text, "type", "string");
    json_push(a, &either, is_int ? number : text);
    json_push(a, &either, is_int ? text : number);
    set_text(a, node, "type", "string");
    if (is_int)
        set_text(a, node, "format", "int-or-string");
    set(a, node, "oneOf", either);
}

struct json openapi_meta_definition(struct arena *a, struct str name,
                                    bool *ret_has_group_version_kind)
{
    for (size_t i = 0; i < N_ELEMENTS(definitions); i++) {
        const struct meta_definition *d = &definitions[i];
        if (!str_is(name, d->name))
            continue;
        struct json node = json_object();
        set_text(a, &node, "description", d->description);
        if (d->flags & (NUMBER_OR_STRING | INT_OR_STRING))
            set_mixed(a, d, &node);
        else
            set_text(a, &node, "type", d->type ? d->type : "object");
        if (d->format)
            set_text(a, &node, "format", d->format);
        if (d->fields)
            set_fields(a, d, &node);
        if (d->flags & MAP_ATOMIC)
            set_text(a, &node, "x-kubernetes-map-type", "atomic");
        if (d->flags & (CORE_V1 | AUTOSCALING_V1))
            set_group_version_kind(a, d, &node);
        *ret_has_group_version_kind = d->flags & EVERY_GROUP;
        return node;
    }
    return json_null();
}
