/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap tokens: Secrets of type bootstrap.kubernetes.io/token in kube-system, with which a
 * newcomer asks for a certificate of its own. */
#pragma once

#include "api/token/audiences.h"
#include "api/token/authenticate.h"

struct token_source *bootstrap_tokens_new(struct store *store, const struct clock *clock,
                                          struct audiences audiences);
