/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that stands between the network and the verbs, opened from the server's options: who
 * asks, what they may, how much of it, and the record of it. */
#pragma once

#include "api/admission/webhooks.h"
#include "api/audit/audit.h"
#include "api/auth/rbac.h"
#include "api/fairness.h"
#include "api/token/authenticate.h"
#include "api/token/token_issuer.h"
#include "cli/options.h"
#include "fetch/fetch.h"
#include "loop/workers.h"

struct security {
    struct workers *workers;           /* for what waits on other servers */
    struct fetch_client *fetch;        /* how they ask them */
    struct token_issuer *token_issuer; /* of ServiceAccount tokens */
    struct authenticator *authenticator;
    struct rbac *rbac;
    struct webhooks *webhooks;
    struct fairness *fairness;
    struct audit *audit; /* NULL: none was asked for */
};

/* Failure: *ret_error (heap); what was opened is closed by security_close(). */
int security_open(struct security *s, struct arena *a, const struct options *o, struct store *store,
                  char **ret_error);
/* Reads files again: tokens, policies. Each that fails keeps what it had and says so in the log. */
void security_reload(struct security *s);
void security_close(struct security *s);
