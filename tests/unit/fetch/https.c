/* SPDX-License-Identifier: Apache-2.0 */
#include "https.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/tls.h"

/* Of the test's own doing: no need for more than to stop here. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* ---- certificates ---------------------------------------------------------------------------- */

static void make_authority(struct https *s)
{
    s->ca_key = pki_key_new();
    s->ca = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("test-ca"), .is_ca = true, .valid_days = 2},
        s->ca_key, NULL, NULL);
    CHECK(s->ca);
    s->ca_pem = pki_cert_pem(s->arena, s->ca);
}

static struct tls_config *make_tls(struct https *s)
{
    char directory[] = "/tmp/test_https.XXXXXX", certificate[64], key[64], ca[64];
    CHECK(mkdtemp(directory));
    (void) snprintf(certificate, sizeof(certificate), "%s/tls.crt", directory);
    (void) snprintf(key, sizeof(key), "%s/tls.key", directory);
    (void) snprintf(ca, sizeof(ca), "%s/ca.crt", directory);
    const struct str own[] = {STR("127.0.0.1"), STR("localhost")};
    const struct str other[] = {str_of(s->options.name)};
    CLEANUP(pki_key_freep) struct pki_key *k = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("server"),
                                   .names = s->options.name ? other : own,
                                   .n_names = s->options.name ? 1 : 2,
                                   .for_server = true,
                                   .valid_days = s->options.valid_days ? s->options.valid_days : 1},
        k, s->ca, s->ca_key);
    CHECK(c && pki_key_save(k, key) == 0 && pki_cert_save(c, certificate) == 0);
    CHECK(pki_cert_save(s->ca, ca) == 0);
    struct tls_config *tls = NULL;
    char *error = NULL;
    const struct tls_files files = {
        .certificate = certificate,
        .key = key,
        .client_ca = s->options.wants_client_certificates ? ca : NULL,
    };
    CHECK(tls_config_new(&files, &tls, &error) == 0);
    CHECK(unlink(certificate) == 0 && unlink(key) == 0 && unlink(ca) == 0 && rmdir(directory) == 0);
    return tls;
}

void https_client_identity(struct https *s, const char *name, struct str *ret_cert,
                           struct str *ret_key)
{
    CLEANUP(pki_key_freep) struct pki_key *k = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = pki_cert_new(&(struct pki_cert_options){.common_name = str_of(name),
                                                                 .for_client = true,
                                                                 .valid_days = 1},
                                      k, s->ca, s->ca_key);
    CHECK(c);
    *ret_cert = pki_cert_pem(s->arena, c);
    *ret_key = pki_key_pem(s->arena, k);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void *on_accept(void *arg, struct stream *stream, const struct stream_events **ret_events)
{
    struct https *s = arg;
    atomic_fetch_add(&s->n_connections, 1);
    return http_server_accept(s->http, stream, ret_events);
}

static void *run_loop(void *arg)
{
    struct https *s = arg;
    loop_run(s->loop);
    return NULL;
}

void https_start(struct https *s, const struct https_options *o)
{
    (void) signal(SIGPIPE, SIG_IGN);
    *s = (struct https){.options = *o, .arena = arena_new(), .loop = loop_new()};
    make_authority(s);
    s->tls = make_tls(s);
    s->http = http_server_new(
        &(struct http_server_options){.loop = s->loop, .on_request = o->on_request, .ctx = o->ctx});
    const struct listener_options listener = {
        .address = "127.0.0.1",
        .tls = s->tls,
        .loops = &s->loop,
        .n_loops = 1,
        .handshake_timeout_ms = 60 * 1000,
        .on_accept = on_accept,
        .arg = s,
    };
    char *error = NULL;
    CHECK(listener_new(&listener, &s->listener, &error) == 0);
    s->port = listener_port(s->listener);
    CHECK(pthread_create(&s->thread, NULL, run_loop, s) == 0);
}

static void close_all(void *arg)
{
    struct https *s = arg;
    http_server_free(s->http);
    listener_free(s->listener);
    loop_stop(s->loop);
}

void https_stop(struct https *s)
{
    loop_post(s->loop, close_all, s);
    CHECK(pthread_join(s->thread, NULL) == 0);
    loop_free(s->loop);
    tls_config_free(s->tls);
    pki_cert_free(s->ca);
    pki_key_free(s->ca_key);
    arena_free(s->arena);
}

struct str https_url(struct https *s, const char *path)
{
    return arena_printf(s->arena, "https://127.0.0.1:%d%s", s->port, path);
}

void https_reply(struct http_exchange *x, int status, const char *content_type, struct str body)
{
    const struct http_header header = {STR("Content-Type"), str_of(content_type)};
    struct slice slice = slice_copy(body);
    http_reply(x, status, &header, 1, &slice, 1);
}

static void on_closed(void *arg)
{
    (void) arg;
}

void https_hold(struct http_exchange *x)
{
    http_on_closed(x, on_closed, NULL);
}
