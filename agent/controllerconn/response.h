/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 answer out of its bytes, without I/O. The body may be gzipped; both it and what it
 * inflates to are bounded. */
#pragma once

#include <llhttp.h>

#include "base/buf.h"

#define UPLINK_RESPONSE_MAX_HEAD_BYTES ((size_t) 64 * 1024)

struct z_stream_s;

struct uplink_response {
    llhttp_t parser;
    size_t max_body_bytes, n_head_bytes;
    struct buf field, value; /* the header being read */
    struct buf content_type, location, body;
    struct z_stream_s *gzip; /* of a body that is */
    int status, error;
    bool is_complete, is_gzip_over;
};

/* Not to be moved before it is done. */
void uplink_response_init(struct uplink_response *a, size_t max_body_bytes);
void uplink_response_done(struct uplink_response *a);
/* 1: it is complete, what follows is not looked at; 0: more is to come; -EMSGSIZE: head or body are
 * too large; -EBADMSG: this is no HTTP/1, or no gzip. */
int uplink_response_feed(struct uplink_response *a, struct str bytes);
/* The peer has closed. 1, or -ECONNRESET: it was not complete. */
int uplink_response_end(struct uplink_response *a);
