/* SPDX-License-Identifier: Apache-2.0 */
/* A request for one of the server's own documents (discovery, OpenAPI, version, health) and its
 * answer: what crosses between them and the handler that speaks HTTP. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "http/http.h"

struct document_request {
    enum http_method method;
    struct str path; /* decoded, without the query */
    struct str query;
    struct str accept, accept_encoding, if_none_match; /* headers; STR_NONE when absent */
    int64_t now_s;                                     /* seconds since 1970 */
};

/* Strings live in the request's arena or for ever. An absent one means the handler's default: no
 * header, but `no-cache, private` for cache_control. */
struct document_reply {
    int status;
    struct str content_type;
    struct str cache_control;
    struct str etag; /* with its quotes */
    struct str expires;
    struct str location;
    bool vary_accept;
    bool is_gzip; /* the body is compressed already: content-encoding gzip */
    bool no_sniff;
    struct slice body; /* the receiver's reference */
};

/* True when If-None-Match names this quoted tag; the reply is then 304 without a body. */
bool document_is_unchanged(const struct document_request *q, struct str etag);
/* The quoted ETag of some content: upper-case hexadecimal SHA-512, as kube-apiserver's. */
struct str document_etag(struct arena *a, struct str content);
