/* SPDX-License-Identifier: Apache-2.0 */
/* A device trusts what its root-certificate.pem vouches for. It goes on doing so when it meets the
 * same certificates, so they come along with their keys. */
#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "import_adam.h"
#include "pki/chain.h"
#include "pki/file.h"

#define ROOTS_FILE "device-roots.pem"
#define END_OF_CERT "-----END CERTIFICATE-----"
#define OUR_HASH_BYTES 16

/* As Adam calls them, and the options that take them. */
static const struct role {
    const char *name;
    const char *cert_option, *key_option;
    bool is_signed; /* and so on P-256, and vouched for by the root */
} roles[] = {
    {"server", "device-tls-cert-file", "device-tls-private-key-file", false},
    {"signing", "device-signing-cert-file", "device-signing-key-file", true},
    {"encrypt", "device-ecdh-cert-file", "device-ecdh-key-file", true},
};
#define ENCRYPT 2

struct pair {
    struct buf cert, key; /* as they stand in the files */
    struct pki_chain chain;
    struct pki_key *parsed_key;
};

struct adam_certs {
    struct arena *arena;
    struct pair pairs[N_ELEMENTS(roles)];
    struct pki_chain roots;
};

static void forget(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->n);
    buf_done(b);
}

void adam_certs_free(struct adam_certs *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < N_ELEMENTS(roles); i++) {
        buf_done(&c->pairs[i].cert);
        forget(&c->pairs[i].key);
        pki_chain_done(&c->pairs[i].chain);
        pki_key_free(c->pairs[i].parsed_key);
    }
    pki_chain_done(&c->roots);
    mem_free(c);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_one(const char *path, struct buf *to, char **ret_error)
{
    const int r = pki_file_read(path, to);
    return r < 0 ? error_set(ret_error, r, "--certs: cannot read %s: %s", path, log_errno_text(r))
                 : 0;
}

static int read_pair(struct adam_certs *c, const char *directory, size_t i, char **ret_error)
{
    struct pair *p = &c->pairs[i];
    const char *cert = arena_printf(c->arena, "%s/%s.pem", directory, roles[i].name).p,
               *key = arena_printf(c->arena, "%s/%s-key.pem", directory, roles[i].name).p;
    int r = read_one(cert, &p->cert, ret_error);
    if (r == 0)
        r = read_one(key, &p->key, ret_error);
    if (r < 0)
        return r;
    if (pki_chain_parse(buf_str(&p->cert), &p->chain) < 0)
        return error_set(ret_error, -EINVAL, "--certs: %s is no certificate in PEM", cert);
    if (pki_key_parse(buf_str(&p->key), &p->parsed_key) < 0)
        return error_set(ret_error, -EINVAL, "--certs: %s is no private key in PEM", key);
    if (!pki_key_fits(p->parsed_key, p->chain.certs[0]))
        return error_set(ret_error, -EINVAL, "--certs: %s is not the key of %s", key, cert);
    if (roles[i].is_signed && !pki_key_is_p256(p->parsed_key))
        return error_set(
            ret_error, -EINVAL,
            "--certs: %s is not on the curve P-256, which devices and this server need", key);
    return 0;
}

/* What Adam gives devices as root-certificate.pem is its server certificate, unless an operator has
 * put another there. */
static int read_roots(struct adam_certs *c, const char *directory, char **ret_error)
{
    BUF_AUTO text = {0};
    const char *path = arena_printf(c->arena, "%s/root-certificate.pem", directory).p;
    const int r = pki_file_read(path, &text);
    if (r < 0 && r != -ENOENT)
        return error_set(ret_error, r, "--certs: cannot read %s: %s", path, log_errno_text(r));
    if (pki_chain_parse(r == 0 ? buf_str(&text) : buf_str(&c->pairs[0].cert), &c->roots) < 0)
        return error_set(ret_error, -EINVAL, "--certs: %s is no certificate in PEM", path);
    return 0;
}

static int check_trust(const struct adam_certs *c, char **ret_error)
{
    const int64_t now_s = clock_system.wall_us(&clock_system) / 1000000;
    for (size_t i = 0; i < N_ELEMENTS(roles); i++) {
        PKI_CHAIN_AUTO between = {0};
        const char *reason = NULL;
        if (roles[i].is_signed &&
            pki_chain_verify(&c->pairs[i].chain, &c->roots, now_s, &between, &reason) < 0)
            return error_set(
                ret_error, -EKEYREJECTED,
                "--certs: devices do not trust %s.pem: %s; put the root-certificate.pem "
                "that they have beside it",
                roles[i].name, reason);
    }
    return 0;
}

int adam_certs_read(struct arena *a, const char *directory, struct adam_certs **ret,
                    char **ret_error)
{
    struct adam_certs *c = NEW(struct adam_certs);
    int r = 0;
    c->arena = a;
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(roles); i++)
        r = read_pair(c, directory, i, ret_error);
    if (r == 0)
        r = read_roots(c, directory, ret_error);
    if (r == 0)
        r = check_trust(c, ret_error);
    if (r < 0)
        adam_certs_free(c);
    else
        *ret = c;
    return r;
}

/* Adam's is over the PEM as it stands in the file, without the end of its last line. */
void adam_certs_hashes(const struct adam_certs *c, struct str *ret_adams, struct str *ret_ours)
{
    const struct pair *p = &c->pairs[ENCRYPT];
    unsigned char hash[SHA256_BYTES];
    const ptrdiff_t end = str_find_str(buf_str(&p->cert), STR(END_OF_CERT));
    const struct str first =
        str_sub(buf_str(&p->cert), 0, (size_t) MAX(end, 0) + sizeof(END_OF_CERT) - 1);
    pki_sha256(str_trim(first), hash);
    *ret_adams = arena_str(c->arena, str_range((const char *) hash, sizeof(hash)));
    pki_sha256(pki_cert_pem(c->arena, p->chain.certs[0]), hash);
    *ret_ours = arena_str(c->arena, str_range((const char *) hash, OUR_HASH_BYTES));
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_one(const char *path, struct str content, unsigned mode, char **ret_error)
{
    const int r = pki_file_write(path, content, mode | PKI_FILE_FOR_DIRECTORY_OWNER);
    return r < 0 ? error_set(ret_error, r, "cannot write %s: %s", path, log_errno_text(r)) : 0;
}

static bool has(const struct pki_chain *chain, const struct pki_cert *cert)
{
    unsigned char one[SHA256_BYTES], other[SHA256_BYTES];
    pki_cert_fingerprint(cert, one);
    for (size_t i = 0; i < chain->n; i++) {
        pki_cert_fingerprint(chain->certs[i], other);
        if (memcmp(one, other, sizeof(one)) == 0)
            return true;
    }
    return false;
}

/* Behind those that are there. */
static int write_roots(const struct adam_certs *c, const char *data_dir, char **ret_error)
{
    BUF_AUTO text = {0};
    PKI_CHAIN_AUTO there = {0};
    const char *path = arena_printf(c->arena, "%s/pki/" ROOTS_FILE, data_dir).p;
    const int r = pki_file_read(path, &text);
    if (r < 0 && r != -ENOENT)
        return error_set(ret_error, r, "cannot read %s: %s", path, log_errno_text(r));
    if (r == 0 && pki_chain_parse(buf_str(&text), &there) < 0)
        return error_set(ret_error, -EINVAL, "%s is no list of certificates in PEM", path);
    for (size_t i = 0; i < c->roots.n; i++)
        if (!has(&there, c->roots.certs[i]))
            buf_append_str(&text, pki_cert_pem(c->arena, c->roots.certs[i]));
    return write_one(path, buf_str(&text), 0644, ret_error);
}

int adam_certs_write(struct adam_certs *c, const char *data_dir, struct str *ret_options,
                     char **ret_error)
{
    struct arena *a = c->arena;
    BUF_AUTO options = {0};
    int r = write_roots(c, data_dir, ret_error);
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(roles); i++) {
        const char *cert = arena_printf(a, "%s/pki/adam-%s.pem", data_dir, roles[i].name).p,
                   *key = arena_printf(a, "%s/pki/adam-%s-key.pem", data_dir, roles[i].name).p;
        r = write_one(key, buf_str(&c->pairs[i].key), 0600, ret_error);
        if (r == 0)
            r = write_one(cert, buf_str(&c->pairs[i].cert), 0644, ret_error);
        buf_printf(&options, "--%s %s\n--%s %s\n", roles[i].cert_option, cert, roles[i].key_option,
                   key);
    }
    *ret_options = arena_str(a, buf_str(&options));
    return r;
}
