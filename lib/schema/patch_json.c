/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "schema/patch_internal.h"

/* A patch in progress; the document is ours to change. */
struct work {
    struct arena *arena;
    struct json document;
    size_t n_steps, n_added_bytes;
};

/* The last step of a path: where a value is, or would be. */
struct place {
    struct json *container; /* an object or array; NULL: the whole document */
    struct str key;
    unsigned depth; /* of a value there */
};

static int charge(struct work *w, size_t n_steps)
{
    w->n_steps += n_steps + 1;
    return w->n_steps > JSON_PATCH_MAX_STEPS ? -E2BIG : 0;
}

/* ---- paths -------------------------------------------------------------------------------- */

/* RFC 6901 4: ~1 is a slash, ~0 a tilde. */
static struct str unescape(struct arena *a, struct str s)
{
    if (str_find(s, '~') < 0)
        return s;
    char *out = arena_alloc(a, s.n);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool is_escape = s.p[i] == '~' && i + 1 < s.n && (s.p[i + 1] == '0' || s.p[i + 1] == '1');
        out[n++] = is_escape ? (s.p[++i] == '0' ? '~' : '/') : s.p[i];
    }
    return str_range(out, n);
}

/* The index a key means in an array of n items, counted from the end when negative; -EINVAL when
 * outside. */
static int index_of(struct str key, size_t n, size_t *ret_index)
{
    int64_t index = 0;
    if (str_to_i64(key, &index) < 0)
        return -EINVAL;
    if (index < 0)
        index += (int64_t) n;
    if (index < 0 || index >= (int64_t) n)
        return -EINVAL;
    *ret_index = (size_t) index;
    return 0;
}

/* The value at the place, NULL when there is none. */
static struct json *value_at(struct work *w, const struct place *p)
{
    size_t index = 0;
    if (!p->container)
        return &w->document;
    if (p->container->type == JSON_OBJECT)
        return charge(w, p->container->n) < 0 ? NULL : json_get(p->container, p->key);
    return index_of(p->key, p->container->n, &index) < 0 ? NULL : &p->container->items[index];
}

/* Everything before the last slash must exist. */
static int find_place(struct work *w, struct str path, struct place *ret)
{
    struct place p = {0};
    ptrdiff_t slash = str_find(path, '/');
    while (slash >= 0) {
        struct json *container = value_at(w, &p);
        if (!json_is(container, JSON_OBJECT) && !json_is(container, JSON_ARRAY))
            return -ENOENT;
        path = str_from(path, (size_t) slash + 1);
        slash = str_find(path, '/');
        struct str key = slash < 0 ? path : str_sub(path, 0, (size_t) slash);
        p = (struct place){container, unescape(w->arena, key), p.depth + 1};
    }
    *ret = p;
    return p.depth > JSON_MAX_DEPTH ? -E2BIG : 0;
}

/* ---- sizes -------------------------------------------------------------------------------- */

static unsigned depth_of(struct work *w, const struct json *v)
{
    unsigned deepest = 0;
    w->n_steps++;
    JSON_FOR_EACH_MEMBER (v, m) {
        unsigned depth = depth_of(w, &m->value);
        deepest = MAX(deepest, depth);
    }
    JSON_FOR_EACH_ITEM (v, item) {
        unsigned depth = depth_of(w, item);
        deepest = MAX(deepest, depth);
    }
    return v->type == JSON_ARRAY || v->type == JSON_OBJECT ? deepest + 1 : 0;
}

/* About the bytes of its text. */
static size_t size_of(const struct json *v)
{
    size_t n = 2 + (v->type == JSON_STRING ? v->n : 0);
    JSON_FOR_EACH_MEMBER (v, m)
        n += m->key.n + 4 + size_of(&m->value);
    JSON_FOR_EACH_ITEM (v, item)
        n += 1 + size_of(item);
    return n;
}

/* ---- operations --------------------------------------------------------------------------- */

static int add_at(struct work *w, const struct place *p, struct json value)
{
    struct json *container = p->container;
    if (!container)
        return -EINVAL;
    if (p->depth + depth_of(w, &value) > JSON_MAX_DEPTH || charge(w, container->n) < 0)
        return -E2BIG;
    if (container->type == JSON_OBJECT) {
        (void) json_set(w->arena, container, p->key, value);
        return 0;
    }
    size_t index = container->n;
    if (!str_is(p->key, "-") && index_of(p->key, (size_t) container->n + 1, &index) < 0)
        return -EINVAL;
    (void) json_insert(w->arena, container, index, value);
    return 0;
}

static int remove_at(struct work *w, const struct place *p)
{
    struct json *container = p->container;
    size_t index = 0;
    if (!container || charge(w, container->n) < 0)
        return -EINVAL;
    if (container->type == JSON_OBJECT)
        return json_remove(container, p->key) ? 0 : -ENOENT;
    if (index_of(p->key, container->n, &index) < 0)
        return -EINVAL;
    json_remove_at(container, index);
    return 0;
}

static int op_add(struct work *w, const struct place *p, const struct json *value)
{
    return add_at(w, p, value ? json_clone(w->arena, value) : json_null());
}

static int op_remove(struct work *w, const struct place *p, const struct json *value)
{
    (void) value;
    return remove_at(w, p);
}

/* Kubernetes' library also replaces the member an object lacks; only an array is strict. */
static int op_replace(struct work *w, const struct place *p, const struct json *value)
{
    struct json copy = value ? json_clone(w->arena, value) : json_null();
    if (p->container && p->container->type == JSON_OBJECT)
        return add_at(w, p, copy);
    struct json *at = value_at(w, p);
    if (!at)
        return -ENOENT;
    if (!p->container && copy.type != JSON_OBJECT && copy.type != JSON_ARRAY)
        return -EINVAL;
    if (p->depth + depth_of(w, &copy) > JSON_MAX_DEPTH)
        return -E2BIG;
    *at = copy;
    return 0;
}

/* What is absent equals null. */
static int op_test(struct work *w, const struct place *p, const struct json *value)
{
    const struct json null = json_null(), *at = value_at(w, p);
    if (!at && p->container->type == JSON_ARRAY)
        return -ENOENT;
    return json_equal(at ? at : &null, value ? value : &null) ? 0 : -EINVAL;
}

static int op_move(struct work *w, struct str from, struct str path)
{
    struct place source, target;
    int r = find_place(w, from, &source);
    const struct json *at = r < 0 ? NULL : value_at(w, &source);
    if (!at || !source.container)
        return -ENOENT;
    struct json value = *at;
    r = remove_at(w, &source);
    if (r == 0)
        r = find_place(w, path, &target);
    return r < 0 ? r : add_at(w, &target, value);
}

static int op_copy(struct work *w, struct str from, struct str path)
{
    struct place source, target;
    int r = find_place(w, from, &source);
    const struct json *at = r < 0 ? NULL : value_at(w, &source);
    if (!at)
        return -ENOENT;
    w->n_added_bytes += size_of(at);
    if (w->n_added_bytes > JSON_PATCH_MAX_ADDED_BYTES)
        return -E2BIG;
    struct json value = json_clone(w->arena, at);
    r = find_place(w, path, &target);
    return r < 0 ? r : add_at(w, &target, value);
}

/* ---- the patch ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct work *w, const struct place *p, const struct json *value);
    int (*run_from)(struct work *w, struct str from, struct str path);
} operations[] = {
    {"add", op_add, NULL},   {"remove", op_remove, NULL}, {"replace", op_replace, NULL},
    {"test", op_test, NULL}, {"move", NULL, op_move},     {"copy", NULL, op_copy},
};

static int run_operation(struct work *w, const struct json *operation)
{
    struct str name = json_get_str(operation, STR("op")),
               path = json_get_str(operation, STR("path"));
    for (size_t i = 0; i < N_ELEMENTS(operations); i++) {
        if (!str_is(name, operations[i].name))
            continue;
        struct place p;
        struct str from = json_get_str(operation, STR("from"));
        if (!path.p || (operations[i].run_from && !from.p))
            return -EINVAL;
        if (operations[i].run_from)
            return operations[i].run_from(w, from, path);
        int r = find_place(w, path, &p);
        return r < 0 ? r : operations[i].run(w, &p, json_get(operation, STR("value")));
    }
    return -EINVAL;
}

static int refuse(struct arena *a, struct patch_error *ret_error, const struct json *v,
                  const char *where)
{
    *ret_error = (struct patch_error){PATCH_BAD_REQUEST};
    ret_error->message = arena_printf(
        a, "error decoding patch: json: cannot unmarshal %s into Go %s", patch_go_kind(v), where);
    return -EINVAL;
}

static int check_operation(struct arena *a, const struct json *operation,
                           struct patch_error *ret_error)
{
    static const char *const names[] = {"op", "path", "from"};
    if (json_is(operation, JSON_NULL))
        return 0;
    if (!json_is(operation, JSON_OBJECT))
        return refuse(a, ret_error, operation, "value of type handlers.jsonPatchOp");
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        const struct json *v = json_get(operation, str_of(names[i]));
        if (!v || v->type == JSON_STRING || v->type == JSON_NULL)
            continue;
        struct str where = arena_printf(a, "struct field jsonPatchOp.%s of type string", names[i]);
        return refuse(a, ret_error, v, where.p);
    }
    return 0;
}

static int check_patch(struct arena *a, const struct json *patch, struct patch_error *ret_error)
{
    if (json_is(patch, JSON_NULL))
        return 0;
    if (!json_is(patch, JSON_ARRAY))
        return refuse(a, ret_error, patch, "value of type []handlers.jsonPatchOp");
    if (patch->n > JSON_PATCH_MAX_OPERATIONS) {
        *ret_error = (struct patch_error){PATCH_TOO_LARGE};
        ret_error->message =
            arena_printf(a, "The allowed maximum operations in a JSON patch is %d, got %u",
                         JSON_PATCH_MAX_OPERATIONS, patch->n);
        return -EINVAL;
    }
    JSON_FOR_EACH_ITEM (patch, operation) {
        int r = check_operation(a, operation, ret_error);
        if (r < 0)
            return r;
    }
    return 0;
}

int patch_json(struct arena *a, const struct json *old, const struct json *patch,
               struct json **ret_new, struct patch_error *ret_error)
{
    int r = check_patch(a, patch, ret_error);
    if (r < 0)
        return r;
    struct work w = {.arena = a, .document = json_clone(a, old)};
    JSON_FOR_EACH_ITEM (patch, operation) {
        if (run_operation(&w, operation) == 0)
            continue;
        /* Whatever the library complains of, kube-apiserver shows only this. */
        *ret_error = (struct patch_error){PATCH_INVALID};
        ret_error->message = STR("the server rejected our request due to an error in our request");
        return -EINVAL;
    }
    *ret_new = json_new(a, w.document);
    return 0;
}
