/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/fleet.h"
#include "protobuf/protojson.h"

/* Whether an application that the device has cannot be composed as it is now. */
static bool loses_application(const struct compose_result *r, const struct json *stored)
{
    for (size_t i = 0; i < r->n_problems; i++) {
        const struct str uuid = json_str(json_at(r->problems[i].object, "status", "uuid", NULL));
        JSON_FOR_EACH_ITEM (json_get(stored, STR("apps")), app)
            if (uuid.n && str_eq(json_str(json_at(app, "uuidandversion", "uuid", NULL)), uuid))
                return true;
    }
    return false;
}

void fleet_compose(struct arena *a, struct compose_inputs *in, const struct json *device_config,
                   struct compose_result *ret)
{
    const struct json *stored = json_at(device_config, "spec", "config", NULL);
    compose(a, in, ret);
    if (!loses_application(ret, stored))
        return;
    in->last = (void *) protojson_read(a, &eve__config__edge_dev_config__descriptor, stored,
                                       PROTOJSON_IGNORE_UNKNOWN, NULL, NULL);
    compose(a, in, ret);
}
