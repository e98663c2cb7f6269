/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_issuer.h"

#include "api/oidc/config.h"

static struct str write_keys(struct fake_issuer *f, struct arena *a)
{
    if (f->garbage)
        return arena_str(a, str_of(f->garbage));
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("{\"keys\":["));
    for (size_t i = 0; i < f->n_published; i++) {
        struct jws_key *k = jws_key_of(f->published[i].key);
        struct jws_key_members m = jws_key_describe(a, k);
        jws_key_free(k);
        buf_printf(
            &b, "%s{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"sig\",\"x\":\"%.*s\",\"y\":\"%.*s\"",
            i ? "," : "", STR_ARG(m.x), STR_ARG(m.y));
        if (f->published[i].kid)
            buf_printf(&b, ",\"kid\":\"%s\"", f->published[i].kid);
        buf_append_char(&b, '}');
    }
    buf_append_str(&b, STR("]}"));
    return arena_str(a, buf_str(&b));
}

static void reply_keys(struct fake_issuer *f, struct http_exchange *x)
{
    atomic_fetch_add(&f->n_jwks, 1);
    while (f->holds)
        pthread_cond_wait(&f->changed, &f->lock);
    struct str text = write_keys(f, http_arena(x));
    struct slice body = slice_copy(text);
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("Cache-Control"), f->max_age ? str_of(f->max_age) : STR("no-transform")}};
    http_reply(x, 200, headers, N_ELEMENTS(headers), &body, 1);
}

static void reply_discovery(struct fake_issuer *f, struct http_exchange *x)
{
    atomic_fetch_add(&f->n_discoveries, 1);
    struct str url = f->claims_to_be ? str_of(f->claims_to_be) : f->url;
    https_reply(x, 200, "application/json",
                arena_printf(http_arena(x), "{\"issuer\":\"%.*s\",\"jwks_uri\":\"%.*s/keys\"}",
                             STR_ARG(url), STR_ARG(f->url)));
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct fake_issuer *f = ctx;
    struct str path = http_request(x)->path;
    pthread_mutex_lock(&f->lock);
    if (f->fails)
        https_reply(x, 503, "text/plain", STR("not now"));
    else if (str_is(path, "/keys"))
        reply_keys(f, x);
    else if (str_is(path, "/.well-known/openid-configuration"))
        reply_discovery(f, x);
    else
        https_reply(x, 404, "text/plain", STR("no"));
    pthread_mutex_unlock(&f->lock);
}

void fake_issuer_start(struct fake_issuer *f)
{
    *f = (struct fake_issuer){.arena = arena_new(),
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};
    https_start(&f->server, &(struct https_options){.on_request = on_request, .ctx = f});
    f->url = https_url(&f->server, "");
}

void fake_issuer_stop(struct fake_issuer *f)
{
    fake_issuer_release(f);
    https_stop(&f->server);
    arena_free(f->arena);
}

void fake_issuer_publish(struct fake_issuer *f, const struct fake_key *keys, size_t n)
{
    pthread_mutex_lock(&f->lock);
    memcpy(f->published, keys, n * sizeof(*keys));
    f->n_published = n;
    pthread_mutex_unlock(&f->lock);
}

void fake_issuer_release(struct fake_issuer *f)
{
    pthread_mutex_lock(&f->lock);
    f->holds = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

struct oidc_rules fake_issuer_rules(struct fake_issuer *f)
{
    static const struct str me = STR("me");
    return (struct oidc_rules){
        .issuer = f->url,
        .discovery_url = oidc_discovery_url(f->arena, f->url),
        .ca_pem = f->server.ca_pem,
        .audiences = {&me, 1},
        .allows = {true, true},
        .username_claim = STR("sub"),
        .username_prefix = STR(""),
    };
}

struct str fake_token(struct arena *a, const struct fake_key *k, struct str claims)
{
    struct str header = k->kid ? arena_printf(a, "{\"alg\":\"ES256\",\"kid\":\"%s\"}", k->kid)
                               : STR("{\"alg\":\"ES256\"}");
    return jws_sign(a, k->key, header, claims);
}
