/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of Applications, for those that are objects and those that templates make. */
#pragma once

#include "api/admission/reference.h"
#include "api/hooks.h"

/* metadata and spec of an Application and where they stand: at the root (at NULL) or in
 * spec.template. */
struct application_view {
    const struct field_path *at;
    const struct json *object;
    const struct json *claim_templates; /* of an ApplicationStatefulSet: volumes, too */
    struct str namespace;
};

void application_check(struct causes *causes, const struct application_view *v);
void application_check_volumes(struct causes *causes, const struct field_path *at_spec,
                               const struct application_view *v);
void application_check_containers(struct causes *causes, const struct field_path *at_spec,
                                  const struct json *spec);
/* The spec of a claim that is made for an Application. */
void application_check_claim(struct causes *causes, const struct field_path *at,
                             const struct json *spec);
void application_refer(struct reference_list *l, const struct application_view *v);
