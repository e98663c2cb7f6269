/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/reference.h"

void reference_add(struct reference_list *l, const struct field_path *at,
                   const struct reference *reference)
{
    if (!reference->name.n)
        return;
    l->is_full |= l->n == REFERENCES_MAX;
    if (l->is_full)
        return;
    l->items = arena_grow(l->arena, l->items, l->n, sizeof(*l->items));
    struct reference *r = &l->items[l->n++];
    *r = *reference;
    if (l->wants_fields)
        r->field = field_path_text(l->arena, at);
}

struct str reference_key(struct arena *a, const struct reference *r)
{
    const struct str parts[] = {r->collection, STR("/"), r->namespace, STR("/"), r->name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}
