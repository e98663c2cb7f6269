/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 client on a fake stream, for the tests. */
#pragma once

#include <nghttp2/nghttp2.h>

#include "fake_net.h"

#define CLIENT_MAX_STREAMS 2048

struct client_answer {
    char status[4];
    char headers[512]; /* "name=value;..." without date and :status */
    struct buf body;
    struct str upload; /* what is left to send */
    bool is_stuck;     /* the upload stops before its end */
    bool has_ended;    /* END_STREAM came */
    bool is_closed;
    uint32_t error_code;
};

struct client {
    nghttp2_session *session;
    struct stream *stream;
    struct client_answer answers[CLIENT_MAX_STREAMS]; /* by (stream id - 1) / 2 */
    size_t n_goaways;
    int32_t goaway_last_id;
    size_t n_pings;
    bool is_deaf; /* reads nothing */
    bool no_window_update;
};

struct client *client_new(struct stream *s, bool no_window_update);
void client_free(struct client *c);
DEFINE_CLEANUP(struct client *, client_free)
/* Lets both sides talk until neither has anything to say. */
void client_run(struct client *c);
/* Returns the stream's id. An upload NULL: none. extra: one more header. */
int32_t client_request(struct client *c, const char *method, const char *path, struct str upload,
                       const struct http_header *extra, size_t n_extra);
struct client_answer *client_answer(struct client *c, int32_t id);
