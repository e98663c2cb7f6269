/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for certificates: who made one is what the server saw, and what it says never changes.
 */
#include "resources/certificatesigningrequest.h"

#include "api/status.h"
#include "base/base64.h"
#include "pki/csr.h"
#include "resources/checks.h"
#include "resources/resources.h"

#define LEGACY_SIGNER "kubernetes.io/legacy-unknown"
#define MIN_EXPIRATION_S 600
#define DOMAIN_MAX_BYTES 253
#define SIGNER_MAX_BYTES 571 /* domain, slash, and 253 + 1 + 63 for the path */
#define MAX_USAGES 64        /* there are 23, and each once */

/* ---- preparing ---------------------------------------------------------------------------- */

static struct json strings(struct arena *a, const struct str *items, size_t n)
{
    struct json list = json_array();
    for (size_t i = 0; i < n; i++)
        (void) json_push(a, &list, json_string(items[i]));
    return list;
}

static void set_requestor(struct hook_context *h, struct json *spec)
{
    static const struct str ours[] = {STR("username"), STR("uid"), STR("groups"), STR("extra")};
    const struct user *u = h->user;
    struct json extra = json_object();
    for (size_t i = 0; i < N_ELEMENTS(ours); i++)
        (void) json_remove(spec, ours[i]);
    if (u->name.n)
        (void) json_append_member(h->arena, spec, ours[0], json_string(u->name));
    if (u->uid.n)
        (void) json_append_member(h->arena, spec, ours[1], json_string(u->uid));
    if (u->n_groups)
        (void) json_append_member(h->arena, spec, ours[2],
                                  strings(h->arena, u->groups, u->n_groups));
    for (size_t i = 0; i < u->n_extra; i++)
        (void) json_set(h->arena, &extra, u->extra[i].key,
                        strings(h->arena, u->extra[i].values, u->extra[i].n_values));
    json_sort_members(&extra);
    if (u->n_extra)
        (void) json_append_member(h->arena, spec, ours[3], extra);
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    if (!old) {
        set_requestor(h, json_ensure_object(h->arena, object, STR("spec")));
        (void) json_set(h->arena, object, STR("status"), json_object());
        return;
    }
    const struct json *spec = json_get(old, STR("spec"));
    (void) json_set(h->arena, object, STR("spec"), spec ? *spec : json_object());
    if (h->subresource.n)
        csr_prepare_status(h, old, object);
}

static const char *const *reset_fields(struct str subresource)
{
    static const char *const of_object[] = {"spec", "status", NULL};
    static const char *const of_status[] = {"spec", "status.conditions", NULL};
    static const char *const of_approval[] = {"spec", "status.certificate", NULL};
    return str_is(subresource, "status")     ? of_status
           : str_is(subresource, "approval") ? of_approval
                                             : of_object;
}

/* ---- rules -------------------------------------------------------------------------------- */

/* Any that fits a path. */
static struct name_errors check_name(struct arena *a, struct str name, bool is_prefix)
{
    (void) is_prefix;
    return name_path_segment(a, name);
}

static void check_request(const struct json *spec, struct causes *causes,
                          const struct field_path *at)
{
    const struct json value = shown(json_get_str(spec, STR("request")));
    struct str pem = STR("");
    const char *reason = NULL;
    CLEANUP(pki_request_freep) struct pki_request *request = NULL;
    /* It was decoded before; only a text that is none at all could fail. */
    (void) base64_decode(causes->arena, json_str(&value), BASE64_STANDARD, &pem, NULL);
    if (pki_request_parse(pem, &request, &reason) < 0)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("request")), &value, "%s", reason);
}

static const struct str all_usages[] = {
    STR("any"),
    STR("cert sign"),
    STR("client auth"),
    STR("code signing"),
    STR("content commitment"),
    STR("crl sign"),
    STR("data encipherment"),
    STR("decipher only"),
    STR("digital signature"),
    STR("email protection"),
    STR("encipher only"),
    STR("ipsec end system"),
    STR("ipsec tunnel"),
    STR("ipsec user"),
    STR("key agreement"),
    STR("key encipherment"),
    STR("microsoft sgc"),
    STR("netscape sgc"),
    STR("ocsp signing"),
    STR("s/mime"),
    STR("server auth"),
    STR("signing"),
    STR("timestamping"),
};

static bool is_repeated(const struct json *list, const struct json *item)
{
    JSON_FOR_EACH_ITEM (list, earlier) {
        if (earlier == item)
            return false;
        if (str_eq(json_str(earlier), json_str(item)))
            return true;
    }
    return false;
}

static void check_usages(const struct json *spec, struct causes *causes,
                         const struct field_path *at_spec)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("usages"));
    const struct json *usages = json_get(spec, STR("usages"));
    int64_t i = 0;
    check_required(causes, at_spec, spec, STR("usages"));
    if (json_count(usages) > MAX_USAGES) {
        causes_add(causes, CAUSE_TOO_MANY, &at, &(struct json){.type = JSON_INT, .i = usages->n},
                   "must have at most %d items", MAX_USAGES);
        return;
    }
    JSON_FOR_EACH_ITEM (usages, usage)
        check_supported(causes, &FIELD_INDEX(&at, i++), usage, all_usages, N_ELEMENTS(all_usages));
    i = 0;
    JSON_FOR_EACH_ITEM (usages, usage) {
        const struct field_path at_item = FIELD_INDEX(&at, i++);
        if (is_repeated(usages, usage))
            causes_add(causes, CAUSE_DUPLICATE, &at_item, usage, "%s", "");
    }
}

static bool check_label(struct causes *causes, const struct field_path *at, struct str part,
                        struct str label, const struct name_errors *errors)
{
    const struct json value = shown(part);
    for (size_t i = 0; i < errors->n; i++)
        causes_add(causes, CAUSE_INVALID, at, &value, "validating label %.*s: %.*s",
                   STR_ARG(status_quote(causes->arena, label)), STR_ARG(errors->text[i]));
    return errors->n == 0;
}

/* Up to the first that is wrong. */
static void check_labels(struct causes *causes, const struct field_path *at, struct str part,
                         struct name_errors (*check)(struct arena *a, struct str label))
{
    struct str rest = part;
    for (bool is_more = true; is_more;) {
        const ptrdiff_t dot = str_find(rest, '.');
        const struct str label = dot < 0 ? rest : str_sub(rest, 0, (size_t) dot);
        const struct name_errors errors = check(causes->arena, label);
        is_more = check_label(causes, at, part, label, &errors) && dot >= 0;
        rest = dot < 0 ? STR("") : str_from(rest, (size_t) dot + 1);
    }
}

static void check_domain(struct causes *causes, const struct field_path *at, struct str domain)
{
    const struct json value = shown(domain);
    if (domain.n > DOMAIN_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, at, &value, "may not be more than %d bytes",
                   DOMAIN_MAX_BYTES);
    check_labels(causes, at, domain, name_label);
    if (str_find(domain, '.') < 0)
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "should be a domain with at least two segments separated by dots");
}

static void check_signer(const struct json *spec, struct causes *causes,
                         const struct field_path *at_spec)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("signerName"));
    const struct json value = shown(json_get_str(spec, STR("signerName")));
    const struct str name = json_str(&value);
    const ptrdiff_t slash = str_find(name, '/');
    check_required(causes, at_spec, spec, STR("signerName"));
    if (!name.n)
        return;
    if (str_is(name, LEGACY_SIGNER)) {
        causes_add(causes, CAUSE_INVALID, &at, &value,
                   "the legacy signerName is not allowed via this API version");
        return;
    }
    if (slash < 0 || str_find_last(name, '/') != slash) {
        causes_add(causes, CAUSE_INVALID, &at, &value,
                   "must be a fully qualified domain and path of the form "
                   "'example.com/signer-name'");
        return;
    }
    check_domain(causes, &at, str_sub(name, 0, (size_t) slash));
    check_labels(causes, &at, str_from(name, (size_t) slash + 1), name_subdomain);
    if (name.n > SIGNER_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at, &value, "may not be more than %d bytes",
                   SIGNER_MAX_BYTES);
}

static void check_spec(const struct json *spec, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json *seconds = json_get(spec, STR("expirationSeconds"));
    check_request(spec, causes, &at);
    check_usages(spec, causes, &at);
    check_signer(spec, causes, &at);
    if (json_is(seconds, JSON_INT) && seconds->i < MIN_EXPIRATION_S)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("expirationSeconds")), seconds,
                   "may not specify a duration less than %d seconds (10 minutes)",
                   MIN_EXPIRATION_S);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (h->operation == WRITE_CREATE)
        check_spec(json_get(object, STR("spec")), causes);
    else if (h->subresource.n)
        csr_check_status(object, causes);
}

const struct kind_hooks certificatesigningrequest_hooks = {
    .group = STR("certificates.k8s.io"),
    .plural = STR("certificatesigningrequests"),
    .prepare = prepare,
    .reset_fields = reset_fields,
    .validate = validate,
    .validate_update = csr_check_status_change,
    .check_name = check_name,
};
