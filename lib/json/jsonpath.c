/* SPDX-License-Identifier: Apache-2.0 */
#include "json/jsonpath.h"

#include <errno.h>

#include "base/alloc.h"
#include "json/json_internal.h"
#include "json/jsonpath_internal.h"

#define INLINE_VALUES 8  /* most paths find one value and need no memory */
#define MAX_DESCENT 1024 /* recursion of `..`; parsed values are far shallower */
#define MEMBERS_PER_WORK 16

/* The values that a step has found. */
struct values {
    const struct json **items; /* NULL: they are in few */
    size_t n, capacity;
    const struct json *few[INLINE_VALUES];
};

static void values_done(struct values *v)
{
    mem_free(v->items);
}

static const struct json *values_at(const struct values *v, size_t i)
{
    return v->items ? v->items[i] : v->few[i];
}

static int eval_steps(const struct step *steps, const struct values *in, size_t *work,
                      struct values *out);

/* Every value found or looked at is charged, so that no path can take more than its share. */
static int charge(size_t *work, size_t n)
{
    *work += n;
    return *work > JSONPATH_MAX_WORK ? -E2BIG : 0;
}

static int push(struct values *v, const struct json *value, size_t *work)
{
    int error = charge(work, 1);
    if (error)
        return error;
    if (!v->items && v->n < INLINE_VALUES) {
        v->few[v->n++] = value;
        return 0;
    }
    if (v->n >= v->capacity) {
        bool is_first = !v->items;
        v->capacity = MAX(2 * v->capacity, (size_t) 4 * INLINE_VALUES);
        v->items = mem_realloc_array(v->items, v->capacity, sizeof(struct json *));
        if (is_first)
            memcpy(v->items, v->few, sizeof(v->few));
    }
    v->items[v->n++] = value;
    return 0;
}

/* ---- steps -------------------------------------------------------------------------------- */

static int eval_field(const struct step *s, const struct json *v, size_t *work, struct values *out)
{
    int error = charge(work, json_count(v) / MEMBERS_PER_WORK);
    if (error)
        return error;
    const struct json *found = json_get(v, s->name);
    return found ? push(out, found, work) : 0;
}

static int eval_wildcard(const struct json *v, size_t *work, struct values *out)
{
    int error = 0;
    JSON_FOR_EACH_ITEM (v, item) {
        if (!error)
            error = push(out, item, work);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        if (!error)
            error = push(out, &m->value, work);
    }
    return error;
}

static int eval_index(int64_t at, const struct json *array, size_t *work, struct values *out)
{
    if (at < 0)
        at += array->n;
    return at >= 0 && at < array->n ? push(out, &array->items[at], work) : -EINVAL;
}

static int eval_slice(const struct step *s, const struct json *v, size_t *work, struct values *out)
{
    if (v->type == JSON_NULL)
        return 0;
    if (v->type != JSON_ARRAY)
        return -EINVAL;
    if (s->slice.is_index)
        return eval_index(s->slice.from, v, work, out);
    int64_t n = v->n, from = s->slice.from, to = s->slice.has_to ? s->slice.to : n;
    from += from < 0 ? n : 0;
    to += to < 0 ? n : 0;
    int64_t step = s->slice.has_step ? s->slice.step : 1;
    if (from == to)
        return 0;
    if (from < 0 || from >= n || to < from || to > n || step <= 0)
        return -EINVAL;
    int error = 0;
    for (int64_t i = from; i < to && !error; i += MIN(step, n))
        error = push(out, &v->items[i], work);
    return error;
}

/* The value and all below it that hold values themselves, parents first. */
static int eval_recursive(const struct json *v, int depth, size_t *work, struct values *out)
{
    if (json_count(v) == 0)
        return charge(work, 1);
    if (depth > MAX_DESCENT)
        return -E2BIG;
    int error = push(out, v, work);
    JSON_FOR_EACH_ITEM (v, item) {
        if (!error)
            error = eval_recursive(item, depth + 1, work, out);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        if (!error)
            error = eval_recursive(&m->value, depth + 1, work, out);
    }
    return error;
}

/* ---- filters ------------------------------------------------------------------------------ */

/* -1, 0 or 1; -EDOM when there is no order between them. */
static int compare(const struct json *a, const struct json *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        if (json_equal(a, b))
            return 0;
        if (a->type == JSON_INT && b->type == JSON_INT)
            return a->i < b->i ? -1 : 1;
        double left = a->type == JSON_INT ? (double) a->i : a->d;
        double right = b->type == JSON_INT ? (double) b->i : b->d;
        return left < right ? -1 : 1;
    }
    if (a->type != b->type || a->type != JSON_STRING)
        return -EDOM;
    int order = str_cmp(json_str(a), json_str(b));
    return order < 0 ? -1 : order > 0;
}

/* 1 or 0; negative when the two cannot be compared so. */
static int holds(enum comparison comparison, const struct json *a, const struct json *b)
{
    if (a->type == JSON_BOOL && b->type == JSON_BOOL && comparison <= NOT_EQUAL)
        return (a->b == b->b) == (comparison == EQUAL);
    int order = compare(a, b);
    if (order == -EDOM)
        return -EINVAL;
    switch (comparison) {
    case EQUAL:
        return order == 0;
    case NOT_EQUAL:
        return order != 0;
    case LESS:
        return order < 0;
    case LESS_OR_EQUAL:
        return order <= 0;
    case GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* The one value of the operand for this element; NULL when it has none. Several are -EINVAL. */
static int eval_operand(const struct operand *o, const struct json *element, size_t *work,
                        const struct json **ret_value)
{
    *ret_value = o->literal;
    if (o->literal)
        return 0;
    CLEANUP(values_done) struct values found = {0};
    const struct values in = {.n = 1, .few = {element}};
    int error = eval_steps(o->path, &in, work, &found);
    if (error || found.n == 0)
        return error;
    *ret_value = values_at(&found, 0);
    return found.n == 1 ? 0 : -EINVAL;
}

/* As client-go does, an operand that fails counts as absent here. */
static int exists(const struct operand *o, const struct json *element, size_t *work)
{
    const struct json *value = NULL;
    int error = eval_operand(o, element, work, &value);
    return error == -E2BIG ? error : value != NULL;
}

static int matches(const struct step *s, const struct json *element, size_t *work)
{
    if (s->filter.comparison == EXISTS)
        return exists(&s->filter.left, element, work);
    const struct json *left = NULL, *right = NULL;
    int error = eval_operand(&s->filter.left, element, work, &left);
    if (error || !left)
        return error;
    error = eval_operand(&s->filter.right, element, work, &right);
    if (error || !right)
        return error;
    return holds(s->filter.comparison, left, right);
}

static int eval_filter(const struct step *s, const struct json *v, size_t *work, struct values *out)
{
    if (v->type != JSON_ARRAY)
        return -EINVAL;
    JSON_FOR_EACH_ITEM (v, item) {
        int result = charge(work, 1);
        if (!result)
            result = matches(s, item, work);
        if (result > 0)
            result = push(out, item, work);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- paths -------------------------------------------------------------------------------- */

/* Alternatives come one after the other, each over all values. */
static int eval_union(const struct step *s, const struct values *in, size_t *work,
                      struct values *out)
{
    for (; s; s = s->alternative.other) {
        int error = eval_steps(s->alternative.path, in, work, out);
        if (error)
            return error;
    }
    return 0;
}

static int eval_value(const struct step *s, const struct json *v, size_t *work, struct values *out)
{
    switch (s->type) {
    case STEP_FIELD:
        return eval_field(s, v, work, out);
    case STEP_WILDCARD:
        return eval_wildcard(v, work, out);
    case STEP_SLICE:
        return eval_slice(s, v, work, out);
    case STEP_RECURSIVE:
        return eval_recursive(v, 0, work, out);
    case STEP_FILTER:
        return eval_filter(s, v, work, out);
    default:
        return -EINVAL;
    }
}

static int eval_step(const struct step *s, const struct values *in, size_t *work,
                     struct values *out)
{
    if (s->type == STEP_UNION)
        return eval_union(s, in, work, out);
    for (size_t i = 0; i < in->n; i++) {
        int error = charge(work, 1);
        if (!error)
            error = eval_value(s, values_at(in, i), work, out);
        if (error)
            return error;
    }
    return 0;
}

static int append_all(const struct values *from, size_t *work, struct values *out)
{
    int error = 0;
    for (size_t i = 0; i < from->n && !error; i++)
        error = push(out, values_at(from, i), work);
    return error;
}

/* Appends what the steps find to `out`. */
static int eval_steps(const struct step *steps, const struct values *in, size_t *work,
                      struct values *out)
{
    if (!steps)
        return append_all(in, work, out);
    if (!steps->next)
        return eval_step(steps, in, work, out);
    CLEANUP(values_done) struct values current = {0};
    int error = eval_step(steps, in, work, &current);
    for (const struct step *s = steps->next; s && !error; s = s->next) {
        if (!s->next)
            return eval_step(s, &current, work, out);
        struct values next = {0};
        error = eval_step(s, &current, work, &next);
        values_done(&current);
        current = next;
    }
    return error;
}

static const struct json *eval_simple(const struct jsonpath *path, const struct json *v)
{
    for (const struct step *s = path->steps; s && v; s = s->next)
        v = json_get(v, s->name);
    return v;
}

void jsonpath_eval(const struct jsonpath *path, const struct json *root,
                   bool (*on_match)(void *ctx, const struct json *value), void *ctx)
{
    if (path->is_simple) {
        const struct json *v = eval_simple(path, root);
        if (v)
            (void) on_match(ctx, v);
        return;
    }
    CLEANUP(values_done) struct values found = {0};
    const struct values in = {.n = root ? 1 : 0, .few = {root}};
    size_t work = 0;
    if (eval_steps(path->steps, &in, &work, &found) < 0)
        return;
    for (size_t i = 0; i < found.n; i++) {
        if (!on_match(ctx, values_at(&found, i)))
            return;
    }
}

static bool keep_first(void *ctx, const struct json *value)
{
    *(const struct json **) ctx = value;
    return false;
}

const struct json *jsonpath_first(const struct jsonpath *path, const struct json *root)
{
    const struct json *first = NULL;
    jsonpath_eval(path, root, keep_first, &first);
    return first;
}

bool jsonpath_is_simple(const struct jsonpath *path)
{
    return path->is_simple;
}
