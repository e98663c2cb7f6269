/* SPDX-License-Identifier: Apache-2.0 */
/* Applications, by themselves and as templates of the three that make many. */
#include "resources/application.h"

#include "resources/affinity.h"
#include "resources/application_networks.h"
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/identity.h"
#include "resources/resources.h"

#define CONTAINERS_MAX 32
#define VOLUMES_MAX 128

/* ---- rules --------------------------------------------------------------------------------- */

static void check_networks(struct causes *causes, const struct application_view *v)
{
    const struct field_path at_meta = FIELD_NAME(v->at, STR("metadata"));
    const struct field_path at_annotations = FIELD_NAME(&at_meta, STR("annotations"));
    const struct field_path at = FIELD_KEY(&at_annotations, NETWORKS_ANNOTATION);
    const struct json *text =
        json_get(json_at(v->object, "metadata", "annotations", NULL), NETWORKS_ANNOTATION);
    struct network_choices choices;
    if (!text)
        return;
    const char *error = networks_parse(causes->arena, json_str(text), &choices);
    if (error) {
        causes_add(causes, CAUSE_INVALID, &at, text, "%s", error);
        return;
    }
    for (size_t i = 0; i < choices.n; i++) {
        const struct json namespace = json_string(choices.items[i].namespace);
        if (choices.items[i].namespace.n && !str_eq(choices.items[i].namespace, v->namespace))
            causes_add(causes, CAUSE_INVALID, &at, &namespace,
                       "must be the namespace of the Application, which uses networks of its own");
    }
}

static bool is_short(struct causes *causes, const struct field_path *at, const struct json *list,
                     size_t max)
{
    const struct json n = json_int((int64_t) json_count(list));
    if (json_count(list) > max)
        causes_add(causes, CAUSE_TOO_MANY, at, &n, "must have at most %zu items", max);
    return json_count(list) <= max;
}

/* Every use of a volume is looked up in all of them. */
static bool are_short(struct causes *causes, const struct field_path *at, const struct json *spec)
{
    static const char *const uses[] = {"volumeMounts", "volumeDevices"};
    const struct field_path at_containers = FIELD_NAME(at, STR("containers"));
    const struct json *containers = json_get(spec, STR("containers"));
    bool is_ok = is_short(causes, &at_containers, containers, CONTAINERS_MAX);
    is_ok &= is_short(causes, &FIELD_NAME(at, STR("volumes")), json_get(spec, STR("volumes")),
                      VOLUMES_MAX);
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (containers, container) {
        const struct field_path here = FIELD_INDEX(&at_containers, i++);
        for (size_t u = 0; u < N_ELEMENTS(uses); u++)
            is_ok &= is_short(causes, &FIELD_NAME(&here, str_of(uses[u])),
                              json_get(container, str_of(uses[u])), VOLUMES_MAX);
    }
    return is_ok;
}

void application_check(struct causes *causes, const struct application_view *v)
{
    const struct field_path at = FIELD_NAME(v->at, STR("spec"));
    const struct json *spec = json_get(v->object, STR("spec"));
    if (!are_short(causes, &at, spec))
        return;
    application_check_containers(causes, &at, spec);
    application_check_volumes(causes, &at, v);
    affinity_check(causes, &at, spec);
    check_networks(causes, v);
    if (json_get_str(spec, STR("userData")).n && json_get_str(spec, STR("userDataSecret")).n)
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&at, STR("userDataSecret")), NULL,
                   "may not be specified together with userData");
}

/* ---- references ---------------------------------------------------------------------------- */

static void refer_networks(struct reference_list *l, const struct application_view *v)
{
    const struct field_path at_meta = FIELD_NAME(v->at, STR("metadata"));
    const struct field_path at_annotations = FIELD_NAME(&at_meta, STR("annotations"));
    const struct json *annotations = json_at(v->object, "metadata", "annotations", NULL);
    struct network_choices choices;
    /* What is no list has been refused, or was there before there were rules. */
    if (networks_parse(l->arena, json_get_str(annotations, NETWORKS_ANNOTATION), &choices))
        return;
    for (size_t i = 0; i < choices.n; i++)
        reference_add(l, &FIELD_KEY(&at_annotations, NETWORKS_ANNOTATION),
                      &(struct reference){.collection = COLLECTION_NETWORKS,
                                          .namespace = v->namespace,
                                          .name = choices.items[i].name});
}

static void check_image(struct reference_reader *reader, const struct reference *r,
                        const struct json *target, struct causes *causes)
{
    (void) reader;
    const struct json name = json_string(r->name);
    if (str_is(json_str(json_at(target, "spec", "type", NULL)), "eve-os"))
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("this Image is a version of EVE and no application (type: eve-os)"));
}

static void refer_env(struct reference_list *l, const struct field_path *at_container,
                      struct str namespace, const struct json *env)
{
    static const struct {
        const char *member;
        struct str collection;
    } sources[] = {{"secretKeyRef", COLLECTION_SECRETS},
                   {"configMapKeyRef", COLLECTION_CONFIGMAPS}};
    const struct field_path at_env = FIELD_NAME(at_container, STR("env"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (env, variable) {
        const struct field_path here = FIELD_INDEX(&at_env, i++);
        const struct field_path from = FIELD_NAME(&here, STR("valueFrom"));
        for (size_t s = 0; s < N_ELEMENTS(sources); s++) {
            const struct json *source = json_at(variable, "valueFrom", sources[s].member, NULL);
            const struct field_path at = FIELD_NAME(&from, str_of(sources[s].member));
            eve_refer_key(l, &FIELD_NAME(&at, STR("name")),
                          &(struct reference){.collection = sources[s].collection,
                                              .namespace = namespace,
                                              .name = json_get_str(source, STR("name"))},
                          json_get_str(source, STR("key")));
        }
    }
}

static void refer_containers(struct reference_list *l, const struct field_path *at_spec,
                             const struct application_view *v)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("containers"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (json_at(v->object, "spec", "containers", NULL), container) {
        const struct field_path here = FIELD_INDEX(&at, i++);
        reference_add(l, &FIELD_NAME(&here, STR("image")),
                      &(struct reference){.collection = COLLECTION_IMAGES,
                                          .namespace = v->namespace,
                                          .name = json_get_str(container, STR("image")),
                                          .check = check_image});
        refer_env(l, &here, v->namespace, json_get(container, STR("env")));
    }
}

/* How containers use a volume: "m" as directories, "d" as disks, "md" both. */
static struct str use_of(struct arena *a, const struct json *spec, struct str volume)
{
    static const struct {
        const char *member, *letter;
    } uses[] = {{"volumeMounts", "m"}, {"volumeDevices", "d"}};
    struct str use = STR("");
    for (size_t i = 0; i < N_ELEMENTS(uses); i++) {
        bool is_used = false;
        JSON_FOR_EACH_ITEM (json_get(spec, STR("containers")), container)
            JSON_FOR_EACH_ITEM (json_get(container, str_of(uses[i].member)), entry)
                is_used |= str_eq(json_get_str(entry, STR("name")), volume);
        if (is_used)
            use = arena_printf(a, "%.*s%s", STR_ARG(use), uses[i].letter);
    }
    return use;
}

static void check_claim(struct reference_reader *reader, const struct reference *r,
                        const struct json *target, struct causes *causes)
{
    const struct json name = json_string(r->name);
    const struct json *spec = json_get(target, STR("spec"));
    const struct str class = json_get_str(spec, STR("storageClassName"));
    const bool is_block = str_is(json_get_str(spec, STR("volumeMode")), "Block");
    const struct json *storage_class =
        class.n ? reader->get(reader, COLLECTION_CLASSES, STR(""), class) : NULL;
    if (is_block && str_find(r->detail, 'm') >= 0)
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("this claim has volumeMode Block: it belongs into volumeDevices"));
    if (!is_block && str_find(r->detail, 'd') >= 0)
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("this claim has volumeMode Filesystem: it belongs into volumeMounts"));
    if (storage_class && !eve_is_class(storage_class))
        causes_add_text(
            causes, CAUSE_INVALID, r->field, &name,
            STR("the provisioner of this claim's StorageClass is not \"" EVE_PROVISIONER "\""));
}

static void refer_volumes(struct reference_list *l, const struct field_path *at_spec,
                          const struct application_view *v)
{
    const struct json *spec = json_get(v->object, STR("spec"));
    const struct field_path at_volumes = FIELD_NAME(at_spec, STR("volumes"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("volumes")), volume) {
        const struct field_path here = FIELD_INDEX(&at_volumes, i++);
        const struct field_path at_claim = FIELD_NAME(&here, STR("persistentVolumeClaim"));
        const struct field_path at_own = FIELD_NAME(&here, STR("ephemeral"));
        const struct field_path at_template = FIELD_NAME(&at_own, STR("volumeClaimTemplate"));
        reference_add(
            l, &FIELD_NAME(&at_claim, STR("claimName")),
            &(struct reference){
                .collection = COLLECTION_CLAIMS,
                .namespace = v->namespace,
                .name = json_str(json_at(volume, "persistentVolumeClaim", "claimName", NULL)),
                .check = check_claim,
                .detail = use_of(l->arena, spec, json_get_str(volume, STR("name")))});
        eve_refer_claim_spec(l, &FIELD_NAME(&at_template, STR("spec")), v->namespace,
                             json_at(volume, "ephemeral", "volumeClaimTemplate", "spec", NULL),
                             /* is_ours= */ true);
    }
}

void application_refer(struct reference_list *l, const struct application_view *v)
{
    const struct field_path at = FIELD_NAME(v->at, STR("spec"));
    refer_networks(l, v);
    refer_containers(l, &at, v);
    refer_volumes(l, &at, v);
    eve_refer_key(
        l, &FIELD_NAME(&at, STR("userDataSecret")),
        &(struct reference){.collection = COLLECTION_SECRETS,
                            .namespace = v->namespace,
                            .name = json_str(json_at(v->object, "spec", "userDataSecret", NULL))},
        STR("userData"));
}

/* ---- the kind ------------------------------------------------------------------------------ */

static void refer(struct reference_list *l, const struct json *object)
{
    application_refer(
        l, &(struct application_view){.object = object, .namespace = eve_namespace_of(object)});
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    identity_prepare(h, old, object);
    if (!old)
        identity_begin_ready(h, object, STR("NotReported"), STR("no device has reported it yet"));
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (!h->subresource.n)
        application_check(causes,
                          &(struct application_view){.object = object, .namespace = h->namespace});
}

const struct kind_hooks application_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("applications"),
    .prepare = prepare,
    .validate = validate,
    .validate_update = identity_check,
    .refer = refer,
};
