/* SPDX-License-Identifier: Apache-2.0 */
/* Validation as kube-apiserver's validator has it, down to which errors it reports together. A
 * value that is good costs no allocation: the first run only counts, and a second one writes the
 * errors. The first one passes over what the value shares with the old one, since no error there
 * would count. */
#include "schema/validate_internal.h"

#define SMALL_OBJECT 16 /* members up to which looking at each beats an index */

/* ---- errors ------------------------------------------------------------------------------- */

struct str validation_name(struct validation *v, const struct field_path *at)
{
    struct str text = schema_path_text(v->causes->arena, at);
    const struct field_path *top = at;
    while (top && top->parent)
        top = top->parent;
    /* A map at the root: its keys keep the dot before them. */
    return top && top->key.p ? arena_printf(v->causes->arena, ".%.*s", STR_ARG(text)) : text;
}

static struct str field_of(struct validation *v, const struct field_path *at)
{
    struct str name = schema_path_text(v->causes->arena, at);
    if (!v->root)
        return name.n ? name : STR("<nil>");
    struct str root = field_path_text(v->causes->arena, v->root);
    return name.n ? arena_printf(v->causes->arena, "%.*s.%.*s", STR_ARG(root), STR_ARG(name))
                  : root;
}

/* False in a silent run, and when there are so many errors that this one is only counted. */
static bool takes_text(struct validation *v)
{
    if (!v->causes)
        return false;
    v->causes->n += causes_are_full(v->causes);
    return !causes_are_full(v->causes);
}

bool validation_counts_only(struct validation *v)
{
    bool takes = takes_text(v);
    v->n_errors += !takes;
    return !takes;
}

void validation_add(struct validation *v, enum cause_type type, const struct field_path *at,
                    const struct json *value, const char *detail, ...)
{
    v->n_errors++;
    if (!takes_text(v))
        return;
    BUF_AUTO text = {0};
    va_list args;
    va_start(args, detail);
    buf_vprintf(&text, detail, args);
    va_end(args);
    causes_add_text(v->causes, type, field_of(v, at), value, buf_str(&text));
}

void validation_add_in_body(struct validation *v, enum cause_type type, const struct field_path *at,
                            const struct json *value, const char *detail, ...)
{
    v->n_errors++;
    if (!takes_text(v))
        return;
    BUF_AUTO text = {0};
    buf_append_str(&text, validation_name(v, at));
    buf_append_str(&text, STR(" in body "));
    va_list args;
    va_start(args, detail);
    buf_vprintf(&text, detail, args);
    va_end(args);
    causes_add_text(v->causes, type, field_of(v, at), value, buf_str(&text));
}

void validation_add_composite(struct validation *v, const struct field_path *at, const char *format,
                              ...)
{
    v->n_errors++;
    if (!takes_text(v))
        return;
    BUF_AUTO text = {0};
    causes_quote(&text, validation_name(v, at));
    buf_append_char(&text, ' ');
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct json nothing = json_string(STR(""));
    causes_add_text(v->causes, CAUSE_INVALID, field_of(v, NULL), &nothing, buf_str(&text));
}

/* ---- the walk ----------------------------------------------------------------------------- */

static size_t check(struct validation *v, const struct schema *s, const struct json *value,
                    const struct json *old, const struct field_path *at);

/* Without looking into what is not shared. */
static bool is_surely_same(const struct json *value, const struct json *old)
{
    return json_is_container(value) ? json_is_shared(value, old) : json_identical(value, old);
}

/* A member or item: what did not change is not judged again. */
static size_t check_child(struct validation *v, const struct schema *s, const struct json *value,
                          const struct json *old, const struct field_path *at)
{
    size_t n_before = v->n_errors;
    struct causes_mark mark = {0};
    if (v->is_first)
        return old && is_surely_same(value, old) ? 0 : check(v, s, value, old, at);
    if (v->causes)
        mark = causes_mark(v->causes);
    size_t n_matches = check(v, s, value, old, at);
    if (v->n_errors == n_before || !old || !json_equal(value, old))
        return n_matches;
    v->n_errors = n_before;
    if (v->causes)
        causes_rewind(v->causes, mark);
    return n_matches;
}

static bool has_duplicates(const struct json *array)
{
    for (size_t i = 1; i < array->n; i++)
        for (size_t k = 0; k < i; k++)
            if (json_equal(&array->items[i], &array->items[k]))
                return true;
    return false;
}

/* The old item when it stands in the same place and is the same: its key is then too. Items of
 * other lists than maps are always judged when their list has changed. */
static const struct json *item_in_place(const struct schema *s, const struct json *old, size_t i,
                                        const struct json *item)
{
    bool is_same = s->list_type == SCHEMA_LIST_MAP && json_is(old, JSON_ARRAY) && i < old->n &&
                   json_is_shared(&old->items[i], item);
    return is_same ? &old->items[i] : NULL;
}

static size_t check_array(struct validation *v, const struct schema *s, const struct json *value,
                          const struct json *old, const struct field_path *at)
{
    const struct schema_rules *r = s->rules;
    size_t n_matches = 1;
    CLEANUP(schema_items_done)
    struct schema_items before = schema_items_of(s, v->is_first ? NULL : old);
    for (size_t i = 0; s->items && i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        const struct json *item = &value->items[i];
        const struct json *was =
            v->is_first ? item_in_place(s, old, i, item) : schema_items_find(&before, item);
        n_matches += check_child(v, s->items, item, was, &here);
    }
    struct json size = json_int(value->n);
    if (r->min_items != SCHEMA_NO_BOUND && value->n < r->min_items)
        validation_add_in_body(v, CAUSE_INVALID, at, &size, "should have at least %lld items",
                               (long long) r->min_items);
    if (r->max_items != SCHEMA_NO_BOUND && value->n > r->max_items)
        validation_add(v, CAUSE_TOO_MANY, at, &size, "must have at most %lld %s",
                       (long long) r->max_items, r->max_items == 1 ? "item" : "items");
    if (r->unique_items && has_duplicates(value)) {
        struct json nothing = json_string(STR(""));
        validation_add_in_body(v, CAUSE_INVALID, at, &nothing, "shouldn't contain duplicates");
    }
    return n_matches;
}

/* True when the number of members alone decides: nothing else is then looked at. */
static bool check_member_count(struct validation *v, const struct schema *s,
                               const struct json *value, const struct field_path *at)
{
    const struct schema_rules *r = s->rules;
    struct json size = json_int(value->n);
    if (r->min_properties != SCHEMA_NO_BOUND && value->n < r->min_properties) {
        validation_add_in_body(v, CAUSE_INVALID, at, &size, "should have at least %lld properties",
                               (long long) r->min_properties);
        return true;
    }
    if (r->max_properties != SCHEMA_NO_BOUND && value->n > r->max_properties) {
        validation_add(v, CAUSE_TOO_MANY, at, &size, "must have at most %lld %s",
                       (long long) r->max_properties, r->max_properties == 1 ? "item" : "items");
        return true;
    }
    return false;
}

static void check_required(struct validation *v, const struct schema *s, const struct json *value,
                           const struct field_path *at)
{
    for (size_t i = 0; i < s->rules->n_required; i++) {
        if (json_get(value, s->rules->required[i]))
            continue;
        struct field_path here = FIELD_NAME(at, s->rules->required[i]);
        validation_add(v, CAUSE_REQUIRED, &here, NULL, "%s", "");
    }
}

/* The old values of an object's members; {0} when there are none. */
struct before {
    const struct json *object;
    struct json_index index; /* of a large one */
};

static struct before before_of(const struct validation *v, const struct json *old)
{
    struct before b = {.object = old};
    if (!v->is_first && json_is(old, JSON_OBJECT) && old->n > SMALL_OBJECT)
        json_index_init(&b.index, old);
    return b;
}

/* The version of the root is not seen to change. */
static bool is_always_judged(struct str name, const struct field_path *at)
{
    return !at && (str_is(name, "kind") || str_is(name, "apiVersion"));
}

static const struct json *before_get(const struct before *b, struct str name,
                                     const struct field_path *at)
{
    if (!b->object || is_always_judged(name, at))
        return NULL;
    return b->index.object ? json_index_get(&b->index, name) : json_get(b->object, name);
}

/* The old value of a member in the same place, which is where it mostly stands. */
static const struct json *member_in_place(const struct json *old, const struct json_member *m,
                                          size_t index, const struct field_path *at)
{
    if (!json_is(old, JSON_OBJECT) || index >= old->n)
        return NULL;
    struct str name = json_str(&m->key);
    const struct json_member *was = &old->members[index];
    return str_eq(json_str(&was->key), name) && !is_always_judged(name, at) ? &was->value : NULL;
}

static void before_done(struct before *b)
{
    if (b->index.object)
        json_index_done(&b->index);
}

static size_t check_object(struct validation *v, const struct schema *s, const struct json *value,
                           const struct json *old, const struct field_path *at)
{
    if (check_member_count(v, s, value, at))
        return 0;
    size_t n_matches = 0;
    CLEANUP(before_done) struct before before = before_of(v, old);
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str name = json_str(&m->key);
        const struct schema *property = schema_property(s, name);
        const struct json *was = v->is_first
                                     ? member_in_place(old, m, (size_t) (m - value->members), at)
                                     : before_get(&before, name, at);
        if (property) {
            struct field_path here = FIELD_NAME(at, name);
            n_matches += check_child(v, property, &m->value, was, &here);
        } else if (s->additional_properties) {
            struct field_path here = FIELD_KEY(at, name);
            n_matches += check_child(v, s->additional_properties, &m->value, was, &here);
        } else if (s->rules->additional == ADDITIONAL_REFUSED) {
            if (validation_counts_only(v))
                continue;
            validation_add(v, CAUSE_INVALID, at, &m->key,
                           "%.*s.%.*s in body is a forbidden property",
                           STR_ARG(validation_name(v, at)), STR_ARG(name));
        }
    }
    check_required(v, s, value, at);
    return n_matches;
}

/* ---- junctors ----------------------------------------------------------------------------- */

/* How alternatives fared, without their errors written. */
struct trial {
    size_t n_valid, n_matches_valid;
    size_t n_matches_best;     /* of the failure with the most good checks */
    const struct schema *best; /* NULL: none failed, or one succeeded */
};

static struct trial try_all(struct validation *v, const struct schema_list *list,
                            const struct json *value, const struct json *old,
                            const struct field_path *at, bool stop_at_first)
{
    struct trial t = {0};
    struct causes *causes = v->causes;
    size_t n_before = v->n_errors;
    v->causes = NULL;
    for (size_t i = 0; i < list->n; i++) {
        v->n_errors = n_before;
        size_t n_matches = check(v, list->schemas[i], value, old, at);
        if (v->n_errors == n_before) {
            if (t.n_valid++ == 0)
                t.n_matches_valid = n_matches;
            t.best = NULL;
            if (stop_at_first)
                break;
        } else if (t.n_valid == 0 && (!t.best || n_matches > t.n_matches_best)) {
            t.best = list->schemas[i];
            t.n_matches_best = n_matches;
        }
    }
    v->n_errors = n_before;
    v->causes = causes;
    return t;
}

/* Writes the errors of the alternative that came closest. A silent run does not look again: nested
 * junctors would double the work at every level. */
static size_t explain(struct validation *v, const struct trial *t, const struct json *value,
                      const struct json *old, const struct field_path *at)
{
    if (v->causes && t->best)
        (void) check(v, t->best, value, old, at);
    return t->best ? t->n_matches_best : 0;
}

static size_t check_any_of(struct validation *v, const struct schema *s, const struct json *value,
                           const struct json *old, const struct field_path *at)
{
    struct trial t = try_all(v, &s->rules->any_of, value, old, at, /* stop_at_first= */ true);
    if (t.n_valid > 0)
        return t.n_matches_valid;
    validation_add_composite(v, at, "must validate at least one schema (anyOf)");
    return explain(v, &t, value, old, at);
}

static size_t check_one_of(struct validation *v, const struct schema *s, const struct json *value,
                           const struct json *old, const struct field_path *at)
{
    struct trial t = try_all(v, &s->rules->one_of, value, old, at, /* stop_at_first= */ false);
    if (t.n_valid == 1)
        return t.n_matches_valid;
    if (t.n_valid == 0)
        validation_add_composite(v, at,
                                 "must validate one and only one schema (oneOf). Found none valid");
    else
        validation_add_composite(
            v, at, "must validate one and only one schema (oneOf). Found %zu valid alternatives",
            t.n_valid);
    return explain(v, &t, value, old, at);
}

static size_t check_all_of(struct validation *v, const struct schema *s, const struct json *value,
                           const struct json *old, const struct field_path *at)
{
    size_t n_matches = 0, n_valid = 0;
    for (size_t i = 0; i < s->rules->all_of.n; i++) {
        size_t n_before = v->n_errors;
        n_matches += check(v, s->rules->all_of.schemas[i], value, old, at);
        n_valid += v->n_errors == n_before;
    }
    if (n_valid != s->rules->all_of.n)
        validation_add_composite(v, at, "must validate all the schemas (allOf)%s",
                                 n_valid ? "" : ". None validated");
    return n_matches;
}

static void check_not(struct validation *v, const struct schema *s, const struct json *value,
                      const struct json *old, const struct field_path *at)
{
    const struct schema *only[] = {s->rules->none_of};
    struct schema_list list = {.schemas = only, .n = 1};
    if (try_all(v, &list, value, old, at, /* stop_at_first= */ true).n_valid)
        validation_add_composite(v, at, "must not validate the schema (not)");
}

static size_t check_junctors(struct validation *v, const struct schema *s, const struct json *value,
                             const struct json *old, const struct field_path *at)
{
    size_t n_matches = 1;
    if (!s->rules->has_junctors)
        return n_matches;
    if (s->rules->any_of.n)
        n_matches += check_any_of(v, s, value, old, at);
    if (s->rules->one_of.n)
        n_matches += check_one_of(v, s, value, old, at);
    n_matches += check_all_of(v, s, value, old, at);
    if (s->rules->none_of)
        check_not(v, s, value, old, at);
    return n_matches;
}

/* ---- one value ---------------------------------------------------------------------------- */

/* Returns how many checks went well, by which kube-apiserver chooses the alternative whose errors
 * it shows: each part that applies counts one, and one more for its own success where it says so.
 */
static size_t check(struct validation *v, const struct schema *s, const struct json *value,
                    const struct json *old, const struct field_path *at)
{
    size_t n_matches = 0;
    if (validate_type_applies(s)) {
        size_t n_before = v->n_errors;
        validate_type(v, s, value, at);
        n_matches += v->n_errors == n_before;
        n_matches += value->type != JSON_NULL;
    }
    if (s->rules->enum_values)
        validate_enum(v, s, value, at);
    if (value->type == JSON_NULL)
        return n_matches;
    /* Alternatives are told apart by what fits them, so they look at everything. */
    n_matches += check_junctors(v, s, value, v->is_first ? NULL : old, at) +
                 3; /* junctors, enum and the whole */
    switch ((enum json_type) value->type) {
    case JSON_STRING:
        validate_string(v, s, value, at);
        return n_matches + 1 + (s->rules->format != NULL);
    case JSON_INT:
    case JSON_DOUBLE:
        validate_number(v, s, value, at);
        return n_matches + 2;
    case JSON_ARRAY:
        return n_matches + check_array(v, s, value, old, at) + 1;
    case JSON_OBJECT:
        return n_matches + check_object(v, s, value, old, at) + 1;
    default:
        return n_matches;
    }
}

static void validate_lists(const struct schema *schema, const struct json *value,
                           const struct json *old_value, const struct field_path *at,
                           struct causes *causes)
{
    if (schema_check_lists(schema, value, at, NULL) == 0)
        return;
    /* A list that was wrong before may stay so. */
    if (old_value && schema_check_lists(schema, old_value, at, NULL) > 0)
        return;
    (void) schema_check_lists(schema, value, at, causes);
}

static void validate_keywords(const struct schema *schema, const struct json *value,
                              const struct json *old_value, const struct field_path *at,
                              struct causes *causes)
{
    struct validation v = {.root = at, .is_first = true};
    (void) check(&v, schema, value, old_value, NULL);
    if (v.n_errors > 0) {
        v.is_first = false;
        v.causes = causes;
        v.n_errors = 0;
        (void) check_child(&v, schema, value, old_value, NULL);
    }
    pattern_matcher_done(&v.matcher);
}

void schema_validate_keywords(const struct schema *schema, const struct json *value,
                              const struct field_path *at, struct causes *causes)
{
    validate_keywords(schema, value, NULL, at, causes);
}

void schema_validate(const struct schema *schema, const struct json *value,
                     const struct json *old_value, const struct field_path *at,
                     struct causes *causes)
{
    if (!schema)
        return;
    validate_keywords(schema, value, old_value, at, causes);
    schema_check_embedded(schema, value, /* is_resource= */ false, at, causes);
    validate_lists(schema, value, old_value, at, causes);
}
