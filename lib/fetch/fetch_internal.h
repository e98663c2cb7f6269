/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this module: where a request goes, and what its failure means in words. */
#pragma once

#include "fetch/fetch.h"
#include "fetch/libcurl.h"

/* NUL-terminated, in the arena. */
struct fetch_target {
    const char *url;        /* as libcurl gets it, with the name to verify as its host */
    const char *host;       /* to connect to; IPv6 in brackets */
    const char *port;       /* in digits */
    const char *authority;  /* of the Host header */
    const char *connect_to; /* NULL: where the URL says */
};

/* -EINVAL with words: no URL, or none of https. */
int fetch_target_parse(struct arena *a, const struct fetch_request *r, struct fetch_target *ret,
                       struct str *ret_error);
/* This machine itself. */
bool fetch_target_is_local(const struct fetch_target *t);

struct fetch_failure {
    CURL *curl;
    CURLcode code;
    const char *words; /* libcurl's, perhaps empty */
    bool is_too_large;
    size_t max_bytes;
};

/* The negative errno of a failure, with its words, as Go's client has them where we can. */
int fetch_explain(struct arena *a, const struct fetch_failure *f, const struct fetch_request *r,
                  const struct fetch_target *t, struct str *ret_error);
