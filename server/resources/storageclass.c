/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "pki/chain.h"
#include "resources/addresses.h"
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/resources.h"

#define PARAMETERS_MAX_BYTES (256 * 1024)
#define PARAMETERS_MAX 512

static void check_provisioner(const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("provisioner"));
    const struct str name = json_get_str(object, STR("provisioner"));
    if (name.n == 0) {
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
        return;
    }
    char *lower = arena_strz(causes->arena, name);
    for (size_t i = 0; i < name.n; i++)
        lower[i] = (char) tolower((unsigned char) lower[i]);
    const struct name_errors errors = name_qualified(causes->arena, str_range(lower, name.n));
    object_meta_add_errors(causes, &at, str_range(lower, name.n), &errors);
}

static void check_parameters(const struct json *parameters, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("parameters"));
    size_t n_bytes = 0;
    if (json_count(parameters) > PARAMETERS_MAX) {
        causes_add(causes, CAUSE_TOO_LONG, &at, NULL, "may not be more than %d bytes",
                   PARAMETERS_MAX);
        return;
    }
    JSON_FOR_EACH_MEMBER (parameters, m) {
        if (m->key.n == 0)
            causes_add(causes, CAUSE_INVALID, &at, &m->key, "field can not be empty.");
        n_bytes += m->key.n + json_str(&m->value).n;
    }
    if (n_bytes > PARAMETERS_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at, NULL, "may not be more than %d bytes",
                   PARAMETERS_MAX_BYTES);
}

static void check_topology(struct causes *causes, const struct field_path *at,
                           const struct json *conditions)
{
    const struct field_path at_conditions = FIELD_NAME(at, STR("matchLabelExpressions"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (conditions, condition) {
        const struct field_path at_condition = FIELD_INDEX(&at_conditions, i++);
        check_required(causes, &at_condition, condition, STR("values"));
        check_label_name(causes, &FIELD_NAME(&at_condition, STR("key")),
                         json_get_str(condition, STR("key")));
    }
}

/* ---- classes of EVE ------------------------------------------------------------------------ */

static const struct str eve_types[] = {
    STR("azureblob"), STR("blank"), STR("container"), STR("ftp"),  STR("gcs"),
    STR("http"),      STR("https"), STR("s3"),        STR("sftp"),
};

static bool is_one_of(struct str value, const struct str *list, size_t n)
{
    bool is_found = false;
    for (size_t i = 0; i < n; i++)
        is_found |= str_eq(value, list[i]);
    return is_found;
}

static void check_url(struct causes *causes, const struct field_path *at, struct str type,
                      const struct json *url)
{
    static const struct str needing[] = {STR("azureblob"), STR("container"), STR("ftp"),
                                         STR("http"),      STR("https"),     STR("sftp")};
    static const struct str schemes[] = {STR("docker"), STR("ftp"), STR("http"),
                                         STR("https"),  STR("oci"), STR("sftp")};
    const struct field_path here = FIELD_NAME(at, STR("URL"));
    struct url_parts parts = {.port = 0};
    if (!json_str(url).n) {
        if (is_one_of(type, needing, N_ELEMENTS(needing)))
            causes_add(causes, CAUSE_REQUIRED, &here, NULL, "type %.*s needs it", STR_ARG(type));
        return;
    }
    /* A registry may be given by its host alone. */
    const bool is_host = str_is(type, "container") && str_find_str(json_str(url), STR("://")) < 0;
    const struct str whole =
        is_host ? arena_printf(causes->arena, "docker://%.*s", STR_ARG(json_str(url)))
                : json_str(url);
    if (!url_split(whole, &parts) || !host_is_valid(causes->arena, parts.host) ||
        !is_one_of(parts.scheme, schemes, N_ELEMENTS(schemes)))
        causes_add(causes, CAUSE_INVALID, &here, url,
                   "must be a URL of the store without a user, (e.g. https://images.example.org)");
}

/* Whom a device trusts there besides those that everybody trusts. */
static void check_certificate(struct causes *causes, const struct field_path *at,
                              const struct json *pem)
{
    PKI_CHAIN_AUTO chain = {0};
    if (pem && pki_chain_parse(json_str(pem), &chain) < 0)
        causes_add(causes, CAUSE_INVALID, at, NULL, "must be certificates in PEM, at most %d",
                   PKI_CHAIN_MAX);
}

static void check_eve(struct hook_context *h, const struct json *parameters, struct causes *causes)
{
    static const struct str known[] = {STR("type"),
                                       STR("URL"),
                                       STR("path"),
                                       STR("region"),
                                       STR("format"),
                                       STR("certificate"),
                                       STR("credentialsSecret")};
    const struct field_path at = FIELD_NAME(NULL, STR("parameters"));
    const struct str type = json_get_str(parameters, STR("type")),
                     secret = json_get_str(parameters, STR("credentialsSecret"));
    check_required(causes, &at, parameters, STR("type"));
    if (type.n)
        check_supported(causes, &FIELD_NAME(&at, STR("type")), json_get(parameters, STR("type")),
                        eve_types, N_ELEMENTS(eve_types));
    check_url(causes, &at, type, json_get(parameters, STR("URL")));
    check_certificate(causes, &FIELD_NAME(&at, STR("certificate")),
                      json_get(parameters, STR("certificate")));
    if ((str_is(type, "s3") || str_is(type, "gcs")) && !json_get_str(parameters, STR("path")).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&at, STR("path")), NULL,
                   "type %.*s needs a bucket", STR_ARG(type));
    if (secret.n) {
        const struct name_errors errors = name_subdomain(causes->arena, secret);
        object_meta_add_errors(causes, &FIELD_NAME(&at, STR("credentialsSecret")), secret, &errors);
    }
    JSON_FOR_EACH_MEMBER (parameters, m)
        if (!is_one_of(json_str(&m->key), known, N_ELEMENTS(known)))
            h->warn(h, arena_printf(h->arena, "unknown field \"parameters.%.*s\"",
                                    STR_ARG(json_str(&m->key))));
    if (str_is(type, "ftp"))
        h->warn(h, STR("parameters.type: EVE knows no FTP: devices fetch from this class by SFTP"));
}

/* ---- the kind ------------------------------------------------------------------------------ */

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    static const struct str policies[] = {STR("Delete"), STR("Retain")};
    static const struct str modes[] = {STR("Immediate"), STR("WaitForFirstConsumer")};
    check_provisioner(object, causes);
    check_parameters(json_get(object, STR("parameters")), causes);
    if (eve_is_class(object))
        check_eve(h, json_get(object, STR("parameters")), causes);
    check_supported(causes, &FIELD_NAME(NULL, STR("reclaimPolicy")),
                    json_get(object, STR("reclaimPolicy")), policies, N_ELEMENTS(policies));
    check_supported(causes, &FIELD_NAME(NULL, STR("volumeBindingMode")),
                    json_get(object, STR("volumeBindingMode")), modes, N_ELEMENTS(modes));
    const struct field_path at = FIELD_NAME(NULL, STR("allowedTopologies"));
    const struct json *topologies = json_get(object, STR("allowedTopologies"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (topologies, topology)
        check_topology(causes, &FIELD_INDEX(&at, i++),
                       json_get(topology, STR("matchLabelExpressions")));
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    static const char *const frozen[] = {"parameters", "provisioner", "reclaimPolicy",
                                         "volumeBindingMode"};
    for (size_t i = 0; i < N_ELEMENTS(frozen); i++) {
        const struct str name = str_of(frozen[i]);
        object_meta_check_immutable(causes, &FIELD_NAME(NULL, name), json_get(old, name),
                                    json_get(object, name));
    }
}

/* The Secret is in the namespace of whoever uses the class. */
static void refer(struct reference_list *l, const struct json *object)
{
    const struct field_path at = FIELD_NAME(NULL, STR("parameters"));
    if (eve_is_class(object))
        eve_refer_credentials(l, &FIELD_NAME(&at, STR("credentialsSecret")), STR(""),
                              json_str(json_at(object, "parameters", "credentialsSecret", NULL)),
                              REFERENCE_OF_USERS);
}

/* As in Kubernetes: claims of other provisioners do without their class. */
static bool may_dangle(const struct json *object)
{
    return !eve_is_class(object);
}

const struct kind_hooks storageclass_hooks = {
    .group = STR("storage.k8s.io"),
    .plural = STR("storageclasses"),
    .validate = validate,
    .validate_update = validate_update,
    .returns_deleted = true,
    .refer = refer,
    .has_users = true,
    .may_dangle = may_dangle,
};
