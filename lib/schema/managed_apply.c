/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "schema/causes.h"
#include "schema/managed_internal.h"
#include "schema/merge.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define MAX_ANNOTATION_BYTES (256u << 10) /* of all annotations together, as validation has it */

static const struct json nothing = {.type = JSON_OBJECT};

struct apply {
    struct arena *arena;
    const struct managed_options *options;
    const struct json *live;   /* {} on create */
    const struct json *config; /* without what the write resets */
    const struct json *sent;   /* as it came */
    struct managed_list managers;
    struct managed_entry who;
};

/* ---- conflicts ---------------------------------------------------------------------------- */

static struct str describe(struct arena *a, const struct managed_entry *e)
{
    BUF_AUTO b = {0};
    causes_quote(&b, e->manager);
    if (e->subresource.n) {
        buf_append_str(&b, STR(" with subresource "));
        causes_quote(&b, e->subresource);
    }
    if (!e->is_apply)
        buf_printf(&b, " using %.*s", STR_ARG(e->api_version));
    return arena_str(a, buf_str(&b));
}

struct conflict_list {
    struct arena *arena;
    struct str manager, text;
    struct managed_conflict **end;
};

static void add_conflict(void *ctx, struct str path)
{
    struct conflict_list *list = ctx;
    struct managed_conflict *c = ARENA_NEW(list->arena, struct managed_conflict);
    *c = (struct managed_conflict){
        .manager = list->manager, .operation_text = list->text, .field = path};
    *list->end = c;
    list->end = &c->next;
}

static int compare_entries(const void *a, const void *b)
{
    const struct managed_entry *const *x = a, *const *y = b;
    return managed_compare_identity(*x, *y);
}

/* What other managers own of the fields that would change, but for the fields in `allowed` (may be
 * NULL). */
static struct managed_conflict *find_conflicts(struct apply *p, const struct fieldset *changed,
                                               const struct fieldset *allowed)
{
    struct managed_conflict *first = NULL;
    struct conflict_list list = {.arena = p->arena, .end = &first};
    struct managed_entry **sorted =
        ARENA_ARRAY(p->arena, struct managed_entry *, p->managers.n + 1);
    const struct managed_entry *own = managed_find(&p->managers, &p->who);
    size_t n = 0;
    for (size_t i = 0; i < p->managers.n; i++) {
        if (&p->managers.entries[i] != own)
            sorted[n++] = &p->managers.entries[i];
    }
    qsort(sorted, n, sizeof(*sorted), compare_entries);
    for (size_t i = 0; i < n; i++) {
        if (!managed_may_own(sorted[i], changed))
            continue;
        const struct fieldset *both =
            fieldset_intersection(p->arena, managed_set(&p->managers, sorted[i]), changed);
        list.manager = sorted[i]->manager;
        list.text = describe(p->arena, sorted[i]);
        fieldset_for_each_leaf(p->arena, fieldset_difference(p->arena, both, allowed), add_conflict,
                               &list);
    }
    return first;
}

void managed_conflicts_text(struct arena *a, const struct managed_conflict *conflicts,
                            struct buf *b)
{
    (void) a;
    size_t n = 0;
    for (const struct managed_conflict *c = conflicts; c; c = c->next)
        n++;
    if (n == 1) {
        buf_printf(b, "Apply failed with 1 conflict: conflict with %.*s: %.*s",
                   STR_ARG(conflicts->operation_text), STR_ARG(conflicts->field));
        return;
    }
    buf_printf(b, "Apply failed with %zu conflicts: ", n);
    struct str manager = STR_NONE;
    for (const struct managed_conflict *c = conflicts; c; c = c->next) {
        if (!manager.p || !str_eq(manager, c->operation_text))
            buf_printf(b, "%sconflicts with %.*s:", manager.p ? "\n" : "",
                       STR_ARG(c->operation_text));
        buf_printf(b, "\n- %.*s", STR_ARG(c->field));
        manager = c->operation_text;
    }
}

/* ---- client-side apply before ------------------------------------------------------------- */

static const struct json *last_applied(const struct json *object)
{
    const struct json *v =
        json_get(json_at(object, "metadata", "annotations", NULL), STR(LAST_APPLIED));
    return json_is(v, JSON_STRING) && v->n ? v : NULL;
}

static bool is_kubectl(const struct apply *p)
{
    return str_is(p->options->manager, "kubectl");
}

/* What kubectl's last client-side apply set and the live object still has: kubectl may change it
 * although another entry of its own past, made by an update, owns it. */
static const struct fieldset *allowed_by_last_applied(struct apply *p)
{
    const struct json *text = is_kubectl(p) ? last_applied(p->live) : NULL;
    struct json_parse_result parsed = {0};
    struct str error;
    if (!text || json_parse(p->arena, json_str(text), &parsed) < 0)
        return NULL;
    const struct json *last = parsed.value;
    if (!json_is(last, JSON_OBJECT) ||
        !str_eq(json_get_str(last, STR("apiVersion")), p->options->api_version) ||
        merge_check(p->arena, p->options->schema, last, &error) < 0)
        return NULL;
    struct fieldset *set = fieldset_of(p->arena, last, p->options->schema);
    struct fieldset_difference d =
        fieldset_compare(p->arena, p->options->schema, last, p->live, NULL);
    set = fieldset_difference(p->arena, set, d.changed);
    return fieldset_difference(p->arena, set, d.removed);
}

static size_t annotation_bytes(const struct json *annotations)
{
    size_t n = 0;
    JSON_FOR_EACH_MEMBER (annotations, m) {
        if (!str_is(json_str(&m->key), LAST_APPLIED))
            n += m->key.n + json_str(&m->value).n;
    }
    return n;
}

/* As Go writes a map. */
static void sort_deep(struct json *value)
{
    json_sort_members(value);
    JSON_FOR_EACH_MEMBER (value, m)
        sort_deep(&m->value);
    JSON_FOR_EACH_ITEM (value, item)
        sort_deep(item);
}

/* Keeps the annotation in step, so that a later client-side apply finds what this one set. */
static void update_last_applied(struct apply *p, struct json *object)
{
    if (!is_kubectl(p) || p->options->subresource.n || !last_applied(object))
        return;
    struct json config = json_clone(p->arena, p->sent);
    struct json *annotations = json_at(&config, "metadata", "annotations", NULL);
    if (json_is(annotations, JSON_OBJECT))
        (void) json_remove(annotations, STR(LAST_APPLIED));
    sort_deep(&config);
    BUF_AUTO text = {0};
    json_write(&text, &config);
    buf_append_char(&text, '\n');
    *object = json_clone(p->arena, object);
    struct json *live = json_at(object, "metadata", "annotations", NULL);
    if (text.n + sizeof(LAST_APPLIED) + annotation_bytes(live) > MAX_ANNOTATION_BYTES)
        (void) json_remove(live, STR(LAST_APPLIED));
    else
        json_set(p->arena, live, STR(LAST_APPLIED),
                 json_string(arena_str(p->arena, buf_str(&text))));
}

/* ---- pruning ------------------------------------------------------------------------------ */

/* Takes out what this manager applied last time and not this time, unless somebody else owns it.
 * `claimed` is all that the configuration has. */
static struct json prune(struct apply *p, const struct json *merged, const struct fieldset *last,
                         struct fieldset *claimed)
{
    struct arena *a = p->arena;
    const struct schema *schema = p->options->schema;
    struct fieldset *managed = claimed;
    for (size_t i = 0; i < p->managers.n; i++)
        managed = fieldset_union(a, managed, managed_set(&p->managers, &p->managers.entries[i]));
    managed = fieldset_with_named(a, managed, schema);
    last = fieldset_with_named(a, last, schema);

    const struct fieldset *all = fieldset_with_named(a, fieldset_of(a, merged, schema), schema);
    struct json pruned = merge_without(a, schema, merged, last);
    struct fieldset *kept = fieldset_with_named(a, fieldset_of(a, &pruned, schema), schema);
    pruned = merge_without(a, schema, merged,
                           fieldset_difference(a, all, fieldset_union(a, kept, managed)));
    kept = fieldset_with_named(a, fieldset_of(a, &pruned, schema), schema);
    struct fieldset *gone = fieldset_intersection(a, fieldset_difference(a, all, kept), last);
    return merge_without(a, schema, merged, gone);
}

/* ---- apply -------------------------------------------------------------------------------- */

/* "/name; group/version, Kind=Kind", as typed errors name a configuration. */
static struct str describe_config(struct arena *a, const struct json *config)
{
    const struct json *metadata = json_get(config, STR("metadata"));
    struct str api_version = json_get_str(config, STR("apiVersion"));
    return arena_printf(
        a, "%.*s/%.*s; %s%.*s, Kind=%.*s", STR_ARG(json_get_str(metadata, STR("namespace"))),
        STR_ARG(json_get_str(metadata, STR("name"))), str_find(api_version, '/') < 0 ? "/" : "",
        STR_ARG(api_version), STR_ARG(json_get_str(config, STR("kind"))));
}

static int check_config(struct arena *a, const struct json *config, const struct schema *schema,
                        struct str *ret_error)
{
    const struct json *managed = json_at(config, "metadata", "managedFields", NULL);
    struct str why = STR_NONE;
    if (managed && managed->type != JSON_NULL) {
        *ret_error = STR("metadata.managedFields must be nil");
        return -EINVAL;
    }
    if (!json_is(config, JSON_OBJECT))
        why = STR("expected map");
    else if (merge_check(a, schema, config, &why) == 0)
        return 0;
    *ret_error = arena_printf(a, "failed to create typed patch object (%.*s): %.*s",
                              STR_ARG(describe_config(a, config)), STR_ARG(why));
    return -EINVAL;
}

static struct json members_of(struct arena *a, const struct json *object, const char *const *names)
{
    struct json out = json_object();
    for (const char *const *name = names; *name; name++) {
        const struct json *value = json_get(object, str_of(*name));
        if (value)
            (void) json_append_member(a, &out, str_of(*name), *value);
    }
    return out;
}

/* The configuration as far as this write may store it; identity and version stay for whoever checks
 * them. */
static struct json without_reset(struct arena *a, const struct managed_options *options,
                                 const struct json *config)
{
    static const char *const of_status[] = {"apiVersion", "kind", "metadata", "status", NULL};
    static const char *const of_identity[] = {"name", "namespace", "uid", "resourceVersion", NULL};
    struct fieldset *reset = fieldset_new(a);
    fieldset_add_path(a, reset, STR("metadata.managedFields"));
    for (const char *const *path = options->reset_fields; path && *path; path++)
        fieldset_add_path(a, reset, str_of(*path));
    struct json kept = merge_without(a, options->schema, config, reset);
    if (!options->only_status)
        return kept;
    kept = members_of(a, &kept, of_status);
    struct json *metadata = json_get(&kept, STR("metadata"));
    if (metadata)
        *metadata = members_of(a, metadata, of_identity);
    return kept;
}

/* An object nobody tracked so far belongs to "before-first-apply". */
static void own_untracked(struct apply *p)
{
    if (p->managers.n || json_count(p->live) == 0)
        return;
    const struct managed_entry before = {
        .manager = STR("before-first-apply"),
        .api_version = p->options->api_version,
        .subresource = p->who.subresource,
    };
    struct fieldset_difference d = managed_compare(p->arena, p->options, NULL, p->live);
    managed_take_over(&p->managers, &d, &before, p->options->time);
}

/* The manager's entry becomes `set`; NULL or its fields of the last time go to *ret_last. */
static void claim_fields(struct apply *p, struct fieldset *set, const struct fieldset **ret_last)
{
    struct managed_entry *own = managed_find(&p->managers, &p->who);
    if (own && own->fields && fieldset_json_is(own->fields, set))
        own->set = set; /* the same as last time, as mostly: nothing to parse */
    *ret_last = own ? managed_set(&p->managers, own) : NULL;
    if (!own)
        own = managed_add(&p->managers, p->who);
    bool is_same = *ret_last && fieldset_equal(*ret_last, set) &&
                   str_eq(own->api_version, p->options->api_version);
    if (!is_same) {
        own->api_version = p->options->api_version;
        managed_set_fields(own, set);
    }
}

static struct json merge_config(struct apply *p)
{
    struct fieldset *claimed = fieldset_of(p->arena, p->config, p->options->schema);
    struct fieldset *set =
        fieldset_without_trees(p->arena, claimed, managed_ignored(p->arena, p->options));
    const struct fieldset *last = NULL;
    managed_strip_metadata(set);
    claim_fields(p, set, &last);
    struct json merged = merge_values(p->arena, p->options->schema, p->live, p->config);
    if (last && last != set && !fieldset_is_empty(fieldset_difference(p->arena, last, set)))
        merged = prune(p, &merged, last, claimed);
    return merged;
}

static void finish(struct apply *p, struct json *object, const struct fieldset_difference *d)
{
    managed_release(&p->managers, d, managed_find(&p->managers, &p->who));
    struct managed_entry *own = managed_find(&p->managers, &p->who);
    bool is_changed = !json_equal(p->live, object);
    if (fieldset_is_empty(managed_set(&p->managers, own)))
        managed_remove(&p->managers, own);
    else if (is_changed)
        managed_set_time(own, p->options->time);
    if (!is_changed)
        *object = *p->live;
    managed_store(p->arena, object, managed_write(&p->managers));
    update_last_applied(p, object);
}

int managed_apply(struct arena *a, const struct json *old, const struct json *config, bool force,
                  const struct managed_options *options, struct json **ret_new,
                  struct managed_conflict **ret_conflicts, struct str *ret_error)
{
    int r = check_config(a, config, options->schema, ret_error);
    if (r < 0)
        return r;
    const struct json kept = without_reset(a, options, config);
    struct apply p = {.arena = a,
                      .options = options,
                      .live = old ? old : &nothing,
                      .config = &kept,
                      .sent = config};
    p.who = (struct managed_entry){
        .manager = options->manager,
        .api_version = options->api_version,
        .subresource = options->subresource.p ? options->subresource : STR(""),
        .is_apply = true,
        .set = fieldset_new(a),
    };
    if (managed_read(a, json_at(old, "metadata", "managedFields", NULL), true, &p.managers) < 0)
        p.managers = (struct managed_list){.arena = a};
    p.managers.schema = options->schema;
    p.managers.reconciles = true;
    own_untracked(&p);
    struct json *object = json_new(a, merge_config(&p));
    struct fieldset_difference d = managed_compare(a, options, p.live, object);
    if (!force)
        *ret_conflicts = find_conflicts(&p, d.changed, allowed_by_last_applied(&p));
    if (!force && *ret_conflicts)
        return -EEXIST;
    finish(&p, object, &d);
    *ret_new = object;
    return 0;
}
