/* SPDX-License-Identifier: Apache-2.0 */
/* What no two objects of a kind may share: of two writes at once the later is refused. */
#include <errno.h>

#include "api/admission/admission.h"
#include "api/admission/unique_ledger.h"

static int refuse(struct admission *a, const struct unique_claim *claim, struct str key)
{
    struct call *c = a->call;
    struct causes causes;
    causes_init(&causes, c->arena);
    const struct json shown = json_string(claim->value);
    const struct str holder = str_from(key, c->kind->collection.n + 1); /* namespace/name */
    causes_add_text(&causes, CAUSE_INVALID, str_of(claim->rule->field), &shown,
                    arena_printf(c->arena, "%.*s %.*s has it already", STR_ARG(c->kind->kind),
                                 STR_ARG(holder)));
    return status_invalid(&c->status, c->kind->group, c->kind->kind, a->name, &causes);
}

static bool is_as_before(const struct admission *a, const struct kind_unique *rule,
                         struct str value)
{
    return a->old && str_eq(rule->value(a->call->arena, a->old), value);
}

static int claim_value(struct admission *a, const struct kind_unique *rule, struct str value)
{
    struct call *c = a->call;
    struct unique_claim *claim = ARENA_NEW(c->arena, struct unique_claim);
    *claim = (struct unique_claim){.kind = c->kind,
                                   .rule = rule,
                                   .value = value,
                                   .key = call_key(c, a->name),
                                   .may_wait = c->may_block,
                                   .is_question = c->is_dry_run,
                                   .next = c->unique_claim};
    struct str holder = STR_NONE;
    const int r =
        unique_ledger_claim(api_unique_ledger(c->api), api_store(c->api), c->arena, claim, &holder);
    if (r == 0 && !c->is_dry_run)
        c->unique_claim = claim;
    if (r == -EEXIST)
        return refuse(a, claim, holder);
    if (r == -EAGAIN)
        c->must_block = true;
    else if (r < 0)
        return status_from_store(&c->status, c->kind, a->name, r);
    return r;
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (!c->kind->hooks || !c->kind->hooks->unique || c->subresource)
        return 0;
    for (const struct kind_unique *rule = c->kind->hooks->unique; rule->field; rule++) {
        const struct str value = rule->value(c->arena, a->object);
        const int r = !value.n || is_as_before(a, rule, value) ? 0 : claim_value(a, rule, value);
        if (r < 0)
            return r;
    }
    return 0;
}

static void release(struct call *c)
{
    struct unique_claim *claim = TAKE(c->unique_claim);
    for (; claim; claim = claim->next)
        unique_ledger_release(api_unique_ledger(c->api), claim);
}

const struct admission_hook unique_values = {
    .name = "unique values", .validate = validate, .release = release};
