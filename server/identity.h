/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own identity: one CA made at first start, the serving certificate under it, and
 * clients' certificates. All under <data-dir>/pki; nothing is overwritten while it is good. */
#pragma once

#include "base/arena.h"

struct identity {
    struct str root_pem;
    const char *root_path, *certificate_path, *key_path;
};

struct identity_options {
    const char *data_dir;
    const char *bind_address;
    const char *extra_names;                 /* comma-separated SANs */
    const char *certificate_file, *key_file; /* given by the operator; "" : our own */
    int64_t lifetime_s;                      /* of our own serving certificate */
};

/* Failure: negative errno and *ret_error (heap). Strings in the arena. */
int identity_open(struct arena *a, const struct identity_options *o, struct identity *ret,
                  char **ret_error);

/* Makes our own serving certificate anew when less than a third of its life is left, or it lacks a
 * name, and says so; and warns in time of the end of the root certificate. An operator's files are
 * theirs to renew. */
int identity_renew(struct arena *a, const struct identity_options *o, bool *ret_renewed,
                   char **ret_error);

/* Makes our own serving certificate anew with a new key and the names the old one has; a server
 * that runs notices. */
int identity_rotate(struct arena *a, const char *data_dir, int64_t lifetime_s, char **ret_error);

struct identity_client {
    const char *data_dir;
    struct str user;
    const struct str *groups;
    size_t n_groups;
    int64_t valid_s;
};
/* A client certificate under our root, with its key and the root, all as PEM. */
int identity_issue(struct arena *a, const struct identity_client *c, struct str *ret_cert,
                   struct str *ret_key, struct str *ret_root, char **ret_error);
struct pki_cert;
struct pki_key;
/* The root with its key, for whoever issues further certificates; the caller frees them. */
int identity_authority(struct arena *a, const char *data_dir, struct pki_cert **ret_cert,
                       struct pki_key **ret_key, char **ret_error);
/* The root alone. */
int identity_root(struct arena *a, const char *data_dir, struct str *ret_root, char **ret_error);
