/* SPDX-License-Identifier: Apache-2.0 */
/* What the transport needs of a TLS configuration. */
#pragma once

#include "controllerconn/tls.h"

/* Puts trust, identity and the name to verify into a context of one connection: only names of the
 * certificate's extension count, never its common name. 0 or -EINVAL. */
int uplink_tls_apply(const struct uplink_tls *t, const char *host, struct ssl_ctx_st *ctx);
/* A CURLSH with the sessions. */
void *uplink_tls_share(const struct uplink_tls *t);
