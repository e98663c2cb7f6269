/* SPDX-License-Identifier: Apache-2.0 */
#include "token_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/codec.h"
#include "base/alloc.h"
#include "base/log.h"

const char *token_fixture_path(struct token_fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->directory, name).p;
}

bool token_fixture_init(struct token_fixture *f)
{
    char *error = NULL;
    *f = (struct token_fixture){.directory = "/tmp/seth-token-XXXXXX"};
    log_set_level(LOG_ERROR);
    f->arena = arena_new();
    clock_virtual_init(&f->clock, NOW_US);
    if (!mkdtemp(f->directory))
        return false;
    const struct store_options store = {.path = token_fixture_path(f, "objects.db"),
                                        .parse_head = codec_parse_stored,
                                        .clock = &clock_system};
    const struct token_issuer_options issuer = {.own_key_path = token_fixture_path(f, "key.pem"),
                                                .signing_key_file = "",
                                                .key_files = "",
                                                .issuers = ISSUER,
                                                .api_audiences = "",
                                                .jwks_uri = "https://127.0.0.1/openid/v1/jwks"};
    const bool ok = store_open(&store, &f->store, &error) == 0 &&
                    token_issuer_open(&issuer, &f->issuer, &error) == 0;
    if (error)
        fprintf(stderr, "%s\n", error);
    mem_free(error);
    return ok;
}

void token_fixture_done(struct token_fixture *f)
{
    token_issuer_free(f->issuer);
    store_close(f->store);
    DIR *d = opendir(f->directory);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void) closedir(d);
    (void) rmdir(f->directory);
    arena_free(f->arena);
}

bool token_fixture_write(struct token_fixture *f, const char *name, const char *content)
{
    FILE *file = fopen(token_fixture_path(f, name), "w");
    const bool ok = file && fwrite(content, 1, strlen(content), file) == strlen(content);
    if (file)
        (void) fclose(file);
    return ok;
}

static bool write_one(struct token_fixture *f, struct store_write *w)
{
    CLEANUP(object_unrefp) struct object *there = store_get(f->store, w->key);
    w->expected_revision = there ? there->revision : 0;
    if (there && w->condition == STORE_CREATE)
        w->condition = STORE_REPLACE;
    const int r = store_write_sync(f->store, w);
    object_unref(w->committed);
    return r == 0;
}

static struct object *make_object(struct token_fixture *f, const char *key, const char *uid,
                                  const char *meta, const char *rest)
{
    struct str at = str_of(key), collection, namespace, name;
    (void) str_split(&at, '/', &collection);
    (void) str_split(&at, '/', &namespace);
    name = at;
    const struct str text = arena_printf(
        f->arena,
        "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"%.*s\",\"namespace\":"
        "\"%.*s\",\"uid\":\"%s\",\"resourceVersion\":\"\"%s}%s}",
        STR_ARG(name), STR_ARG(namespace), uid, meta, rest);
    struct object_head head = {0};
    return codec_parse_head(text, &head) == 0 ? object_new(text, &head) : NULL;
}

bool token_fixture_put(struct token_fixture *f, const char *key, const char *uid, const char *meta,
                       const char *rest)
{
    struct store_write w = {.condition = STORE_CREATE,
                            .key = str_of(key),
                            .object = make_object(f, key, uid, meta, rest)};
    return w.object && write_one(f, &w);
}

void token_fixture_remove(struct token_fixture *f, const char *key)
{
    struct store_write w = {.condition = STORE_REMOVE,
                            .key = str_of(key),
                            .object = make_object(f, key, "gone", "", "")};
    (void) write_one(f, &w);
}

struct account_claims token_fixture_claims(const struct token_fixture *f)
{
    const int64_t now_s = f->clock.now_us / 1000000;
    static const struct str audiences[] = {{ISSUER, sizeof(ISSUER) - 1}};
    return (struct account_claims){.audiences = {audiences, 1},
                                   .issued_s = now_s,
                                   .not_before_s = now_s,
                                   .expires_s = now_s + 600,
                                   .namespace = STR("ns"),
                                   .account = {STR("robot"), STR("u1")}};
}
