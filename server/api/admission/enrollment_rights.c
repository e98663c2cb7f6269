/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever approves an EnrollmentRequest has a Device made: only those who could make it themselves,
 * in the namespace where it is made. */
#include "api/admission/admission.h"
#include "api/auth/rbac.h"

#define GROUP STR("eve.lfedge.org")
#define DEFAULT_NAMESPACE STR("default")

static bool is_approved(const struct json *request)
{
    JSON_FOR_EACH_ITEM (json_at(request, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Approved") &&
            str_is(json_get_str(c, STR("status")), "True"))
            return true;
    return false;
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (!str_eq(c->kind->group, GROUP) || !str_is(c->kind->plural, "enrollmentrequests") ||
        !is_approved(a->object) || is_approved(a->old))
        return 0;
    struct str namespace = json_str(json_at(a->object, "status", "namespace", NULL));
    if (!namespace.n)
    namespace = DEFAULT_NAMESPACE;
    const struct access_question q = {.user = &c->in.user,
                                      .verb = STR("create"),
                                      .is_resource = true,
                                      .group = GROUP,
                                      .resource = STR("devices"),
                                      .subresource = STR(""),
                                      .namespace = namespace,
                                      .name = STR("")};
    if (rbac_allows(api_rbac(c->api), &q, c->arena, NULL))
        return 0;
    return status_forbidden(&c->status, c->kind, a->name,
                            "user not permitted to create devices in namespace %.*s",
                            STR_ARG(status_quote(c->arena, namespace)));
}

const struct admission_hook enrollment_rights = {.name = "EnrollmentRights", .validate = validate};
