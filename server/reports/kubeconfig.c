/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of an application's kubeconfig: made, changed, and removed when the application takes
 * it back. A Secret of that name that is somebody else's is never touched. */
#include <errno.h>

#include "protobuf/message.h"
#include "reports/reports_internal.h"

static void complain(struct reports *r, const struct report *report, const struct json *application,
                     struct str words)
{
    struct derived_event e = {true, "KubeconfigRefused", words, STR_NONE};
    events_tell(r, contact_get(r, &report->device), application, &e);
}

static int remove_secret(struct reports *r, struct arena *a, const struct place *p,
                         const struct json *secret, const struct json *application)
{
    if (!derive_kubeconfig_is_ours(secret, application))
        return 0;
    return place_delete(r, a, p, json_str(json_at(secret, "metadata", "uid", NULL)));
}

static int change_secret(struct reports *r, struct arena *a, const struct place *p,
                         const struct json *secret, const struct json *wanted)
{
    const struct json *data = json_get(wanted, STR("data"));
    if (json_equal(json_get(secret, STR("data")), data))
        return 0;
    struct json body = json_clone(a, secret);
    (void) json_set(a, &body, STR("data"), *data);
    return place_update(r, a, p, &body);
}

static int put_secret(struct reports *r, struct arena *a, const struct report *report,
                      const struct json *application, struct str data)
{
    struct json *secret = NULL;
    struct str name = json_str(json_at(application, "metadata", "name", NULL));
    struct place p = {STR(""), STR("v1"), STR("secrets"),
                      json_str(json_at(application, "metadata", "namespace", NULL)),
                      derive_kubeconfig_name(a, name)};
    int result = place_get(r, a, &p, &secret);
    if (result < 0 && result != -ENOENT)
        return result;
    if (!data.n)
        return secret ? remove_secret(r, a, &p, secret, application) : 0;
    if (data.n > DERIVE_MAX_KUBECONFIG_BYTES) {
        complain(r, report, application, STR("the kubeconfig is larger than 32 KiB"));
        return 0;
    }
    struct json *wanted = derive_kubeconfig(a, application, data);
    if (!secret)
        return place_create(r, a, &p, wanted);
    if (!derive_kubeconfig_is_ours(secret, application)) {
        complain(
            r, report, application,
            arena_printf(a, "Secret %.*s exists and is not the Application's", STR_ARG(p.name)));
        return 0;
    }
    return change_secret(r, a, &p, secret, wanted);
}

static int attempt(struct reports *r, struct target *t, const struct report *report)
{
    ARENA_AUTO a = arena_new();
    struct catalog_view v;
    struct json *application = NULL;
    const Eve__Info__ZInfoMsg *m =
        report_message(a, report, EVE__INFO__ZINFO_MSG__INFO_CONTENT_AMDINFO);
    if (!m)
        return 0;
    if (!catalog_find(&r->catalog, a, CATALOG_APPLICATION, &t->uuid, &v))
        return -ENOENT;
    struct place p = place_of(CATALOG_APPLICATION, v.namespace, v.name);
    int result = place_get(r, a, &p, &application);
    if (result < 0)
        return result;
    if (!str_eq(json_str(json_at(application, "metadata", "uid", NULL)), v.uid))
        return -ENOENT;
    return put_secret(r, a, report, application, pb_bytes(m->amdinfo->data));
}

int kubeconfig_flush(struct reports *r, struct target *t)
{
    if (list_is_empty(&t->reports))
        return 0;
    const struct report *report = CONTAINER_OF(t->reports.previous, struct report, link);
    int result = -ESTALE;
    for (int i = 0; i < REPORTS_MAX_CONFLICTS && (result == -ESTALE || result == -EEXIST); i++)
        result = attempt(r, t, report);
    return result == -ESTALE || result == -EEXIST ? -EAGAIN : result;
}
