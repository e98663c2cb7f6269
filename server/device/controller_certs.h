/* SPDX-License-Identifier: Apache-2.0 */
/* The controller as devices know it: a signing and an ECDH certificate under the root, published by
 * GET certs, rotated without a device left behind. All under <data-dir>/pki. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "eve/envelope.h"

/* One generation of the certificates. Immutable, shared by reference count. */
struct controller_set {
    struct bytes bytes; /* its life */
    struct envelope_signer signer;
    const struct pki_key *ecdh_key;
    struct str ecdh_cert_hash; /* 16 bytes, as published */
    struct str certs_envelope; /* the whole answer of GET certs: a signed ZControllerCert */
    struct str certs_message;  /* the ZControllerCert alone, for v1 and bootstrap-config.pb */
    struct str config_hash;    /* controllercert_confighash: changes with any of them */
    int64_t not_after_s;       /* the earliest */
    /* ECDH keys of the past that stored blocks may still be sealed with, newest first. */
    struct controller_old_key {
        const struct pki_key *key;
        struct str cert_hash;
    } * old_keys;
    size_t n_old_keys;
};

struct controller_certs_options {
    const char *data_dir;
    const struct clock *clock;
    /* Given by the operator, PEM; "": our own. Intermediates may stand behind the leaf. */
    const char *signing_cert_file, *signing_key_file, *ecdh_cert_file, *ecdh_key_file;
    int64_t lifetime_s; /* of our own */
};
struct controller_certs;
/* Makes what is missing. Failure: negative errno and *ret_error (heap). */
int controller_certs_open(const struct controller_certs_options *o, struct controller_certs **ret,
                          char **ret_error);
void controller_certs_free(struct controller_certs *c);
/* The current set, with a reference (bytes_unref(&set->bytes)). From any thread. */
struct controller_set *controller_certs_get(struct controller_certs *c);
/* Reads the files again (after `seth rotate-certs`, or an operator's change); *ret_changed: the set
 * is another. On failure the old stays. */
int controller_certs_reload(struct controller_certs *c, bool *ret_changed, char **ret_error);
/* Makes our own anew when less than a third of their life is left. */
int controller_certs_renew(struct controller_certs *c, bool *ret_changed, char **ret_error);

enum controller_cert { CONTROLLER_SIGNING = 1, CONTROLLER_ECDH = 2 };
/* For the command: makes new ones of these (mask) in the data directory; a server that runs
 * notices. */
int controller_certs_rotate(const char *data_dir, unsigned which, int64_t lifetime_s,
                            char **ret_error);

/* The roots that devices are given, as PEM: our own, and those an operator has put into
 * <data-dir>/pki/device-roots.pem because certificates of theirs serve or sign. */
int controller_roots_pem(struct arena *a, const char *data_dir, struct str *ret_pem,
                         char **ret_error);
