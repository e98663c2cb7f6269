/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/webhook.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "api/oidc/kubeconfig.h"
#include "api/oidc/review.h"
#include "api/oidc/webhook_answers.h"
#include "base/alloc.h"
#include "base/log.h"

/* For a webhook that is just being replaced. */
#define N_ATTEMPTS 3
static const int64_t retry_after_ms[N_ATTEMPTS - 1] = {100, 300};
#define SHOWN_BYTES 200

/* One reading of the kubeconfig; immutable. */
struct place {
    atomic_int n_refs;
    struct arena *arena;
    struct kubeconfig config;
};

struct token_webhook {
    struct token_source source;
    struct arena *arena; /* of the options */
    struct token_webhook_options options;
    struct webhook_answers *answers;
    pthread_mutex_t lock; /* of the pointer */
    struct place *place;
    atomic_bool is_failing;
};

static void place_unref(struct place *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_free(p->arena);
    mem_free(p);
}

static int place_new(const char *path, struct place **ret_place, char **ret_error)
{
    struct place *p = NEW(struct place);
    struct str error = STR_NONE;
    atomic_init(&p->n_refs, 1);
    p->arena = arena_new();
    int r = kubeconfig_load(p->arena, path, &p->config, &error);
    if (r < 0) {
        struct buf b = {0};
        buf_printf(&b, "authentication by webhook: %s: %.*s", path, STR_ARG(error));
        *ret_error = buf_take(&b);
        place_unref(p);
        return r;
    }
    *ret_place = p;
    return 0;
}

static struct place *current(struct token_webhook *w)
{
    pthread_mutex_lock(&w->lock);
    struct place *p = w->place;
    atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&w->lock);
    return p;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int post(struct token_webhook *w, const struct place *p, struct arena *a, struct str body,
                struct fetch_answer *ret, struct str *ret_error)
{
    const struct kubeconfig *k = &p->config;
    struct str headers[3] = {STR("Content-Type: application/json"),
                             STR("Accept: application/json")};
    size_t n_headers = 2;
    if (k->token.p)
        headers[n_headers++] = arena_printf(a, "Authorization: Bearer %.*s", STR_ARG(k->token));
    int r = fetch(w->options.outside.fetch, a,
                  &(struct fetch_request){.method = "POST",
                                          .url = k->server,
                                          .headers = headers,
                                          .n_headers = n_headers,
                                          .body = body,
                                          .ca_pem = k->ca_pem,
                                          .cert_pem = k->cert_pem,
                                          .key_pem = k->key_pem,
                                          .server_name = k->server_name,
                                          .timeout_ms = TOKEN_WEBHOOK_TIMEOUT_MS,
                                          .max_bytes = REVIEW_MAX_BYTES},
                  ret, ret_error);
    if (r < 0 || (ret->status >= 200 && ret->status < 300))
        return r;
    *ret_error =
        arena_printf(a, "the webhook answered %d: %.*s", ret->status,
                     STR_ARG(str_sub(ret->body, 0, MIN(ret->body.n, (size_t) SHOWN_BYTES))));
    /* As a connection that broke: worth another try, unlike what it refuses. */
    return ret->status == 429 || ret->status >= 500 ? -EIO : -EPROTO;
}

static void pause_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void) nanosleep(&t, NULL);
}

static int post_patiently(struct token_webhook *w, const struct place *p, struct arena *a,
                          struct str body, struct fetch_answer *ret, struct str *ret_error)
{
    for (size_t i = 0;; i++) {
        int r = post(w, p, a, body, ret, ret_error);
        if ((r != -EIO && r != -ECONNREFUSED) || i == N_ATTEMPTS - 1)
            return r;
        pause_ms(retry_after_ms[i]);
    }
}

static int ask(struct token_webhook *w, struct arena *a, struct str token, struct audiences wanted,
               struct token_identity *ret, struct str *ret_error)
{
    struct fetch_answer answer = {0};
    struct place *p = current(w);
    int r = post_patiently(w, p, a, review_write(a, token, wanted), &answer, ret_error);
    if (r == 0)
        r = review_read(a, answer.body, wanted, w->options.api_audiences, ret, ret_error);
    bool is_failing = r < 0 && r != -EACCES;
    if (atomic_exchange(&w->is_failing, is_failing) != is_failing) {
        if (is_failing)
            log_warning("cannot ask the token webhook, refusing its tokens",
                        LOG_STR("server", p->config.server), LOG_STR("error", *ret_error));
        else
            log_info("the token webhook answers again", LOG_STR("server", p->config.server));
    }
    place_unref(p);
    return r;
}

/* A webhook that fails is asked again soon: only what it said itself is believed for long. */
static int ask_and_tell(struct token_webhook *w, struct arena *a, struct str token,
                        struct audiences wanted, const struct webhook_key *k,
                        struct token_identity *ret)
{
    struct token_identity identity = {0};
    struct str error = STR_NONE;
    const struct clock *clock = w->options.outside.clock;
    int r = ask(w, a, token, wanted, &identity, &error);
    int64_t good_us = r == 0 || r == -EACCES ? MAX(w->options.cache_us, TOKEN_WEBHOOK_MOMENT_US)
                                             : TOKEN_WEBHOOK_MOMENT_US;
    if (r == 0) {
        identity.expires_us = clock->wall_us(clock) + good_us;
    } else {
        identity = (struct token_identity){.error = error};
        r = -EACCES;
    }
    webhook_answers_tell(w->answers, k, r, &identity, good_us);
    *ret = identity;
    return r;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int verify(struct token_source *source, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    struct token_webhook *w = CONTAINER_OF(source, struct token_webhook, source);
    const struct audiences wanted =
        n_audiences ? (struct audiences){audiences, n_audiences} : w->options.api_audiences;
    const struct webhook_key k = webhook_key_of(token, wanted.items, wanted.n);
    if (!may_block) {
        int r = webhook_answers_find(w->answers, &k, a, ret);
        return r == -ENOENT ? -EAGAIN : r;
    }
    int r = webhook_answers_begin(w->answers, &k, a, ret);
    return r == -ENOENT ? ask_and_tell(w, a, token, wanted, &k, ret) : r;
}

static int reload(struct token_source *source, char **ret_error)
{
    struct token_webhook *w = CONTAINER_OF(source, struct token_webhook, source);
    struct place *fresh = NULL;
    int r = place_new(w->options.config_path, &fresh, ret_error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&w->lock);
    struct place *before = w->place;
    w->place = fresh;
    pthread_mutex_unlock(&w->lock);
    place_unref(before);
    webhook_answers_clear(w->answers);
    return 0;
}

static void free_source(struct token_source *source)
{
    struct token_webhook *w = CONTAINER_OF(source, struct token_webhook, source);
    webhook_answers_free(w->answers);
    place_unref(w->place);
    pthread_mutex_destroy(&w->lock);
    arena_free(w->arena);
    mem_free(w);
}

int token_webhook_new(const struct token_webhook_options *o, struct token_source **ret_source,
                      char **ret_error)
{
    struct place *p = NULL;
    int r = place_new(o->config_path, &p, ret_error);
    if (r < 0)
        return r;
    struct token_webhook *w = NEW(struct token_webhook);
    w->source = (struct token_source){
        .name = "webhook", .verify = verify, .reload = reload, .free = free_source};
    w->arena = arena_new();
    w->options = *o;
    w->options.config_path = arena_strz(w->arena, str_of(o->config_path));
    w->options.api_audiences = audiences_copy(w->arena, o->api_audiences);
    w->answers = webhook_answers_new(o->outside.clock);
    pthread_mutex_init(&w->lock, NULL);
    w->place = p;
    *ret_source = &w->source;
    return 0;
}
