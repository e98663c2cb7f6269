/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "directory.h"
#include "test.h"

/* 2026-11-16T00:00:00Z */
#define START_US ((int64_t) 1794787200000000)
#define HOUR_US ((int64_t) 3600 * 1000000)

struct fixture {
    struct directory directory;
    struct arena *arena;
    struct clock_virtual clock;
    struct log_file *file;
};

static void open_log(struct fixture *f, int64_t max_size, int64_t max_age_s, int64_t max_backups)
{
    *f = (struct fixture){.directory = directory_make(), .arena = arena_new()};
    clock_virtual_init(&f->clock, START_US);
    assert_int_equal(
        log_file_open(&(struct log_file_options){directory_file(&f->directory, f->arena, "a.log"),
                                                 max_size, max_age_s, max_backups, &f->clock.clock},
                      &f->file),
        0);
}

static void close_log(struct fixture *f)
{
    log_file_close(f->file);
    directory_remove(&f->directory);
    arena_free(f->arena);
}

static void write_all(struct fixture *f, const char *lines)
{
    size_t taken = 0;
    assert_int_equal(log_file_write(f->file, str_of(lines), &taken), 0);
    assert_int_equal(taken, strlen(lines));
}

static struct str content(struct fixture *f, const char *name)
{
    return directory_read(&f->directory, f->arena, name);
}

static size_t n_files(struct fixture *f)
{
    const char *names[64];
    return directory_list(&f->directory, f->arena, names, N_ELEMENTS(names));
}

TEST(lines_are_appended_and_private)
{
    struct fixture f;
    struct stat st;
    open_log(&f, 0, 0, 0);
    write_all(&f, "one\ntwo\n");
    write_all(&f, "three\n");
    assert_str(content(&f, "a.log"), "one\ntwo\nthree\n");
    assert_int_equal(stat(directory_file(&f.directory, f.arena, "a.log"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close_log(&f);
}

TEST(a_full_file_is_rotated_between_lines)
{
    struct fixture f;
    open_log(&f, 10, 0, 0);
    write_all(&f, "one\ntwo\nthree\n");
    assert_str(content(&f, "a-2026-11-16T00-00-00.000.log"), "one\ntwo\n");
    assert_str(content(&f, "a.log"), "three\n");
    f.clock.now_us += 1500;
    write_all(&f, "a line longer than a file\nx\n");
    assert_str(content(&f, "a-2026-11-16T00-00-00.001.log"), "three\n");
    /* The clock stands still: the next name is made up. */
    assert_str(content(&f, "a-2026-11-16T00-00-00.002.log"), "a line longer than a file\n");
    assert_str(content(&f, "a.log"), "x\n");
    close_log(&f);
}

TEST(what_was_there_counts)
{
    struct fixture f;
    open_log(&f, 10, 0, 0);
    write_all(&f, "one\ntwo\n");
    log_file_close(f.file);
    assert_int_equal(
        log_file_open(&(struct log_file_options){directory_file(&f.directory, f.arena, "a.log"), 10,
                                                 0, 0, &f.clock.clock},
                      &f.file),
        0);
    write_all(&f, "three\n");
    assert_str(content(&f, "a-2026-11-16T00-00-00.000.log"), "one\ntwo\n");
    assert_str(content(&f, "a.log"), "three\n");
    close_log(&f);
}

TEST(no_backup_is_overwritten)
{
    struct fixture f;
    open_log(&f, 4, 0, 0);
    FILE *other =
        fopen(directory_file(&f.directory, f.arena, "a-2026-11-16T00-00-00.000.log"), "w");
    (void) fclose(other);
    write_all(&f, "one\ntwo\n");
    assert_str(content(&f, "a-2026-11-16T00-00-00.000.log"), "");
    assert_str(content(&f, "a-2026-11-16T00-00-00.001.log"), "one\n");
    close_log(&f);
}

TEST(only_the_newest_backups_are_kept)
{
    struct fixture f;
    open_log(&f, 4, 0, 2);
    for (int i = 0; i < 5; i++) {
        write_all(&f, "one\n");
        f.clock.now_us += HOUR_US;
    }
    assert_int_equal(n_files(&f), 3);
    assert_str(content(&f, "a-2026-11-16T04-00-00.000.log"), "one\n");
    assert_str(content(&f, "a-2026-11-16T03-00-00.000.log"), "one\n");
    close_log(&f);
}

TEST(old_backups_go_and_strangers_stay)
{
    static const char *const strangers[] = {"b-2020-01-01T00-00-00.000.log", "a-old.log",
                                            "a-2020-13-01T00-00-00.000.log",
                                            "a-2020-01-01T00-00-00.000.txt"};
    struct fixture f;
    open_log(&f, 4, 7200, 0);
    for (size_t i = 0; i < N_ELEMENTS(strangers); i++)
        (void) fclose(fopen(directory_file(&f.directory, f.arena, strangers[i]), "w"));
    for (int i = 0; i < 6; i++) {
        write_all(&f, "one\n");
        f.clock.now_us += HOUR_US;
    }
    for (size_t i = 0; i < N_ELEMENTS(strangers); i++)
        assert_non_null(content(&f, strangers[i]).p);
    /* Rotated at 1, 2, 3, 4, 5 o'clock, the last time at 5. */
    assert_int_equal(n_files(&f), N_ELEMENTS(strangers) + 1 + 3);
    assert_null(content(&f, "a-2026-11-16T02-00-00.000.log").p);
    close_log(&f);
}

TEST(a_file_moved_away_is_opened_anew)
{
    struct fixture f;
    open_log(&f, 0, 0, 0);
    write_all(&f, "one\n");
    assert_int_equal(rename(directory_file(&f.directory, f.arena, "a.log"),
                            directory_file(&f.directory, f.arena, "moved")),
                     0);
    write_all(&f, "two\n");
    assert_int_equal(log_file_follow(f.file), 0);
    write_all(&f, "three\n");
    assert_int_equal(log_file_follow(f.file), 0);
    assert_str(content(&f, "moved"), "one\ntwo\n");
    assert_str(content(&f, "a.log"), "three\n");
    close_log(&f);
}

TEST(space_reserved_under_load_is_given_back)
{
    static char lines[256 * 1024];
    struct fixture f;
    struct stat st;
    size_t taken = 0;
    open_log(&f, 0, 0, 0);
    const char *path = directory_file(&f.directory, f.arena, "a.log");
    memset(lines, 'x', sizeof(lines));
    lines[sizeof(lines) - 1] = '\n';
    assert_int_equal(log_file_write(f.file, str_range(lines, sizeof(lines)), &taken), 0);
    assert_int_equal(truncate(path, 0), 0); /* somebody empties it */
    write_all(&f, "one\n");
    log_file_close(TAKE(f.file));
    assert_str(content(&f, "a.log"), "one\n");
    assert_int_equal(stat(path, &st), 0);
    assert_in_range(st.st_blocks * 512, 0, 64 * 1024);
    close_log(&f);
}

TEST(a_full_disk_takes_whole_lines_only)
{
    struct fixture f;
    size_t taken = 0;
    struct rlimit before, small = {.rlim_cur = 10};
    open_log(&f, 0, 0, 0);
    (void) signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = log_file_write(f.file, STR("one\ntwo\nthree\n"), &taken);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(taken, 8);
    assert_str(content(&f, "a.log"), "one\ntwo\n");
    write_all(&f, "three\n");
    assert_str(content(&f, "a.log"), "one\ntwo\nthree\n");
    close_log(&f);
}

TEST(what_is_no_regular_file_is_never_moved)
{
    struct directory d = directory_make();
    ARENA_AUTO a = arena_new();
    char *pipe = directory_file(&d, a, "a.log"), text[64] = "";
    struct log_file *f = NULL;
    struct stat st;
    size_t taken = 0;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(log_file_open(&(struct log_file_options){pipe, 4, 1, 1, &clock_system}, &f),
                     0);
    assert_int_equal(log_file_write(f, STR("one\ntwo\nthree\n"), &taken), 0);
    assert_int_equal(taken, 14);
    assert_int_equal(log_file_follow(f), 0);
    assert_int_equal(read(reader, text, sizeof(text)), 14);
    assert_string_equal(text, "one\ntwo\nthree\n");
    const char *names[4];
    assert_int_equal(directory_list(&d, a, names, N_ELEMENTS(names)), 1);
    assert_int_equal(stat(pipe, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    log_file_close(f);
    (void) close(reader);
    directory_remove(&d);
}

TEST(a_directory_that_is_not_there_fails)
{
    struct log_file *f = NULL;
    assert_int_equal(
        log_file_open(&(struct log_file_options){"/nowhere/a.log", 0, 0, 0, &clock_system}, &f),
        -ENOENT);
}
