/* SPDX-License-Identifier: Apache-2.0 */
/* One request by the program curl: what comes goes from the network to disk, redirects are followed
 * without our credentials. Blocks: for worker threads. */
#pragma once

#include <stdatomic.h>

#include "base/str.h"

#define CURL_MAX_HEADER_BYTES ((size_t) 256 * 1024)

struct curl_request {
    const char *curl; /* the program */
    struct str url;
    bool allows_http;
    struct str authorization;    /* STR_NONE: none */
    const char *accept;          /* a whole header line; NULL: none */
    const char *to, *headers_to; /* files; headers_to NULL: not kept */
    const char *ca_path;         /* trusted instead of the machine's; NULL: those */
    int64_t max_bytes;           /* of the file */
    const atomic_bool *is_cancelled;
};
/* Returns the HTTP status, or negative errno with *ret_error (heap). */
int curl_perform(const struct curl_request *q, char **ret_error);
