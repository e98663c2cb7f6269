/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/buf.h"

int error_set(char **ret_error, int code, const char *format, ...)
{
    struct buf b = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&b, format, args);
    va_end(args);
    mem_free(*ret_error);
    *ret_error = buf_take(&b);
    return code;
}
