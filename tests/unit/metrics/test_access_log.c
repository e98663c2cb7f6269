/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

/* What the entry writes at that level. */
static struct str logged(struct arena *a, enum log_level level, const struct access_entry *e)
{
    char text[4096];
    int ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    (void) dup2(ends[1], STDERR_FILENO);
    log_set_level(level);
    access_log_request(e);
    (void) dup2(before, STDERR_FILENO);
    (void) close(ends[1]);
    (void) close(before);
    ssize_t n = read(ends[0], text, sizeof(text));
    (void) close(ends[0]);
    assert_true(n >= 0);
    return arena_str(a, str_range(text, (size_t) n));
}

TEST(what_is_written_depends_on_level_and_duration)
{
    static const struct {
        enum log_level level;
        int64_t duration_us;
        bool is_long_running;
        const char *written; /* NULL: nothing */
    } cases[] = {
        {LOG_INFO, 1000, false, NULL},
        {LOG_INFO, 1000000, false, NULL},
        {LOG_INFO, 1000001, false, "level=info msg=\"slow request\""},
        {LOG_INFO, 600000000, true, NULL},
        {LOG_WARNING, 5000000, false, NULL},
        {LOG_DEBUG, 1000, false, "level=debug msg=\"request\""},
        {LOG_DEBUG, 5000000, false, "level=info msg=\"slow request\""},
        {LOG_DEBUG, 600000000, true, "level=debug msg=\"request\""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct access_entry e = {.method = STR("GET"),
                                 .path = STR("/a\nb"),
                                 .code = 200,
                                 .duration_us = cases[i].duration_us,
                                 .user = STR("jane"),
                                 .is_long_running = cases[i].is_long_running};
        struct str line = logged(a, cases[i].level, &e);
        assert_int_equal(access_log_wants(e.duration_us, e.is_long_running), line.n > 0);
        assert_int_equal(line.n > 0, cases[i].written != NULL);
        if (!cases[i].written)
            continue;
        assert_true(str_find_str(line, str_of(cases[i].written)) > 0);
        assert_true(str_find_str(line, STR("method=\"GET\" path=\"/a\\x0ab\" code=200")) > 0);
        assert_int_equal(str_find(line, '\n'), line.n - 1);
    }
    log_set_level(LOG_INFO);
}
