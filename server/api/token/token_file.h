/* SPDX-License-Identifier: Apache-2.0 */
/* The static token file, in kube-apiserver's form: lines of token,user,uid and optionally
 * "group1,group2". */
#pragma once

#include "api/token/audiences.h"
#include "api/token/authenticate.h"

/* Failure: negative errno and *ret_error (heap), which names file and line. The tokens are for the
 * API server, whose audiences these are (copied). */
int token_file_open(const char *path, struct audiences audiences, struct token_source **ret_source,
                    char **ret_error);
