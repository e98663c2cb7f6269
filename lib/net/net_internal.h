/* SPDX-License-Identifier: Apache-2.0 */
/* Between listener and stream: what the connections of one listener on one loop share. */
#pragma once

#include <stdatomic.h>
#include <sys/socket.h>

#include "net/stream.h"
#include "net/tls_internal.h"

/* Decrypted bytes handed on at once, and the most one connection reads in a turn. */
#define STREAM_READ_BYTES ((size_t) 24 * 1024)

/* Output buffers kept for whichever connection writes next: growing one anew for each answer costs
 * more than the copy. */
#define STREAM_MAX_SPARES 32
#define STREAM_SPARE_BYTES ((size_t) 64 * 1024)

struct stream_home {
    struct listener *listener;
    const struct listener_options *options;
    struct loop *loop;
    struct tls_context *tls;
    char *read_buffer; /* STREAM_READ_BYTES, made at first use */
    struct buf spares[STREAM_MAX_SPARES];
    size_t n_spares;
    atomic_size_t n_connections;
};

/* Takes the socket over and counts as one connection of its home, which the caller has added. On
 * the home's loop. */
void stream_start(struct stream_home *home, int fd, const struct sockaddr_storage *from);

/* Lets go of its spare buffers. */
void stream_home_done(struct stream_home *home);

/* The connection no longer counts; its home may not be touched after the second. */
void listener_connection_gone(struct stream_home *home);
void listener_unref(struct listener *l);

/* Fills the certificate part of peer from a finished handshake; its strings are in the returned
 * heap block (NULL: there are none). */
void *stream_peer_identify(struct stream_peer *peer, const SSL *ssl);
