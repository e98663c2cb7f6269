/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for: its path and query taken apart as kube-apiserver does. */
#pragma once

#include "base/arena.h"
#include "http/http.h"

#define REQUEST_MAX_PARAMETERS 256

struct request_parameter {
    struct str name, value; /* decoded */
};

struct request_query {
    struct request_parameter *parameters;
    size_t n;
};

/* Go's url.ParseQuery: what is malformed is left out. */
struct request_query request_parse_query(struct arena *a, struct str raw);
/* First value, or STR_NONE when absent. */
struct str request_parameter(const struct request_query *q, const char *name);
/* "1", "t", "true" ... as strconv.ParseBool; anything else that is present counts as true, as
 * conversion does. */
bool request_flag(const struct request_query *q, const char *name);

struct request_path {
    bool is_resource; /* /api/v1/... or /apis/<group>/<version>/... with a resource */
    bool is_watch;    /* the old form /api/v1/watch/... */
    struct str group, version, resource, subresource, namespace, name;
    struct str extra; /* behind the subresource */
};

/* path is decoded. -EINVAL: a bad percent escape. */
int request_decode_path(struct arena *a, struct str raw, struct str *ret_path);
void request_parse_path(struct str path, struct request_path *ret);
