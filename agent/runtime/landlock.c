/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

/* All that the first version of it knows. */
#define EVERYTHING \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | \
     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

static int add_rule(int ruleset, const struct landlock_rule *r)
{
    FD_AUTO at = r->path ? open(r->path, O_PATH | O_CLOEXEC) : -1;
    struct stat st;
    if (at < 0 || fstat(at, &st) < 0)
        return 0;
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
        .parent_fd = at,
    };
    if (S_ISDIR(st.st_mode))
        rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    rule.allowed_access |=
        r->use == LANDLOCK_READ ? LANDLOCK_ACCESS_FS_EXECUTE : LANDLOCK_ACCESS_FS_WRITE_FILE;
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0U) < 0
               ? -errno
               : 0;
}

int landlock_make(const struct landlock_rule *rules, size_t n)
{
    const struct landlock_ruleset_attr all = {.handled_access_fs = EVERYTHING};
    long fd = syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0U);
    if (fd < 0)
        return errno == ENOSYS ? -EOPNOTSUPP : -errno;
    for (size_t i = 0; i < n; i++) {
        int e = add_rule((int) fd, &rules[i]);
        if (e < 0) {
            (void) close((int) fd);
            return e;
        }
    }
    return (int) fd;
}

int landlock_enter(int fd)
{
    return syscall(SYS_landlock_restrict_self, fd, 0U) < 0 ? -errno : 0;
}
