/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the controller's certificates, and the set that is made of them. */
#pragma once

#include "device/controller_certs.h"
#include "pki/chain.h"

/* One certificate of the controller with its key. {0} is a valid empty one. */
struct controller_pair {
    struct pki_key *key;
    struct pki_chain chain; /* the leaf, then what leads to the root */
};
void controller_pair_done(struct controller_pair *p);
#define CONTROLLER_PAIR_AUTO CLEANUP(controller_pair_done) struct controller_pair

/* What is known of each of the two. */
struct controller_role {
    enum controller_cert which;
    const char *what;        /* "signing certificate", in messages */
    const char *file;        /* of our own, under <data-dir>/pki: key and certificate in one */
    const char *common_name; /* of our own */
};
extern const struct controller_role controller_signing, controller_ecdh;

const char *controller_path(struct arena *a, const char *data_dir, const char *file);

/* Every root that devices are given: our own, and those of device-roots.pem. */
int controller_read_roots(struct arena *a, const char *data_dir, struct pki_chain *ret_roots,
                          char **ret_error);
/* The leaf leads to a root at that time, its key is on P-256 and fits. The chain is cut to what is
 * needed. */
int controller_pair_check(struct controller_pair *p, const struct pki_chain *roots, int64_t now_s,
                          const char **ret_reason);
/* Key and certificates from one file or two. */
int controller_pair_read(const char *cert_file, const char *key_file, struct controller_pair *ret);
/* A new one under our root, in its file. */
int controller_make(struct arena *a, const char *data_dir, const struct controller_role *role,
                    int64_t lifetime_s, char **ret_error);

/* The first 16 bytes of SHA-256 over the PEM text as it is delivered. */
struct str controller_cert_hash(struct arena *a, const struct pki_cert *c);
/* Keeps an ECDH key for ever, in a file named after its certificate. */
int controller_archive(struct arena *a, const char *data_dir, const struct controller_pair *p,
                       char **ret_error);
/* Kept ones that are read, newest first; those beyond stay on disk. */
#define CONTROLLER_MAX_OLD_KEYS 64
struct controller_old {
    struct pki_key *key;
    struct str cert_hash;
    int64_t kept_at_ns;
};
/* All but the one of that hash. Keys are the caller's to free. */
size_t controller_read_archive(struct arena *a, const char *data_dir, struct str except,
                               struct controller_old **ret_old);

struct controller_parts {
    struct controller_pair signing, ecdh;
    int64_t root_not_after_s;
    struct controller_old *old; /* in any arena; the hashes are copied */
    size_t n_old;
};
/* Takes the keys over on success. NULL: signing failed. */
struct controller_set *controller_set_new(struct controller_parts *parts);
