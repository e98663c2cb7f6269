/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asking, and may they: client certificates (CN is the user, O the groups). Members of
 * system:masters may do everything; everybody may ask for health and version; nobody else may do
 * anything. */
#pragma once

#include "api/call.h"

#define GROUP_MASTERS "system:masters"
#define USER_ANONYMOUS "system:anonymous"

/* The user of a request: the connection's, or the one it impersonates (Impersonate-User, -Group),
 * which only a member of system:masters may. Strings live as long as the request. 401, 403 or 400
 * in st. */
int access_user(const struct http_request *r, struct user *ret_user, struct status *st);

/* 0, or 401 or 403 in st. */
int access_check_resource(const struct user *u, const struct call_input *in, struct status *st);
int access_check_path(const struct user *u, struct str method, struct str path, struct status *st);
