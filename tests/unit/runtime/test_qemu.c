/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "runtime/diskimage.h"
#include "runtime/qemu_command.h"
#include "runtime/qmp.h"

/* ---- how it is called ------------------------------------------------------------------------ */

static struct str command_of(struct arena *a, const struct qemu_input *in)
{
    BUF_AUTO text = {0};
    for (const char *const *w = qemu_command(a, in); *w; w++)
        buf_printf(&text, "%s ", *w);
    return arena_str(a, buf_str(&text));
}

static void assert_has(struct str text, const char *part)
{
    if (str_find_str(text, str_of(part)) < 0)
        fail_msg("'%s' is not in\n%.*s", part, STR_ARG(text));
}

TEST(a_machine_is_made_of_what_was_asked_for_and_of_nothing_else)
{
    ARENA_AUTO a = arena_new();
    const struct qemu_disk disks[] = {
        {.path = STR("/v/a,readonly=off/disk.qcow2"), .kind = QEMU_DISK_QCOW2},
        {.path = STR("/v/\"b/disk.raw"), .kind = QEMU_DISK_RAW, .is_read_only = true},
        {.path = STR("/i/cidata.iso"), .kind = QEMU_DISK_CDROM},
    };
    const struct str macs[] = {STR("02:16:3e:00:00:01")};
    const struct qemu_input in = {
        .program = "qemu-system-x86_64",
        .machine = qemu_machine_for(STR("amd64")),
        .id = STR("11111111-1111-4111-8111-111111111111"),
        .has_kvm = true,
        .memory_bytes = ((int64_t) 64 << 20) + 1,
        .cpu_millis = 1500,
        .disks = disks,
        .n_disks = N_ELEMENTS(disks),
        .macs = macs,
        .n_interfaces = 1,
    };
    struct str text = command_of(a, &in);
    static const char *const wanted[] = {
        "-nodefaults -no-user-config",
        "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-uuid 11111111-1111-4111-8111-111111111111",
        "-accel kvm -cpu host",
        "-m 65M -smp 2",
        "{\"driver\":\"qcow2\",\"node-name\":\"disk0\",\"read-only\":false,\"file\":",
        "\"file\":{\"driver\":\"file\",\"filename\":\"/v/a,readonly=off/disk.qcow2\"}}",
        "\"node-name\":\"disk1\",\"read-only\":true",
        "\"filename\":\"/v/\\\"b/disk.raw\"",
        "-device virtio-blk-pci,drive=disk0,bootindex=1",
        "-device scsi-cd,drive=disk2,bootindex=3",
        "-netdev tap,id=net0,fd=4 -device virtio-net-pci,netdev=net0,mac=02:16:3e:00:00:01",
    };
    for (size_t i = 0; i < N_ELEMENTS(wanted); i++)
        assert_has(text, wanted[i]);
}

TEST(without_kvm_and_without_wishes_there_are_defaults)
{
    ARENA_AUTO a = arena_new();
    const struct qemu_input in = {
        .program = "qemu-system-aarch64",
        .machine = qemu_machine_for(STR("arm64")),
        .id = STR("machine-7"),
    };
    struct str text = command_of(a, &in);
    assert_has(text, "-accel tcg,tb-size=64 -cpu max");
    assert_has(text, "-m 512M -smp 1 ");
    assert_true(str_find_str(text, STR("-uuid")) < 0 && str_find_str(text, STR("scsi")) < 0);
    assert_null(qemu_machine_for(STR("riscv64")));
}

/* ---- what it tells --------------------------------------------------------------------------- */

TEST(numbers_of_disks_are_summed_whatever_they_are)
{
    ARENA_AUTO a = arena_new();
    struct qmp_disks d = {.n_reads = 7};
    assert_false(qmp_read_disks(a, STR("{\"return\":{\"status\":\"running\"}}"), &d));
    assert_false(qmp_read_disks(a, STR("{\"return\":[]}"), &d));
    assert_false(qmp_read_disks(a, STR("no JSON"), &d));
    assert_int_equal(d.n_reads, 7);
    assert_true(qmp_read_disks(
        a,
        STR("{\"return\":[{\"stats\":{\"rd_bytes\":5,\"wr_bytes\":9223372036854775807,\"rd_"
            "operations\":1}},"
            "{\"stats\":{\"rd_bytes\":6,\"wr_bytes\":9223372036854775807,\"wr_operations\":-4}}]}"),
        &d));
    assert_int_equal(d.read_bytes, 11);
    assert_int_equal(d.written_bytes, INT64_MAX);
    assert_int_equal(d.n_reads, 1);
    assert_int_equal(d.n_writes, 0);
}

/* ---- what may be opened ---------------------------------------------------------------------- */

/* A qcow2 of version 3 with one thing other than it should be. */
static int check_with(size_t at, unsigned char value, char **ret_error)
{
    char head[DISKIMAGE_TAIL_BYTES] = "QFI\xfb";
    head[7] = 3;
    head[23] = 16;
    head[29] = 16; /* 1 MiB */
    head[103] = 104;
    if (at)
        head[at] = (char) value;
    return diskimage_check(RUNTIME_QCOW2, str_range(head, sizeof(head)), STR(""), ret_error);
}

TEST(a_qcow2_is_refused_for_whatever_it_names_and_hides)
{
    static const struct {
        size_t at;
        unsigned char value;
        int result;
        const char *error;
    } cases[] = {
        {0, 0, 0, NULL},
        {15, 1, -EPERM, "a backing file"},
        {19, 1, -EPERM, "a backing file"},
        {35, 1, -EPERM, "encrypted"},
        {7, 1, -EINVAL, "qcow version 1"},
        {7, 4, -EINVAL, "qcow version 4"},
        {23, 8, -EINVAL, "clusters of 2^8"},
        {23, 22, -EINVAL, "clusters of 2^22"},
        {24, 1, -EFBIG, "larger than is allowed"},
        {79, 1, 0, NULL}, /* dirty: qemu-img mends its copy */
        {79, 2, -EINVAL, "corrupt"},
        {79, 4, -EPERM, "an external data file"},
        {79, 32, -EINVAL, "features 0x20"},
        {72, 1, -EINVAL, "features 0x1"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *error = NULL;
        assert_int_equal(check_with(cases[i].at, cases[i].value, &error), cases[i].result);
        if (cases[i].error)
            assert_has(str_of(error), cases[i].error);
        else
            assert_null(error);
        mem_free(error);
    }
}
