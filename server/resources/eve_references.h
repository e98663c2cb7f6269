/* SPDX-License-Identifier: Apache-2.0 */
/* References that several of our kinds have in common, and whether what they name fits. */
#pragma once

#include "api/admission/reference.h"

#define COLLECTION_SECRETS STR("secrets")
#define COLLECTION_CONFIGMAPS STR("configmaps")
#define COLLECTION_CLAIMS STR("persistentvolumeclaims")
#define COLLECTION_CLASSES STR("storageclasses.storage.k8s.io")
#define COLLECTION_IMAGES STR("images.eve.lfedge.org")
#define COLLECTION_NETWORKS STR("devicenetworks.eve.lfedge.org")
#define COLLECTION_NETWORK_CONFIGS STR("networkconfigs.eve.lfedge.org")

#define EVE_PROVISIONER "eve"

struct str eve_namespace_of(const struct json *object);
bool eve_is_class(const struct json *storage_class);

/* A Secret with `username` or `password` or both. */
void eve_refer_credentials(struct reference_list *l, const struct field_path *at,
                           struct str namespace, struct str name, unsigned flags);
/* A Secret or ConfigMap that has the key. */
void eve_refer_key(struct reference_list *l, const struct field_path *at,
                   const struct reference *reference, struct str key);
/* What the spec of a claim names: its class, which must exist if is_ours, and an Image. */
void eve_refer_claim_spec(struct reference_list *l, const struct field_path *at,
                          struct str namespace, const struct json *spec, bool is_ours);
/* The Image that a dataSourceRef names, in the form of Kubernetes or of the seed; STR_NONE when it
 * names something else or nothing. */
struct str eve_source_image(const struct json *source);
