/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig form in which an administrator names a server to ask: its current context's
 * cluster and user. */
#pragma once

#include "base/arena.h"

struct kubeconfig {
    struct str server;                   /* https:// */
    struct str ca_pem;                   /* STR_NONE: the machine's */
    struct str server_name;              /* STR_NONE: the URL's */
    struct str cert_pem, key_pem, token; /* STR_NONE: none */
};

/* -EINVAL or the errno of reading, with words that name the field. Files it refers to are read,
 * relative to its own place. */
int kubeconfig_load(struct arena *a, const char *path, struct kubeconfig *ret,
                    struct str *ret_error);
/* The same from its text. */
int kubeconfig_parse(struct arena *a, struct str text, struct str directory, struct kubeconfig *ret,
                     struct str *ret_error);
