/* SPDX-License-Identifier: Apache-2.0 */
#include "api/forecast.h"

bool forecast_dry_run(struct call *c, const struct forecast_change *changes, size_t n)
{
    const struct forecast *f = api_forecast(c->api);
    bool is_concerned = false;
    if (!f || c->subresource || c->overlay)
        return true;
    for (size_t i = 0; i < n && !is_concerned; i++)
        is_concerned = f->is_concerned(f->ctx, &changes[i]);
    if (!is_concerned)
        return true;
    if (!c->may_block) {
        c->must_block = true;
        return false;
    }
    const struct str text = f->tell(f->ctx, c->arena, changes, n);
    if (text.n)
        call_warn(c, text);
    return true;
}

bool forecast_dry_write(struct call *c, const struct json *old, const struct json *object)
{
    const struct json *meta = json_get(object ? object : old, STR("metadata"));
    const struct forecast_change change = {.collection = c->kind->collection,
                                           .namespace = c->in.path.namespace,
                                           .name = json_get_str(meta, STR("name")),
                                           .old = old,
                                           .object = object};
    return forecast_dry_run(c, &change, 1);
}
