/* SPDX-License-Identifier: Apache-2.0 */
/* TokenReview (authentication.k8s.io/v1) as one who asks writes and reads it. Pure functions. */
#pragma once

#include "api/token/audiences.h"
#include "api/token/authenticate.h"

#define REVIEW_MAX_BYTES ((size_t) 1024 * 1024)
#define REVIEW_MAX_GROUPS 1000
#define REVIEW_MAX_EXTRA 100

struct str review_write(struct arena *a, struct str token, struct audiences wanted);
/* 0: the token is this user's. -EACCES: it is nobody's, or not for any of `wanted`; -EINVAL: the
 * answer is none. Both with words. implicit: what a webhook means that does not speak of
 * audiences. */
int review_read(struct arena *a, struct str text, struct audiences wanted,
                struct audiences implicit, struct token_identity *ret, struct str *ret_error);
