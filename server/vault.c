/* SPDX-License-Identifier: Apache-2.0 */
#include "vault.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "keyring.h"
#include "pki/pki.h"

#define MAX_KINDS 256

struct vault {
    struct store_cipher cipher;
    char *path;
    char *command;
    char *kinds_text;
    struct str kinds[MAX_KINDS];
    size_t n_kinds;
    struct keyring ring;
};

/* A sealed text: the id of its key, then as aead_seal() makes it. */
_Static_assert(KEY_ID_BYTES + AEAD_OVERHEAD_BYTES + 1 <= STORE_SEAL_MAX_BYTES, "too long a seal");

/* ---- the store's cipher --------------------------------------------------------------------- */

static bool wants(void *ctx, struct str collection)
{
    const struct vault *v = ctx;
    for (size_t i = 0; i < v->n_kinds; i++)
        if (str_eq(v->kinds[i], collection) || str_is(v->kinds[i], "*"))
            return true;
    return false;
}

static bool is_current(void *ctx, struct str sealed)
{
    const struct vault *v = ctx;
    return v->ring.n && sealed.n >= KEY_ID_BYTES &&
           memcmp(sealed.p, v->ring.keys[0].id, KEY_ID_BYTES) == 0;
}

static int seal(void *ctx, struct str bound, struct str plain, struct buf *to)
{
    const struct vault *v = ctx;
    if (v->ring.n == 0)
        return -ENOKEY;
    const struct keyring_key *key = &v->ring.keys[0];
    buf_append(to, key->id, KEY_ID_BYTES);
    return aead_seal(key->secret, bound, plain, to);
}

static int refuse(const struct vault *v, struct str sealed, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    struct buf b = {0};
    struct str id = pki_hex(a, (const unsigned char *) sealed.p, KEY_ID_BYTES);
    buf_printf(&b, "it is encrypted with key %.*s, ", STR_ARG(id));
    if (v->ring.n)
        buf_printf(&b, "which is not in %s; put back the key file that belongs to this store",
                   v->path);
    else
        buf_printf(&b, "and %s is missing; put back the key file of this store", v->path);
    *ret_error = buf_take(&b);
    return -ENOKEY;
}

static int open_sealed(void *ctx, struct str bound, struct str sealed, struct buf *to,
                       char **ret_error)
{
    const struct vault *v = ctx;
    struct buf b = {0};
    if (sealed.n < KEY_ID_BYTES + AEAD_OVERHEAD_BYTES) {
        *ret_error = mem_strdup("it is too short to be encrypted; restore the store from a backup");
        return -EBADMSG;
    }
    const struct keyring_key *key = keyring_find(&v->ring, (const unsigned char *) sealed.p);
    if (!key)
        return refuse(v, sealed, ret_error);
    int r = aead_open(key->secret, bound, str_from(sealed, KEY_ID_BYTES), to);
    if (r < 0) {
        buf_printf(&b,
                   "its key in %s does not open it: it was changed, or moved from elsewhere; "
                   "restore the store from a backup",
                   v->path);
        *ret_error = buf_take(&b);
    }
    return r;
}

/* ---- the keys ------------------------------------------------------------------------------- */

static void warn_if_open(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_mode & 077))
        log_warning("others may read the encryption keys; chmod 600 them", LOG_TEXT("path", path));
}

/* Under the store's lock nobody else makes or replaces the file. Whether it is needed is known only
 * when the rows have been seen. */
static int on_locked(void *ctx, char **ret_error)
{
    struct vault *v = ctx;
    keyring_done(&v->ring);
    int r = keyring_load(&v->ring, v->path, v->command, ret_error);
    if (r == 0)
        warn_if_open(v->path);
    return r == -ENOENT ? 0 : r;
}

static int make_ring(struct vault *v, char **ret_error)
{
    (void) keyring_add(&v->ring);
    int r = keyring_save(&v->ring, v->path, v->command, ret_error);
    if (r == 0)
        log_info("made the key that objects are encrypted with; no backup can be read without it",
                 LOG_TEXT("path", v->path));
    return r;
}

static int on_loaded(void *ctx, char **ret_error)
{
    struct vault *v = ctx;
    if (!wants(v, STR("secrets")))
        log_warning("Secrets are not encrypted in the store", LOG_TEXT("encrypt", v->kinds_text));
    if (v->ring.n == 0)
        return v->n_kinds ? make_ring(v, ret_error) : 0;
    if (!v->command[0] || keyring_is_wrapped(&v->ring))
        return 0;
    log_warning("wrapping keys that lay on the disk as they are; rotate them: seth rotate-key",
                LOG_TEXT("path", v->path));
    return keyring_save(&v->ring, v->path, v->command, ret_error);
}

/* Several keys are what an interruption leaves: the first one is new enough. */
int vault_begin_rotation(struct vault *v, char **ret_error)
{
    if (v->ring.n == 0 && v->n_kinds == 0) {
        *ret_error = mem_strdup("nothing is encrypted, and --encrypt says that nothing shall be");
        return -EINVAL;
    }
    if (v->ring.n > 1)
        return 0;
    (void) keyring_add(&v->ring);
    return keyring_save(&v->ring, v->path, v->command, ret_error);
}

int vault_end_rotation(struct vault *v, char **ret_error)
{
    keyring_drop_all_but_first(&v->ring);
    return keyring_save(&v->ring, v->path, v->command, ret_error);
}

struct str vault_key_id(struct arena *a, const struct vault *v)
{
    return v->ring.n ? pki_hex(a, v->ring.keys[0].id, KEY_ID_BYTES) : STR("");
}

const char *vault_path(const struct vault *v)
{
    return v->path;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool is_kind(struct str s)
{
    if (str_is(s, "*"))
        return true;
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            s.p[i] != '.' && s.p[i] != '-')
            return false;
    return s.n > 0;
}

static int parse_kinds(struct vault *v, char **ret_error)
{
    struct str rest = str_of(v->kinds_text), part = STR_NONE;
    if (str_is(str_trim(rest), "none"))
        return 0;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (!is_kind(part) || str_is(part, "none") || v->n_kinds == MAX_KINDS) {
            struct buf b = {0};
            buf_printf(&b,
                       "--encrypt: '%.*s' is no kind; write plurals with their group, as in "
                       "secrets,deployments.apps, or * alone, or none alone",
                       STR_ARG(part));
            *ret_error = buf_take(&b);
            return -EINVAL;
        }
        v->kinds[v->n_kinds++] = part;
    }
    return 0;
}

int vault_new(const struct vault_options *o, struct vault **ret_vault, char **ret_error)
{
    CLEANUP(vault_freep) struct vault *v = NEW(struct vault);
    struct buf path = {0};
    buf_printf(&path, "%s/pki/encryption-keys.yaml", o->data_dir);
    v->path = buf_take(&path);
    v->command = mem_strdup(o->key_command);
    v->kinds_text = mem_strdup(o->kinds);
    v->cipher = (struct store_cipher){.ctx = v,
                                      .on_locked = on_locked,
                                      .on_loaded = on_loaded,
                                      .wants = wants,
                                      .is_current = is_current,
                                      .seal = seal,
                                      .open = open_sealed};
    int r = parse_kinds(v, ret_error);
    if (r == 0)
        *ret_vault = TAKE(v);
    return r;
}

void vault_free(struct vault *v)
{
    if (!v)
        return;
    keyring_done(&v->ring);
    mem_free(v->path);
    mem_free(v->command);
    mem_free(v->kinds_text);
    mem_free(v);
}

const struct store_cipher *vault_cipher(struct vault *v)
{
    return &v->cipher;
}
