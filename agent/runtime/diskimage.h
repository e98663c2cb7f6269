/* SPDX-License-Identifier: Apache-2.0 */
/* What a disk image says of itself in its first and last bytes, before any other program opens it:
 * one that names other files, which would be files of this machine, is refused. Pure functions. */
#pragma once

#include "runtime/runtime.h"

/* Enough for the headers of every format, with the descriptor of a VMDK and the first volume
 * descriptor of an ISO. */
#define DISKIMAGE_HEAD_BYTES ((size_t) 64 * 1024)
#define DISKIMAGE_TAIL_BYTES ((size_t) 512)
#define DISKIMAGE_MAX_VIRTUAL_BYTES ((int64_t) 64 << 40)

/* As qemu calls it; NULL: no disk. */
const char *diskimage_driver(enum runtime_format f);
/* As EVE calls it: "qcow2". NULL: no disk. */
const char *diskimage_name(enum runtime_format f);
/* head and tail may be shorter where the file is. -EINVAL, -EPERM with *ret_error (heap): it is not
 * of that format, or it is not to be opened. */
int diskimage_check(enum runtime_format f, struct str head, struct str tail, char **ret_error);
