/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/webhook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/oidc/kubeconfig.h"
#include "api/oidc/review.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "https.h"
#include "test.h"
#include "json/json.h"

static const struct str api = STR("api");
static const struct audiences of_api = {&api, 1};
#define REVIEW "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":"

/* ---- the review ------------------------------------------------------------------------------ */

TEST(a_question_is_a_token_review)
{
    ARENA_AUTO a = arena_new();
    assert_str(review_write(a, STR("to\"ken"), of_api),
               "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
               "\"metadata\":{},\"spec\":{\"token\":\"to\\\"ken\",\"audiences\":[\"api\"]},"
               "\"status\":{}}");
}

TEST(an_answer_names_the_user)
{
    ARENA_AUTO a = arena_new();
    struct token_identity i = {0};
    struct str error = STR_NONE;
    assert_int_equal(
        review_read(a,
                    STR(REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"jane\",\"uid\":"
                               "\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{\"k\":[\"v\",\"w\"]}}}}"),
                    of_api, of_api, &i, &error),
        0);
    assert_str(i.user.name, "jane");
    assert_str(i.user.uid, "7");
    assert_int_equal(i.user.n_groups, 2);
    assert_str(i.user.groups[1], "b");
    assert_int_equal(i.user.n_extra, 1);
    assert_str(i.user.extra[0].key, "k");
    assert_str(i.user.extra[0].values[1], "w");
    assert_int_equal(i.n_audiences, 1);
}

TEST(answers_that_do_not_hold_let_nobody_in)
{
    static const struct {
        const char *text;
        int result;
        const char *words;
    } cases[] = {
        {"", -EINVAL, "unexpected end of JSON input"},
        {"{}", -EINVAL, "the answer is no TokenReview of authentication.k8s.io/v1"},
        {"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\",\"status\":"
         "{\"authenticated\":true,\"user\":{\"username\":\"x\"}}}",
         -EINVAL, "the answer is no TokenReview of authentication.k8s.io/v1"},
        {REVIEW "null}", -EINVAL, "the answer has no status"},
        {REVIEW "{}}", -EACCES, "invalid bearer token"},
        {REVIEW "{\"authenticated\":\"true\",\"user\":{\"username\":\"x\"}}}", -EACCES,
         "invalid bearer token"},
        {REVIEW "{\"authenticated\":false,\"error\":\"revoked\"}}", -EACCES, "revoked"},
        {REVIEW "{\"authenticated\":true}}", -EINVAL, "status.user names no user"},
        {REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"\"}}}", -EINVAL,
         "status.user names no user"},
        {REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"x\",\"groups\":\"a\"}}}", -EINVAL,
         "status.user names no user"},
        {REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"x\",\"extra\":[]}}}", -EINVAL,
         "status.user names no user"},
        {REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"x\"},\"audiences\":[\"b\"]}}",
         -EACCES, "token audiences [\"b\"] is invalid for the target audiences [\"api\"]"},
        {REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"x\"},\"audiences\":\"api\"}}",
         -EINVAL, "status.audiences is no list of strings"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct token_identity identity = {0};
        struct str error = STR_NONE;
        int r = review_read(a, str_of(cases[i].text), of_api, of_api, &identity, &error);
        if (r != cases[i].result)
            fail_msg("%s: %d", cases[i].text, r);
        assert_str(error, cases[i].words);
    }
}

/* ---- kubeconfig ------------------------------------------------------------------------------ */

#define CONTEXT "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
#define USER "users: [{name: u, user: {token: t}}]\n"

TEST(a_kubeconfig_that_cannot_be_used_says_why)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"a: [", "yaml: line 1: did not find expected node content"},
        {"{}", "there is no context \"\""},
        {CONTEXT, "there is no cluster \"k\""},
        {CONTEXT "clusters: [{name: k, cluster: {server: 'https://x'}}]\n",
         "there is no user \"u\""},
        {CONTEXT USER "clusters: [{name: k, cluster: {server: 'http://x'}}]\n",
         "server \"http://x\" is no https URL"},
        {CONTEXT USER
         "clusters: [{name: k, cluster: {server: 'https://x', insecure-skip-tls-verify: true}}]\n",
         "insecure-skip-tls-verify is not supported: name the server's certificate-authority"},
        {CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://x', "
                      "certificate-authority-data: '!'}}]\n",
         "certificate-authority-data is no base64"},
        {CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://x', "
                      "certificate-authority-data: 'AAAA'}}]\n",
         "certificate-authority holds no PEM certificate"},
        {CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://x', "
                      "certificate-authority: absent.crt}}]\n",
         "cannot read /nowhere/absent.crt: No such file or directory"},
        {CONTEXT "clusters: [{name: k, cluster: {server: 'https://x'}}]\n"
                 "users: [{name: u, user: {exec: {command: x}}}]\n",
         "exec is not supported: use a client certificate or a token"},
        {CONTEXT "clusters: [{name: k, cluster: {server: 'https://x'}}]\n"
                 "users: [{name: u, user: {client-certificate-data: 'AAAA'}}]\n",
         "client-certificate and client-key come together"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct kubeconfig k = {0};
        struct str error = STR_NONE;
        assert_int_equal(kubeconfig_parse(a, str_of(cases[i].text), STR("/nowhere"), &k, &error),
                         -EINVAL);
        assert_str(error, cases[i].words);
    }
}

/* ---- the source ------------------------------------------------------------------------------ */

struct world {
    struct https server;
    struct clock_virtual clock;
    struct fetch_client *fetch;
    struct arena *arena;
    struct token_source *source;
    char path[64];
    atomic_int n_asked, n_failures;
    atomic_bool knows_nobody;
};

static void on_request(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    const struct http_request *r = http_request(x);
    struct arena *a = http_arena(x);
    atomic_fetch_add(&w->n_asked, 1);
    if (atomic_load(&w->n_failures) > 0) {
        atomic_fetch_sub(&w->n_failures, 1);
        https_reply(x, 503, "text/plain", STR("not now"));
        return;
    }
    struct json *body = json_parse_quick(a, r->body);
    struct str token = json_str(json_at(body, "spec", "token", NULL));
    bool is_good = str_starts_with(token, STR("good-")) && !atomic_load(&w->knows_nobody);
    https_reply(x, 200, "application/json",
                is_good ? arena_printf(a,
                                       REVIEW "{\"authenticated\":true,\"user\":{\"username\":\""
                                              "%.*s\",\"uid\":\"%.*s\"}}}",
                                       STR_ARG(token), STR_ARG(r->peer->common_name))
                        : STR(REVIEW "{\"authenticated\":false}}"));
}

static void write_kubeconfig(struct world *w)
{
    struct str cert = STR_NONE, key = STR_NONE;
    https_client_identity(&w->server, "seth", &cert, &key);
    FILE *f = fopen(w->path, "w");
    assert_non_null(f);
    fprintf(f,
            CONTEXT
            "clusters: [{name: k, cluster: {server: '%.*s', certificate-authority-data: %.*s}}]\n"
            "users: [{name: u, user: {client-certificate-data: %.*s, client-key-data: %.*s}}]\n",
            STR_ARG(https_url(&w->server, "/review")),
            STR_ARG(base64_encode(w->arena, w->server.ca_pem, BASE64_STANDARD)),
            STR_ARG(base64_encode(w->arena, cert, BASE64_STANDARD)),
            STR_ARG(base64_encode(w->arena, key, BASE64_STANDARD)));
    assert_int_equal(fclose(f), 0);
}

static void world_init(struct world *w, int64_t cache_us)
{
    *w = (struct world){.fetch = fetch_client_new(), .arena = arena_new()};
    log_set_level(LOG_ERROR);
    clock_virtual_init(&w->clock, (int64_t) 1700000000 * 1000000);
    https_start(&w->server, &(struct https_options){.on_request = on_request,
                                                    .ctx = w,
                                                    .wants_client_certificates = true});
    (void) snprintf(w->path, sizeof(w->path), "/tmp/test_webhook.XXXXXX");
    int fd = mkstemp(w->path);
    assert_true(fd >= 0);
    close(fd);
    write_kubeconfig(w);
    char *error = NULL;
    int r = token_webhook_new(
        &(struct token_webhook_options){.outside = {.clock = &w->clock.clock, .fetch = w->fetch},
                                        .config_path = w->path,
                                        .cache_us = cache_us,
                                        .api_audiences = of_api},
        &w->source, &error);
    if (r < 0)
        fail_msg("%s", error);
}

static void world_done(struct world *w)
{
    w->source->free(w->source);
    fetch_client_free(w->fetch);
    https_stop(&w->server);
    (void) unlink(w->path);
    arena_free(w->arena);
}
#define WORLD CLEANUP(world_done) struct world

static int verify(struct world *w, const char *token, bool may_block, struct token_identity *ret)
{
    *ret = (struct token_identity){0};
    return w->source->verify(w->source, w->arena, str_of(token), NULL, 0, may_block, ret);
}

#define MINUTE_US ((int64_t) 60 * 1000 * 1000)

TEST(an_answer_is_believed_for_its_time)
{
    WORLD w;
    world_init(&w, 2 * MINUTE_US);
    struct token_identity i;
    assert_int_equal(verify(&w, "good-jane", false, &i), -EAGAIN);
    assert_int_equal(atomic_load(&w.n_asked), 0);
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    assert_str(i.user.name, "good-jane");
    assert_str(i.user.uid, "seth"); /* our client certificate, as the webhook saw it */
    assert_int_equal(i.n_audiences, 1);
    assert_int_equal(i.expires_us, w.clock.now_us + 2 * MINUTE_US);
    atomic_store(&w.knows_nobody, true);
    w.clock.now_us += 2 * MINUTE_US - 1;
    assert_int_equal(verify(&w, "good-jane", false, &i), 0);
    assert_str(i.user.name, "good-jane");
    assert_int_equal(atomic_load(&w.n_asked), 1);
    w.clock.now_us += 1;
    assert_int_equal(verify(&w, "good-jane", false, &i), -EAGAIN);
    assert_int_equal(verify(&w, "good-jane", true, &i), -EACCES);
    assert_str(i.error, "invalid bearer token");
    assert_int_equal(verify(&w, "good-jane", false, &i), -EACCES);
    assert_int_equal(atomic_load(&w.n_asked), 2);
}

TEST(even_without_a_cache_the_one_who_asked_finds_the_answer)
{
    WORLD w;
    world_init(&w, 0);
    struct token_identity i;
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    assert_int_equal(verify(&w, "good-jane", false, &i), 0);
    w.clock.now_us += TOKEN_WEBHOOK_MOMENT_US;
    assert_int_equal(verify(&w, "good-jane", false, &i), -EAGAIN);
}

TEST(other_audiences_are_other_questions)
{
    WORLD w;
    world_init(&w, MINUTE_US);
    struct token_identity i = {0};
    const struct str other = STR("other");
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    /* The webhook does not speak of audiences, so it means ours. */
    assert_int_equal(w.source->verify(w.source, w.arena, STR("good-jane"), &other, 1, true, &i),
                     -EACCES);
    assert_int_equal(atomic_load(&w.n_asked), 2);
}

TEST(a_webhook_that_stumbles_is_asked_again)
{
    WORLD w;
    world_init(&w, MINUTE_US);
    struct token_identity i;
    atomic_store(&w.n_failures, 1);
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    assert_int_equal(atomic_load(&w.n_asked), 2);
    atomic_store(&w.n_failures, 100);
    assert_int_equal(verify(&w, "good-tom", true, &i), -EACCES);
    assert_str(i.error, "the webhook answered 503: not now");
    assert_int_equal(atomic_load(&w.n_asked), 5);
    /* Its failure is no answer to be believed for a minute. */
    atomic_store(&w.n_failures, 0);
    w.clock.now_us += TOKEN_WEBHOOK_MOMENT_US;
    assert_int_equal(verify(&w, "good-tom", true, &i), 0);
}

struct asker {
    struct world *w;
    pthread_t thread;
    int result;
    char name[32];
};

static void *ask(void *arg)
{
    struct asker *s = arg;
    ARENA_AUTO a = arena_new();
    struct token_identity i = {0};
    s->result = s->w->source->verify(s->w->source, a, STR("good-jane"), NULL, 0, true, &i);
    (void) snprintf(s->name, sizeof(s->name), "%.*s", STR_ARG(i.user.name));
    return NULL;
}

TEST(a_burst_of_the_same_token_is_one_question)
{
    enum { N = 8 };
    WORLD w;
    world_init(&w, MINUTE_US);
    struct asker askers[N];
    for (size_t i = 0; i < N; i++) {
        askers[i] = (struct asker){.w = &w};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].result, 0);
        assert_string_equal(askers[i].name, "good-jane");
    }
    assert_int_equal(atomic_load(&w.n_asked), 1);
}

TEST(reloading_forgets_what_was_answered)
{
    WORLD w;
    world_init(&w, MINUTE_US);
    struct token_identity i;
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    char *error = NULL;
    assert_int_equal(w.source->reload(w.source, &error), 0);
    assert_int_equal(verify(&w, "good-jane", false, &i), -EAGAIN);
    assert_int_equal(verify(&w, "good-jane", true, &i), 0);
    FILE *f = fopen(w.path, "w");
    fputs("{}", f);
    (void) fclose(f);
    assert_int_equal(w.source->reload(w.source, &error), -EINVAL);
    assert_non_null(strstr(error, "there is no context"));
    mem_free(error);
    assert_int_equal(verify(&w, "good-jane", false, &i), 0);
}
