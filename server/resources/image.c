/* SPDX-License-Identifier: Apache-2.0 */
/* Images: where they are stored decides what must be known of them. */
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/identity.h"
#include "resources/resources.h"

#define TYPE_EVE_OS "eve-os"

/* ---- references ---------------------------------------------------------------------------- */

/* "8.12.0" of lfedge/eve:8.12.0 or lfedge/eve:8.12.0@sha256:...; STR_NONE without a tag. */
static struct str tag_of(struct str ref)
{
    const ptrdiff_t at = str_find(ref, '@');
    if (at >= 0)
        ref = str_sub(ref, 0, (size_t) at);
    const ptrdiff_t slash = str_find_last(ref, '/'), colon = str_find_last(ref, ':');
    return colon > slash ? str_from(ref, (size_t) colon + 1) : STR_NONE;
}

static bool is_repository(struct str ref)
{
    const struct str allowed =
        STR("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+");
    for (size_t i = 0; i < ref.n; i++)
        if (str_find(allowed, ref.p[i]) < 0)
            return false;
    return ref.n && ref.p[0] != '/' && ref.p[ref.n - 1] != '/' && str_find_str(ref, STR("//")) < 0;
}

/* EVE takes the contents of a registry for what they say they are, and nothing else's. */
static void check_contents(const struct json *image, struct str type, struct causes *causes)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *fields = json_get(image, STR("spec"));
    const struct json *ref = json_get(fields, STR("ref"));
    const struct field_path at_ref = FIELD_NAME(&spec, STR("ref"));
    if (str_is(type, "container") && !is_repository(json_str(ref)))
        causes_add(
            causes, CAUSE_INVALID, &at_ref, ref,
            "must be repository:tag or repository@digest, as the StorageClass is a registry");
    else if (str_find_str(json_str(ref), STR("://")) >= 0)
        causes_add(causes, CAUSE_INVALID, &at_ref, ref,
                   "must be a path below the URL of the StorageClass");
    if (!str_is(type, "container") && !json_get_str(fields, STR("sha256")).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&spec, STR("sha256")), NULL,
                   "devices verify what does not come from a registry");
}

static void check_class(struct reference_reader *reader, const struct reference *r,
                        const struct json *target, struct causes *causes)
{
    (void) reader;
    const struct json name = json_string(r->name);
    const struct str type = json_str(json_at(target, "parameters", "type", NULL));
    if (!eve_is_class(target))
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("the provisioner of this StorageClass is not \"" EVE_PROVISIONER "\""));
    else if (str_is(type, "blank"))
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("this StorageClass makes blank volumes and stores no images"));
    else
        check_contents(r->user, type, causes);
}

static void refer(struct reference_list *l, const struct json *object)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *fields = json_get(object, STR("spec"));
    const struct str ref = json_get_str(fields, STR("ref")),
                     sha256 = json_get_str(fields, STR("sha256")),
                     namespace = eve_namespace_of(object);
    reference_add(l, &FIELD_NAME(&spec, STR("storageClass")),
                  &(struct reference){
                      .collection = COLLECTION_CLASSES,
                      .namespace = STR(""),
                      .name = json_get_str(fields, STR("storageClass")),
                      .flags = REFERENCE_INHERITS,
                      .check = check_class,
                      .detail = arena_printf(l->arena, "%.*s %.*s", STR_ARG(sha256), STR_ARG(ref)),
                      .user = object});
    if (str_is(json_get_str(fields, STR("type")), TYPE_EVE_OS))
        reference_add(l, &FIELD_NAME(&spec, STR("ref")),
                      &(struct reference){.collection = REFERENCE_EVE_OS_IMAGES,
                                          .namespace = namespace,
                                          .name = tag_of(ref),
                                          .flags = REFERENCE_WEAK});
}

/* ---- rules --------------------------------------------------------------------------------- */

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *fields = json_get(object, STR("spec"));
    if (h->subresource.n)
        return;
    check_amount(causes, &FIELD_NAME(&spec, STR("size")), json_get(fields, STR("size")));
    if (str_is(json_get_str(fields, STR("type")), TYPE_EVE_OS) &&
        !tag_of(json_get_str(fields, STR("ref"))).n)
        h->warn(h, STR("spec.ref: has no tag: no Device can name this version of EVE"));
}

/* An application boots anew when its Image changes; a claim keeps the data it has. */
static const char *const contents[] = {"ref", "storageClass", "sha256", "format", NULL};
static const struct kind_hold hold = {COLLECTION_CLAIMS, contents,
                                      "was made from it and holds data: make another Image"};

const struct kind_hooks image_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("images"),
    .prepare = identity_prepare,
    .validate = validate,
    .validate_update = identity_check,
    .refer = refer,
    .has_users = true,
    .hold = &hold,
};
