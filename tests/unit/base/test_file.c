/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

/* More than a pipe holds and than one read takes. */
#define MANY_BYTES ((size_t) 300 * 1000)

static int file_of(struct str content)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, content), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void fill(struct buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_append_char(b, (char) ('a' + i % 23));
}

TEST(what_is_written_is_read)
{
    const size_t sizes[] = {0, 1, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, MANY_BYTES};
    for (size_t i = 0; i < N_ELEMENTS(sizes); i++) {
        BUF_AUTO content = {0}, found = {0};
        fill(&content, sizes[i]);
        FD_AUTO fd = file_of(buf_str(&content));
        assert_int_equal(file_read_regular(fd, MANY_BYTES, &found), 0);
        assert_true(str_eq(buf_str(&found), buf_str(&content)));
        assert_int_equal(found.p[found.n], '\0');
    }
}

TEST(reading_appends_within_the_limit)
{
    const size_t limits[] = {4, 5, 6};
    const int expected[] = {-EFBIG, 0, 0};
    for (size_t i = 0; i < N_ELEMENTS(limits); i++) {
        BUF_AUTO found = {0};
        buf_append_str(&found, STR("before "));
        FD_AUTO fd = file_of(STR("12345"));
        assert_int_equal(file_read_all(fd, limits[i], &found), expected[i]);
        assert_string_equal(found.p, expected[i] == 0 ? "before 12345" : "before ");
        assert_int_equal(found.n, strlen(found.p));
    }
}

TEST(a_file_beyond_the_limit_is_not_read_on)
{
    BUF_AUTO content = {0}, found = {0};
    fill(&content, MANY_BYTES);
    FD_AUTO fd = file_of(buf_str(&content));
    assert_int_equal(file_read_all(fd, 20000, &found), -EFBIG);
    assert_int_equal(found.n, 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 20001);
}

TEST(paths_that_cannot_be_read)
{
    BUF_AUTO found = {0};
    assert_int_equal(file_read("/nowhere/at/all", 100, &found), -ENOENT);
    assert_null(found.p);
    assert_int_equal(file_read("/", 100, &found), -EISDIR);
    assert_int_equal(found.n, 0);
    FD_AUTO directory = open("/", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_read_regular(directory, 100, &found), -EINVAL);
    assert_int_equal(file_read("/proc/self/comm", 100, &found), 0);
    assert_true(found.n > 0);
}

TEST(errors_of_writing_are_told)
{
    FD_AUTO read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_write_all(read_only, STR("x")), -EBADF);
    assert_int_equal(file_write_all(read_only, STR("")), 0);
    FD_AUTO full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(file_write_all(full, STR("x")), -ENOSPC);
}

/* ---- a pipe: short writes, short reads, signals in between ---------------------------------- */

struct writer {
    int fd;
    struct str bytes;
    int result;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;
    w->result = file_write_all(w->fd, w->bytes);
    (void) close(w->fd);
    return NULL;
}

static void on_signal(int number)
{
    (void) number;
}

/* Closes its end: a reader that gives up early must not leave a writer waiting. */
static void *read_many(void *arg)
{
    struct buf found = {0};
    const int fd = *(const int *) arg;
    const int r = file_read_all(fd, MANY_BYTES, &found);
    (void) close(fd);
    const bool is_whole = r == 0 && found.n == MANY_BYTES &&
                          found.p[MANY_BYTES - 1] == (char) ('a' + (MANY_BYTES - 1) % 23);
    buf_done(&found);
    return is_whole ? arg : NULL;
}

static void pause_a_little(void)
{
    (void) nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

/* Each side is interrupted while it waits for the other, which comes only then. */
TEST(signals_interrupt_neither_writing_nor_reading)
{
    struct sigaction before;
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    BUF_AUTO content = {0};
    fill(&content, MANY_BYTES);
    struct writer w = {.fd = ends[1], .bytes = buf_str(&content), .result = -1};
    pthread_t writer, reader;
    void *is_whole = NULL;
    assert_int_equal(pthread_create(&reader, NULL, read_many, &ends[0]), 0);
    for (int i = 0; i < 10; i++, pause_a_little())
        assert_int_equal(pthread_kill(reader, SIGUSR1), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_many, &w), 0);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(pthread_join(reader, &is_whole), 0);
    assert_int_equal(w.result, 0);
    assert_non_null(is_whole);

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    w = (struct writer){.fd = ends[1], .bytes = buf_str(&content), .result = -1};
    assert_int_equal(pthread_create(&writer, NULL, write_many, &w), 0);
    for (int i = 0; i < 10; i++, pause_a_little())
        assert_int_equal(pthread_kill(writer, SIGUSR1), 0);
    assert_non_null(read_many(&ends[0]));
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(w.result, 0);
    (void) sigaction(SIGUSR1, &before, NULL);
}
