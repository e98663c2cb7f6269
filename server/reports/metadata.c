/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoAppInstMetaData: the kubeconfig that an application posted, as a Secret. Nobody has looked
 * into it: neither the device nor we. */
#include "base/base64.h"
#include "reports/derive.h"

#define SUFFIX "-kubeconfig"

struct str derive_kubeconfig_name(struct arena *a, struct str application)
{
    return arena_printf(a, "%.*s" SUFFIX, STR_ARG(application));
}

static struct json owner_of(struct arena *a, const struct json *application)
{
    struct json owner = json_object(), owners = json_array();
    const struct json *meta = json_get(application, STR("metadata"));
    (void) json_append_member(a, &owner, STR("apiVersion"),
                              json_string(json_get_str(application, STR("apiVersion"))));
    (void) json_append_member(a, &owner, STR("kind"),
                              json_string(json_get_str(application, STR("kind"))));
    (void) json_append_member(a, &owner, STR("name"), json_string(json_get_str(meta, STR("name"))));
    (void) json_append_member(a, &owner, STR("uid"), json_string(json_get_str(meta, STR("uid"))));
    (void) json_append_member(a, &owner, STR("controller"), json_bool(true));
    (void) json_push(a, &owners, owner);
    return owners;
}

struct json *derive_kubeconfig(struct arena *a, const struct json *application, struct str data)
{
    struct json *secret = json_new(a, json_object());
    struct json meta = json_object(), content = json_object();
    struct str name = json_str(json_at(application, "metadata", "name", NULL));
    (void) json_append_member(a, &meta, STR("name"), json_string(derive_kubeconfig_name(a, name)));
    (void) json_append_member(a, &meta, STR("ownerReferences"), owner_of(a, application));
    (void) json_append_member(a, &content, STR("kubeconfig"),
                              json_string(base64_encode(a, data, BASE64_STANDARD)));
    (void) json_append_member(a, secret, STR("apiVersion"), json_string(STR("v1")));
    (void) json_append_member(a, secret, STR("kind"), json_string(STR("Secret")));
    (void) json_append_member(a, secret, STR("metadata"), meta);
    (void) json_append_member(a, secret, STR("type"), json_string(STR("Opaque")));
    (void) json_append_member(a, secret, STR("data"), content);
    return secret;
}

bool derive_kubeconfig_is_ours(const struct json *secret, const struct json *application)
{
    struct str uid = json_str(json_at(application, "metadata", "uid", NULL));
    JSON_FOR_EACH_ITEM (json_at(secret, "metadata", "ownerReferences", NULL), owner)
        if (uid.n && str_eq(json_get_str(owner, STR("uid")), uid))
            return true;
    return false;
}
