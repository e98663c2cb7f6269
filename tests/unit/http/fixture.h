/* SPDX-License-Identifier: Apache-2.0 */
/* A server on fake streams whose handler does as its path says: for the tests of whole connections.
 */
#pragma once

#include "fake_net.h"

struct fixture {
    struct loop *loop;
    struct http_server *server;
    struct http_exchange *held; /* of the last request that is not answered at once */
    size_t n_requests;
    size_t n_closed;  /* on_closed calls */
    size_t n_drained; /* on_drained calls */
    bool has_drained; /* the server */
    char last[256];   /* "METHOD path?query body" of the last request */
};

/*  /hello     200 "hello"                /echo      200 with the body
 *  /big       200 of FIXTURE_BIG_BYTES   /none      204
 *  /hold      keeps the exchange         /stream    starts a streamed answer and keeps the exchange
 *  /websocket accepts the handshake and keeps the exchange
 *  /login     200 "hello", and trusts the peer */
#define FIXTURE_BIG_BYTES ((size_t) 1024 * 1024)
void fixture_init(struct fixture *f, const struct http_limits *limits);
void fixture_done(struct fixture *f);
#define FIXTURE CLEANUP(fixture_done) struct fixture

void fixture_send(struct fixture *f, const char *text);
