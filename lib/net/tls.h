/* SPDX-License-Identifier: Apache-2.0 */
/* TLS server contexts: certificate, trusted client CA, ALPN, tickets. One context per loop shares
 * ticket keys with its siblings through the tls_config, which also swaps the certificate without a
 * restart. */
#pragma once

#include "base/arena.h"

struct tls_config;

struct tls_files {
    const char *certificate; /* PEM chain */
    const char *key;
    const char *client_ca; /* PEM; NULL: client certificates are not asked for */
    /* Instead: any client certificate is taken, none trusted; the peer has proved to own its key,
     * and the layer above decides who that is (stream_peer.certificate). */
    bool takes_any_client;
};
/* Failure: negative errno and *ret_error (heap). TLS 1.2 and 1.3; client certificates optional. */
int tls_config_new(const struct tls_files *files, struct tls_config **ret_config, char **ret_error);
/* Reads the files again; on failure the old stay. From any thread; new handshakes use the new. */
int tls_config_reload(struct tls_config *c, char **ret_error);
void tls_config_free(struct tls_config *c);
