/* SPDX-License-Identifier: Apache-2.0 */
#include "keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "key_command.h"
#include "pki/file.h"
#include "pki/pki.h"
#include "json/yaml.h"

static const char file_head[] =
    "# The keys that Secrets are encrypted with, in the store and in its backups. Whoever has\n"
    "# them can read those, without them nobody can. Keep a copy apart from the backups.\n"
    "# The first one encrypts, all decrypt; `seth rotate-key` replaces them.\n"
    "keys:\n";

/* Room for a file of unwrapped keys, so that growing leaves no copies of them behind. */
#define KEYRING_TEXT_BYTES (1024 + KEYRING_MAX_KEYS * 256)

static int fail(char **ret_error, int r, const char *path, const char *format, ...)
    PRINTF_LIKE(4, 5);
static int fail(char **ret_error, int r, const char *path, const char *format, ...)
{
    struct buf b = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&b, "%s: ", path);
    buf_vprintf(&b, format, args);
    va_end(args);
    *ret_error = buf_take(&b);
    return r;
}

static void wipe(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->capacity);
    buf_done(b);
}
#define SECRET_BUF CLEANUP(wipe) struct buf

/* ---- keys ----------------------------------------------------------------------------------- */

/* A digest of a random key of full length tells nothing about it. */
static void set_id(struct keyring_key *key)
{
    static const char purpose[] = "seth encryption key id";
    unsigned char text[sizeof(purpose) + AEAD_KEY_BYTES], digest[SHA256_BYTES];
    memcpy(text, purpose, sizeof(purpose));
    memcpy(text + sizeof(purpose), key->secret, AEAD_KEY_BYTES);
    pki_sha256(str_range((const char *) text, sizeof(text)), digest);
    memcpy(key->id, digest, KEY_ID_BYTES);
    explicit_bzero(text, sizeof(text));
}

static void key_done(struct keyring_key *key)
{
    mem_free(key->wrapped);
    explicit_bzero(key, sizeof(*key));
}

void keyring_done(struct keyring *k)
{
    for (size_t i = 0; i < k->n; i++)
        key_done(&k->keys[i]);
    k->n = 0;
}

int keyring_add(struct keyring *k)
{
    if (k->n == KEYRING_MAX_KEYS)
        return -ENOSPC;
    memmove(&k->keys[1], &k->keys[0], k->n * sizeof(k->keys[0]));
    struct keyring_key *key = &k->keys[0];
    *key = (struct keyring_key){0};
    random_bytes(key->secret, sizeof(key->secret));
    clock_format_seconds(clock_system.wall_us(&clock_system), key->created);
    set_id(key);
    k->n++;
    return 0;
}

void keyring_drop_all_but_first(struct keyring *k)
{
    for (; k->n > 1; k->n--)
        key_done(&k->keys[k->n - 1]);
}

const struct keyring_key *keyring_find(const struct keyring *k,
                                       const unsigned char id[KEY_ID_BYTES])
{
    for (size_t i = 0; i < k->n; i++)
        if (memcmp(k->keys[i].id, id, KEY_ID_BYTES) == 0)
            return &k->keys[i];
    return NULL;
}

bool keyring_is_wrapped(const struct keyring *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (!k->keys[i].wrapped)
            return false;
    return true;
}

/* ---- the command ---------------------------------------------------------------------------- */

static int decode_secret(struct arena *a, struct str text, unsigned char secret[AEAD_KEY_BYTES])
{
    struct str bytes = STR_NONE;
    if (base64_decode(a, str_trim(text), BASE64_STANDARD, &bytes, NULL) < 0 ||
        bytes.n != AEAD_KEY_BYTES)
        return -EINVAL;
    memcpy(secret, bytes.p, AEAD_KEY_BYTES);
    explicit_bzero((char *) bytes.p, bytes.n);
    return 0;
}

static int unwrap(struct arena *a, const char *command, struct str wrapped,
                  unsigned char secret[AEAD_KEY_BYTES], char **ret_error)
{
    SECRET_BUF output = {0};
    struct str line = arena_printf(a, "%.*s\n", STR_ARG(wrapped));
    int r = key_command_run(&(struct key_command){command, "unwrap", line, 0}, &output, ret_error);
    if (r < 0)
        return r;
    if (decode_secret(a, buf_str(&output), secret) == 0)
        return 0;
    return fail(ret_error, -EINVAL, "--encryption-key-command",
                "'%s unwrap' does not print the base64 of a key of %d bytes", command,
                AEAD_KEY_BYTES);
}

/* Believed only when the command gives the same key back: what is encrypted with a key that nobody
 * can unwrap is lost. */
static int check_wrapped(struct arena *a, const struct keyring_key *key, const char *command,
                         struct str wrapped, char **ret_error)
{
    unsigned char again[AEAD_KEY_BYTES];
    int r = unwrap(a, command, wrapped, again, ret_error);
    if (r == 0 && memcmp(again, key->secret, sizeof(again)) != 0)
        r = fail(ret_error, -EINVAL, "--encryption-key-command",
                 "'%s unwrap' does not give back what 'wrap' was given", command);
    explicit_bzero(again, sizeof(again));
    return r;
}

static int wrap(struct arena *a, struct keyring_key *key, const char *command, char **ret_error)
{
    SECRET_BUF input = {0};
    BUF_AUTO output = {0};
    struct str text =
        base64_encode(a, str_range((char *) key->secret, AEAD_KEY_BYTES), BASE64_STANDARD);
    struct str bytes = STR_NONE;
    buf_printf(&input, "%.*s\n", STR_ARG(text));
    explicit_bzero((char *) text.p, text.n);
    int r = key_command_run(&(struct key_command){command, "wrap", buf_str(&input), 0}, &output,
                            ret_error);
    if (r < 0)
        return r;
    if (base64_decode(a, str_trim(buf_str(&output)), BASE64_STANDARD, &bytes, NULL) < 0 ||
        bytes.n == 0)
        return fail(ret_error, -EINVAL, "--encryption-key-command",
                    "'%s wrap' does not print base64", command);
    /* On one line, whatever the command's line breaks were. */
    struct str wrapped = base64_encode(a, bytes, BASE64_STANDARD);
    r = check_wrapped(a, key, command, wrapped, ret_error);
    if (r == 0)
        key->wrapped = mem_strdup(wrapped.p);
    return r;
}

/* ---- the file ------------------------------------------------------------------------------- */

static struct str id_text(struct arena *a, const struct keyring_key *key)
{
    return pki_hex(a, key->id, KEY_ID_BYTES);
}

/* The parts of one key as the file has them. */
struct key_text {
    struct str id, created, secret, wrapped;
};

/* What we could not write back as we found it is refused too. */
static bool is_sound(struct arena *a, const struct key_text *t)
{
    struct str bytes = STR_NONE;
    int64_t time_us = 0;
    return t->id.n && (t->secret.n > 0) != (t->wrapped.n > 0) &&
           t->created.n < CLOCK_SECONDS_BYTES &&
           (!t->created.n || clock_parse(t->created, &time_us) == 0) &&
           base64_decode(a, t->wrapped, BASE64_STANDARD, &bytes, NULL) == 0;
}

static int get_secret(struct arena *a, const struct key_text *t, const char *path,
                      const char *command, struct keyring_key *key, char **ret_error)
{
    if (t->wrapped.n && !command[0])
        return fail(ret_error, -ENOKEY, path,
                    "its keys are wrapped; name the program that unwraps them with "
                    "--encryption-key-command");
    if (t->wrapped.n)
        return unwrap(a, command, t->wrapped, key->secret, ret_error);
    if (decode_secret(a, t->secret, key->secret) < 0)
        return fail(ret_error, -EINVAL, path,
                    "the secret of key %.*s is not the base64 of %d bytes", STR_ARG(t->id),
                    AEAD_KEY_BYTES);
    return 0;
}

static int parse_key(struct arena *a, const struct json *item, const char *path,
                     const char *command, struct keyring_key *key, char **ret_error)
{
    struct key_text t = {.id = json_get_str(item, STR("id")),
                         .created = json_get_str(item, STR("created")),
                         .secret = json_get_str(item, STR("secret")),
                         .wrapped = json_get_str(item, STR("wrapped"))};
    if (!is_sound(a, &t))
        return fail(ret_error, -EINVAL, path,
                    "a key must have its id and either its secret or its wrapped form");
    int r = get_secret(a, &t, path, command, key, ret_error);
    if (r < 0)
        return r;
    set_id(key);
    if (!str_eq(t.id, id_text(a, key)))
        return fail(ret_error, -EINVAL, path,
                    "the key given as %.*s is another one; put back the file as it was",
                    STR_ARG(t.id));
    if (t.created.n)
        memcpy(key->created, t.created.p, t.created.n);
    if (t.wrapped.n)
        key->wrapped = mem_strdup(arena_strz(a, t.wrapped));
    return 0;
}

int keyring_parse(struct keyring *k, struct str text, const char *path, const char *command,
                  char **ret_error)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed = {0};
    if (yaml_parse(a, text, &parsed) < 0)
        return fail(ret_error, -EINVAL, path, "no readable key file: %.*s; put it back as it was",
                    STR_ARG(parsed.error));
    struct json *keys = json_get(parsed.value, STR("keys"));
    size_t n = json_count(keys);
    if (!json_is(keys, JSON_ARRAY) || n == 0 || n > KEYRING_MAX_KEYS)
        return fail(ret_error, -EINVAL, path, "a key file has between 1 and %d keys, this one %s",
                    KEYRING_MAX_KEYS, n ? "more" : "none; put it back as it was");
    struct keyring ring = {0};
    int r = 0;
    JSON_FOR_EACH_ITEM (keys, item)
        if (r == 0)
            r = parse_key(a, item, path, command, &ring.keys[ring.n++], ret_error);
    if (r < 0) {
        keyring_done(&ring);
        return r;
    }
    *k = ring;
    explicit_bzero(&ring, sizeof(ring));
    return 0;
}

int keyring_load(struct keyring *k, const char *path, const char *command, char **ret_error)
{
    SECRET_BUF text = {0};
    int r = pki_file_read(path, &text);
    if (r == -ENOENT)
        return r;
    if (r < 0)
        return fail(ret_error, r, path, "cannot read the encryption keys: %s", log_errno_text(r));
    return keyring_parse(k, buf_str(&text), path, command, ret_error);
}

static void write_key(struct arena *a, struct buf *to, const struct keyring_key *key)
{
    struct str secret = STR_NONE;
    buf_printf(to, "- id: \"%.*s\"\n  created: \"%s\"\n", STR_ARG(id_text(a, key)), key->created);
    if (key->wrapped) {
        buf_printf(to, "  wrapped: \"%s\"\n", key->wrapped);
        return;
    }
    secret =
        base64_encode(a, str_range((const char *) key->secret, AEAD_KEY_BYTES), BASE64_STANDARD);
    buf_printf(to, "  secret: \"%.*s\"\n", STR_ARG(secret));
    explicit_bzero((char *) secret.p, secret.n);
}

void keyring_write(const struct keyring *k, struct buf *to)
{
    ARENA_AUTO a = arena_new();
    buf_append(to, file_head, sizeof(file_head) - 1);
    for (size_t i = 0; i < k->n; i++)
        write_key(a, to, &k->keys[i]);
}

static int write_and_sync(int fd, struct str text)
{
    if (fchmod(fd, 0600) < 0)
        return -errno;
    int r = file_write_all(fd, text);
    if (r < 0)
        return r;
    return fsync(fd) < 0 ? -errno : 0;
}

static int sync_directory_of(struct arena *a, const char *path)
{
    int fd = open(dirname(arena_strz(a, str_of(path))), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        (void) close(fd);
    return r;
}

/* Always by way of the same name, unlike pki_file_write(): what an interruption leaves has keys in
 * it, and so goes with the next writing. Nobody else writes, since the store is locked. */
static int replace_file(const char *path, struct str text)
{
    ARENA_AUTO a = arena_new();
    const char *fresh = arena_printf(a, "%s.new", path).p;
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_and_sync(fd, text);
    (void) close(fd);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        (void) unlink(fresh);
    return r < 0 ? r : sync_directory_of(a, path);
}

int keyring_save(struct keyring *k, const char *path, const char *command, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    SECRET_BUF text = {0};
    int r = 0;
    for (size_t i = 0; i < k->n && command[0] && r == 0; i++)
        if (!k->keys[i].wrapped)
            r = wrap(a, &k->keys[i], command, ret_error);
    if (r < 0)
        return r;
    (void) buf_reserve(&text, KEYRING_TEXT_BYTES);
    keyring_write(k, &text);
    r = replace_file(path, buf_str(&text));
    if (r < 0)
        return fail(ret_error, r, path, "cannot write the encryption keys: %s", log_errno_text(r));
    return 0;
}
