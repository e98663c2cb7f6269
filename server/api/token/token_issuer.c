/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/token_issuer.h"

#include <errno.h>
#include <unistd.h>

#include "api/token/token_issuer_internal.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "pki/file.h"
#include "json/json.h"

/* ---- keys --------------------------------------------------------------------------------- */

static int fail(char **ret_error, int code, const char *path, const char *why)
{
    struct buf b = {0};
    buf_printf(&b, "ServiceAccount key %s: %s", path, why);
    *ret_error = buf_take(&b);
    return code;
}

static int add_key(struct token_issuer *i, struct jws_key *k, const char *path, char **ret_error)
{
    if (!k)
        return fail(ret_error, -EINVAL, path,
                    "neither an RSA key of 2048 to 8192 bits nor one of ECDSA P-256, in PEM");
    const struct str id = jws_key_id(i->arena, k);
    for (size_t n = 0; n < i->n_keys; n++) {
        if (str_eq(i->key_ids[n], id)) {
            jws_key_free(k);
            return 0;
        }
    }
    if (i->n_keys == ISSUER_MAX_KEYS) {
        jws_key_free(k);
        return fail(ret_error, -E2BIG, path, "more keys than anybody rotates");
    }
    i->keys[i->n_keys] = k;
    i->key_ids[i->n_keys++] = id;
    return 0;
}

/* Made once; one that cannot be read is never replaced silently, it would end every token. */
static int open_signer(struct token_issuer *i, const struct token_issuer_options *o,
                       char **ret_error)
{
    const bool is_own = !o->signing_key_file[0];
    const char *path = is_own ? o->own_key_path : o->signing_key_file;
    int r = pki_key_load(path, &i->signer);
    if (r == -ENOENT && is_own) {
        i->signer = pki_key_new();
        r = pki_key_save(i->signer, path);
    }
    if (r < 0)
        return fail(ret_error, r, path, log_errno_text(r));
    return add_key(i, jws_key_of(i->signer), path, ret_error);
}

/* A file may hold several keys, one PEM block each. */
static int add_file(struct token_issuer *i, const char *path, char **ret_error)
{
    BUF_AUTO content = {0};
    int r = pki_file_read(path, &content);
    if (r < 0)
        return fail(ret_error, r, path, log_errno_text(r));
    const struct str end = STR("-----END ");
    struct str rest = buf_str(&content);
    size_t n = 0;
    for (; r == 0 && str_trim(rest).n; n++) {
        const ptrdiff_t at = str_find_str(rest, end);
        const ptrdiff_t line_end =
            at < 0 ? -1 : str_find_str(str_from(rest, (size_t) at + end.n), STR("-----"));
        if (line_end < 0)
            break;
        const size_t n_block = (size_t) at + end.n + (size_t) line_end + 5;
        const struct str block =
            arena_printf(i->arena, "%.*s\n", STR_ARG(str_sub(rest, 0, n_block)));
        r = add_key(i, jws_key_pem(block), path, ret_error);
        rest = str_from(rest, n_block);
    }
    return r == 0 && n == 0 ? fail(ret_error, -EINVAL, path, "holds no PEM block") : r;
}

static int add_files(struct token_issuer *i, const char *paths, char **ret_error)
{
    const struct audiences files = audiences_parse(i->arena, str_of(paths));
    int r = 0;
    for (size_t n = 0; r == 0 && n < files.n; n++)
        r = add_file(i, files.items[n].p, ret_error);
    return r;
}

/* ---- life --------------------------------------------------------------------------------- */

int token_issuer_open(const struct token_issuer_options *o, struct token_issuer **ret,
                      char **ret_error)
{
    struct token_issuer *i = NEW(struct token_issuer);
    i->arena = arena_new();
    i->issuers = audiences_parse(i->arena, str_of(o->issuers));
    i->api_audiences = audiences_parse(i->arena, str_of(o->api_audiences));
    i->max_expiration_s = o->max_expiration_s;
    int r = i->issuers.n ? 0 : fail(ret_error, -EINVAL, "issuer", "must not be empty");
    if (r == 0)
        r = open_signer(i, o, ret_error);
    if (r == 0)
        r = add_files(i, o->key_files, ret_error);
    if (r < 0) {
        token_issuer_free(i);
        return r;
    }
    if (!i->api_audiences.n)
        i->api_audiences = (struct audiences){i->issuers.items, 1};
    token_issuer_describe(i, o->jwks_uri);
    *ret = i;
    return 0;
}

void token_issuer_free(struct token_issuer *i)
{
    if (!i)
        return;
    pki_key_free(i->signer);
    for (size_t n = 0; n < i->n_keys; n++)
        jws_key_free(i->keys[n]);
    arena_free(i->arena);
    mem_free(i);
}

struct audiences token_issuer_audiences(const struct token_issuer *i)
{
    return i->api_audiences;
}

int64_t token_issuer_max_expiration_s(const struct token_issuer *i)
{
    return i->max_expiration_s;
}

/* ---- tokens ------------------------------------------------------------------------------- */

struct str token_issuer_sign(const struct token_issuer *i, struct arena *a,
                             struct account_claims *c)
{
    char id[UUID_TEXT_BYTES];
    random_uuid(id);
    c->issuer = c->is_legacy ? STR(ACCOUNT_LEGACY_ISSUER) : i->issuers.items[0];
    c->id = arena_str(a, str_of(id));
    struct json header = json_object();
    const struct str algorithm = jws_algorithm_name(jws_key_algorithm(i->keys[0]));
    (void) json_append_member(a, &header, STR("alg"), json_string(algorithm));
    (void) json_append_member(a, &header, STR("kid"), json_string(i->key_ids[0]));
    return jws_sign(a, i->signer, json_text(a, &header), account_claims_write(a, c));
}

/* The key the header names, or without a name any, signed this. The token's own word on the
 * algorithm must be the key's, and it may ask for nothing that we do not know (RFC 7515 4.1.11). */
static bool has_good_signature(const struct token_issuer *i, struct arena *a, const struct jws *t)
{
    struct json_parse_result header = {0};
    if (json_parse(a, t->header, &header) < 0 || header.duplicates ||
        !json_is(header.value, JSON_OBJECT) || json_get(header.value, STR("crit")))
        return false;
    const struct json *id = json_get(header.value, STR("kid"));
    const struct str algorithm = json_get_str(header.value, STR("alg"));
    for (size_t n = 0; n < i->n_keys; n++) {
        const struct jws_key *k = i->keys[n];
        if (id && !str_eq(json_str(id), i->key_ids[n]))
            continue;
        if (str_eq(algorithm, jws_algorithm_name(jws_key_algorithm(k))) && jws_verify(k, t))
            return true;
    }
    return false;
}

int token_issuer_verify(const struct token_issuer *i, struct arena *a, struct str token,
                        struct account_claims *ret)
{
    struct jws t;
    if (jws_split(a, token, &t) < 0)
        return -ENOENT;
    const struct str issuer = account_claims_issuer(a, t.payload);
    if (!str_is(issuer, ACCOUNT_LEGACY_ISSUER) && !(issuer.n && audiences_have(i->issuers, issuer)))
        return -ENOENT;
    if (!has_good_signature(i, a, &t) || account_claims_read(a, t.payload, ret) < 0)
        return -EACCES;
    return 0;
}
