/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, making and keeping the files of the controller's certificates. Key and certificate share
 * a file, so that a rename changes both or neither. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "device/controller_certs_internal.h"
#include "pki/file.h"

#define ROOT_CERT_FILE "root-certificate.pem"
#define ROOT_KEY_FILE "root-key.pem"
#define FURTHER_ROOTS_FILE "device-roots.pem"
#define ARCHIVE_PREFIX "ecdh-"
#define ARCHIVE_SUFFIX ".pem"
/* A device whose clock is behind must believe a new certificate too. */
#define BACKDATE_S ((int64_t) 24 * 3600)

const struct controller_role controller_signing = {CONTROLLER_SIGNING, "signing certificate",
                                                   "signing.pem", "seth signing"};
const struct controller_role controller_ecdh = {CONTROLLER_ECDH, "ECDH certificate", "ecdh.pem",
                                                "seth ecdh"};

const char *controller_path(struct arena *a, const char *data_dir, const char *file)
{
    return arena_printf(a, "%s/pki/%s", data_dir, file).p;
}

void controller_pair_done(struct controller_pair *p)
{
    pki_key_free(TAKE(p->key));
    pki_chain_done(&p->chain);
}

/* Keys pass through: nothing of them stays in freed memory. */
static void secret_done(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->n);
    buf_done(b);
}
#define SECRET_AUTO CLEANUP(secret_done) struct buf

/* ---- roots ---------------------------------------------------------------------------------- */

static int read_certs(const char *path, struct pki_chain *chain)
{
    BUF_AUTO text = {0};
    int r = pki_file_read(path, &text);
    return r < 0 ? r : pki_chain_parse(buf_str(&text), chain);
}

int controller_read_roots(struct arena *a, const char *data_dir, struct pki_chain *ret_roots,
                          char **ret_error)
{
    const char *own = controller_path(a, data_dir, ROOT_CERT_FILE),
               *further = controller_path(a, data_dir, FURTHER_ROOTS_FILE);
    int r = read_certs(own, ret_roots);
    if (r == -ENOENT)
        return error_set(ret_error, r, "no server has been started with this --data-dir: %s: %s",
                         own, strerror(-r));
    if (r < 0)
        return error_set(ret_error, r, "cannot read the root certificate %s: %s", own,
                         strerror(-r));
    r = read_certs(further, ret_roots);
    return r < 0 && r != -ENOENT
               ? error_set(ret_error, r, "cannot read the further roots of devices %s: %s", further,
                           strerror(-r))
               : 0;
}

int controller_roots_pem(struct arena *a, const char *data_dir, struct str *ret_pem,
                         char **ret_error)
{
    PKI_CHAIN_AUTO roots = {0};
    BUF_AUTO pem = {0};
    int r = controller_read_roots(a, data_dir, &roots, ret_error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < roots.n; i++)
        buf_append_str(&pem, pki_cert_pem(a, roots.certs[i]));
    *ret_pem = arena_str(a, buf_str(&pem));
    return 0;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

int controller_pair_read(const char *cert_file, const char *key_file, struct controller_pair *ret)
{
    CONTROLLER_PAIR_AUTO p = {0};
    SECRET_AUTO certs = {0};
    int r = pki_file_read(cert_file, &certs);
    if (r == 0)
        r = pki_chain_parse(buf_str(&certs), &p.chain);
    if (r < 0)
        return r;
    r = key_file[0] ? pki_key_load(key_file, &p.key) : pki_key_parse(buf_str(&certs), &p.key);
    if (r < 0)
        return r;
    *ret = p;
    p = (struct controller_pair){0};
    return 0;
}

/* What leads to the root stays, in the order it leads there. */
static void cut_chain(struct pki_chain *chain, struct pki_chain *between)
{
    while (chain->n > 1)
        pki_cert_free(chain->certs[--chain->n]);
    for (size_t i = 0; i < between->n && chain->n < PKI_CHAIN_MAX; i++)
        chain->certs[chain->n++] = TAKE(between->certs[i]);
}

int controller_pair_check(struct controller_pair *p, const struct pki_chain *roots, int64_t now_s,
                          const char **ret_reason)
{
    PKI_CHAIN_AUTO between = {0};
    if (!pki_key_is_p256(p->key)) {
        *ret_reason = "its key is not on the curve P-256, which devices need";
        return -EINVAL;
    }
    if (!pki_key_fits(p->key, p->chain.certs[0])) {
        *ret_reason = "the first certificate is not of this key";
        return -EINVAL;
    }
    int r = pki_chain_verify(&p->chain, roots, now_s, &between, ret_reason);
    if (r == 0)
        cut_chain(&p->chain, &between);
    return r;
}

/* ---- making --------------------------------------------------------------------------------- */

static int write_pair(struct arena *a, const char *path, const struct pki_key *key,
                      const struct pki_cert *const *certs, size_t n_certs)
{
    SECRET_AUTO text = {0};
    buf_append_str(&text, pki_key_pem(a, key));
    for (size_t i = 0; i < n_certs; i++)
        buf_append_str(&text, pki_cert_pem(a, certs[i]));
    return pki_file_write(path, buf_str(&text), 0600 | PKI_FILE_FOR_DIRECTORY_OWNER);
}

static int read_authority(struct arena *a, const char *data_dir, struct controller_pair *ret,
                          char **ret_error)
{
    const char *cert = controller_path(a, data_dir, ROOT_CERT_FILE),
               *key = controller_path(a, data_dir, ROOT_KEY_FILE);
    int r = controller_pair_read(cert, key, ret);
    if (r == -ENOENT && access(cert, F_OK) < 0)
        return error_set(ret_error, r, "no server has been started with this --data-dir: %s: %s",
                         cert, strerror(-r));
    return r < 0 ? error_set(ret_error, r, "cannot read the root %s and its key %s: %s", cert, key,
                             strerror(-r))
                 : 0;
}

int controller_make(struct arena *a, const char *data_dir, const struct controller_role *role,
                    int64_t lifetime_s, char **ret_error)
{
    CONTROLLER_PAIR_AUTO ca = {0};
    int r = read_authority(a, data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    const char *path = controller_path(a, data_dir, role->file);
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *cert =
        pki_cert_new(&(struct pki_cert_options){.common_name = str_of(role->common_name),
                                                .valid_s = lifetime_s,
                                                .backdate_s = BACKDATE_S},
                     key, ca.chain.certs[0], ca.key);
    if (!cert)
        return error_set(ret_error, -EIO, "cannot make the %s: the root key cannot sign",
                         role->what);
    const struct pki_cert *const certs[] = {cert};
    r = write_pair(a, path, key, certs, 1);
    return r < 0 ? error_set(ret_error, r, "cannot write the %s %s: %s", role->what, path,
                             strerror(-r))
                 : 0;
}

/* ---- keys of the past ----------------------------------------------------------------------- */

struct str controller_cert_hash(struct arena *a, const struct pki_cert *c)
{
    unsigned char hash[SHA256_BYTES];
    pki_sha256(pki_cert_pem(a, c), hash);
    return arena_str(a, str_range((const char *) hash, ENVELOPE_SHORT_HASH_BYTES));
}

int controller_archive(struct arena *a, const char *data_dir, const struct controller_pair *p,
                       char **ret_error)
{
    struct str hash = controller_cert_hash(a, p->chain.certs[0]);
    struct str name = arena_printf(a, ARCHIVE_PREFIX "%s" ARCHIVE_SUFFIX,
                                   pki_hex(a, (const unsigned char *) hash.p, hash.n).p);
    const char *path = controller_path(a, data_dir, name.p);
    if (access(path, F_OK) == 0)
        return 0;
    int r = write_pair(a, path, p->key, (const struct pki_cert *const *) p->chain.certs, 1);
    return r < 0 ? error_set(ret_error, r, "cannot keep the ECDH key as %s: %s", path, strerror(-r))
                 : 0;
}

static bool is_archive(struct str name)
{
    return str_starts_with(name, STR(ARCHIVE_PREFIX)) && str_ends_with(name, STR(ARCHIVE_SUFFIX));
}

/* False: not one that is wanted. A damaged one is no reason to serve nobody. */
static bool read_old(struct arena *a, const char *path, struct str except,
                     struct controller_old *ret)
{
    CONTROLLER_PAIR_AUTO p = {0};
    struct stat st;
    int r = stat(path, &st) < 0 ? -errno : controller_pair_read(path, "", &p);
    if (r == 0 && !pki_key_fits(p.key, p.chain.certs[0]))
        r = -EINVAL;
    if (r < 0) {
        log_warning("ignoring a kept ECDH key that cannot be read", LOG_TEXT("path", path),
                    LOG_ERRNO(r));
        return false;
    }
    struct str hash = controller_cert_hash(a, p.chain.certs[0]);
    if (str_eq(hash, except))
        return false;
    *ret = (struct controller_old){.key = TAKE(p.key),
                                   .cert_hash = hash,
                                   .kept_at_ns = (int64_t) st.st_mtim.tv_sec * 1000000000 +
                                                 st.st_mtim.tv_nsec};
    return true;
}

static int newest_first(const void *x, const void *y)
{
    const struct controller_old *a = x, *b = y;
    if (a->kept_at_ns != b->kept_at_ns)
        return a->kept_at_ns > b->kept_at_ns ? -1 : 1;
    return str_cmp(a->cert_hash, b->cert_hash);
}

size_t controller_read_archive(struct arena *a, const char *data_dir, struct str except,
                               struct controller_old **ret_old)
{
    struct controller_old *all = NULL;
    size_t n = 0;
    DIR *directory = opendir(arena_printf(a, "%s/pki", data_dir).p);
    for (struct dirent *e = NULL; directory && (e = readdir(directory));) {
        struct controller_old one = {0};
        if (!is_archive(str_of(e->d_name)) ||
            !read_old(a, controller_path(a, data_dir, e->d_name), except, &one))
            continue;
        all = arena_grow(a, all, n, sizeof(*all));
        all[n++] = one;
    }
    if (directory)
        (void) closedir(directory);
    if (n)
        qsort(all, n, sizeof(*all), newest_first);
    while (n > CONTROLLER_MAX_OLD_KEYS)
        pki_key_free(all[--n].key);
    *ret_old = all;
    return n;
}
