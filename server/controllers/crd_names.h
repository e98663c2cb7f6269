/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the names a CustomResourceDefinition asks for it may have: those that no other one of
 * its group has been given. */
#pragma once

#include "json/json.h"

struct crd_verdict {
    struct json accepted;       /* status.acceptedNames */
    struct str reason, message; /* of the last conflict; absent: there is none */
};

/* others: all CRDs, this one among them. */
struct crd_verdict crd_judge_names(struct arena *a, const struct json *crd,
                                   const struct json *others);
