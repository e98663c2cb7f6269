/* SPDX-License-Identifier: Apache-2.0 */
#include "key_command.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/alloc.h"
#include "test.h"

static int run(const char *command, int64_t timeout_ms, struct buf *to, char **ret_error)
{
    return key_command_run(
        &(struct key_command){command, "wrap", STR("what goes in\n"), timeout_ms}, to, ret_error);
}

TEST(command_gets_the_verb_and_the_input)
{
    BUF_AUTO out = {0};
    char *error = NULL;
    buf_append_str(&out, STR("before:"));
    assert_int_equal(run("sh -c 'cat; echo $0'", 0, &out, &error), 0);
    assert_null(error);
    assert_str(buf_str(&out), "before:what goes in\nwrap\n");
}

TEST(command_sees_signals_as_programs_expect_them)
{
    BUF_AUTO out = {0};
    char *error = NULL;
    (void) signal(SIGPIPE, SIG_IGN);
    assert_int_equal(run("kill -PIPE $$; echo alive;:", 0, &out, &error), -EIO);
    assert_non_null(strstr(error, "signal 13"));
    mem_free(error);
    (void) signal(SIGPIPE, SIG_DFL);
}

TEST(command_that_does_not_read_is_no_trouble)
{
    BUF_AUTO out = {0};
    char *error = NULL;
    assert_int_equal(run("exec 0<&-; echo fine;:", 0, &out, &error), 0);
    assert_str(buf_str(&out), "fine\n");
}

TEST(failures_are_named_and_leave_no_output)
{
    static const struct {
        const char *command, *words;
        int result;
    } cases[] = {
        {"echo secret; exit 3;:", "exit code 3", -EIO},
        {"/nonexistent/command", "exit code 127", -EIO},
        {"syntax ( error", "exit code 2", -EIO},
        {"kill -9 $$;:", "signal 9", -EIO},
        {"head -c 20000 /dev/zero;:", "more than 16384 bytes", -EFBIG},
        {"yes;:", "more than 16384 bytes", -EFBIG},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO out = {0};
        char *error = NULL;
        buf_append_str(&out, STR("before"));
        assert_int_equal(run(cases[i].command, 0, &out, &error), cases[i].result);
        assert_non_null(strstr(error, cases[i].words));
        assert_non_null(strstr(error, cases[i].command));
        assert_int_equal(out.n, 6);
        mem_free(error);
    }
}

TEST(command_that_takes_too_long_is_killed_with_its_children)
{
    static const char *const commands[] = {
        "sleep 1000;:",               /* prints nothing */
        "exec >&-; exec sleep 1000;", /* has printed all */
        "sleep 1000 & echo early;:",  /* is gone, but not its child */
        "yes | sleep 1000;:",
    };
    for (size_t i = 0; i < N_ELEMENTS(commands); i++) {
        BUF_AUTO out = {0};
        char *error = NULL;
        assert_int_equal(run(commands[i], 50, &out, &error), -ETIMEDOUT);
        assert_non_null(strstr(error, "50 ms"));
        assert_int_equal(out.n, 0);
        mem_free(error);
    }
}
