/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asking, and may they: the client certificate (CN is the user, O the groups) or bearer
 * token of a request, the user it impersonates, and the refusals in kube-apiserver's words. */
#pragma once

#include "api/auth/rbac.h"
#include "api/call.h"
#include "api/token/authenticate.h"

/* The user of a request before impersonation: certificate, else bearer token, else anonymous. 0;
 * 401 in st; -EAGAIN with st empty: the token's issuer must be asked, on a thread that may wait
 * (authenticator_verify()). The user's strings live in st's arena or as long as the request. */
int access_authenticate(struct authenticator *auth, const struct http_request *r,
                        struct user *ret_user, struct status *st);

/* The bearer token of a request; STR_NONE: it has none. */
struct str access_bearer_token(const struct http_request *r);

/* The user that a request impersonates (Impersonate-User, -Group, -Uid, -Extra-*), if any and if
 * `real` may: *ret_user is real otherwise. 400 or 403 in st. */
int access_impersonate(struct rbac *rbac, const struct http_request *r, const struct user *real,
                       struct user *ret_user, bool *ret_impersonates, struct status *st);

/* 0, or 403 in st. The reason is as of rbac_allows(); NULL: nobody wants to know. */
int access_check_resource(struct rbac *rbac, const struct call_input *in, struct status *st,
                          struct str *ret_reason);
/* "get" for GET ...: what a method is called among rights to paths. */
struct str access_path_verb(struct str method);
int access_check_path(struct rbac *rbac, const struct user *u, struct str method, struct str path,
                      struct status *st, struct str *ret_reason);

/* 403 in st with the words for what was asked. Returns -EPERM. */
int access_forbid(const struct access_question *q, struct status *st);
