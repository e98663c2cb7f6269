/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted TLS connection on its loop: bytes in by callback, bytes out by stream_write(), with
 * OpenSSL owning the socket. Belongs to its loop's thread. And the listener that hands connections
 * to the loop with the fewest. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "net/tls.h"

struct stream;

struct stream_peer {
    struct str address; /* "127.0.0.1" */
    int port;
    bool has_certificate;      /* a client certificate that the client CA signed */
    bool certificate_rejected; /* there was one, but it does not verify or has expired */
    struct str common_name;    /* of its subject */
    const struct str *organizations;
    size_t n_organizations;
    int64_t certificate_not_after; /* seconds since 1970 */
    struct str certificate;        /* DER, of tls_files.takes_any_client; empty otherwise */
};

struct stream_events {
    /* After the handshake. alpn is "h2", "http/1.1" or "". */
    void (*on_open)(void *ctx, struct stream *s, struct str alpn);
    /* Bytes are valid during the call. Not called while reading is paused. */
    void (*on_bytes)(void *ctx, struct str bytes);
    /* The output queue has drained to empty: more may be written. */
    void (*on_drained)(void *ctx);
    /* End of file, an error or a stream_close() of one's own; error 0 is an orderly end. Last call;
     * memory goes behind it. */
    void (*on_closed)(void *ctx, int error);
};

/* What the peer sent before on_open fails never reaches the user. */
const struct stream_peer *stream_peer(const struct stream *s);
struct loop *stream_loop(const struct stream *s);

/* Copies n bytes into the output queue and writes as much as the socket takes at the end of this
 * turn. Gathers: many small writes of one turn become few TLS records of up to 16 KiB. */
void stream_write(struct stream *s, const void *p, size_t n);
/* Bytes queued and not yet taken by the socket. */
size_t stream_pending(const struct stream *s);
/* The same with what the socket has taken and the peer has not: by this a slow reader is known. As
 * it goes over the wire, that is a little more than was written. */
size_t stream_untaken(const struct stream *s);
void stream_pause_reading(struct stream *s, bool is_paused);
/* after_flush: send what is queued (bounded in time), then close_notify, then close. Otherwise at
 * once. on_closed comes later in either case, never from inside this call. */
void stream_close(struct stream *s, bool after_flush);

/* ---- listening ---------------------------------------------------------------------------- */

struct listener;

struct listener_options {
    const char *address; /* numeric */
    int port;            /* 0: any free */
    struct tls_config *tls;
    struct loop *const *loops; /* connections are spread over these; the first accepts */
    size_t n_loops;
    size_t max_connections; /* further ones wait in the backlog; 0: no limit */
    /* Of one address (IPv6: of one /64); further ones are closed at once. 0: no limit. */
    size_t max_connections_per_address;
    int64_t handshake_timeout_ms;
    /* Under way on one loop; further connections wait until one is done, or has kept us waiting for
     * a fifth of the timeout and is given up. 0: no limit. */
    size_t max_handshakes;
    /* On the connection's own loop thread, before the handshake: returns ctx for the events, or
     * NULL to refuse. */
    void *(*on_accept)(void *arg, struct stream *s, const struct stream_events **ret_events);
    void *arg;
};
/* Before the loops run, or on the first loop's thread. */
int listener_new(const struct listener_options *o, struct listener **ret_listener,
                 char **ret_error);
int listener_port(const struct listener *l);
/* Stops accepting; connections live on and are still counted. On the first loop's thread, or after
 * it has ended. */
void listener_close(struct listener *l);
/* Closes and lets go of it; memory goes with its last connection. As listener_close(); NULL
 * allowed. */
void listener_free(struct listener *l);
size_t listener_connections(const struct listener *l);

struct listener_stats {
    int64_t n_accepted;           /* since start, as the others */
    int64_t n_refused_addresses;  /* over the limit of their address */
    int64_t n_evicted_handshakes; /* given up for others */
    int64_t n_handshake_errors;   /* however they failed */
};
/* From any thread. */
void listener_stats(const struct listener *l, struct listener_stats *ret);
