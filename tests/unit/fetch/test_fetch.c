/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/fetch.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "https.h"
#include "test.h"

#define MAX_BODY ((size_t) 64 * 1024)

/* ---- server ---------------------------------------------------------------------------------- */

static void reply_many_headers(struct http_exchange *x)
{
    enum { N = 200, VALUE_BYTES = 1000 };
    struct arena *a = http_arena(x);
    struct http_header *headers = ARENA_ARRAY(a, struct http_header, N);
    char *value = arena_alloc(a, VALUE_BYTES);
    memset(value, 'v', VALUE_BYTES);
    for (size_t i = 0; i < N; i++)
        headers[i] = (struct http_header){arena_printf(a, "x-%zu", i), {value, VALUE_BYTES}};
    http_reply(x, 200, headers, N, NULL, 0);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    (void) ctx;
    const struct http_request *r = http_request(x);
    struct arena *a = http_arena(x);
    if (str_is(r->path, "/echo")) {
        struct str text = arena_printf(
            a, "%.*s %.*s %.*s host=%.*s type=%.*s cn=%.*s", STR_ARG(r->method_text),
            STR_ARG(r->query), STR_ARG(r->body), STR_ARG(r->authority),
            STR_ARG(http_request_header(r, STR("content-type"))), STR_ARG(r->peer->common_name));
        https_reply(x, 200, "text/plain", text);
    } else if (str_is(r->path, "/exact")) {
        char *body = arena_zalloc(a, MAX_BODY);
        https_reply(x, 200, "text/plain", str_range(body, MAX_BODY));
    } else if (str_is(r->path, "/large")) {
        char *body = arena_zalloc(a, MAX_BODY + 1);
        https_reply(x, 200, "text/plain", str_range(body, MAX_BODY + 1));
    } else if (str_is(r->path, "/headers")) {
        reply_many_headers(x);
    } else if (str_is(r->path, "/moved")) {
        const struct http_header to = {STR("Location"), STR("/echo")};
        http_reply(x, 302, &to, 1, NULL, 0);
    } else if (str_is(r->path, "/cached")) {
        const struct http_header age = {STR("Cache-Control"), STR("public, max-age=17")};
        http_reply(x, 200, &age, 1, NULL, 0);
    } else if (str_is(r->path, "/cut")) {
        http_abort(x);
    } else if (str_is(r->path, "/hold")) {
        https_hold(x);
    } else {
        https_reply(x, 404, "text/plain", STR("no"));
    }
}

struct world {
    struct https server;
    struct fetch_client *client;
    struct arena *arena;
    struct fetch_answer answer;
    struct str error;
};

static void world_init(struct world *w, const struct https_options *o)
{
    struct https_options options = *o;
    options.on_request = on_request;
    *w = (struct world){.client = fetch_client_new(), .arena = arena_new()};
    assert_non_null(w->client);
    https_start(&w->server, &options);
}

static void world_done(struct world *w)
{
    fetch_client_free(w->client);
    https_stop(&w->server);
    arena_free(w->arena);
}
#define WORLD CLEANUP(world_done) struct world

static struct fetch_request get(struct world *w, const char *path)
{
    return (struct fetch_request){
        .method = "GET",
        .url = https_url(&w->server, path),
        .ca_pem = w->server.ca_pem,
        .timeout_ms = 60 * 1000,
        .max_bytes = MAX_BODY,
    };
}

static int ask(struct world *w, const struct fetch_request *r)
{
    w->error = STR_NONE;
    return fetch(w->client, w->arena, r, &w->answer, &w->error);
}

static void assert_ends(struct str s, const char *end)
{
    if (!str_ends_with(s, str_of(end)))
        fail_msg("\"%.*s\" does not end in \"%s\"", STR_ARG(s), end);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_get_brings_status_body_and_type)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct fetch_request r = get(&w, "/echo?a=b");
    assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(w.answer.status, 200);
    assert_str(w.answer.body,
               arena_printf(w.arena, "GET a=b  host=127.0.0.1:%d type= cn=", w.server.port).p);
    assert_str(w.answer.content_type, "text/plain");
    assert_null(w.answer.cache_control.p);
    r = get(&w, "/elsewhere");
    assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(w.answer.status, 404);
    assert_str(w.answer.body, "no");
    r = get(&w, "/cached");
    assert_int_equal(ask(&w, &r), 0);
    assert_str(w.answer.cache_control, "public, max-age=17");
}

TEST(a_post_carries_body_and_headers)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    const struct str header = STR("Content-Type: application/json");
    struct fetch_request r = get(&w, "/echo");
    r.method = "POST";
    r.body = STR("{}");
    r.headers = &header;
    r.n_headers = 1;
    assert_int_equal(ask(&w, &r), 0);
    assert_str(
        w.answer.body,
        arena_printf(w.arena, "POST  {} host=127.0.0.1:%d type=application/json cn=", w.server.port)
            .p);
    /* Over a megabyte libcurl would ask for leave first and wait a second for it. */
    char *large = arena_alloc(w.arena, 2 * 1024 * 1024);
    memset(large, 'x', 2 * 1024 * 1024);
    r = get(&w, "/cached");
    r.method = "POST";
    r.body = str_range(large, 2 * 1024 * 1024);
    assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(w.answer.status, 200);
}

TEST(connections_are_used_again_by_the_same_credentials_only)
{
    WORLD w;
    world_init(&w, &(struct https_options){.wants_client_certificates = true});
    struct fetch_request r = get(&w, "/echo");
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(atomic_load(&w.server.n_connections), 1);
    https_client_identity(&w.server, "caller", &r.cert_pem, &r.key_pem);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(&w, &r), 0);
        assert_ends(w.answer.body, " cn=caller");
    }
    assert_int_equal(atomic_load(&w.server.n_connections), 2);
    r = get(&w, "/echo");
    assert_int_equal(ask(&w, &r), 0);
    assert_ends(w.answer.body, " cn=");
    assert_int_equal(atomic_load(&w.server.n_connections), 2);
}

TEST(trust_is_in_the_given_authority_alone)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct https other;
    https_start(&other, &(struct https_options){.on_request = on_request});
    struct fetch_request r = get(&w, "/echo");
    r.ca_pem = other.ca_pem;
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error,
                "tls: failed to verify certificate: x509: certificate signed by unknown authority");
    assert_true(str_starts_with(w.error, STR("Get \"https://127.0.0.1:")));
    r.ca_pem = STR_NONE;
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error, "x509: certificate signed by unknown authority");
    r.ca_pem = STR("no certificate");
    assert_int_equal(ask(&w, &r), -EINVAL);
    assert_ends(w.error, "the trusted certificates are no PEM certificates");
    /* And a connection that was trusted by another caller does not help. */
    r = get(&w, "/echo");
    assert_int_equal(ask(&w, &r), 0);
    r.ca_pem = other.ca_pem;
    assert_int_equal(ask(&w, &r), -EIO);
    https_stop(&other);
}

TEST(the_certificate_must_name_the_host)
{
    WORLD w;
    world_init(&w, &(struct https_options){.name = "hooks.example"});
    struct fetch_request r = get(&w, "/echo");
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error, "x509: certificate is not valid for 127.0.0.1");
    r.server_name = STR("hooks.example");
    assert_int_equal(ask(&w, &r), 0);
    assert_str(w.answer.body,
               arena_printf(w.arena, "GET   host=127.0.0.1:%d type= cn=", w.server.port).p);
    r.server_name = STR("other.example");
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error, "x509: certificate is not valid for other.example");
}

TEST(an_expired_certificate_is_refused)
{
    WORLD w;
    world_init(&w, &(struct https_options){.valid_days = -1});
    struct fetch_request r = get(&w, "/echo");
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error, "x509: certificate has expired or is not yet valid");
}

TEST(a_bad_client_certificate_is_said)
{
    WORLD w;
    world_init(&w, &(struct https_options){.wants_client_certificates = true});
    struct fetch_request r = get(&w, "/echo");
    r.cert_pem = r.key_pem = STR("nothing");
    assert_int_equal(ask(&w, &r), -EINVAL);
    assert_non_null(strstr(w.error.p, "client certificate"));
}

TEST(answers_are_bounded)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct fetch_request r = get(&w, "/exact");
    assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(w.answer.body.n, MAX_BODY);
    r = get(&w, "/large");
    assert_int_equal(ask(&w, &r), -EMSGSIZE);
    assert_ends(w.error, "the answer is larger than 65536 bytes");
    r = get(&w, "/headers");
    assert_int_equal(ask(&w, &r), -EMSGSIZE);
    r = get(&w, "/echo");
    assert_int_equal(ask(&w, &r), 0);
}

TEST(redirects_are_not_followed)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct fetch_request r = get(&w, "/moved");
    assert_int_equal(ask(&w, &r), 0);
    assert_int_equal(w.answer.status, 302);
}

TEST(silence_ends_with_the_time_limit)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct fetch_request r = get(&w, "/hold");
    r.timeout_ms = 30;
    assert_int_equal(ask(&w, &r), -ETIMEDOUT);
    assert_ends(w.error, "\": context deadline exceeded");
    r = get(&w, "/cut");
    assert_int_equal(ask(&w, &r), -EIO);
    assert_ends(w.error, "\": EOF");
}

TEST(a_closed_port_is_said)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct https gone;
    https_start(&gone, &(struct https_options){.on_request = on_request});
    struct fetch_request r = get(&w, "/");
    r.method = "POST";
    int port = gone.port;
    https_stop(&gone);
    r.url = arena_printf(w.arena, "https://127.0.0.1:%d/x", port);
    assert_int_equal(ask(&w, &r), -ECONNREFUSED);
    assert_str(w.error, arena_printf(w.arena,
                                     "Post \"https://127.0.0.1:%d/x\": dial tcp 127.0.0.1:%d: "
                                     "connect: connection refused",
                                     port, port)
                            .p);
}

TEST(only_sound_https_urls_are_asked)
{
    static const struct str urls[] = {
        STR("http://127.0.0.1/"), STR("file:///etc/passwd"),
        STR("ftp://127.0.0.1/"),  STR(""),
        STR("127.0.0.1/x"),       STR("https://"),
        STR("https://a b/"),      STR("https://u:p@host/x"),
        STR("https://a\r\nb/"),   STR("https://127.0.0.1\0/"),
        STR("gopher://x/"),       STR("https://h:99999/"),
    };
    WORLD w;
    world_init(&w, &(struct https_options){0});
    for (size_t i = 0; i < N_ELEMENTS(urls); i++) {
        struct fetch_request r = get(&w, "/");
        r.url = urls[i];
        int result = ask(&w, &r);
        if (result != -EINVAL)
            fail_msg("%.*s: %d", STR_ARG(urls[i]), result);
        assert_true(w.error.n > 0);
    }
    const struct str header = STR("X-A: b\r\nX-C: d");
    struct fetch_request r = get(&w, "/echo");
    r.headers = &header;
    r.n_headers = 1;
    assert_int_equal(ask(&w, &r), -EINVAL);
}

#define N_THREADS 4
#define N_ASKED 20

struct asker {
    struct fetch_client *client;
    struct fetch_request request;
    pthread_t thread;
    int n_good;
};

static void *ask_often(void *arg)
{
    struct asker *s = arg;
    for (int i = 0; i < N_ASKED; i++) {
        ARENA_AUTO a = arena_new();
        struct fetch_answer answer = {0};
        struct str error = STR_NONE;
        s->n_good += fetch(s->client, a, &s->request, &answer, &error) == 0 && answer.status == 200;
    }
    return NULL;
}

TEST(threads_share_a_client)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct asker askers[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        askers[i] = (struct asker){.client = w.client, .request = get(&w, "/echo")};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].n_good, N_ASKED);
    }
    assert_true(atomic_load(&w.server.n_connections) <= N_THREADS);
}

TEST(stopping_ends_what_is_under_way)
{
    WORLD w;
    world_init(&w, &(struct https_options){0});
    struct asker one = {.client = w.client, .request = get(&w, "/hold")};
    struct fetch_request r = get(&w, "/echo");
    assert_int_equal(pthread_create(&one.thread, NULL, ask_often, &one), 0);
    while (atomic_load(&w.server.n_connections) == 0)
        (void) sched_yield();
    fetch_client_stop(w.client);
    pthread_join(one.thread, NULL);
    assert_int_equal(one.n_good, 0);
    assert_int_equal(ask(&w, &r), -ECANCELED);
    assert_ends(w.error, "context canceled");
}
