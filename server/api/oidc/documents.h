/* SPDX-License-Identifier: Apache-2.0 */
/* What an issuer publishes: its discovery document and its keys. Pure functions of the texts. */
#pragma once

#include "pki/jws.h"

#define OIDC_DOCUMENT_MAX_BYTES ((size_t) 1024 * 1024)
#define OIDC_MAX_KEYS 32
#define OIDC_KID_MAX_BYTES 512

/* The keys of an issuer at one time; immutable. From any thread. */
struct oidc_keys;
struct oidc_keys *oidc_keys_ref(struct oidc_keys *k);
void oidc_keys_unref(struct oidc_keys *k); /* NULL allowed */

/* From a JWK set. Keys that are not for signatures we know are passed over; -EINVAL with words when
 * none is left. */
int oidc_keys_parse(struct str text, struct oidc_keys **ret_keys, char **ret_error);
size_t oidc_keys_count(const struct oidc_keys *k);
/* True when one of them has signed it; the algorithm must be the key's own. kid STR_NONE: any. */
bool oidc_keys_verify(const struct oidc_keys *k, enum jws_algorithm alg, struct str kid,
                      const struct jws *t);

/* Where the keys are. -EINVAL with words when the document is not this issuer's. */
int oidc_discovery_parse(struct arena *a, struct str text, struct str issuer,
                         struct str *ret_jwks_uri, struct str *ret_error);
