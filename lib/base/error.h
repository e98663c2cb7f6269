/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in words, for functions that return a negative errno and say what is wrong. */
#pragma once

#include "base/lang.h"

/* *ret_error, NULL or heap, becomes the text (heap). Returns the code, so that a caller may `return
 * error_set(ret_error, -EINVAL, ...)`. */
int error_set(char **ret_error, int code, const char *format, ...) PRINTF_LIKE(3, 4);
