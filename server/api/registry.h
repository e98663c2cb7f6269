/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds that are served, as an immutable snapshot: replaced whole when a CRD changes, kept
 * alive by whoever is using it. Built-in kinds come from the manifests compiled in, the rest from
 * CustomResourceDefinition objects. */
#pragma once

#include <stdatomic.h>

#include "api/kind.h"
#include "api/protobuf.h"

struct registry_version {
    struct str version;
    const struct kind **kinds; /* served kinds, by plural */
    size_t n_kinds;
};

struct registry_group {
    struct str name;
    struct registry_version *versions; /* preferred first */
    size_t n_versions;
};

struct registry {
    atomic_uint refs;
    uint64_t generation; /* rises with every change */
    struct arena *arena;
    struct registry_group
        *groups; /* core first, then built-in groups in a fixed order, then CRD groups by name */
    size_t n_groups;
    struct map kinds;       /* "<group>/<version>/<plural>" -> const struct kind * */
    struct map names;       /* "<api_version>/<kind>" -> const struct kind * */
    struct map collections; /* "<collection>" -> the storage version's const struct kind * */
    const struct protobuf *protobuf; /* messages of native kinds and of what goes with requests */
};

struct registry *registry_ref(struct registry *r);
void registry_unref(struct registry *r);
DEFINE_CLEANUP(struct registry *, registry_unref)

/* Served kinds only; NULL when there is none. By its kind's name also what only a subresource
 * speaks (TokenRequest). */
const struct kind *registry_find(const struct registry *r, struct str group, struct str version,
                                 struct str plural);
const struct kind *registry_find_kind(const struct registry *r, struct str api_version,
                                      struct str kind);
const struct kind *registry_collection(const struct registry *r, struct str collection);
const struct registry_group *registry_group(const struct registry *r, struct str name);

/* One manifest (CRD form, see kinds/README.md) -> kinds of all its versions, appended. */
int kind_compile(struct arena *a, const struct json *manifest, const struct kind ***kinds,
                 size_t *n_kinds, struct str *ret_error);
/* Builds a snapshot: the built-in kinds and those of the given CRD objects (established ones). A
 * CRD that cannot be compiled is left out, with a warning in the log. NULL when a built-in kind
 * (or protobuf.yaml) cannot be: *ret_error names its manifest. */
struct registry *registry_build(const struct json *const *crds, size_t n_crds, uint64_t generation,
                                struct str *ret_error);
