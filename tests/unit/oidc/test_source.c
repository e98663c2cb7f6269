/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/oidc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fake_issuer.h"
#include "test.h"

#define NOW_S 1700000000

static const struct str api = STR("https://kubernetes.default.svc");

struct world {
    struct fake_issuer issuers[2];
    struct fake_key keys[2];
    struct clock_virtual clock;
    struct fetch_client *fetch;
    struct workers *workers;
    struct arena *arena;
    struct token_source *source;
    char path[64];
};

static void write_config(struct world *w, const char *const *users)
{
    FILE *f = fopen(w->path, "w");
    fputs("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n", f);
    for (size_t i = 0; i < 2 && users[i]; i++) {
        struct fake_issuer *issuer = &w->issuers[i];
        fprintf(f, "- issuer:\n    url: %.*s\n    audiences: [me]\n    certificateAuthority: |\n",
                STR_ARG(issuer->url));
        struct str rest = issuer->server.ca_pem, line = STR_NONE;
        while (str_split(&rest, '\n', &line))
            fprintf(f, "      %.*s\n", STR_ARG(line));
        fprintf(f, "  claimMappings: {username: {claim: sub, prefix: '%s'}}\n", users[i]);
    }
    assert_int_equal(fclose(f), 0);
}

static void world_init(struct world *w)
{
    *w = (struct world){
        .fetch = fetch_client_new(), .workers = workers_new(4, 100), .arena = arena_new()};
    log_set_level(LOG_ERROR);
    clock_virtual_init(&w->clock, (int64_t) NOW_S * 1000000);
    (void) snprintf(w->path, sizeof(w->path), "/tmp/test_oidc.XXXXXX");
    int fd = mkstemp(w->path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < 2; i++) {
        w->keys[i] = (struct fake_key){"k", pki_key_new()};
        fake_issuer_start(&w->issuers[i]);
        fake_issuer_publish(&w->issuers[i], &w->keys[i], 1);
    }
    write_config(w, (const char *const[]){"one:", "two:"});
    char *error = NULL;
    int r = oidc_source_new(
        &(struct oidc_options){
            .outside = {.clock = &w->clock.clock, .fetch = w->fetch, .workers = w->workers},
            .api_audiences = {&api, 1},
            .own_issuer = STR("https://own"),
            .config_path = w->path},
        &w->source, &error);
    if (r < 0)
        fail_msg("%s", error);
    workers_settle(w->workers);
}

static void world_done(struct world *w)
{
    workers_free(w->workers);
    w->source->free(w->source);
    fetch_client_free(w->fetch);
    for (size_t i = 0; i < 2; i++) {
        fake_issuer_stop(&w->issuers[i]);
        pki_key_free(w->keys[i].key);
    }
    (void) unlink(w->path);
    arena_free(w->arena);
}
#define WORLD CLEANUP(world_done) struct world

static struct str claims(struct world *w, size_t issuer, const char *audience, int lasts_s)
{
    return arena_printf(w->arena, "{\"iss\":\"%.*s\",\"aud\":\"%s\",\"exp\":%d,\"sub\":\"jane\"}",
                        STR_ARG(w->issuers[issuer].url), audience, NOW_S + lasts_s);
}

static int verify(struct world *w, struct str token, struct token_identity *ret)
{
    *ret = (struct token_identity){0};
    return w->source->verify(w->source, w->arena, token, NULL, 0, false, ret);
}

TEST(each_issuer_has_its_own_keys_and_names)
{
    WORLD w;
    world_init(&w);
    struct token_identity i;
    assert_int_equal(verify(&w, fake_token(w.arena, &w.keys[0], claims(&w, 0, "me", 60)), &i), 0);
    assert_str(i.user.name, "one:jane");
    assert_int_equal(i.expires_us, (int64_t) (NOW_S + 60) * 1000000);
    assert_int_equal(i.n_audiences, 1);
    assert_str(i.audiences[0], "https://kubernetes.default.svc");
    assert_int_equal(verify(&w, fake_token(w.arena, &w.keys[1], claims(&w, 1, "me", 60)), &i), 0);
    assert_str(i.user.name, "two:jane");
    /* The other's key, with the same kid: worth a look at the issuer's newest keys, no more. */
    struct str crossed = fake_token(w.arena, &w.keys[1], claims(&w, 0, "me", 60));
    assert_int_equal(verify(&w, crossed, &i), -EAGAIN);
    assert_int_equal(w.source->verify(w.source, w.arena, crossed, NULL, 0, true, &i), -EACCES);
    assert_str(i.error, "oidc: verify token: failed to verify signature: failed to verify id token "
                        "signature");
}

TEST(what_does_not_hold_is_refused_without_asking)
{
    WORLD w;
    world_init(&w);
    struct token_identity i;
    struct fake_key stranger = {"unknown", pki_key_new()};
    assert_int_equal(verify(&w, fake_token(w.arena, &stranger, claims(&w, 0, "me", -60)), &i),
                     -EACCES);
    assert_true(str_starts_with(i.error, STR("oidc: verify token: oidc: token is expired")));
    assert_int_equal(verify(&w, fake_token(w.arena, &stranger, claims(&w, 0, "you", 60)), &i),
                     -EACCES);
    struct str none =
        jws_sign(w.arena, stranger.key, STR("{\"alg\":\"none\"}"), claims(&w, 0, "me", 60));
    assert_int_equal(verify(&w, none, &i), -EACCES);
    struct str rs256 =
        jws_sign(w.arena, w.keys[0].key, STR("{\"alg\":\"RS256\"}"), claims(&w, 0, "me", 60));
    assert_int_equal(w.source->verify(w.source, w.arena, rs256, NULL, 0, true, &i), -EACCES);
    struct str foreign = fake_token(w.arena, &stranger, STR("{\"iss\":\"https://else\"}"));
    assert_int_equal(verify(&w, foreign, &i), -ENOENT);
    assert_int_equal(verify(&w, STR("opaque"), &i), -ENOENT);
    pki_key_free(stranger.key);
}

TEST(a_review_for_other_audiences_is_not_ours)
{
    WORLD w;
    world_init(&w);
    struct token_identity i = {0};
    struct str token = fake_token(w.arena, &w.keys[0], claims(&w, 0, "me", 60));
    const struct str wanted[] = {STR("vault"), api};
    assert_int_equal(w.source->verify(w.source, w.arena, token, wanted, 1, true, &i), -ENOENT);
    assert_int_equal(w.source->verify(w.source, w.arena, token, wanted, 2, true, &i), 0);
    assert_int_equal(i.n_audiences, 1);
    assert_str(i.audiences[0], "https://kubernetes.default.svc");
}

TEST(reloading_keeps_the_keys_of_those_who_stay)
{
    WORLD w;
    world_init(&w);
    struct token_identity before, after;
    struct str token = fake_token(w.arena, &w.keys[0], claims(&w, 0, "me", 60));
    assert_int_equal(verify(&w, token, &before), 0);
    assert_true(w.source->still_valid(w.source, &before));
    write_config(&w, (const char *const[]){"new:", NULL});
    char *error = NULL;
    assert_int_equal(w.source->reload(w.source, &error), 0);
    assert_false(w.source->still_valid(w.source, &before));
    assert_int_equal(verify(&w, token, &after), 0);
    assert_str(after.user.name, "new:jane");
    assert_int_equal(atomic_load(&w.issuers[0].n_jwks), 1);
    assert_int_equal(verify(&w, fake_token(w.arena, &w.keys[1], claims(&w, 1, "me", 60)), &after),
                     -ENOENT);
    /* What cannot be read changes nothing. */
    FILE *f = fopen(w.path, "w");
    fputs("kind: Nothing\n", f);
    (void) fclose(f);
    assert_int_equal(w.source->reload(w.source, &error), -EINVAL);
    assert_non_null(strstr(error, w.path));
    mem_free(TAKE(error));
    assert_int_equal(verify(&w, token, &after), 0);
}

TEST(nobody_takes_the_place_of_our_own_issuer)
{
    struct token_source *source = NULL;
    char *error = NULL;
    const struct oidc_options o = {
        .outside = {.clock = &clock_system},
        .own_issuer = STR("https://own"),
        .flags = {.issuer_url = "https://own", .client_id = "me"},
    };
    assert_true(oidc_is_wanted(&o));
    assert_false(oidc_is_wanted(&(struct oidc_options){.config_path = ""}));
    assert_int_equal(oidc_source_new(&o, &source, &error), -EINVAL);
    assert_non_null(strstr(error, "ServiceAccount tokens"));
    mem_free(error);
    const struct oidc_options both = {.config_path = "/x",
                                      .flags = {.issuer_url = "https://i", .client_id = "me"}};
    assert_int_equal(oidc_source_new(&both, &source, &error), -EINVAL);
    assert_non_null(strstr(error, "mutually exclusive"));
    mem_free(error);
    const struct oidc_options absent = {.config_path = "/nonexistent/config"};
    assert_int_equal(oidc_source_new(&absent, &source, &error), -ENOENT);
    assert_non_null(strstr(error, "/nonexistent/config: cannot read it"));
    mem_free(error);
}
