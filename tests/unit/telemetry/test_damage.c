/* SPDX-License-Identifier: Apache-2.0 */
/* Files as crashes, disks and people leave them. */
#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"

static char *path_of(struct fixture *f, uint64_t id)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(id, "seg", name);
    struct buf b = {0};
    buf_printf(&b, "%s/%s", f->directory, name);
    return buf_take(&b);
}

static void read_file(const char *path, struct buf *to)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    size_t n = (size_t) st.st_size;
    assert_int_equal(read(fd, buf_reserve(to, n), n), (ssize_t) n);
    to->n = n;
    close(fd);
}

static void write_file(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, p, n) == (ssize_t) n);
    close(fd);
}

static void flip(const char *path, size_t at)
{
    int fd = open(path, O_RDWR);
    unsigned char c = 0;
    assert_true(fd >= 0 && pread(fd, &c, 1, (off_t) at) == 1);
    c ^= 0x10;
    assert_int_equal(pwrite(fd, &c, 1, (off_t) at), 1);
    close(fd);
}

TEST(a_torn_end_is_cut_wherever_it_is_torn)
{
    struct fixture f;
    fixture_init(&f);
    (void) append_to(&f, 1, TELEMETRY_LOG, "one");
    (void) append_to(&f, 1, TELEMETRY_LOG, "two");
    fixture_close(&f);
    char *path = path_of(&f, 1);
    BUF_AUTO whole = {0};
    read_file(path, &whole);
    size_t last = whole.n - FRAME_BYTES - 3;
    for (size_t n = last; n < whole.n; n++) {
        (void) fixture_files(&f, "", remove_file);
        write_file(path, whole.p, n);
        fixture_open(&f);
        assert_texts(&f, "one ", .device = NULL);
        int64_t id = append_to(&f, 1, TELEMETRY_LOG, "three");
        assert_true(id >= (n == last ? 2 : 3));
        fixture_reopen(&f);
        assert_texts(&f, "one three ", .device = NULL);
        assert_true(append_to(&f, 1, TELEMETRY_LOG, "four") > id);
        assert_int_equal(stats_of(&f).n_damaged, 0);
        fixture_close(&f);
    }
    mem_free(path);
    fixture_done(&f);
}

TEST(a_flipped_bit_costs_one_record)
{
    struct fixture f;
    fixture_init(&f);
    static const char *const texts[] = {"aaaa", "bbbb", "cccc"};
    for (size_t i = 0; i < 3; i++)
        (void) append_to(&f, 1, TELEMETRY_LOG, texts[i]);
    fixture_close(&f);
    char *path = path_of(&f, 1);
    for (size_t at = SEGMENT_HEAD_BYTES + FRAME_BYTES + 4;
         at < SEGMENT_HEAD_BYTES + 2 * (FRAME_BYTES + 4); at++) {
        flip(path, at);
        fixture_open(&f);
        assert_int_equal(stats_of(&f).n_damaged, 1);
        assert_texts(&f, "aaaa cccc ", .device = NULL);
        struct uuid device = device_number(1);
        assert_texts(&f, "aaaa cccc ", .device = &device);
        fixture_close(&f);
        flip(path, at);
    }
    fixture_open(&f);
    assert_texts(&f, "aaaa bbbb cccc ", .device = NULL);
    mem_free(path);
    fixture_done(&f);
}

TEST(behind_damage_ids_are_not_used_again)
{
    struct fixture f;
    fixture_init(&f);
    (void) append_to(&f, 1, TELEMETRY_LOG, "one");
    int64_t seen = append_to(&f, 1, TELEMETRY_LOG, "two");
    fixture_close(&f);
    char *path = path_of(&f, 1);
    flip(path, SEGMENT_HEAD_BYTES + 2 * FRAME_BYTES + 3 + 1);
    fixture_open(&f);
    assert_true(append_to(&f, 1, TELEMETRY_LOG, "three") > seen);
    assert_texts(&f, "one three ", .device = NULL);
    mem_free(path);
    fixture_done(&f);
}

TEST(a_damaged_record_is_skipped_by_a_reader)
{
    struct fixture f;
    fixture_init(&f);
    (void) append_to(&f, 1, TELEMETRY_LOG, "one");
    (void) append_to(&f, 1, TELEMETRY_LOG, "two");
    (void) append_to(&f, 1, TELEMETRY_LOG, "end");
    char *path = path_of(&f, 1);
    flip(path, SEGMENT_HEAD_BYTES + 2 * FRAME_BYTES + 3 + 1);
    struct uuid device = device_number(1);
    assert_texts(&f, "one end ", .device = &device);
    assert_texts(&f, "one end ", .device = NULL);
    flip(path, SEGMENT_HEAD_BYTES + FRAME_BYTES + 3);
    assert_texts(&f, "one end ", .device = &device);
    assert_texts(&f, "one end ", .device = NULL);
    assert_int_equal(stats_of(&f).n_damaged, 3);
    mem_free(path);
    fixture_done(&f);
}

/* One file with an index on disk, and the one being written. */
static char *two_segments(struct fixture *f)
{
    fixture_prepare(f);
    f->options.segment_bytes = 1;
    fixture_open(f);
    (void) append_to(f, 1, TELEMETRY_LOG, "one");
    (void) append_to(f, 2, TELEMETRY_LOG, "two");
    telemetry_sweep(f->t);
    assert_null(f->t->segments[0]->live);
    return path_of(f, 1);
}

TEST(a_bad_index_is_made_again_from_the_records)
{
    struct fixture f;
    char *path = two_segments(&f);
    struct uuid device = device_number(1);
    BUF_AUTO whole = {0};
    read_file(path, &whole);
    for (size_t at = SEGMENT_HEAD_BYTES + FRAME_BYTES + 3; at < whole.n; at++) {
        fixture_close(&f);
        flip(path, at);
        fixture_open(&f);
        assert_texts(&f, "one ", .device = &device);
        assert_texts(&f, "one two ", .device = NULL);
        telemetry_sweep(f.t);
        assert_null(f.t->segments[0]->live);
        assert_int_equal(stats_of(&f).n_damaged, 0);
        BUF_AUTO again = {0};
        read_file(path, &again);
        assert_true(str_eq(buf_str(&again), buf_str(&whole)));
    }
    mem_free(path);
    fixture_done(&f);
}

TEST(one_good_copy_of_the_head_is_enough)
{
    struct fixture f;
    char *path = two_segments(&f);
    fixture_close(&f);
    flip(path, 9);
    fixture_open(&f);
    assert_texts(&f, "one two ", .device = NULL);
    fixture_close(&f);
    flip(path, SEGMENT_HEAD_BYTES / 2 + 33);
    fixture_open(&f);
    assert_texts(&f, "two ", .device = NULL);
    assert_int_equal(stats_of(&f).n_damaged, 1);
    assert_int_equal(fixture_files(&f, ".bad", NULL), 1);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "three"), 3 + (1 << 26) - 2);
    mem_free(path);
    fixture_done(&f);
}

TEST(other_files_are_left_alone_and_halves_removed)
{
    struct fixture f;
    char *path = two_segments(&f);
    fixture_close(&f);
    BUF_AUTO whole = {0};
    read_file(path, &whole);
    static const char *const names[] = {"0000000000000003.new", "notes.seg", "0000000000000009.seg",
                                        "0000000000000000.seg"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct buf b = {0};
        buf_printf(&b, "%s/%s", f.directory, names[i]);
        write_file(b.p, whole.p, whole.n);
        buf_done(&b);
    }
    fixture_open(&f);
    assert_texts(&f, "one two ", .device = NULL);
    assert_int_equal(fixture_files(&f, ".new", NULL), 0);
    assert_int_equal(fixture_files(&f, "notes.seg", NULL), 1);
    assert_int_equal(fixture_files(&f, ".bad", NULL), 2);
    mem_free(path);
    fixture_done(&f);
}

TEST(what_a_device_sends_is_never_taken_for_records)
{
    struct fixture f;
    char *path = two_segments(&f);
    BUF_AUTO forged = {0};
    read_file(path, &forged);
    /* A device that knows another segment's frames sends them, and its record is torn. */
    int64_t id = append_record(
        &f, &(struct telemetry_record){.device = device_number(3), .bytes = buf_str(&forged)});
    mem_free(path);
    path = path_of(&f, (uint64_t) id);
    fixture_close(&f);
    flip(path, SEGMENT_HEAD_BYTES + 8);
    fixture_open(&f);
    assert_texts(&f, "one two ", .device = NULL);
    mem_free(path);
    fixture_done(&f);
}

TEST(a_full_disk_costs_nothing_that_was_acknowledged)
{
    struct fixture f;
    fixture_init(&f);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "one"), 1);
    struct rlimit small = {SEGMENT_HEAD_BYTES + FRAME_BYTES + 40, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char text[400] = {0};
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, text), -ENOSPC);
    assert_true(telemetry_is_full(f.t));
    /* Not even a head fits. */
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "x"), -ENOSPC);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(append_to(&f, 1, TELEMETRY_LOG, "two") > 1);
    assert_false(telemetry_is_full(f.t));
    assert_texts(&f, "one two ", .device = NULL);
    telemetry_sweep(f.t);
    fixture_reopen(&f);
    assert_texts(&f, "one two ", .device = NULL);
    assert_int_equal(stats_of(&f).n_damaged, 0);
    fixture_done(&f);
}

TEST(a_failed_sync_fails_its_group_and_ends_the_segment)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "one"), 1);
    /* Writing to a pipe's end in its place fails, as a broken disk does. */
    int saved = dup(f.t->current->fd), broken[2];
    assert_int_equal(pipe(broken), 0);
    assert_true(dup2(broken[0], f.t->current->fd) >= 0);
    assert_true(append_to(&f, 1, TELEMETRY_LOG, "lost") < 0);
    assert_true(dup2(saved, f.t->segments[0]->fd) >= 0);
    assert_true(append_to(&f, 1, TELEMETRY_LOG, "two") > 1);
    assert_int_equal(stats_of(&f).n_segments, 2);
    assert_texts(&f, "one two ", .device = NULL);
    close(saved);
    close(broken[0]);
    close(broken[1]);
    fixture_done(&f);
}
