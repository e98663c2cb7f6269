/* SPDX-License-Identifier: Apache-2.0 */
/* spec.volumes[].ephemeral: a claim for each, which the Application owns and which goes with it. */
#include <errno.h>

#include "controllers/conditions.h"
#include "volumes/volumes_internal.h"

#define CONDITION "VolumesBound"
#define REASON_FAILED "FailedBinding"

/* What is in the way of an own claim; message empty: nothing. */
struct obstacle {
    struct str message;
    int error; /* to be tried again for; 0: an event will tell */
};

static struct json *new_claim(const struct volumes_task *t, const struct json *application,
                              const struct json *template, struct str name)
{
    static const char *const kept[] = {"labels", "annotations"};
    struct json *claim = json_new(t->arena, json_object());
    struct json meta = json_object();
    (void) json_append_member(t->arena, &meta, STR("name"), json_string(name));
    for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
        const struct json *part = json_at(template, "metadata", kept[i], NULL);
        if (json_is(part, JSON_OBJECT))
            (void) json_append_member(t->arena, &meta, str_of(kept[i]), *part);
    }
    (void) json_append_member(t->arena, &meta, STR("ownerReferences"),
                              volumes_owned_by(t->arena, application));
    (void) json_append_member(t->arena, claim, STR("apiVersion"), json_string(STR("v1")));
    (void) json_append_member(t->arena, claim, STR("kind"),
                              json_string(STR("PersistentVolumeClaim")));
    (void) json_append_member(t->arena, claim, STR("metadata"), meta);
    (void) json_append_member(t->arena, claim, STR("spec"), *json_get(template, STR("spec")));
    return claim;
}

static int create(const struct volumes_task *t, const struct object_place *at,
                  const struct json *claim, struct str *ret_message)
{
    struct status st;
    status_init(&st, t->arena);
    const struct kube_request r = {.verb = VERB_CREATE,
                                   .group = at->kind->group,
                                   .version = at->kind->version,
                                   .resource = at->kind->plural,
                                   .namespace = at->namespace,
                                   .body = claim};
    const int result = kube_request(t->ctx->client, t->arena, &r, NULL, &st);
    *ret_message = st.message;
    return result;
}

static struct obstacle ensure(const struct volumes_task *t, const struct json *application,
                              const struct json *volume)
{
    const struct str label = json_get_str(volume, STR("name"));
    const struct str name = volumes_own_claim(t->arena, t->name, label);
    const struct json *template = json_at(volume, "ephemeral", "volumeClaimTemplate", NULL);
    const struct object_place at = volumes_place(t, "persistentvolumeclaims", name);
    struct json *claim = NULL;
    struct str why = STR("");
    int r = objects_get(t->ctx, t->arena, &at, &claim);
    if (r == -ENOENT)
        r = create(t, &at, new_claim(t, application, template, name), &why);
    /* What may pass is only tried again. */
    if (r < 0 && r != -EPERM && r != -EINVAL)
        return (struct obstacle){STR(""), r};
    if (r < 0)
        return (struct obstacle){arena_printf(t->arena,
                                              "ephemeral volume %.*s: create PVC %.*s: %.*s",
                                              STR_ARG(label), STR_ARG(name), STR_ARG(why)),
                                 r};
    if (claim && !str_eq(volumes_controller_uid(claim), object_meta_text(application, "uid")))
        return (struct obstacle){
            arena_printf(t->arena,
                         "ephemeral volume %.*s: PVC %.*s/%.*s was not created for application "
                         "%.*s/%.*s (application is not owner)",
                         STR_ARG(label), STR_ARG(t->namespace), STR_ARG(name),
                         STR_ARG(t->namespace), STR_ARG(t->name)),
            0};
    return (struct obstacle){STR(""), 0};
}

/* The condition is there only when it was ever needed. */
static int show(const struct volumes_task *t, const struct object_place *at,
                struct json *application, struct str message)
{
    const int64_t now_us = t->ctx->clock->wall_us(t->ctx->clock);
    struct json *conditions = conditions_of(t->arena, application);
    const struct condition c = {CONDITION, message.n ? "False" : "True",
                                message.n ? STR(REASON_FAILED) : STR("Bound"), message};
    if ((!message.n && !conditions_find(conditions, CONDITION)) ||
        !conditions_set(t->arena, conditions, &c, now_us))
        return 0;
    const int r = objects_update(t->ctx, t->arena, at, "status", application, NULL);
    if (r == 0 && message.n)
        volumes_tell(t, application, /* is_warning= */ true, REASON_FAILED, message);
    return r;
}

int64_t ephemeral_reconcile(const struct volumes_task *t)
{
    const struct object_place at = volumes_place(t, "applications.eve.lfedge.org", t->name);
    struct json *application = NULL;
    struct str message = STR("");
    int error = 0;
    int r = objects_get(t->ctx, t->arena, &at, &application);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (object_is_deleting(application))
        return 0;
    JSON_FOR_EACH_ITEM (json_at(application, "spec", "volumes", NULL), volume) {
        if (!json_at(volume, "ephemeral", "volumeClaimTemplate", "spec", NULL))
            continue;
        const struct obstacle o = ensure(t, application, volume);
        if (!message.n)
            message = o.message;
        if (o.error < 0)
            error = o.error;
    }
    r = show(t, &at, application, message);
    return r < 0 && r != -ENOENT ? r : error;
}
