/* SPDX-License-Identifier: Apache-2.0 */
/* Any objects give a configuration that packs, reads back as the same bytes, and comes out again as
 * it was when nothing has changed. The input is a list of objects as JSON; one of kind Report is
 * what the device told, one of kind Derived what was kept from a composition before. */
#include <stdlib.h>

#include "protobuf/message.h"
#include "world.h"

static bool is_kind(const struct json *object, const char *kind)
{
    return str_is(json_get_str(object, STR("kind")), kind);
}

static bool make_world(struct world *w, const struct json *list)
{
    if (!json_is(list, JSON_ARRAY) || json_count(list) > WORLD_MAX)
        return false;
    JSON_FOR_EACH_ITEM (list, object) {
        if (is_kind(object, "Report"))
            w->report = object;
        else if (is_kind(object, "Derived"))
            w->derived = object;
        else
            world_apply(w, object);
    }
    for (size_t i = 0; i < w->n_objects; i++)
        if (is_kind(w->objects[i], "Device"))
            return true;
    return false;
}

static struct str compose_bytes(struct world *w, struct arena *a)
{
    struct compose_result r;
    world_compose(w, a, &r);
    struct str bytes = world_bytes(a, &r);
    const Eve__Config__EdgeDevConfig *read = PB_UNPACK(a, eve__config__edge_dev_config, bytes);
    if (!read || !str_eq(pb_pack(a, &read->message), bytes))
        abort();
    if (!json_parse_quick(a, json_text(a, world_outcome(a, &r))))
        abort();
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct world w = {.arena = a, .is_sealable = size % 8 != 0, .is_hidden = true};
    if (!make_world(&w, json_parse_quick(a, str_range((const char *) data, size))))
        return 0;
    (void) compose_bytes(&w, a); /* by what was derived elsewhere, perhaps */
    struct str bytes = compose_bytes(&w, a);
    if (!str_eq(bytes, compose_bytes(&w, a)))
        abort();
    return 0;
}
