/* SPDX-License-Identifier: Apache-2.0 */
#include "roster/last_seen.h"

int64_t roster_last_seen_us(void *roster, const struct kind *kind, struct str column,
                            const struct json *object)
{
    if (!str_is(kind->collection, "devices.eve.lfedge.org") || !str_is(column, "Last Seen"))
        return 0;
    const struct json *meta = json_get(object, STR("metadata"));
    CLEANUP(device_unrefp)
    struct device *d = roster_by_name(roster, json_get_str(meta, STR("namespace")),
                                      json_get_str(meta, STR("name")));
    return d ? atomic_load_explicit(&d->last_seen_us, memory_order_relaxed) : 0;
}
