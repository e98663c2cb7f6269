/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a disk image, taken for each format: what passes as a qcow2 names no other
 * file, as its specification says where such names are. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/diskimage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_zero(const uint8_t *data, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (data[at + i])
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const enum runtime_format formats[] = {RUNTIME_QCOW2, RUNTIME_RAW,  RUNTIME_VMDK,
                                                  RUNTIME_VHD,   RUNTIME_VHDX, RUNTIME_ISO};
    struct str head = str_range((const char *) data, MIN(n, DISKIMAGE_HEAD_BYTES));
    struct str tail = str_from(str_range((const char *) data, n),
                               n > DISKIMAGE_TAIL_BYTES ? n - DISKIMAGE_TAIL_BYTES : 0);
    for (size_t i = 0; i < N_ELEMENTS(formats); i++) {
        char *error = NULL;
        int r = diskimage_check(formats[i], head, tail, &error);
        if ((r < 0) != (error != NULL))
            abort();
        if (r == 0 && formats[i] == RUNTIME_QCOW2 && !is_zero(data, 8, 12))
            abort();
        if (r == 0 && formats[i] == RUNTIME_QCOW2 && data[7] == 3 && (data[79] & 4))
            abort();
        mem_free(error);
    }
    return 0;
}
