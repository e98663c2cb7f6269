/* SPDX-License-Identifier: Apache-2.0 */
#include "api/discovery.h"

#include <errno.h>
#include <stdlib.h>

#include "api/annexed.h"
#include "api/media.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "pki/pki.h"
#include "json/yaml_write.h"

#define AGGREGATED_PARAMETERS ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

struct document {
    struct slice json;
    enum media_endpoint endpoint;
    bool any_method;         /* the handler of kube-apiserver never looks at the method */
    struct slice aggregated; /* s.p NULL: none */
    struct str etag;         /* of aggregated */
};

struct discovery {
    atomic_uint refs;
    struct arena *arena;  /* keys and documents; the texts have owners of their own */
    struct map documents; /* path -> struct document * */
};

/* ---- parts of documents ------------------------------------------------------------------- */

static const enum verb native_order[] = {VERB_CREATE, VERB_DELETE, VERB_DELETE_COLLECTION,
                                         VERB_GET,    VERB_LIST,   VERB_PATCH,
                                         VERB_UPDATE, VERB_WATCH};
static const enum verb custom_order[] = {
    VERB_DELETE, VERB_DELETE_COLLECTION, VERB_GET, VERB_LIST, VERB_PATCH, VERB_CREATE, VERB_UPDATE,
    VERB_WATCH};

static struct json make_verbs(struct arena *a, unsigned verbs, bool is_native)
{
    struct json list = json_array();
    for (size_t i = 0; i < N_ELEMENTS(native_order); i++) {
        const enum verb v = is_native ? native_order[i] : custom_order[i];
        if (verbs & VERB_BIT(v))
            json_push(a, &list, json_string(verb_name(v)));
    }
    return list;
}

static void append_strings(struct arena *a, struct json *object, struct str key,
                           const struct str *items, size_t n)
{
    if (n == 0)
        return;
    struct json list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(a, &list, json_string(items[i]));
    json_append_member(a, object, key, list);
}

static void append_string(struct arena *a, struct json *object, struct str key, struct str value)
{
    json_append_member(a, object, key, json_string(value));
}

static size_t count_subresources(const struct kind *k)
{
    const struct kind_subresource *annexed = NULL;
    return k->n_subresources + annexed_subresources(k, &annexed);
}

/* A kind has them by name, as native ones are shown; of a custom kind status comes before scale.
 * What annexes answer is behind both. */
static const struct kind_subresource *nth_subresource(const struct kind *k, size_t i)
{
    const struct kind_subresource *annexed = NULL;
    if (i >= k->n_subresources && annexed_subresources(k, &annexed))
        return &annexed[i - k->n_subresources];
    return &k->subresources[k->is_native ? i : k->n_subresources - 1 - i];
}

static bool is_same_group(const struct kind *k, const struct kind_subresource *s)
{
    return str_eq(k->group, s->group) && str_eq(k->version, s->version);
}

/* Any stable value does: it tells clients when two kinds share their stored objects. */
static struct str storage_version_hash(struct arena *a, const struct registry *r,
                                       const struct kind *k)
{
    const struct kind *stored = registry_collection(r, k->collection);
    if (!stored)
        stored = k;
    unsigned char hash[SHA256_BYTES];
    pki_sha256(arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(stored->group), STR_ARG(stored->version),
                            STR_ARG(stored->kind)),
               hash);
    return base64_encode(a, str_range((const char *) hash, 8), BASE64_STANDARD);
}

/* ---- plain documents ---------------------------------------------------------------------- */

static struct json make_resource(struct arena *a, const struct registry *r, const struct kind *k)
{
    struct json o = json_object();
    append_string(a, &o, STR("name"), k->plural);
    append_string(a, &o, STR("singularName"), k->singular);
    json_append_member(a, &o, STR("namespaced"), json_bool(k->is_namespaced));
    append_string(a, &o, STR("kind"), k->kind);
    json_append_member(a, &o, STR("verbs"), make_verbs(a, k->verbs, k->is_native));
    append_strings(a, &o, STR("shortNames"), k->short_names, k->n_short_names);
    append_strings(a, &o, STR("categories"), k->categories, k->n_categories);
    if (k->verbs & VERB_BIT(VERB_GET))
        append_string(a, &o, STR("storageVersionHash"), storage_version_hash(a, r, k));
    return o;
}

static struct json make_subresource(struct arena *a, const struct kind *k,
                                    const struct kind_subresource *s)
{
    struct json o = json_object();
    append_string(a, &o, STR("name"),
                  arena_printf(a, "%.*s/%.*s", STR_ARG(k->plural), STR_ARG(s->name)));
    append_string(a, &o, STR("singularName"), STR(""));
    json_append_member(a, &o, STR("namespaced"), json_bool(k->is_namespaced));
    if (!is_same_group(k, s)) {
        append_string(a, &o, STR("group"), s->group);
        append_string(a, &o, STR("version"), s->version);
    }
    append_string(a, &o, STR("kind"), s->kind);
    json_append_member(a, &o, STR("verbs"), make_verbs(a, s->verbs, /* is_native= */ true));
    return o;
}

static struct str group_version(struct arena *a, const struct registry_group *g,
                                const struct registry_version *v)
{
    return g->name.n ? arena_printf(a, "%.*s/%.*s", STR_ARG(g->name), STR_ARG(v->version))
                     : v->version;
}

static struct json make_resource_list(struct arena *a, const struct registry *r,
                                      const struct registry_group *g,
                                      const struct registry_version *v)
{
    struct json o = json_object();
    append_string(a, &o, STR("kind"), STR("APIResourceList"));
    if (g->name.n) /* the core group's list has none, for clients older than 1.0 */
        append_string(a, &o, STR("apiVersion"), STR("v1"));
    append_string(a, &o, STR("groupVersion"), group_version(a, g, v));
    struct json resources = json_array();
    for (size_t i = 0; i < v->n_kinds; i++) {
        const struct kind *k = v->kinds[i];
        json_push(a, &resources, make_resource(a, r, k));
        for (size_t s = 0; s < count_subresources(k); s++)
            json_push(a, &resources, make_subresource(a, k, nth_subresource(k, s)));
    }
    json_append_member(a, &o, STR("resources"), resources);
    return o;
}

static struct json make_version(struct arena *a, const struct registry_group *g,
                                const struct registry_version *v)
{
    struct json o = json_object();
    append_string(a, &o, STR("groupVersion"), group_version(a, g, v));
    append_string(a, &o, STR("version"), v->version);
    return o;
}

static void append_group(struct arena *a, struct json *o, const struct registry_group *g)
{
    append_string(a, o, STR("name"), g->name);
    struct json versions = json_array();
    for (size_t i = 0; i < g->n_versions; i++)
        json_push(a, &versions, make_version(a, g, &g->versions[i]));
    json_append_member(a, o, STR("versions"), versions);
    if (g->n_versions)
        json_append_member(a, o, STR("preferredVersion"), make_version(a, g, &g->versions[0]));
}

static struct json make_group(struct arena *a, const struct registry_group *g)
{
    struct json o = json_object();
    append_string(a, &o, STR("kind"), STR("APIGroup"));
    append_string(a, &o, STR("apiVersion"), STR("v1"));
    append_group(a, &o, g);
    return o;
}

static struct json make_group_list(struct arena *a, const struct registry *r)
{
    struct json o = json_object();
    append_string(a, &o, STR("kind"), STR("APIGroupList"));
    append_string(a, &o, STR("apiVersion"), STR("v1"));
    struct json groups = json_array();
    for (size_t i = 0; i < r->n_groups; i++) {
        if (!r->groups[i].name.n)
            continue;
        struct json group = json_object();
        append_group(a, &group, &r->groups[i]);
        json_push(a, &groups, group);
    }
    json_append_member(a, &o, STR("groups"), groups);
    return o;
}

static struct json make_core_versions(struct arena *a, const struct registry *r,
                                      struct str server_address)
{
    struct json o = json_object();
    append_string(a, &o, STR("kind"), STR("APIVersions"));
    const struct registry_group *core = registry_group(r, STR(""));
    struct json versions = json_array();
    for (size_t i = 0; core && i < core->n_versions; i++)
        json_push(a, &versions, json_string(core->versions[i].version));
    json_append_member(a, &o, STR("versions"), versions);
    struct json address = json_object(), addresses = json_array();
    append_string(a, &address, STR("clientCIDR"), STR("0.0.0.0/0"));
    append_string(a, &address, STR("serverAddress"), server_address);
    json_push(a, &addresses, address);
    json_append_member(a, &o, STR("serverAddressByClientCIDRs"), addresses);
    return o;
}

/* ---- the aggregated document -------------------------------------------------------------- */

/* Of a native kind's own group and version only the kind is said, as kube-apiserver does. */
static struct json make_response_kind(struct arena *a, const struct kind *k,
                                      const struct kind_subresource *s)
{
    const bool is_implied = k->is_native && (!s || is_same_group(k, s));
    struct json o = json_object();
    append_string(a, &o, STR("group"), is_implied ? STR("") : s ? s->group : k->group);
    append_string(a, &o, STR("version"), is_implied ? STR("") : s ? s->version : k->version);
    append_string(a, &o, STR("kind"), s ? s->kind : k->kind);
    return o;
}

static struct json make_aggregated_resource(struct arena *a, const struct kind *k)
{
    struct json o = json_object();
    append_string(a, &o, STR("resource"), k->plural);
    json_append_member(a, &o, STR("responseKind"), make_response_kind(a, k, NULL));
    append_string(a, &o, STR("scope"), k->is_namespaced ? STR("Namespaced") : STR("Cluster"));
    append_string(a, &o, STR("singularResource"), k->singular);
    json_append_member(a, &o, STR("verbs"), make_verbs(a, k->verbs, k->is_native));
    append_strings(a, &o, STR("shortNames"), k->short_names, k->n_short_names);
    append_strings(a, &o, STR("categories"), k->categories, k->n_categories);
    if (count_subresources(k) == 0)
        return o;
    struct json list = json_array();
    for (size_t i = 0; i < count_subresources(k); i++) {
        const struct kind_subresource *subresource = nth_subresource(k, i);
        struct json s = json_object();
        append_string(a, &s, STR("subresource"), subresource->name);
        json_append_member(a, &s, STR("responseKind"), make_response_kind(a, k, subresource));
        json_append_member(a, &s, STR("verbs"),
                           make_verbs(a, subresource->verbs, /* is_native= */ true));
        json_push(a, &list, s);
    }
    json_append_member(a, &o, STR("subresources"), list);
    return o;
}

static struct json make_aggregated_group(struct arena *a, const struct registry_group *g)
{
    struct json o = json_object(), metadata = json_object(), versions = json_array();
    if (g->name.n)
        append_string(a, &metadata, STR("name"), g->name);
    json_append_member(a, &o, STR("metadata"), metadata);
    for (size_t i = 0; i < g->n_versions; i++) {
        const struct registry_version *v = &g->versions[i];
        struct json version = json_object(), resources = json_array();
        append_string(a, &version, STR("version"), v->version);
        for (size_t k = 0; k < v->n_kinds; k++)
            json_push(a, &resources, make_aggregated_resource(a, v->kinds[k]));
        json_append_member(a, &version, STR("resources"), resources);
        append_string(a, &version, STR("freshness"), STR("Current"));
        json_push(a, &versions, version);
    }
    json_append_member(a, &o, STR("versions"), versions);
    return o;
}

static struct json make_aggregated_list(struct arena *a, const struct registry *r, bool is_core)
{
    struct json o = json_object(), items = json_array();
    append_string(a, &o, STR("kind"), STR("APIGroupDiscoveryList"));
    append_string(a, &o, STR("apiVersion"), STR("apidiscovery.k8s.io/v2"));
    json_append_member(a, &o, STR("metadata"), json_object());
    for (size_t i = 0; i < r->n_groups; i++)
        if ((r->groups[i].name.n == 0) == is_core)
            json_push(a, &items, make_aggregated_group(a, &r->groups[i]));
    json_append_member(a, &o, STR("items"), items);
    return o;
}

/* ---- the set ------------------------------------------------------------------------------ */

static struct slice encode(const struct json *v)
{
    BUF_AUTO b = {0};
    json_write(&b, v);
    buf_append_char(&b, '\n');
    return slice_copy(buf_str(&b));
}

static struct document *add(struct discovery *d, struct str path, const struct json *v,
                            enum media_endpoint endpoint)
{
    struct document *doc = ARENA_NEW(d->arena, struct document);
    doc->json = encode(v);
    doc->endpoint = endpoint;
    map_put(&d->documents, arena_str(d->arena, path), doc);
    return doc;
}

static void add_aggregated(struct discovery *d, struct arena *a, const struct registry *r,
                           struct document *doc)
{
    struct json list = make_aggregated_list(a, r, /* is_core= */ doc->endpoint == MEDIA_NATIVE);
    doc->aggregated = encode(&list);
    doc->etag = document_etag(d->arena, doc->aggregated.s);
}

static void add_group(struct discovery *d, struct arena *a, const struct registry *r,
                      const struct registry_group *g)
{
    struct str prefix = STR("/api");
    if (g->name.n) {
        prefix = arena_printf(a, "/apis/%.*s", STR_ARG(g->name));
        struct json group = make_group(a, g);
        add(d, prefix, &group, MEDIA_CUSTOM)->any_method = true;
    }
    for (size_t i = 0; i < g->n_versions; i++) {
        const struct registry_version *v = &g->versions[i];
        struct json list = make_resource_list(a, r, g, v);
        const bool is_native = v->n_kinds > 0 && v->kinds[0]->is_native;
        add(d, arena_printf(a, "%.*s/%.*s", STR_ARG(prefix), STR_ARG(v->version)), &list,
            is_native ? MEDIA_NATIVE : MEDIA_CUSTOM);
    }
}

static int compare_strs(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

static void add_root(struct discovery *d, struct arena *a, const struct discovery_options *o)
{
    struct str *paths = ARENA_ARRAY(a, struct str, d->documents.n_items + o->n_paths);
    size_t n = 0, position = 0;
    struct map_entry e;
    while (map_next(&d->documents, &position, &e))
        paths[n++] = e.key;
    for (size_t i = 0; i < o->n_paths; i++)
        paths[n++] = o->paths[i];
    qsort(paths, n, sizeof(*paths), compare_strs);

    struct json root = json_object();
    append_strings(a, &root, STR("paths"), paths, n);
    struct document *doc = ARENA_NEW(d->arena, struct document);
    BUF_AUTO b = {0};
    json_write_pretty(&b, &root);
    doc->json = slice_copy(buf_str(&b));
    doc->endpoint = MEDIA_CUSTOM;
    doc->any_method = true;
    map_put(&d->documents, STR("/"), doc);
}

struct discovery *discovery_new(const struct registry *r, const struct discovery_options *o)
{
    struct discovery *d = NEW(struct discovery);
    atomic_init(&d->refs, 1);
    d->arena = arena_new();
    ARENA_AUTO a = arena_new();

    struct json core = make_core_versions(a, r, o->server_address);
    add_aggregated(d, a, r, add(d, STR("/api"), &core, MEDIA_NATIVE));
    struct json groups = make_group_list(a, r);
    struct document *apis = add(d, STR("/apis"), &groups, MEDIA_CUSTOM);
    apis->any_method = true;
    add_aggregated(d, a, r, apis);
    for (size_t i = 0; i < r->n_groups; i++)
        add_group(d, a, r, &r->groups[i]);
    add_root(d, a, o);
    return d;
}

struct discovery *discovery_ref(struct discovery *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void discovery_unref(struct discovery *d)
{
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    size_t position = 0;
    struct map_entry e;
    while (map_next(&d->documents, &position, &e)) {
        struct document *doc = e.value;
        slice_unref(doc->json);
        slice_unref(doc->aggregated);
    }
    map_done(&d->documents);
    arena_free(d->arena);
    mem_free(d);
}

/* ---- answering ---------------------------------------------------------------------------- */

static struct slice in_encoding(struct arena *a, struct slice json, enum media_encoding e)
{
    if (e == MEDIA_JSON)
        return slice_ref(json);
    BUF_AUTO b = {0};
    yaml_write(&b, json_parse_quick(a, json.s));
    return slice_copy(buf_str(&b));
}

static void reply_aggregated(struct arena *a, const struct document *doc,
                             const struct document_request *q, enum media_encoding e,
                             struct document_reply *ret)
{
    ret->cache_control = STR("public");
    ret->vary_accept = true;
    ret->etag = arena_str(a, doc->etag);
    if (document_is_unchanged(q, doc->etag)) {
        ret->status = 304;
        return;
    }
    ret->status = 200;
    ret->content_type = e == MEDIA_JSON ? STR("application/json" AGGREGATED_PARAMETERS)
                                        : STR("application/yaml" AGGREGATED_PARAMETERS);
    ret->body = in_encoding(a, doc->aggregated, e);
}

static const struct document *find(const struct discovery *d, struct str path)
{
    if (str_is(path, "/index.html"))
        path = STR("/");
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path = str_sub(path, 0, path.n - 1);
    return map_get(&d->documents, path);
}

int discovery_get(struct arena *a, const struct discovery *d, const struct document_request *q,
                  struct document_reply *ret_reply, struct status *st)
{
    const struct document *doc = find(d, q->path);
    if (!doc)
        return -ENOENT;
    if (!doc->any_method && q->method != HTTP_GET)
        return status_no_method(st);

    struct document_reply reply = {.status = 200};
    enum media_encoding e;
    if (doc->aggregated.s.p && media_wants_aggregated_discovery(q->accept, &e)) {
        reply_aggregated(a, doc, q, e, &reply);
    } else {
        const int r = media_choose_plain(q->accept, doc->endpoint, &e, st);
        if (r < 0)
            return r;
        reply.content_type = media_content_type(e);
        reply.body = in_encoding(a, doc->json, e);
    }
    *ret_reply = reply;
    return 0;
}
