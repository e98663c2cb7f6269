/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/diskimage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"

static const struct {
    enum runtime_format format;
    const char *name, *driver;
} formats[] = {
    {RUNTIME_QCOW2, "qcow2", "qcow2"}, {RUNTIME_RAW, "raw", "raw"},
    {RUNTIME_VMDK, "vmdk", "vmdk"},    {RUNTIME_VHD, "vhd", "vpc"},
    {RUNTIME_VHDX, "vhdx", "vhdx"},    {RUNTIME_ISO, "iso", "raw"},
};

const char *diskimage_driver(enum runtime_format f)
{
    for (size_t i = 0; i < N_ELEMENTS(formats); i++)
        if (formats[i].format == f)
            return formats[i].driver;
    return NULL;
}

const char *diskimage_name(enum runtime_format f)
{
    for (size_t i = 0; i < N_ELEMENTS(formats); i++)
        if (formats[i].format == f)
            return formats[i].name;
    return NULL;
}

static bool has(struct str bytes, size_t at, const char *text, size_t n)
{
    return bytes.n >= at + n && memcmp(bytes.p + at, text, n) == 0;
}

/* Beyond the end everything is 0: each format checks its length first. */
static uint64_t number(struct str bytes, size_t at, size_t n, bool is_big)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        size_t from = at + (is_big ? i : n - 1 - i);
        v = v << 8 | (from < bytes.n ? (unsigned char) bytes.p[from] : 0);
    }
    return v;
}

static uint32_t be32(struct str bytes, size_t at)
{
    return (uint32_t) number(bytes, at, 4, true);
}

static uint64_t be64(struct str bytes, size_t at)
{
    return number(bytes, at, 8, true);
}

static uint64_t le64(struct str bytes, size_t at)
{
    return number(bytes, at, 8, false);
}

static int check_size(uint64_t virtual_bytes, char **ret_error)
{
    if (virtual_bytes > (uint64_t) DISKIMAGE_MAX_VIRTUAL_BYTES)
        return error_set(ret_error, -EFBIG,
                         "disk image: a disk of %" PRIu64 " bytes is larger than is allowed here",
                         virtual_bytes);
    return 0;
}

/* ---- qcow2: docs/interop/qcow2.txt of qemu -------------------------------------------------- */

enum {
    QCOW2_V2_BYTES = 72,
    QCOW2_V3_BYTES = 104,
    QCOW2_CORRUPT = 1 << 1,
    QCOW2_DATA_FILE = 1 << 2,
    QCOW2_KNOWN = 0x1f, /* dirty, corrupt, data file, compression, extended tables */
};
#define QCOW2_EXTENSION_DATA_FILE 0x44415441U
#define QCOW2_EXTENSION_ENCRYPTION 0x0537be77U

static int refuse_names(char **ret_error, const char *what)
{
    return error_set(ret_error, -EPERM,
                     "disk image: it names %s, which would be a file of this device; make it whole "
                     "with 'qemu-img convert'",
                     what);
}

static int check_extensions(struct str head, size_t at, char **ret_error)
{
    while (head.n >= at + 8) {
        uint32_t type = be32(head, at), n = be32(head, at + 4);
        if (!type)
            return 0;
        if (type == QCOW2_EXTENSION_DATA_FILE)
            return refuse_names(ret_error, "an external data file");
        if (type == QCOW2_EXTENSION_ENCRYPTION)
            return error_set(ret_error, -EPERM, "disk image: it is encrypted");
        at += 8 + (((size_t) n + 7) & ~(size_t) 7);
    }
    return 0;
}

static int check_features(uint64_t features, char **ret_error)
{
    if (features & QCOW2_DATA_FILE)
        return refuse_names(ret_error, "an external data file");
    if (features & QCOW2_CORRUPT)
        return error_set(ret_error, -EINVAL, "disk image: it is marked as corrupt");
    if (features & ~(uint64_t) QCOW2_KNOWN)
        return error_set(ret_error, -EINVAL,
                         "disk image: features 0x%" PRIx64 " are not known here", features);
    return 0;
}

static int check_qcow2(struct str head, char **ret_error)
{
    uint32_t version = be32(head, 4), cluster_bits = be32(head, 20);
    if (!has(head, 0, "QFI\xfb", 4) || head.n < QCOW2_V2_BYTES)
        return error_set(ret_error, -EINVAL, "disk image: no qcow2");
    if (version != 2 && version != 3)
        return error_set(ret_error, -EINVAL, "disk image: qcow version %" PRIu32 " is not 2 or 3",
                         version);
    if (version == 3 && head.n < QCOW2_V3_BYTES)
        return error_set(ret_error, -EINVAL, "disk image: cut off in its header");
    if (be64(head, 8) || be32(head, 16))
        return refuse_names(ret_error, "a backing file");
    if (be32(head, 32))
        return error_set(ret_error, -EPERM, "disk image: it is encrypted");
    if (cluster_bits < 9 || cluster_bits > 21)
        return error_set(ret_error, -EINVAL, "disk image: clusters of 2^%" PRIu32 " bytes",
                         cluster_bits);
    int e = check_size(be64(head, 24), ret_error);
    if (!e && version == 3)
        e = check_features(be64(head, 72), ret_error);
    return e < 0
               ? e
               : check_extensions(head, version == 3 ? be32(head, 100) : QCOW2_V2_BYTES, ret_error);
}

/* ---- the others ----------------------------------------------------------------------------- */

#define SECTOR 512

/* Only the kinds that are one file: a descriptor may name any others as its extents, and with a
 * capacity of 0 qemu would follow it. */
static int check_vmdk(struct str head, char **ret_error)
{
    static const char *const kinds[] = {"createType=\"monolithicSparse\"",
                                        "createType=\"streamOptimized\""};
    if (!has(head, 0, "KDMV", 4) || head.n < SECTOR)
        return error_set(ret_error, -EINVAL, "disk image: no VMDK of one file");
    uint64_t capacity = le64(head, 12), sectors = le64(head, 36);
    uint64_t at = le64(head, 28) * SECTOR;
    if (!capacity || capacity > (uint64_t) DISKIMAGE_MAX_VIRTUAL_BYTES / SECTOR)
        return error_set(ret_error, -EINVAL, "disk image: a VMDK of %" PRIu64 " sectors", capacity);
    if (str_find_str(head, STR("parentFileNameHint")) >= 0)
        return refuse_names(ret_error, "a parent");
    if (at != SECTOR || !sectors || head.n < 2 * SECTOR)
        return error_set(ret_error, -EINVAL, "disk image: a VMDK without descriptor");
    struct str descriptor = str_sub(head, SECTOR, MIN(head.n, SECTOR + 20 * SECTOR));
    for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
        if (str_find_str(descriptor, str_of(kinds[i])) >= 0)
            return 0;
    return error_set(ret_error, -EPERM,
                     "disk image: a VMDK that is neither monolithicSparse nor streamOptimized may "
                     "name files of this device");
}

/* A fixed one has its only header at its end. */
static int check_vhd(struct str head, struct str tail, char **ret_error)
{
    struct str footer = has(head, 0, "conectix", 8) ? head : tail;
    if (!has(footer, 0, "conectix", 8) || footer.n < SECTOR)
        return error_set(ret_error, -EINVAL, "disk image: no VHD");
    if (be32(footer, 60) != 2 && be32(footer, 60) != 3)
        return refuse_names(ret_error, "a parent");
    return check_size(be64(footer, 48), ret_error);
}

int diskimage_check(enum runtime_format f, struct str head, struct str tail, char **ret_error)
{
    switch (f) {
    case RUNTIME_QCOW2:
        return check_qcow2(head, ret_error);
    case RUNTIME_VMDK:
        return check_vmdk(head, ret_error);
    case RUNTIME_VHD:
        return check_vhd(head, tail, ret_error);
    case RUNTIME_VHDX: /* qemu opens none that has a parent */
        return has(head, 0, "vhdxfile", 8) ? 0
                                           : error_set(ret_error, -EINVAL, "disk image: no VHDX");
    case RUNTIME_ISO:
        return has(head, 32769, "CD001", 5)
                   ? 0
                   : error_set(ret_error, -EINVAL, "disk image: no ISO 9660");
    case RUNTIME_RAW:
        return head.n ? 0 : error_set(ret_error, -EINVAL, "disk image: an empty file");
    default:
        return error_set(ret_error, -EINVAL, "no disk image");
    }
}
