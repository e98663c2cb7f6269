/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate requests: who may approve and who may sign depends on the signer, and nobody asks for
 * a certificate that may do everything. */
#include "api/admission/admission.h"
#include "api/auth/rbac.h"
#include "base/base64.h"
#include "pki/csr.h"

#define GROUP STR("certificates.k8s.io")
#define CLIENT_SIGNER "kubernetes.io/kube-apiserver-client"

static bool may(struct call *c, const char *verb, struct str name)
{
    const struct access_question q = {.user = &c->in.user,
                                      .verb = str_of(verb),
                                      .is_resource = true,
                                      .group = GROUP,
                                      .resource = STR("signers"),
                                      .subresource = STR(""),
                                      .namespace = STR(""),
                                      .name = name};
    return rbac_allows(api_rbac(c->api), &q, c->arena, NULL);
}

/* By its name, or by all of its domain. */
static bool may_as_signer(struct call *c, const char *verb, struct str signer)
{
    const ptrdiff_t slash = str_find(signer, '/');
    const struct str domain = str_sub(signer, 0, slash < 0 ? signer.n : (size_t) slash);
    return may(c, verb, signer) || may(c, verb, arena_printf(c->arena, "%.*s/*", STR_ARG(domain)));
}

/* The old object counts: what a write says of the signer is of no account. */
static int check_right(struct admission *a, const char *verb)
{
    struct call *c = a->call;
    const struct str signer = json_str(json_at(a->old, "spec", "signerName", NULL));
    if (may_as_signer(c, verb, signer))
        return 0;
    return status_forbidden(&c->status, c->kind, a->name,
                            "user not permitted to %s requests with signerName %.*s", verb,
                            STR_ARG(status_quote(c->arena, signer)));
}

static bool is_same_status(const struct json *old, const struct json *object)
{
    static const char *const parts[] = {"certificate", "conditions"};
    for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
        const struct json *before = json_at(old, "status", parts[i], NULL),
                          *after = json_at(object, "status", parts[i], NULL);
        if (!before != !after || (before && !json_equal(before, after)))
            return false;
    }
    return true;
}

static int check_subject(struct admission *a)
{
    struct call *c = a->call;
    const struct json *spec = json_get(a->object, STR("spec"));
    if (!str_is(json_get_str(spec, STR("signerName")), CLIENT_SIGNER))
        return 0;
    CLEANUP(pki_request_freep) struct pki_request *request = NULL;
    const char *reason = "illegal base64 data";
    struct str pem = STR_NONE, *groups = NULL;
    if (base64_decode(c->arena, json_get_str(spec, STR("request")), BASE64_STANDARD, &pem, NULL) <
            0 ||
        pki_request_parse(pem, &request, &reason) < 0)
        return status_forbidden(&c->status, c->kind, a->name, "failed to parse CSR: %s", reason);
    const size_t n = pki_request_organizations(c->arena, request, &groups);
    for (size_t i = 0; i < n; i++)
        if (str_is(groups[i], GROUP_MASTERS))
            return status_forbidden(&c->status, c->kind, a->name,
                                    "use of " CLIENT_SIGNER " signer with " GROUP_MASTERS
                                    " group is not allowed");
    return 0;
}

static int validate(struct admission *a)
{
    const struct call *c = a->call;
    if (!str_eq(c->kind->group, GROUP) || !str_is(c->kind->plural, "certificatesigningrequests"))
        return 0;
    if (!a->old)
        return check_subject(a);
    if (!c->subresource)
        return 0;
    if (str_is(c->subresource->name, "approval"))
        return check_right(a, "approve");
    return is_same_status(a->old, a->object) ? 0 : check_right(a, "sign");
}

const struct admission_hook certificate_rights = {.name = "CertificateRights",
                                                  .validate = validate};
