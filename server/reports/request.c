/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "reports/reports_internal.h"

struct place place_of(unsigned kind, struct str namespace, struct str name)
{
    return (struct place){STR("eve.lfedge.org"), STR("v1beta1"),
                          catalog_resource((enum catalog_kind) kind), namespace, name};
}

/* What another attempt cannot mend keeps its errno; the rest is -EAGAIN. */
static int judge(int r, const struct status *st)
{
    if (r >= 0 || r == -ENOENT || r == -ESTALE || r == -EEXIST)
        return r;
    bool is_refused = st->code
                          ? st->code >= 400 && st->code < 500 && st->code != 408 && st->code != 429
                          : r == -EINVAL || r == -EPERM;
    return is_refused ? r : -EAGAIN;
}

static int ask(struct reports *r, struct arena *a, enum verb verb, const struct place *p,
               struct kube_request q, struct json **ret)
{
    struct status st;
    status_init(&st, a);
    q.verb = verb;
    q.group = p->group;
    q.version = p->version;
    q.resource = p->resource;
    q.namespace = p->namespace;
    q.name = verb == VERB_CREATE ? STR_NONE : p->name;
    return judge(kube_request(r->client, a, &q, ret, &st), &st);
}

int place_get(struct reports *r, struct arena *a, const struct place *p, struct json **ret)
{
    return ask(r, a, VERB_GET, p, (struct kube_request){0}, ret);
}

int place_put_status(struct reports *r, struct arena *a, const struct place *p,
                     const struct json *object, struct json *status)
{
    struct json body = json_clone(a, object);
    (void) json_set(a, &body, STR("status"), *status);
    return ask(r, a, VERB_UPDATE, p,
               (struct kube_request){.subresource = STR("status"), .body = &body}, NULL);
}

int place_create(struct reports *r, struct arena *a, const struct place *p,
                 const struct json *object)
{
    return ask(r, a, VERB_CREATE, p, (struct kube_request){.body = object}, NULL);
}

int place_update(struct reports *r, struct arena *a, const struct place *p,
                 const struct json *object)
{
    return ask(r, a, VERB_UPDATE, p, (struct kube_request){.body = object}, NULL);
}

int place_delete(struct reports *r, struct arena *a, const struct place *p, struct str uid)
{
    struct json body = json_object(), preconditions = json_object();
    (void) json_append_member(a, &preconditions, STR("uid"), json_string(uid));
    (void) json_append_member(a, &body, STR("preconditions"), preconditions);
    int result = ask(r, a, VERB_DELETE, p, (struct kube_request){.body = &body}, NULL);
    return result == -ENOENT ? 0 : result;
}
