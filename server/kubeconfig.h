/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfigs: how a client reaches the server and proves who it is, as a file of its own or merged
 * into one that has others. */
#pragma once

#include "cli/options.h"
#include "identity.h"

struct kubeconfig {
    const char *server;                  /* "https://127.0.0.1:6443" */
    struct str root_pem;                 /* whom to trust */
    struct str name;                     /* of cluster and context */
    struct str user;                     /* of the user's entry */
    struct str namespace;                /* "": none */
    struct str cert_pem, key_pem;        /* a client certificate; STR_NONE: another proof */
    struct str token;                    /* likewise */
    struct str oidc_issuer, oidc_client; /* likewise: kubectl's oidc-login plugin asks there */
};

/* The YAML text, merged into that of an existing kubeconfig (STR_NONE: none): entries of the same
 * name are replaced, all else stays, and the new context becomes the current one. */
int kubeconfig_text(struct arena *a, const struct kubeconfig *k, struct str existing,
                    struct str *ret_text, char **ret_error);

/* Where the administrator's kubeconfig of a data directory says the server is. */
const char *kubeconfig_server(struct arena *a, const char *data_dir);

/* `seth kubeconfig`. */
extern const struct option_spec kubeconfig_options[];
int kubeconfig_command(const struct options *o);
