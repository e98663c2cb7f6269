/* SPDX-License-Identifier: Apache-2.0 */
/* Asking other servers over HTTPS, on threads that may block. The only module that knows libcurl.
 * Connections are kept and used again. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

struct fetch_client;
struct fetch_client *fetch_client_new(void);
/* Requests under way end within about a second with -ECANCELED, later ones at once: for a process
 * that ends. From any thread. NULL allowed. */
void fetch_client_stop(struct fetch_client *c);
void fetch_client_free(struct fetch_client *c);

struct fetch_request {
    const char *method;        /* "GET", "POST" */
    struct str url;            /* https://, or http:// too when allowed */
    bool allows_http;          /* for what protects itself, as SCEP messages do */
    const struct str *headers; /* "Content-Type: application/json" */
    size_t n_headers;
    struct str body;
    struct str ca_pem; /* trusted instead of the machine's CAs; STR_NONE: the machine's */
    struct str cert_pem, key_pem; /* of ours to show; STR_NONE: none */
    struct str server_name; /* verified and sent as SNI instead of the URL's; STR_NONE: the URL's */
    int64_t timeout_ms;
    size_t max_bytes; /* of the answer's body; beyond it the request fails */
};

struct fetch_answer {
    int status;
    struct str body, content_type; /* in the arena */
    struct str cache_control;
};

/* 0 whatever the HTTP status, or negative errno (-ETIMEDOUT, -EMSGSIZE, -ECONNREFUSED, -ECANCELED,
 * -EIO) with *ret_error for a person, in the arena. Redirects are not followed. From any thread. */
int fetch(struct fetch_client *c, struct arena *a, const struct fetch_request *r,
          struct fetch_answer *ret, struct str *ret_error);
