/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "logs.h"
#include "test.h"

#define APP "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

TEST(names_of_packed_files)
{
    static const struct {
        const char *name;
        bool is_good, is_app, is_skipped;
        int64_t time_ms;
    } cases[] = {
        {"dev.log.1700000000123.gz", true, false, false, 1700000000123},
        {"dev.log.1.gz", true, false, false, 1},
        {"app." APP ".log.1700000000123.gz", true, true, false, 1700000000123},
        {"app.skipTx." APP ".log.5.gz", true, true, true, 5},
        {"dev.log.0.gz", false},
        {"dev.log..gz", false},
        {"dev.log.gz", false},
        {"dev.log.-5.gz", false},
        {"dev.log.12a.gz", false},
        {"dev.log.12", false},
        {"dev.log.12.gz.tmp", false},
        {"dev.log.9999999999999999999999.gz", false},
        {"dev.log.keep.5.gz", false},
        {"app.6ba7b810.log.5.gz", false},
        {"app.00000000-0000-0000-0000-000000000000.log.5.gz", false},
        {"app." APP ".5.gz", false},
        {"TempFile.dev.log.5.gz", false},
        {"", false},
        {".gz", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct logfile f;
        int r = logfile_parse(str_of(cases[i].name), &f);
        if ((r == 0) != cases[i].is_good)
            fail_msg("%s: %d", cases[i].name, r);
        if (r < 0)
            continue;
        assert_int_equal(f.is_app, cases[i].is_app);
        assert_int_equal(f.is_skipped, cases[i].is_skipped);
        assert_int_equal(f.time_ms, cases[i].time_ms);
        assert_str(logfile_name(a, &f), cases[i].name);
    }
}

TEST(names_of_raw_files)
{
    static const struct {
        const char *name;
        int r;
        int64_t time_ms;
    } cases[] = {
        {"dev.log.1700000000123", 0, 1700000000123},
        {"app." APP ".log.17", 0, 17},
        {"dev.log.upload123456", 0, 0}, /* newlogd's */
        {"dev.log123456", 0, 0},
        {"app." APP ".log123456", 0, 0},
        {"dev.log.keep123456", -EINVAL},
        {"dev.log", -EINVAL},
        {"current.device.log", -EINVAL},
        {"TempFile.dev.log.5.0", -EINVAL},
        {"done.dev.log.5", -EINVAL},
        {"dev.log.5.gz", -EINVAL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct logfile f = {.time_ms = -1};
        int r = logfile_parse_raw(str_of(cases[i].name), &f);
        if (r != cases[i].r || (r == 0 && f.time_ms != cases[i].time_ms))
            fail_msg("%s: %d, %lld", cases[i].name, r, (long long) f.time_ms);
    }
}

TEST(the_oldest_file_is_found)
{
    struct logs l;
    logs_init(&l);
    struct logfiles_oldest oldest;
    assert_int_equal(logfiles_find_oldest(l.arena, l.root, LOG_DEV_UPLOAD, &oldest), 0);
    assert_true(oldest.n_files == 0 && !oldest.name.p);
    static const char *const names[] = {"dev.log.30.gz", "dev.log.200.gz", "dev.log.9.gz",
                                        "dev.log.4",     "TempFile123",    "app." APP ".log.3.gz"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        logs_put(&l, LOG_DEV_UPLOAD, names[i], STR("x"));
    assert_int_equal(logfiles_find_oldest(l.arena, l.root, LOG_DEV_UPLOAD, &oldest), 0);
    assert_int_equal(oldest.n_files, 3);
    assert_str(oldest.name, "dev.log.9.gz");
    logs_put(&l, LOG_APP_UPLOAD, "app.skipTx." APP ".log.1.gz", STR("x"));
    logs_put(&l, LOG_APP_UPLOAD, "app." APP ".log.2.gz", STR("x"));
    assert_int_equal(logfiles_find_oldest(l.arena, l.root, LOG_APP_UPLOAD, &oldest), 0);
    assert_int_equal(oldest.n_files, 1);
    assert_str(oldest.name, "app." APP ".log.2.gz");
    assert_int_equal(logfiles_find_oldest(l.arena, "/nowhere", LOG_APP_UPLOAD, &oldest), 0);
    assert_true(!oldest.name.p);
    logs_done(&l);
}

TEST(the_oldest_go_first)
{
    struct logs l;
    logs_init(&l);
    logs_put_size(&l, LOG_KEEP_SENT, "dev.log.30.gz", 100);
    logs_put_size(&l, LOG_KEEP_SENT, "app." APP ".log.4.gz", 100);
    logs_put_size(&l, LOG_KEEP_SENT, "dev.log.200.gz", 100);
    logs_put_size(&l, LOG_KEEP_SENT, "something", 100);
    struct logfiles_usage all = {0};
    logfiles_measure(l.root, LOG_KEEP_SENT, &all);
    assert_true(all.n_bytes == 300 && all.n_files == 3 && all.oldest_ms == 4 &&
                all.newest_ms == 200);
    struct logfiles_usage gone = logfiles_remove_oldest(l.root, LOG_KEEP_SENT, 101, 0);
    assert_true(gone.n_bytes == 200 && gone.n_files == 2 && gone.newest_ms == 30);
    assert_str(logs_names(&l, LOG_KEEP_SENT), "dev.log.200.gz something ");
    gone = logfiles_remove_oldest(l.root, LOG_KEEP_SENT, 0, 5);
    assert_int_equal(gone.n_files, 1);
    logs_done(&l);
}

TEST(a_file_that_is_gone_is_moved_already)
{
    struct logs l;
    logs_init(&l);
    logs_put(&l, LOG_APP_UPLOAD, "a", STR("x"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            logfiles_move(l.root, LOG_APP_UPLOAD, LOG_KEEP_SENT, STR("a"), /* syncs= */ true), 0);
    assert_str(logs_names(&l, LOG_KEEP_SENT), "a ");
    logs_done(&l);
}
