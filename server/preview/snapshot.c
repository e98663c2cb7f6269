/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/snapshot.h"

#include <errno.h>

#include "preview/expected.h"
#include "protobuf/protojson.h"

const struct schema *snapshot_schema(const struct registry *r)
{
    const struct kind *kind =
        registry_find(r, STR("eve.lfedge.org"), STR("v1beta1"), STR("deviceconfigs"));
    const struct schema *schema = kind ? kind->schema : NULL;
    return schema_member(schema_member(schema, STR("spec")), STR("config"));
}

/* ---- the form ------------------------------------------------------------------------------ */

/* A sealed part says nothing to anybody but the device, only whether it is another: the initial
 * value is made from the content and a key. */
static bool seal_text(struct arena *a, const struct json *value, struct json *ret)
{
    if (!json_get(value, STR("cipherContextId")) || !json_get(value, STR("initialValue")))
        return false;
    *ret = json_string(
        arena_printf(a, "(sealed, %.*s)", STR_ARG(json_get_str(value, STR("initialValue")))));
    return true;
}

static void mask(struct arena *a, struct json *value)
{
    if (seal_text(a, value, value))
        return;
    JSON_FOR_EACH_MEMBER (value, m)
        mask(a, &m->value);
    JSON_FOR_EACH_ITEM (value, item)
        mask(a, item);
}

struct json *snapshot_config(struct arena *a, const struct schema *schema,
                             const struct json *config)
{
    struct json *form = json_new(a, config ? json_clone(a, config) : json_object());
    if (schema)
        schema_default(a, schema, form);
    mask(a, form);
    return form;
}

/* ---- composing ----------------------------------------------------------------------------- */

static bool removes_device(const struct snapshot_question *q)
{
    for (size_t i = 0; i < q->n_changes; i++)
        if (!q->changes[i].object && str_is(q->changes[i].collection, "devices.eve.lfedge.org") &&
            str_eq(q->changes[i].namespace, q->namespace) && str_eq(q->changes[i].name, q->name))
            return true;
    return false;
}

int snapshot_make(struct fleet *f, struct arena *a, const struct snapshot_question *q,
                  struct snapshot *ret, struct status *st)
{
    struct compose_inputs inputs = {0};
    *ret = (struct snapshot){.is_gone = removes_device(q)};
    if (ret->is_gone) {
        ret->config = snapshot_config(a, q->schema, NULL);
        return 0;
    }
    const int r = fleet_inputs(f, a, q->namespace, q->name, q->changes, q->n_changes, &inputs, st);
    if (r < 0)
        return r;
    expected_add(a, q->name, q->changes, q->n_changes, &inputs);
    fleet_compose(a, &inputs, q->device_config, &ret->result);
    ret->config =
        snapshot_config(a, q->schema, protojson_value(a, &ret->result.config->message, NULL));
    ret->places = ARENA_ARRAY(a, struct str, ret->result.n_sources + 1);
    for (size_t i = 0; i < ret->result.n_sources; i++)
        ret->places[i] = place_of_path(a, q->schema, ret->config, ret->result.sources[i].path);
    return 0;
}

struct json snapshot_source(struct arena *a, const struct snapshot *s, size_t i)
{
    const struct compose_result one = {.sources = &s->result.sources[i], .n_sources = 1};
    return compose_sources_json(a, &one, /* is_full= */ true)->items[0];
}

/* ---- explaining ---------------------------------------------------------------------------- */

static size_t depth_above(const struct snapshot *s, struct str place, bool *ret_is_found)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->result.n_sources; i++)
        if (place_is_within(place, s->places[i])) {
            longest = MAX(longest, s->places[i].n);
            *ret_is_found = true;
        }
    return longest;
}

size_t snapshot_explain(struct arena *a, const struct snapshot *s, struct str place,
                        size_t **ret_sources)
{
    bool is_found = false;
    const size_t n_bytes = depth_above(s, place, &is_found);
    size_t n = 0;
    *ret_sources = ARENA_ARRAY(a, size_t, s->result.n_sources + 1);
    for (size_t i = 0; i < s->result.n_sources; i++) {
        const struct str at = s->places[i];
        if (is_found ? at.n == n_bytes && place_is_within(place, at) : place_is_within(at, place))
            (*ret_sources)[n++] = i;
    }
    return n;
}
