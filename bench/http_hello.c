/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server alone: one loop that answers every request with 2 KB over TLS, to be loaded by
 * h2load or wrk. Prints its port, and at SIGINT or SIGTERM its requests and the CPU time they took.
 *
 *     http_hello [port]
 *     h2load -n 200000 -c 64 -m 10 https://127.0.0.1:PORT/
 *     h2load --h1 -n 200000 -c 64 https://127.0.0.1:PORT/ */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "http/http.h"
#include "net/tls.h"
#include "pki/pki.h"

#define BODY_BYTES 2048

struct hello {
    struct loop *loop;
    struct http_server *server;
    struct slice body;
    size_t n_requests;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why ? why : "failed");
    exit(1);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct hello *h = ctx;
    h->n_requests++;
    static const struct http_header headers[] = {
        {{"Audit-Id", 8}, {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", 36}},
        {{"Cache-Control", 13}, {"no-cache, private", 17}},
        {{"Content-Type", 12}, {"application/json", 16}},
    };
    struct slice body = slice_ref(h->body);
    http_reply(x, 200, headers, N_ELEMENTS(headers), &body, 1);
}

static void *on_accept(void *arg, struct stream *s, const struct stream_events **ret_events)
{
    struct hello *h = arg;
    return http_server_accept(h->server, s, ret_events);
}

static struct tls_config *make_tls(void)
{
    char directory[] = "/tmp/http_hello.XXXXXX", certificate[64], key[64];
    if (!mkdtemp(directory))
        die("mkdtemp", NULL);
    (void) snprintf(certificate, sizeof(certificate), "%s/cert.pem", directory);
    (void) snprintf(key, sizeof(key), "%s/key.pem", directory);
    const struct str names[] = {STR("localhost"), STR("127.0.0.1")};
    const struct pki_cert_options o = {.common_name = STR("hello"),
                                       .names = names,
                                       .n_names = 2,
                                       .for_server = true,
                                       .valid_days = 1};
    struct pki_key *k = pki_key_new();
    struct pki_cert *c = pki_cert_new(&o, k, NULL, NULL);
    if (!c || pki_key_save(k, key) < 0 || pki_cert_save(c, certificate) < 0)
        die("certificate", NULL);
    struct tls_config *tls = NULL;
    char *error = NULL;
    if (tls_config_new(&(struct tls_files){.certificate = certificate, .key = key}, &tls, &error) <
        0)
        die("tls", error);
    pki_cert_free(c);
    pki_key_free(k);
    (void) unlink(certificate);
    (void) unlink(key);
    (void) rmdir(directory);
    return tls;
}

static void on_signal(void *arg, int signal_number)
{
    (void) signal_number;
    loop_stop(arg);
}

static void report(const struct hello *h)
{
    struct rusage u;
    (void) getrusage(RUSAGE_SELF, &u);
    double cpu_s = (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                   (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    printf("%zu requests in %.2f s of CPU: %.0f per CPU-second; %ld KiB resident\n", h->n_requests,
           cpu_s, (double) h->n_requests / cpu_s, u.ru_maxrss);
}

int main(int argc, char **argv)
{
    static char text[BODY_BYTES];
    memset(text, 'x', sizeof(text));
    struct hello h = {.loop = loop_new(), .body = slice_copy(str_range(text, sizeof(text)))};
    (void) signal(SIGPIPE, SIG_IGN);
    h.server = http_server_new(
        &(struct http_server_options){.loop = h.loop, .on_request = on_request, .ctx = &h});
    struct tls_config *tls = make_tls();
    const struct listener_options o = {
        .address = "127.0.0.1",
        .port = argc > 1 ? (int) strtol(argv[1], NULL, 10) : 0,
        .tls = tls,
        .loops = &h.loop,
        .n_loops = 1,
        .handshake_timeout_ms = 10 * 1000,
        .on_accept = on_accept,
        .arg = &h,
    };
    struct listener *l = NULL;
    char *error = NULL;
    if (listener_new(&o, &l, &error) < 0)
        die("listen", error);
    loop_on_signal(h.loop, SIGINT, on_signal, h.loop);
    loop_on_signal(h.loop, SIGTERM, on_signal, h.loop);
    printf("%d\n", listener_port(l));
    (void) fflush(stdout);
    loop_run(h.loop);
    report(&h);
    return 0;
}
