/* SPDX-License-Identifier: Apache-2.0 */
/* A real HTTPS server on 127.0.0.1 with an authority of its own, on a loop of its own thread, whose
 * answers the test gives. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "http/http.h"
#include "pki/pki.h"

struct https_options {
    /* On the server's thread. */
    void (*on_request)(void *ctx, struct http_exchange *x);
    void *ctx;
    const char *name;   /* in its certificate; NULL: 127.0.0.1 and localhost */
    int64_t valid_days; /* 0: 1; negative: expired */
    bool wants_client_certificates;
};

struct https {
    struct https_options options;
    struct arena *arena;
    struct pki_key *ca_key;
    struct pki_cert *ca;
    struct str ca_pem;
    struct loop *loop;
    struct http_server *http;
    struct listener *listener;
    struct tls_config *tls;
    pthread_t thread;
    int port;
    atomic_int n_connections; /* ever accepted */
};

void https_start(struct https *s, const struct https_options *o);
/* Whatever exchanges are open are cut off. */
void https_stop(struct https *s);
/* In the server's arena. */
struct str https_url(struct https *s, const char *path);
/* A client certificate of the server's authority, as PEM in the server's arena. */
void https_client_identity(struct https *s, const char *name, struct str *ret_cert,
                           struct str *ret_key);
void https_reply(struct http_exchange *x, int status, const char *content_type, struct str body);
/* Never answers. */
void https_hold(struct http_exchange *x);
