/* SPDX-License-Identifier: Apache-2.0 */
/* The namespace a new object goes into must exist and not be going away. */
#include <errno.h>

#include "api/admission/admission.h"

static int refuse_missing(struct call *c)
{
    const struct kind *namespaces =
        registry_find(c->registry, STR(""), STR("v1"), STR("namespaces"));
    return namespaces ? status_not_found(&c->status, namespaces, c->in.path.namespace)
                      : status_no_resource(&c->status);
}

static int refuse_terminating(struct call *c, struct str name)
{
    struct str namespace = c->in.path.namespace;
    (void) status_forbidden(
        &c->status, c->kind, name,
        "unable to create new content in namespace %.*s because it is being terminated",
        STR_ARG(namespace));
    c->status.cause_reason = STR("NamespaceTerminating");
    c->status.cause_message =
        arena_printf(c->arena, "namespace %.*s is being terminated", STR_ARG(namespace));
    c->status.cause_field = STR("metadata.namespace");
    return -EPERM;
}

static int admit(struct admission *a)
{
    struct call *c = a->call;
    if (a->old || !c->kind->is_namespaced)
        return 0;
    struct str key = arena_printf(c->arena, "namespaces//%.*s", STR_ARG(c->in.path.namespace));
    CLEANUP(object_unrefp) struct object *o = store_get(api_store(c->api), key);
    if (!o)
        return refuse_missing(c);
    return o->head.is_deleting ? refuse_terminating(c, a->name) : 0;
}

const struct admission_hook namespace_lifecycle = {.name = "namespace lifecycle", .admit = admit};
