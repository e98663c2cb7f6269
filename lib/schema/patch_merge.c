/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "schema/patch_internal.h"

static struct json merge(struct arena *a, const struct json *old, const struct json *patch);

static const struct json *find(const struct json *object, const struct json_index *index,
                               struct str name)
{
    return index->slots ? json_index_get(index, name) : json_get(object, name);
}

/* RFC 7386 2: the members of the patch replace, null removes. */
static struct json merge_objects(struct arena *a, const struct json *old, const struct json *patch)
{
    struct json out = json_object();
    out.members = arena_alloc(a, (json_count(old) + patch->n + 1) * sizeof(*out.members));
    CLEANUP(json_index_done) struct json_index in_patch = {0}, in_old = {0};
    if (patch->n > PATCH_SMALL_MAP)
        json_index_init(&in_patch, patch);
    if (json_count(old) > PATCH_SMALL_MAP)
        json_index_init(&in_old, old);
    JSON_FOR_EACH_MEMBER (old, m) {
        const struct json *change = find(patch, &in_patch, json_str(&m->key));
        if (!change)
            out.members[out.n++] = *m;
        else if (change->type != JSON_NULL)
            out.members[out.n++] = (struct json_member){m->key, merge(a, &m->value, change)};
    }
    JSON_FOR_EACH_MEMBER (patch, m) {
        if (m->value.type != JSON_NULL && !find(old, &in_old, json_str(&m->key)))
            out.members[out.n++] = (struct json_member){m->key, merge(a, NULL, &m->value)};
    }
    return out;
}

/* RFC 7386 takes an array as it is; Kubernetes' library drops the nulls of objects in one that does
 * not replace an object. */
static struct json without_nulls(struct arena *a, const struct json *array)
{
    struct json out = json_array();
    out.items = arena_alloc(a, (array->n + 1) * sizeof(*out.items));
    JSON_FOR_EACH_ITEM (array, item)
        out.items[out.n++] = merge(a, NULL, item);
    return out;
}

static struct json merge(struct arena *a, const struct json *old, const struct json *patch)
{
    if (patch->type == JSON_ARRAY && !json_is(old, JSON_OBJECT))
        return without_nulls(a, patch);
    if (patch->type != JSON_OBJECT)
        return *patch;
    return merge_objects(a, json_is(old, JSON_OBJECT) ? old : NULL, patch);
}

int patch_merge(struct arena *a, const struct json *old, const struct json *patch,
                struct json **ret_new, struct patch_error *ret_error)
{
    if (patch->type == JSON_NULL) {
        *ret_error = (struct patch_error){PATCH_BAD_REQUEST, .message = STR("Invalid JSON Patch")};
        return -EINVAL;
    }
    if (patch->type != JSON_OBJECT) {
        *ret_error = (struct patch_error){PATCH_BAD_REQUEST};
        ret_error->message =
            arena_printf(a,
                         "error decoding patch: json: cannot unmarshal %s into Go value "
                         "of type map[string]interface {}",
                         patch_go_kind(patch));
        return -EINVAL;
    }
    *ret_new = json_new(a, merge(a, old, patch));
    return 0;
}
