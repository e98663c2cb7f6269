/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/token_file.h"

#include <errno.h>
#include <pthread.h>

#include "api/token/csv.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "pki/file.h"
#include "pki/pki.h"

/* One reading of the file. Tokens are looked up by their digest, so that how long it takes says
 * nothing about them. */
struct table {
    struct arena *arena;
    struct map users; /* SHA-256 of the token -> struct user */
};

struct token_file {
    struct token_source source;
    struct arena *arena;
    const char *path;
    struct audiences audiences;
    pthread_rwlock_t lock;
    struct table table;
};

static void table_done(struct table *t)
{
    map_done(&t->users);
    arena_free(t->arena);
}

/* ---- reading ------------------------------------------------------------------------------ */

static int fail(char **ret_error, const char *path, size_t line, const char *why)
{
    struct buf b = {0};
    buf_printf(&b, "token file %s: ", path);
    if (line)
        buf_printf(&b, "line %zu: ", line);
    buf_printf(&b, "%s", why);
    *ret_error = buf_take(&b);
    return -EINVAL;
}

static struct str digest_of(struct arena *a, struct str token)
{
    unsigned char *digest = arena_alloc(a, SHA256_BYTES);
    pki_sha256(token, digest);
    return str_range((char *) digest, SHA256_BYTES);
}

static void add(struct table *t, const char *path, const struct csv_record *r)
{
    if (!r->fields[0].n) {
        log_warning("ignoring an empty token", LOG_TEXT("file", path),
                    LOG_INT("line", (int64_t) r->line));
        return;
    }
    struct user *u = ARENA_NEW(t->arena, struct user);
    u->name = arena_str(t->arena, r->fields[1]);
    u->uid = arena_str(t->arena, r->fields[2]);
    const struct audiences groups = audiences_parse(t->arena, r->n > 3 ? r->fields[3] : STR_NONE);
    u->groups = groups.items;
    u->n_groups = groups.n;
    if (map_put(&t->users, digest_of(t->arena, r->fields[0]), u))
        log_warning("a token stands twice, the later line counts", LOG_TEXT("file", path),
                    LOG_INT("line", (int64_t) r->line));
}

static int parse(struct table *t, const char *path, struct str text, char **ret_error)
{
    ARENA_AUTO scratch = arena_new();
    struct csv_reader reader;
    struct csv_record record;
    const char *why = NULL;
    csv_init(&reader, text);
    for (;;) {
        const int r = csv_next(&reader, scratch, &record, &why);
        if (r < 0)
            return fail(ret_error, path, reader.line, why);
        if (r == 0)
            return 0;
        if (record.n < 3)
            return fail(ret_error, path, record.line,
                        "must have at least 3 columns (token, user name, user uid)");
        add(t, path, &record);
    }
}

static int load(const char *path, struct table *ret, char **ret_error)
{
    BUF_AUTO text = {0};
    int r = pki_file_read(path, &text);
    if (r < 0) {
        (void) fail(ret_error, path, 0, log_errno_text(r));
        return r;
    }
    struct table t = {.arena = arena_new()};
    r = parse(&t, path, buf_str(&text), ret_error);
    if (r < 0)
        table_done(&t);
    else
        *ret = t;
    return r;
}

/* ---- the source --------------------------------------------------------------------------- */

static int verify(struct token_source *s, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    (void) may_block;
    struct token_file *f = CONTAINER_OF(s, struct token_file, source);
    const struct audiences wanted = {audiences, n_audiences};
    unsigned char digest[SHA256_BYTES];
    pki_sha256(token, digest);
    const struct audiences common =
        audiences_common(a, f->audiences, n_audiences ? wanted : f->audiences);
    if (!common.n)
        return -ENOENT;
    (void) pthread_rwlock_rdlock(&f->lock);
    const struct user *u =
        map_get(&f->table.users, str_range((const char *) digest, sizeof(digest)));
    if (u)
        *ret = (struct token_identity){.user = user_copy(a, u),
                                       .audiences = common.items,
                                       .n_audiences = common.n,
                                       .expires_us = INT64_MAX};
    (void) pthread_rwlock_unlock(&f->lock);
    return u ? 0 : -ENOENT;
}

static int reload(struct token_source *s, char **ret_error)
{
    struct token_file *f = CONTAINER_OF(s, struct token_file, source);
    struct table fresh = {0};
    const int r = load(f->path, &fresh, ret_error);
    if (r < 0)
        return r;
    (void) pthread_rwlock_wrlock(&f->lock);
    struct table old = f->table;
    f->table = fresh;
    (void) pthread_rwlock_unlock(&f->lock);
    table_done(&old);
    return 0;
}

static void free_source(struct token_source *s)
{
    struct token_file *f = CONTAINER_OF(s, struct token_file, source);
    table_done(&f->table);
    arena_free(f->arena);
    (void) pthread_rwlock_destroy(&f->lock);
    mem_free(f);
}

int token_file_open(const char *path, struct audiences audiences, struct token_source **ret_source,
                    char **ret_error)
{
    struct table table = {0};
    const int r = load(path, &table, ret_error);
    if (r < 0)
        return r;
    struct token_file *f = NEW(struct token_file);
    f->source = (struct token_source){
        .name = "token-file", .verify = verify, .reload = reload, .free = free_source};
    f->arena = arena_new();
    f->path = arena_strz(f->arena, str_of(path));
    f->audiences = audiences_copy(f->arena, audiences);
    f->table = table;
    (void) pthread_rwlock_init(&f->lock, NULL);
    *ret_source = &f->source;
    return 0;
}
