/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI documents of one registry snapshot: /openapi/v2, /openapi/v3 and one v3 document per
 * group version, as JSON and as protobuf. Each is built when it is first asked for and kept
 * compressed; afterwards an answer costs no encoding. Shared by threads without locks: two that
 * build the same document at once produce the same bytes, and one is kept. */
#pragma once

#include "api/document.h"
#include "api/registry.h"

struct openapi;

/* Holds a reference to the registry. One reference, the caller's. */
struct openapi *openapi_new(struct registry *r);
struct openapi *openapi_ref(struct openapi *o);
void openapi_unref(struct openapi *o);
DEFINE_CLEANUP(struct openapi *, openapi_unref)

/* Answers "/openapi/v2", "/openapi/v3" and what lies below it; false: another path. Refusals (404,
 * 406) have no body, as kube-apiserver's. */
bool openapi_get(struct arena *a, struct openapi *o, const struct document_request *q,
                 struct document_reply *ret_reply);
