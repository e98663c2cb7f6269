/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccount tokens, ours or those of an earlier key: valid while the account, and the object
 * the token is bound to, exist as they were when it was issued. */
#pragma once

#include "api/token/authenticate.h"
#include "api/token/token_issuer.h"

/* Neither store nor issuer is taken over. */
struct token_source *service_account_tokens_new(struct store *store, const struct clock *clock,
                                                const struct token_issuer *issuer);
