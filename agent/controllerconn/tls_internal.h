/* SPDX-License-Identifier: Apache-2.0 */
/* What the transport needs of a TLS configuration. */
#pragma once

#include "controllerconn/tls.h"

/* Puts trust, identity and the name to verify into a context of one connection: only names of the
 * certificate's extension count, never its common name. 0 or -EINVAL. */
int uplink_tls_apply(const struct uplink_tls *t, const char *host, struct ssl_ctx_st *ctx);
/* A CURLSH with the sessions of what libcurl carries. */
void *uplink_tls_share(const struct uplink_tls *t);

/* One end of a connection that we carry ourselves. */
struct uplink_tls_end {
    struct uplink_tls *tls;
    const char *host;
    unsigned port;
};
/* Over the socket, ready for SSL_connect(): shares its context with everybody of the same trust and
 * takes up the last session with that host. The end outlives it. NULL: no memory. */
struct ssl_st *uplink_tls_begin(struct uplink_tls_end *end, int fd);
