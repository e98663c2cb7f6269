/* SPDX-License-Identifier: Apache-2.0 */
/* What no two objects of a kind may share: of two writes at once the later is refused. */
#include <errno.h>

#include "api/admission/admission.h"
#include "api/admission/unique_ledger.h"

static int refuse(struct admission *a, struct str value, struct str key)
{
    struct call *c = a->call;
    struct causes causes;
    causes_init(&causes, c->arena);
    const struct json shown = json_string(value);
    const struct str holder = str_from(key, c->kind->collection.n + 1); /* namespace/name */
    causes_add_text(&causes, CAUSE_INVALID, str_of(c->kind->hooks->unique_field), &shown,
                    arena_printf(c->arena, "%.*s %.*s has it already", STR_ARG(c->kind->kind),
                                 STR_ARG(holder)));
    return status_invalid(&c->status, c->kind->group, c->kind->kind, a->name, &causes);
}

static bool is_as_before(const struct admission *a, struct str value)
{
    const struct kind_hooks *hooks = a->call->kind->hooks;
    return a->old && str_eq(hooks->unique(a->call->arena, a->old), value);
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (!c->kind->hooks || !c->kind->hooks->unique || c->subresource)
        return 0;
    const struct str value = c->kind->hooks->unique(c->arena, a->object);
    if (!value.n || is_as_before(a, value))
        return 0;
    struct unique_claim *claim = ARENA_NEW(c->arena, struct unique_claim);
    *claim = (struct unique_claim){.kind = c->kind,
                                   .value = value,
                                   .key = call_key(c, a->name),
                                   .may_wait = c->may_block,
                                   .is_question = c->is_dry_run};
    struct str holder = STR_NONE;
    const int r =
        unique_ledger_claim(api_unique_ledger(c->api), api_store(c->api), c->arena, claim, &holder);
    switch (r) {
    case 0:
        c->unique_claim = c->is_dry_run ? NULL : claim;
        return 0;
    case -EEXIST:
        return refuse(a, value, holder);
    case -EAGAIN:
        c->must_block = true;
        return r;
    default:
        return status_from_store(&c->status, c->kind, a->name, r);
    }
}

static void release(struct call *c)
{
    struct unique_claim *claim = TAKE(c->unique_claim);
    if (claim)
        unique_ledger_release(api_unique_ledger(c->api), claim);
}

const struct admission_hook unique_values = {
    .name = "unique values", .validate = validate, .release = release};
