/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "loguploader/loginput.h"
#include "test.h"

TEST(lines_of_syslog)
{
    static const struct {
        const char *line, *severity, *source, *pid, *content;
    } cases[] = {
        {"<30>Jan  2 15:04:05 crond[123]: hello: you", "info", "crond", "123", "hello: you"},
        {"<13>Jan  2 15:04:05 host prog: hello", "notice", "prog", "", "hello"},
        {"<11>2026-01-02T15:04:05+01:00 host prog[9]: hello\n", "err", "prog", "9", "hello"},
        {"<14>prog: hello", "info", "prog", "", "hello"},
        {"<191>Jan  2 15:04:05 p: x", "debug", "p", "", "x"},
        {"no priority at all", "info", "syslog", "", "no priority at all"},
        {"<>: x", "info", "<>", "", "x"},
        {"<9999>x: y", "info", "<9999>x", "", "y"},
        {"<-1>x: y", "info", "<-1>x", "", "y"},
        {"<30>Jan  2 15:04:05 [77]: only a number", "info", "", "77", "only a number"},
        {"", "info", "syslog", "", ""},
        {"<30>", "info", "syslog", "", ""},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct loginput in = loginput_syslog(str_of(cases[i].line));
        assert_string_equal(loginput_severity(in.level), cases[i].severity);
        assert_str(in.source, cases[i].source);
        assert_str(in.pid, cases[i].pid);
        assert_str(in.content, cases[i].content);
    }
}

TEST(records_of_the_kernel)
{
    struct loginput in;
    assert_int_equal(loginput_kernel(STR("6,1234,5678901,-;eth0: link up\n SUBSYSTEM=net\n"), &in),
                     0);
    assert_str(in.content, "eth0: link up");
    assert_str(in.source, "kernel");
    assert_true(in.level == 6 && in.sequence == 1234 && in.boot_us == 5678901);
    assert_int_equal(loginput_kernel(STR("30,1,2,c,more=1;a;b"), &in), 0);
    assert_str(in.content, "a;b");
    assert_int_equal(in.level, 6);
    static const char *const bad[] = {"", "6,1,2,-", "6,1;x", "x,1,2,-;x", "6,-1,2,-;x", ";x"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_int_equal(loginput_kernel(str_of(bad[i]), &in), -EBADMSG);
}

TEST(levels_have_names)
{
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(loginput_level(str_of(loginput_severity(i))), i);
    assert_int_equal(loginput_level(STR("all")), 7);
    assert_int_equal(loginput_level(STR("none")), -1);
    assert_int_equal(loginput_level(STR("error")), 3);
    assert_int_equal(loginput_level(STR("warn")), 4);
    assert_int_equal(loginput_level(STR("anything else")), 7);
}
