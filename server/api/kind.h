/* SPDX-License-Identifier: Apache-2.0 */
/* A kind in one version, as data: everything the generic verbs, discovery, tables and OpenAPI know
 * of it. Compiled from a manifest (kinds/<group>/<plural>.yaml, or a user's CRD): immutable, owned
 * by its registry snapshot. */
#pragma once

#include "base/arena.h"
#include "schema/schema.h"
#include "json/jsonpath.h"

enum verb {
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,
    VERB_PATCH,
    VERB_DELETE,
    VERB_DELETE_COLLECTION,
    VERB_COUNT,
};
#define VERB_BIT(v) (1u << (v))
/* "get", "list", ... as discovery writes them. */
struct str verb_name(enum verb v);

struct kind_column {
    struct str name, type, format, description;
    int64_t priority;
    const struct jsonpath *path; /* NULL: `function` */
    struct str function;         /* native kinds: the cell function's name, see api/table.c */
};

struct kind_selectable {
    struct str path; /* as the user writes it: "spec.mode", "involvedObject.name" */
    const struct jsonpath *jsonpath;
    const struct jsonpath *or_else; /* read instead when the first gives nothing; mostly NULL */
};

struct kind_subresource {
    struct str name;                 /* "status", "scale", "finalize", "approval", "token" */
    struct str group, version, kind; /* of the object it speaks, e.g. autoscaling v1 Scale */
    unsigned verbs;                  /* VERB_BIT */
    bool writes_status;              /* a write to it changes status and nothing else */
};

struct kind_scale {
    const struct jsonpath *spec_replicas, *status_replicas, *label_selector;
    struct str spec_replicas_text, status_replicas_text, label_selector_text;
};

struct kind_hooks;

struct kind {
    struct str group;       /* "" for core */
    struct str version;     /* "v1" */
    struct str api_version; /* "v1", "apps/v1" */
    struct str plural, singular, kind, list_kind;
    const struct str *short_names, *categories;
    size_t n_short_names, n_categories;
    bool is_namespaced;
    bool is_native; /* one of Kubernetes's own: strategic merge, native list items, no schema
                       validation */
    bool is_storage, is_served;
    bool is_terminating; /* its CRD is being deleted: no new objects */
    bool is_deprecated;
    struct str deprecation_warning;
    unsigned verbs;
    struct str
        collection; /* of the store: "configmaps", "devices.eve.lfedge.org"; versions share it */
    struct str definition; /* OpenAPI name: "io.k8s.api.core.v1.ConfigMap",
                              "org.lfedge.eve.v1beta1.Device" */

    const struct schema *schema;
    bool has_status;                /* the status subresource exists */
    const struct kind_scale *scale; /* NULL: none */
    const struct kind_subresource *subresources;
    size_t n_subresources;
    const struct kind_column *columns; /* without the Name column, which every table has first */
    size_t n_columns;
    const struct kind_selectable *selectable; /* besides metadata.name and metadata.namespace */
    size_t n_selectable;
    /* Texts stored before this revision may not fit the schema any more: they are pruned and
     * defaulted when read. */
    int64_t since_revision;
    bool has_generation; /* metadata.generation is kept (all CRs; few native kinds) */

    const struct kind_hooks *hooks; /* NULL: no behaviour of its own */
    /* Read through another form of the stored object (events.k8s.io over core events), else NULL.
     * Both work on whole objects. */
    void (*from_stored)(struct arena *a, struct json *object);
    void (*to_stored)(struct arena *a, struct json *object);
};

/* Single objects of it have a path; reviews have none. */
static inline bool kind_has_items(const struct kind *k)
{
    return k->verbs & (VERB_BIT(VERB_GET) | VERB_BIT(VERB_UPDATE) | VERB_BIT(VERB_PATCH) |
                       VERB_BIT(VERB_DELETE));
}

/* The text of a selectable field in an object, as field selectors compare it: "" when absent. */
struct str kind_selectable_value(struct arena *a, const struct kind_selectable *field,
                                 const struct json *object);

/* ret may be NULL. */
bool kind_has_subresource(const struct kind *k, struct str name,
                          const struct kind_subresource **ret);
