/* SPDX-License-Identifier: Apache-2.0 */
/* Between listener, handshake and stream: what the connections of one listener on one loop share.
 */
#pragma once

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "net/stream.h"
#include "net/tls_internal.h"
#include "pki/pki.h"

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
    atomic_size_t n_handshakes; /* of them, from accept to the end of the handshake */
    atomic_int_least64_t n_handshake_errors;
    /* Of the loop alone: */
    struct list handshakes;         /* the oldest first */
    struct list waiting_handshakes; /* for their turn */
    struct loop_deferred handshake_turn;
    int64_t handshake_us; /* spent in this turn */
};

/* Before the first connection. */
void stream_home_init(struct stream_home *home);
/* Lets go of its spare buffers. */
void stream_home_done(struct stream_home *home);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 *  HANDSHAKE ──> OPEN ──> FLUSHING ──> LINGERING
 *      │          │          │             │
 *      └──────────┴──────────┴─────────────┴────> CLOSING
 *
 * FLUSHING: closed by the user, output still going out. LINGERING: all is sent, the peer has not
 * closed yet. CLOSING: nothing more is done but to let go. */
enum stream_state {
    STREAM_HANDSHAKE,
    STREAM_OPEN,
    STREAM_FLUSHING,
    STREAM_LINGERING,
    STREAM_CLOSING
};

struct stream {
    struct stream_home *home;
    const struct stream_events *events;
    void *ctx;
    SSL *ssl;
    struct loop_fd *watch;
    struct loop_timer *timer; /* limits handshake, flushing, lingering; NULL while open */
    struct loop_deferred turn_end;
    struct buf output;
    size_t n_sent; /* of output */
    int fd;
    int error; /* for on_closed */
    enum stream_state state;
    /* What the next SSL_read() (or handshake) and the blocked SSL_write() wait for: either may want
     * either. */
    unsigned read_needs, write_needs;
    bool is_paused;
    bool is_input_unwatched; /* input came while paused: not watched until resumed */
    bool has_input;          /* inside OpenSSL: no event will tell */
    bool is_broken;          /* OpenSSL must not be asked to say goodbye */
    bool is_cut;             /* closed by the user without waiting for its output */
    struct stream_peer peer;
    void *identity; /* holds the peer's strings */
    uint64_t address_key;
    struct list handshake, waiting_handshake; /* of its home's */
    int64_t since_ms;                         /* accepted */
    unsigned n_messages_afterwards;           /* of handshakes, once it is over */
    char address[INET6_ADDRSTRLEN];
};

/* Takes the socket over and counts as one connection and handshake of its home, which the caller
 * has added. On the home's loop. */
void stream_start(struct stream_home *home, int fd, const struct sockaddr_storage *from);

void stream_set_state(struct stream *s, enum stream_state state);
void stream_update_watch(struct stream *s);
/* The error queue is the thread's: what another connection left there would be read as ours. */
void stream_prepare_ssl_call(void);
/* What OpenSSL says after a call that did not succeed: positive, the readiness to wait for; 0, the
 * peer's orderly end; negative, an error. */
int stream_sort_ssl_result(struct stream *s, int result);
void stream_begin_closing(struct stream *s, int error);

/* Fills the certificate part of peer from a finished handshake; its strings are in the returned
 * heap block (NULL: there are none). */
void *stream_peer_identify(struct stream_peer *peer, const SSL *ssl);
/* The names of a certificate that is good; likewise. */
void *stream_peer_name(struct stream_peer *peer, const struct pki_cert *c);

/* ---- handshakes ----------------------------------------------------------------------------- */

/* Begins, goes on now or when its turn comes, and is over (done or given up). */
void handshake_begin(struct stream *s);
void handshake_ready(struct stream *s);
void handshake_over(struct stream *s);
/* Gives up those that keep us waiting, to make room. On the home's loop; returns how many. */
size_t handshake_evict(struct stream_home *home);

/* ---- the listener --------------------------------------------------------------------------- */

void listener_handshake_gone(struct stream_home *home);
/* The connection no longer counts; its home may not be touched after the second. */
void listener_connection_gone(struct stream_home *home, uint64_t address_key);
void listener_unref(struct listener *l);
