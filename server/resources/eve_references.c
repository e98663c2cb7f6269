/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/eve_references.h"

struct str eve_namespace_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "namespace", NULL));
}

bool eve_is_class(const struct json *storage_class)
{
    return str_is(json_get_str(storage_class, STR("provisioner")), EVE_PROVISIONER);
}

/* ---- Secrets and ConfigMaps ---------------------------------------------------------------- */

static void misfit(const struct reference *r, struct causes *causes, struct str why)
{
    const struct json name = json_string(r->name);
    causes_add_text(causes, CAUSE_INVALID, r->field, &name, why);
}

static void check_credentials(struct reference_reader *reader, const struct reference *r,
                              const struct json *target, struct causes *causes)
{
    (void) reader;
    const struct json *data = json_get(target, STR("data"));
    if (!json_get(data, STR("username")) && !json_get(data, STR("password")))
        misfit(r, causes, STR("the Secret has neither the key \"username\" nor \"password\""));
}

void eve_refer_credentials(struct reference_list *l, const struct field_path *at,
                           struct str namespace, struct str name, unsigned flags)
{
    reference_add(l, at,
                  &(struct reference){.collection = COLLECTION_SECRETS,
                                      .namespace = namespace,
                                      .name = name,
                                      .flags = flags,
                                      .check = check_credentials});
}

static void check_key(struct reference_reader *reader, const struct reference *r,
                      const struct json *target, struct causes *causes)
{
    const bool has_key = json_get(json_get(target, STR("data")), r->detail) ||
                         json_get(json_get(target, STR("binaryData")), r->detail);
    if (!has_key)
        misfit(r, causes, arena_printf(reader->arena, "has no key \"%.*s\"", STR_ARG(r->detail)));
}

void eve_refer_key(struct reference_list *l, const struct field_path *at,
                   const struct reference *reference, struct str key)
{
    struct reference r = *reference;
    r.check = check_key;
    r.detail = key;
    reference_add(l, at, &r);
}

/* ---- claims -------------------------------------------------------------------------------- */

struct str eve_source_image(const struct json *source)
{
    struct str group = json_get_str(source, STR("apiGroup"));
    const struct str kind = json_get_str(source, STR("kind"));
    if (!group.n)
        group = json_get_str(source, STR("group"));
    const ptrdiff_t slash = str_find(group, '/');
    if (slash >= 0)
        group = str_sub(group, 0, (size_t) slash);
    return str_is(group, "eve.lfedge.org") && (str_is(kind, "Image") || str_is(kind, "image"))
               ? json_get_str(source, STR("name"))
               : STR_NONE;
}

/* What EVE makes is blank or an Image; another provisioner knows no Images. */
static void check_claim_class(struct reference_reader *reader, const struct reference *r,
                              const struct json *target, struct causes *causes)
{
    (void) reader;
    const struct json *source = json_get(r->user, STR("dataSourceRef"));
    const bool is_eve = eve_is_class(target), is_image = eve_source_image(source).n > 0;
    if (!is_eve && (is_image || str_is(r->detail, "ours")))
        misfit(r, causes,
               STR("the provisioner of this StorageClass is not \"" EVE_PROVISIONER "\""));
    else if (is_eve && json_is(source, JSON_OBJECT) && !is_image)
        misfit(r, causes,
               STR("volumes of this StorageClass are blank or made from an Image "
                   "(dataSourceRef: apiGroup eve.lfedge.org, kind Image)"));
}

void eve_refer_claim_spec(struct reference_list *l, const struct field_path *at,
                          struct str namespace, const struct json *spec, bool is_ours)
{
    const struct json *source = json_get(spec, STR("dataSourceRef"));
    const struct field_path at_source = FIELD_NAME(at, STR("dataSourceRef"));
    reference_add(l, &FIELD_NAME(at, STR("storageClassName")),
                  &(struct reference){.collection = COLLECTION_CLASSES,
                                      .namespace = STR(""),
                                      .name = json_get_str(spec, STR("storageClassName")),
                                      .flags = is_ours ? 0 : REFERENCE_OPTIONAL,
                                      .check = check_claim_class,
                                      .detail = is_ours ? STR("ours") : STR(""),
                                      .user = spec});
    reference_add(l, &FIELD_NAME(&at_source, STR("name")),
                  &(struct reference){.collection = COLLECTION_IMAGES,
                                      .namespace = namespace,
                                      .name = eve_source_image(source)});
}
