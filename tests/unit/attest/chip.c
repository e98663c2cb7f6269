/* SPDX-License-Identifier: Apache-2.0 */
#include "chip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_MS 20000

const char *chip_path(struct chip *c, const char *below)
{
    return arena_printf(c->arena, "%s/%s", c->root, below).p;
}

static void exec_swtpm(struct chip *c)
{
    const char *state = arena_printf(c->arena, "dir=%s", c->root).p;
    const char *server = arena_printf(c->arena, "type=unixio,path=%s/tpm", c->root).p;
    const char *control = arena_printf(c->arena, "type=unixio,path=%s/tpm.ctrl", c->root).p;
    const int null = open("/dev/null", O_RDWR);
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not come to its end */
    for (int fd = 0; fd < 3; fd++)
        (void) dup2(null, fd);
    (void) execlp("swtpm", "swtpm", "socket", "--tpm2", "--tpmstate", state, "--server", server,
                  "--ctrl", control, "--flags", "not-need-init,startup-clear", (char *) NULL);
    _exit(127);
}

void chip_init(struct chip *c)
{
    *c = (struct chip){.root = "/tmp/test-chip-XXXXXX", .arena = arena_new()};
    assert_non_null(mkdtemp(c->root));
    c->process = fork();
    assert_true(c->process >= 0);
    if (c->process == 0)
        exec_swtpm(c);
    for (int waited = 0; access(chip_path(c, "tpm"), F_OK) != 0; waited += 10) {
        assert_true(waited < START_MS);
        assert_int_equal(waitpid(c->process, NULL, WNOHANG), 0);
        (void) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    c->tcti = arena_printf(c->arena, "swtpm:path=%s/tpm", c->root).p;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void) st, (void) type, (void) at;
    return remove(path);
}

void chip_done(struct chip *c)
{
    (void) kill(c->process, SIGKILL);
    (void) waitpid(c->process, NULL, 0);
    (void) nftw(c->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_free(c->arena);
}

void chip_run(struct chip *c, const char *command)
{
    const char *line = arena_printf(c->arena, "cd %s && (%s) >>out 2>&1", c->root, command).p;
    if (system(line) != 0)
        fail_msg("%s failed", command);
}

void chip_tool(struct chip *c, const char *command)
{
    chip_run(c, arena_printf(c->arena, "%s -T %s", command, c->tcti).p);
}

void chip_extend(struct chip *c, int pcr)
{
    chip_tool(c, arena_printf(c->arena,
                              "tpm2_pcrextend %d:sha256="
                              "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                              pcr)
                     .p);
}
