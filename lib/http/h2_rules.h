/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request over HTTP/2 is well formed (RFC 9113 8.1.1 to 8.3.1, RFC 9110 5.5): names,
 * values, pseudo-headers, lengths. nghttp2 knows these rules too, but looks at every byte alone,
 * and a bearer token has 640 of them. Does no I/O. */
#pragma once

#include "base/str.h"

/* Zeroed at first. */
struct h2_rules {
    unsigned seen;   /* pseudo-headers and others that matter, a bit each */
    bool has_fields; /* other than pseudo-headers */
    bool is_broken;
    bool is_connect, is_options, is_path_absolute, is_path_asterisk, is_http;
    bool has_length;
    uint64_t length, received;
};

/* The next header of the head, or of the trailers. Breaking one rule breaks the request. */
void h2_rules_header(struct h2_rules *r, struct str name, struct str value);
void h2_rules_trailer(struct h2_rules *r, struct str name, struct str value);
/* The head is complete: is what must be there? */
void h2_rules_end_head(struct h2_rules *r);
/* So much of the body has come. */
void h2_rules_data(struct h2_rules *r, size_t n);
/* The request is complete: is the body as long as was said? */
void h2_rules_end(struct h2_rules *r);
