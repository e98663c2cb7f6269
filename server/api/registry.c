/* SPDX-License-Identifier: Apache-2.0 */
#include "api/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "api/version.h"
#include "base/alloc.h"
#include "base/log.h"
#include "kinds/kinds.h"

/* Longer names than this are no kind's: 253 of a group, 63 each of a version and a plural or kind.
 */
#define KEY_MAX_BYTES 400

/* Groups that come first in discovery, as kube-apiserver orders them; others follow by name. */
static const struct str group_order[] = {
    STR(""),
    STR("apps"),
    STR("events.k8s.io"),
    STR("authentication.k8s.io"),
    STR("authorization.k8s.io"),
    STR("certificates.k8s.io"),
    STR("rbac.authorization.k8s.io"),
    STR("storage.k8s.io"),
    STR("admissionregistration.k8s.io"),
    STR("apiextensions.k8s.io"),
    STR("coordination.k8s.io"),
};

struct registry *registry_ref(struct registry *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void registry_unref(struct registry *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    map_done(&r->kinds);
    map_done(&r->names);
    map_done(&r->collections);
    arena_free(r->arena);
    mem_free(r);
}

/* ---- finding ------------------------------------------------------------------------------ */

struct key {
    char bytes[KEY_MAX_BYTES];
    size_t n;
    bool is_too_long;
};

static void key_add(struct key *key, struct str part)
{
    if (key->n + part.n > sizeof(key->bytes)) {
        key->is_too_long = true;
        return;
    }
    if (part.n > 0)
        memcpy(key->bytes + key->n, part.p, part.n);
    key->n += part.n;
}

static struct str key_str(const struct key *key)
{
    return key->is_too_long ? STR("") : str_range(key->bytes, key->n);
}

const struct kind *registry_find(const struct registry *r, struct str group, struct str version,
                                 struct str plural)
{
    struct key key = {.n = 0};
    key_add(&key, group);
    key_add(&key, STR("/"));
    key_add(&key, version);
    key_add(&key, STR("/"));
    key_add(&key, plural);
    return map_get(&r->kinds, key_str(&key));
}

const struct kind *registry_find_kind(const struct registry *r, struct str api_version,
                                      struct str kind)
{
    struct key key = {.n = 0};
    key_add(&key, api_version);
    key_add(&key, STR("/"));
    key_add(&key, kind);
    return map_get(&r->names, key_str(&key));
}

const struct kind *registry_collection(const struct registry *r, struct str collection)
{
    return map_get(&r->collections, collection);
}

const struct registry_group *registry_group(const struct registry *r, struct str name)
{
    for (size_t i = 0; i < r->n_groups; i++)
        if (str_eq(r->groups[i].name, name))
            return &r->groups[i];
    return NULL;
}

/* ---- building ----------------------------------------------------------------------------- */

static size_t group_place(struct str group)
{
    for (size_t i = 0; i < N_ELEMENTS(group_order); i++)
        if (str_eq(group, group_order[i]))
            return i;
    return N_ELEMENTS(group_order);
}

/* The order of discovery: groups, then versions with the preferred first, then plurals. */
static int compare_kinds(const void *left, const void *right)
{
    const struct kind *a = *(const struct kind *const *) left,
                      *b = *(const struct kind *const *) right;
    const size_t place_a = group_place(a->group), place_b = group_place(b->group);
    if (place_a != place_b)
        return place_a < place_b ? -1 : 1;
    int order = str_cmp(a->group, b->group);
    if (order == 0)
        order = version_compare(b->version, a->version);
    return order ? order : str_cmp(a->plural, b->plural);
}

static struct registry_group *group_of(struct registry *r, const struct kind *k)
{
    struct registry_group *last = r->n_groups ? &r->groups[r->n_groups - 1] : NULL;
    if (last && str_eq(last->name, k->group))
        return last;
    last = &r->groups[r->n_groups++];
    *last = (struct registry_group){.name = k->group};
    return last;
}

static struct registry_version *version_of(struct registry *r, struct registry_group *g,
                                           const struct kind *k)
{
    struct registry_version *last = g->n_versions ? &g->versions[g->n_versions - 1] : NULL;
    if (last && str_eq(last->version, k->version))
        return last;
    g->versions = arena_grow(r->arena, g->versions, g->n_versions, sizeof(*g->versions));
    last = &g->versions[g->n_versions++];
    *last = (struct registry_version){.version = k->version};
    return last;
}

static void add_name(struct registry *r, const struct kind *k)
{
    const struct str name =
        arena_printf(r->arena, "%.*s/%.*s", STR_ARG(k->api_version), STR_ARG(k->kind));
    map_put(&r->names, name, (void *) k);
}

static void add_served(struct registry *r, const struct kind *k)
{
    struct registry_version *v = version_of(r, group_of(r, k), k);
    v->kinds = arena_grow(r->arena, (void *) v->kinds, v->n_kinds, sizeof(*v->kinds));
    v->kinds[v->n_kinds++] = k;

    const struct str key = arena_printf(r->arena, "%.*s/%.*s/%.*s", STR_ARG(k->group),
                                        STR_ARG(k->version), STR_ARG(k->plural));
    map_put(&r->kinds, key, (void *) k);
    add_name(r, k);
}

/* `kinds` is sorted. A kind without verbs has no path of its own: it is what a subresource speaks.
 * What cannot be read is not stored. A collection that another kind reads through a conversion
 * belongs to the kind without one. */
static void index_kinds(struct registry *r, const struct kind **kinds, size_t n_kinds)
{
    r->groups = ARENA_ARRAY(r->arena, struct registry_group, n_kinds);
    for (size_t i = 0; i < n_kinds; i++) {
        const struct kind *k = kinds[i];
        if (!k->verbs)
            add_name(r, k);
        else if (k->is_served && !registry_find(r, k->group, k->version, k->plural))
            add_served(r, k);
        if (k->is_storage && k->verbs & VERB_BIT(VERB_GET) && !k->from_stored &&
            !map_get(&r->collections, k->collection))
            map_put(&r->collections, k->collection, (void *) k);
    }
}

/* Compiles into the registry's arena; the text is parsed there so that nothing of the input is
 * kept. */
static int compile_text(struct registry *r, struct str text, const struct kind ***kinds,
                        size_t *n_kinds, struct str *ret_error)
{
    const struct json *manifest = json_parse_quick(r->arena, text);
    if (!manifest) {
        *ret_error = STR("a manifest is no JSON");
        return -EINVAL;
    }
    return kind_compile(r->arena, manifest, kinds, n_kinds, ret_error);
}

/* One definition that cannot be compiled must not take the others with it. */
static void compile_definition(struct registry *r, const struct json *crd,
                               const struct kind ***kinds, size_t *n_kinds)
{
    BUF_AUTO text = {0};
    struct str error = STR("");
    const size_t n_before = *n_kinds;
    json_write(&text, crd);
    if (compile_text(r, buf_str(&text), kinds, n_kinds, &error) >= 0)
        return;
    *n_kinds = n_before;
    log_warning("ignoring a CustomResourceDefinition", LOG_STR("error", error));
}

struct registry *registry_build(const struct json *const *crds, size_t n_crds, uint64_t generation,
                                struct str *ret_error)
{
    CLEANUP(registry_unrefp) struct registry *r = NEW(struct registry);
    atomic_init(&r->refs, 1);
    r->generation = generation;
    r->arena = arena_new();

    const struct kind **kinds = NULL;
    size_t n_kinds = 0;
    struct str error;
    const struct json *messages = json_parse_quick(r->arena, kinds_protobuf);
    if (!messages || protobuf_compile(r->arena, messages, &r->protobuf, &error) < 0) {
        *ret_error = STR("protobuf.yaml");
        return NULL;
    }
    for (size_t i = 0; i < n_kinds_manifests; i++)
        if (compile_text(r, kinds_manifests[i].json, &kinds, &n_kinds, &error) < 0) {
            *ret_error = str_of(kinds_manifests[i].path);
            return NULL;
        }
    for (size_t i = 0; i < n_crds; i++)
        compile_definition(r, crds[i], &kinds, &n_kinds);
    qsort((void *) kinds, n_kinds, sizeof(*kinds), compare_kinds);
    index_kinds(r, kinds, n_kinds);
    return TAKE(r);
}
