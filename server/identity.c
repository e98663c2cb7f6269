/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "pki/chain.h"
#include "pki/file.h"

#define CA_DAYS 3650
#define ROOT_WARNING_S ((int64_t) 365 * 24 * 3600)
/* A device whose clock is behind must believe a new certificate too. */
#define BACKDATE_S ((int64_t) 24 * 3600)

static int fail(char **ret_error, int code, const char *what, const char *path)
{
    struct buf b = {0};
    buf_printf(&b, "%s %s: %s", what, path, strerror(-code));
    *ret_error = buf_take(&b);
    return code;
}

static const char *pki_path(struct arena *a, const char *data_dir, const char *file)
{
    return arena_printf(a, "%s/pki/%s", data_dir, file).p;
}

static int make_directories(struct arena *a, const char *data_dir, char **ret_error)
{
    const char *const paths[] = {data_dir, arena_printf(a, "%s/pki", data_dir).p};
    for (size_t i = 0; i < N_ELEMENTS(paths); i++)
        if (mkdir(paths[i], 0700) < 0 && errno != EEXIST)
            return fail(ret_error, -errno, "cannot make the directory", paths[i]);
    return 0;
}

struct authority {
    struct pki_key *key;
    struct pki_cert *certificate;
};

static void authority_done(struct authority *ca)
{
    pki_key_free(ca->key);
    pki_cert_free(ca->certificate);
}

/* The CA is made once; a key without its certificate (or the reverse) is never replaced silently.
 */
static int open_authority(struct arena *a, const char *data_dir, struct authority *ret,
                          char **ret_error)
{
    const char *certificate = pki_path(a, data_dir, "root-certificate.pem"),
               *key = pki_path(a, data_dir, "root-key.pem");
    if (access(certificate, F_OK) < 0 && access(key, F_OK) < 0) {
        ret->key = pki_key_new();
        ret->certificate = pki_cert_new(&(struct pki_cert_options){.common_name = STR("seth root"),
                                                                   .is_ca = true,
                                                                   .valid_days = CA_DAYS,
                                                                   .backdate_s = BACKDATE_S},
                                        ret->key, NULL, NULL);
        int r = pki_key_save(ret->key, key);
        if (r == 0)
            r = pki_cert_save(ret->certificate, certificate);
        return r < 0 ? fail(ret_error, r, "cannot write the root certificate", certificate) : 0;
    }
    int r = pki_cert_load(certificate, &ret->certificate);
    if (r < 0)
        return fail(ret_error, r, "cannot read the root certificate", certificate);
    r = pki_key_load(key, &ret->key);
    return r < 0 ? fail(ret_error, r, "cannot read the root key", key) : 0;
}

static size_t server_names(struct arena *a, const struct identity_options *o,
                           struct str **ret_names)
{
    static const struct str always[] = {
        {"localhost", 9},   {"127.0.0.1", 9},           {"::1", 3},
        {"kubernetes", 10}, {"kubernetes.default", 18}, {"kubernetes.default.svc", 22}};
    struct str extra = str_of(o->extra_names), one = STR_NONE;
    size_t capacity = N_ELEMENTS(always) + extra.n + 2, n = 0;
    struct str *names = ARENA_ARRAY(a, struct str, capacity);
    for (size_t i = 0; i < N_ELEMENTS(always); i++)
        names[n++] = always[i];
    char host[256] = "";
    if (gethostname(host, sizeof(host) - 1) == 0 && host[0])
        names[n++] = arena_str(a, str_of(host));
    struct str bind = str_of(o->bind_address);
    if (!str_is(bind, "0.0.0.0") && !str_is(bind, "::") && !str_is(bind, "127.0.0.1") &&
        !str_is(bind, "::1"))
        names[n++] = bind;
    while (str_split(&extra, ',', &one))
        if (str_trim(one).n)
            names[n++] = str_trim(one);
    *ret_names = names;
    return n;
}

static bool is_good(const struct pki_cert *c, int64_t lifetime_s, const struct str *names, size_t n)
{
    if (pki_cert_not_after(c) < (int64_t) time(NULL) + lifetime_s / 3)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!pki_cert_has_name(c, names[i]))
            return false;
    return true;
}

static int make_server(struct arena *a, const struct authority *ca, const struct identity *id,
                       const struct pki_cert_options *o, char **ret_error)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *fresh = pki_cert_new(o, key, ca->certificate, ca->key);
    int r = fresh ? pki_file_write(id->key_path, pki_key_pem(a, key),
                                   0600 | PKI_FILE_FOR_DIRECTORY_OWNER)
                  : -EINVAL;
    if (r == 0)
        r = pki_file_write(id->certificate_path, pki_cert_pem(a, fresh),
                           0644 | PKI_FILE_FOR_DIRECTORY_OWNER);
    return r < 0 ? fail(ret_error, r, "cannot write the server certificate", id->certificate_path)
                 : 0;
}

static struct pki_cert_options server_cert(const struct str *names, size_t n_names,
                                           int64_t lifetime_s)
{
    return (struct pki_cert_options){.common_name = STR("seth"),
                                     .names = names,
                                     .n_names = n_names,
                                     .for_server = true,
                                     .valid_s = lifetime_s,
                                     .backdate_s = BACKDATE_S};
}

static int open_server(struct arena *a, const struct identity_options *o,
                       const struct authority *ca, const struct identity *id, bool *ret_renewed,
                       char **ret_error)
{
    CLEANUP(pki_cert_freep) struct pki_cert *certificate = NULL;
    CLEANUP(pki_key_freep) struct pki_key *key = NULL;
    *ret_renewed = false;
    struct str *names = NULL;
    size_t n = server_names(a, o, &names);
    /* An end between the two writes leaves a key that is another's. */
    if (pki_cert_load(id->certificate_path, &certificate) == 0 &&
        pki_key_load(id->key_path, &key) == 0 && pki_key_fits(key, certificate) &&
        is_good(certificate, o->lifetime_s, names, n))
        return 0;
    struct pki_cert_options fresh = server_cert(names, n, o->lifetime_s);
    int r = make_server(a, ca, id, &fresh, ret_error);
    *ret_renewed = r == 0;
    return r;
}

static struct identity our_files(struct arena *a, const char *data_dir)
{
    return (struct identity){.root_path = pki_path(a, data_dir, "root-certificate.pem"),
                             .certificate_path = pki_path(a, data_dir, "server.pem"),
                             .key_path = pki_path(a, data_dir, "server-key.pem")};
}

static void warn_of_the_root(const struct pki_cert *root)
{
    int64_t left_s = pki_cert_not_after(root) - (int64_t) time(NULL);
    if (left_s < ROOT_WARNING_S)
        log_warning("the root certificate expires; everything under it must be replaced before",
                    LOG_INT("days", left_s / (24 * 3600)));
}

int identity_renew(struct arena *a, const struct identity_options *o, bool *ret_renewed,
                   char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    struct identity id = our_files(a, o->data_dir);
    *ret_renewed = false;
    int r = open_authority(a, o->data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    warn_of_the_root(ca.certificate);
    return o->certificate_file[0] ? 0 : open_server(a, o, &ca, &id, ret_renewed, ret_error);
}

int identity_open(struct arena *a, const struct identity_options *o, struct identity *ret,
                  char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    struct identity id = our_files(a, o->data_dir);
    bool is_new = false;
    int r = make_directories(a, o->data_dir, ret_error);
    if (r == 0)
        r = open_authority(a, o->data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    id.root_pem = pki_cert_pem(a, ca.certificate);
    if (o->certificate_file[0]) {
        id.certificate_path = o->certificate_file;
        id.key_path = o->key_file;
    } else {
        r = open_server(a, o, &ca, &id, &is_new, ret_error);
    }
    *ret = id;
    return r;
}

/* Only a server makes a root; whoever else finds none looks in the wrong place. */
static int open_existing_authority(struct arena *a, const char *data_dir, struct authority *ret,
                                   char **ret_error)
{
    const char *path = pki_path(a, data_dir, "root-certificate.pem");
    if (access(path, F_OK) < 0)
        return fail(ret_error, -errno, "no server has been started with this --data-dir:", path);
    return open_authority(a, data_dir, ret, ret_error);
}

int identity_rotate(struct arena *a, const char *data_dir, int64_t lifetime_s, char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    CLEANUP(pki_cert_freep) struct pki_cert *old = NULL;
    struct identity id = our_files(a, data_dir);
    struct str *names = NULL;
    int r = open_existing_authority(a, data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    r = pki_cert_load(id.certificate_path, &old);
    if (r < 0)
        return fail(ret_error, r, "cannot read the server certificate", id.certificate_path);
    size_t n = pki_cert_names(a, old, &names);
    struct pki_cert_options fresh = server_cert(names, n, lifetime_s);
    return make_server(a, &ca, &id, &fresh, ret_error);
}

/* ---- clients ------------------------------------------------------------------------------ */

int identity_issue(struct arena *a, const struct identity_client *c, struct str *ret_cert,
                   struct str *ret_key, struct str *ret_root, char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    int r = open_existing_authority(a, c->data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *certificate =
        pki_cert_new(&(struct pki_cert_options){.common_name = c->user,
                                                .organizations = c->groups,
                                                .n_organizations = c->n_groups,
                                                .for_client = true,
                                                .valid_s = c->valid_s},
                     key, ca.certificate, ca.key);
    if (!certificate)
        return fail(ret_error, -EINVAL,
                    "user and groups must have 1 to 64 characters each:", arena_strz(a, c->user));
    *ret_cert = pki_cert_pem(a, certificate);
    *ret_key = pki_key_pem(a, key);
    *ret_root = pki_cert_pem(a, ca.certificate);
    return 0;
}

int identity_authority(struct arena *a, const char *data_dir, struct pki_cert **ret_cert,
                       struct pki_key **ret_key, char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    int r = open_existing_authority(a, data_dir, &ca, ret_error);
    if (r < 0)
        return r;
    *ret_cert = TAKE(ca.certificate);
    *ret_key = TAKE(ca.key);
    return 0;
}

int identity_root(struct arena *a, const char *data_dir, struct str *ret_root, char **ret_error)
{
    CLEANUP(authority_done) struct authority ca = {0};
    int r = open_existing_authority(a, data_dir, &ca, ret_error);
    if (r == 0)
        *ret_root = pki_cert_pem(a, ca.certificate);
    return r;
}
