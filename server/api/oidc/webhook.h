/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a webhook is asked about: TokenReviews of authentication.k8s.io/v1 sent to the server
 * that a kubeconfig names. The last source, since it says of no token that it is not its own. */
#pragma once

#include "api/oidc/issuer.h"
#include "api/token/authenticate.h"

#define TOKEN_WEBHOOK_TIMEOUT_MS 10000
/* Even with a shorter cache: long enough for the request that asked to find its answer. */
#define TOKEN_WEBHOOK_MOMENT_US ((int64_t) 3 * 1000 * 1000)

struct token_webhook_options {
    struct oidc_outside outside;
    const char *config_path;        /* kubeconfig */
    int64_t cache_us;               /* how long an answer is believed */
    struct audiences api_audiences; /* copied */
};

/* Failure: negative errno and *ret_error (heap). Reloading reads the kubeconfig and its files again
 * and forgets what was answered. */
int token_webhook_new(const struct token_webhook_options *o, struct token_source **ret_source,
                      char **ret_error);
