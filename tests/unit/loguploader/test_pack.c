/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "logs.h"
#include "loguploader/pack.h"
#include "test.h"

#define APP "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
#define HEAD "{\"devID\":\"d\",\"image\":\"IMGA\",\"eveVersion\":\"1\"}\n"

static char noise(void)
{
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[state % 64];
}

static void add_line(struct buf *b, unsigned number, size_t n_noise)
{
    buf_printf(b, "{\"severity\":\"info\",\"content\":\"line %u ", number);
    for (size_t i = 0; i < n_noise; i++) /* hardly to be compressed */
        buf_append_char(b, noise());
    buf_printf(b, "\",\"msgid\":%u}\n", number);
}

static void put_raw(struct logs *l, const char *name, const char *head, unsigned n_lines,
                    size_t n_noise)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, str_of(head));
    for (unsigned i = 1; i <= n_lines; i++)
        add_line(&b, i, n_noise);
    logs_put(l, LOG_COLLECT, name, buf_str(&b));
}

static struct logfile raw(const char *name)
{
    struct logfile f;
    assert_int_equal(logfile_parse_raw(str_of(name), &f), 0);
    return f;
}

static void assert_lines(const struct logs_lines *lines, unsigned n)
{
    bool seen[4096] = {0};
    for (size_t i = 0; i < lines->n; i++) {
        uint64_t id = lines->items[i].msgid;
        assert_true(id >= 1 && id <= n);
        if (seen[id])
            fail_msg("line %llu is there twice", (unsigned long long) id);
        seen[id] = true;
    }
    for (unsigned i = 1; i <= n; i++)
        if (!seen[i])
            fail_msg("line %u is lost", i);
}

TEST(a_raw_file_becomes_a_packed_one)
{
    struct logs l;
    logs_init(&l);
    put_raw(&l, "dev.log.1700", HEAD, 3, 0);
    struct pack p = {.root = l.root, .syncs = true, .created_s = 1234};
    struct pack_result packed = {0};
    struct logfile f = raw("dev.log.1700");
    assert_int_equal(pack_file(&p, &f, /* is_checked= */ true, &packed), 0);
    assert_true(packed.n_files == 1 && packed.n_lines == 3 && packed.last_msgid == 3);
    assert_int_equal(packed.last_ms, 1700);
    assert_str(logs_names(&l, LOG_COLLECT), "");
    assert_str(logs_names(&l, LOG_DEV_UPLOAD), "dev.log.1700.gz ");
    struct newlog_head head;
    assert_int_equal(
        newlog_read_head(l.arena, logs_read(&l, LOG_DEV_UPLOAD, STR("dev.log.1700.gz")), &head), 0);
    assert_str(head.comment, "{\"devID\":\"d\",\"image\":\"IMGA\",\"eveVersion\":\"1\"}");
    assert_str(head.name, "");
    assert_int_equal(head.created_s, 1234);
    struct logs_lines lines = {0};
    logs_collect(&l, LOG_DEV_UPLOAD, false, &lines);
    assert_lines(&lines, 3);
    logs_done(&l);
}

TEST(an_application_has_its_name_in_the_head)
{
    struct logs l;
    logs_init(&l);
    struct pack p = {.root = l.root};
    struct pack_result packed = {0};
    put_raw(&l, "app." APP ".log.5",
            "K\xc3\xbc"
            "che \xe2\x82\xac \xf0\x9f\x9a\x80\n",
            1, 0);
    put_raw(&l, "app.skipTx." APP ".log.6", "\n", 1, 0);
    struct logfile f = raw("app." APP ".log.5"), skipped = raw("app.skipTx." APP ".log.6");
    assert_int_equal(pack_file(&p, &f, false, &packed), 0);
    assert_int_equal(pack_file(&p, &skipped, false, &packed), 0);
    assert_str(logs_names(&l, LOG_KEEP_SENT), "app.skipTx." APP ".log.6.gz ");
    struct newlog_head head;
    assert_int_equal(newlog_read_head(l.arena,
                                      logs_read(&l, LOG_APP_UPLOAD, STR("app." APP ".log.5.gz")),
                                      &head),
                     0);
    assert_str(head.name, "K\xc3\xbc"
                          "che \xe2\x82\xac \xf0\x9f\x9a\x80");
    logs_done(&l);
}

TEST(what_is_too_large_is_split)
{
    static const struct {
        unsigned n_lines;
        size_t n_noise;
    } cases[] = {{1000, 400}, {20, 16000}, {3000, 20}, {5000, 0}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct logs l;
        logs_init(&l);
        put_raw(&l, "dev.log.100", HEAD, MIN(cases[i].n_lines, 4000), cases[i].n_noise);
        struct pack p = {.root = l.root};
        struct pack_result packed = {0};
        struct logfile f = raw("dev.log.100");
        assert_int_equal(pack_file(&p, &f, false, &packed), 0);
        assert_true(packed.max_bytes <= LOGFILES_TARGET_BYTES);
        /* Parts are used well. */
        assert_true(packed.n_files <= 1 + packed.n_bytes / 24000);
        assert_int_equal(packed.last_ms, 100 + (int64_t) packed.n_files - 1);
        struct logs_lines lines = {0};
        logs_collect(&l, LOG_DEV_UPLOAD, false, &lines);
        assert_lines(&lines, MIN(cases[i].n_lines, 4000));
        logs_done(&l);
    }
}

TEST(damaged_lines_are_passed_over)
{
    struct logs l;
    logs_init(&l);
    struct pack p = {.root = l.root};
    logs_put(
        &l, LOG_COLLECT, "dev.log.7",
        STR("\xff\xfe not a head\n{\"msgid\":1}\n\n{\"msgid\":\n\0\0\0\n[]\n{\"msgid\":2}\n{\"msg"
            "id\":3"));
    struct pack_result packed = {0};
    struct logfile f = raw("dev.log.7");
    assert_int_equal(pack_file(&p, &f, true, &packed), 0);
    assert_true(packed.n_lines == 2 && packed.n_damaged == 3 && packed.last_msgid == 2);
    static const char *const empty[] = {"", "{}", "{}\n", "{}\n{\"msgid\":9"};
    for (size_t i = 0; i < N_ELEMENTS(empty); i++) {
        logs_put(&l, LOG_COLLECT, "dev.log.8", str_of(empty[i]));
        struct pack_result none = {0};
        f = raw("dev.log.8");
        assert_int_equal(pack_file(&p, &f, true, &none), 0);
        assert_int_equal(none.n_files, 0);
        assert_str(logs_names(&l, LOG_COLLECT), "");
    }
    assert_str(logs_names(&l, LOG_DEV_UPLOAD), "dev.log.7.gz ");
    logs_done(&l);
}

TEST(a_file_too_large_to_be_ours_is_refused)
{
    struct logs l;
    logs_init(&l);
    struct pack p = {.root = l.root};
    logs_put_size(&l, LOG_COLLECT, "dev.log.8", PACK_MAX_RAW_BYTES + 1);
    struct pack_result packed = {0};
    struct logfile f = raw("dev.log.8");
    assert_int_equal(pack_file(&p, &f, true, &packed), -EFBIG);
    assert_true(logs_has(&l, LOG_COLLECT, "dev.log.8"));
    logs_done(&l);
}

TEST(a_failure_leaves_the_raw_file_and_nothing_else)
{
    struct logs l;
    logs_init(&l);
    put_raw(&l, "dev.log.1", HEAD, 300, 400);
    struct pack p = {.root = l.root};
    struct pack_result packed = {0};
    struct logfile f = raw("dev.log.1");
    /* The second part cannot be written. */
    char blocked[128];
    (void) snprintf(blocked, sizeof(blocked), "%s/collect/TempFile.dev.log.1.1/x", l.root);
    BUF_AUTO command = {0};
    buf_printf(&command, "mkdir -p %s", blocked);
    assert_int_equal(system(command.p), 0);
    assert_true(pack_file(&p, &f, false, &packed) < 0);
    assert_int_equal(packed.n_files, 0);
    assert_str(logs_names(&l, LOG_COLLECT), "TempFile.dev.log.1.1 dev.log.1 ");
    assert_str(logs_names(&l, LOG_DEV_UPLOAD), "");
    buf_reset(&command);
    buf_printf(&command, "rm -r %s/collect/TempFile.dev.log.1.1", l.root);
    assert_int_equal(system(command.p), 0);
    assert_int_equal(pack_file(&p, &f, false, &packed), 0);
    struct logs_lines lines = {0};
    logs_collect(&l, LOG_DEV_UPLOAD, false, &lines);
    assert_lines(&lines, 300);
    logs_done(&l);
}

/* ---- death at every step -------------------------------------------------------------------- */

struct life {
    struct logs *logs;
    int n_steps; /* then it dies */
};

static void on_step(void *arg)
{
    struct life *life = arg;
    if (life->n_steps-- == 0)
        _exit(9);
}

/* What the collector does when it begins. */
static void live(void *arg)
{
    struct life *life = arg;
    ARENA_AUTO a = arena_new();
    struct pack p = {.root = life->logs->root, .on_step = on_step, .arg = life};
    struct pack_raw *raws;
    size_t n;
    if (pack_recover(&p) < 0 || pack_list(a, p.root, &raws, &n) < 0)
        _exit(2);
    for (size_t i = 0; i < n; i++) {
        struct pack_result packed = {0};
        if (raws[i].file.time_ms == 0 && pack_adopt(&p, &raws[i], 5000 + (int64_t) i) < 0)
            _exit(3);
        if (pack_file(&p, &raws[i].file, true, &packed) < 0)
            _exit(4);
    }
}

/* Dies at step `first`, then again at step `second`; between them all that is there is uploaded. */
static bool die_twice(const char *raw_name, int first, int second)
{
    struct logs l;
    logs_init(&l);
    put_raw(&l, raw_name, HEAD, 360, 400);
    struct logs_lines uploaded = {0};
    struct life lives[] = {{&l, first}, {&l, second}, {&l, -1}};
    bool has_died = false;
    for (size_t i = 0; i < N_ELEMENTS(lives); i++) {
        int code = logs_in_child(live, &lives[i]);
        assert_true(code == 0 || code == 9);
        has_died = i == 0 ? code == 9 : has_died;
        logs_collect(&l, LOG_DEV_UPLOAD, /* is_taken= */ true, &uploaded);
    }
    assert_lines(&uploaded, 360);
    assert_str(logs_names(&l, LOG_COLLECT), "");
    logs_done(&l);
    return has_died;
}

TEST(every_line_is_in_one_file_wherever_it_dies)
{
    int first = 0;
    for (bool goes_on = true; goes_on; first++)
        for (int second = 0; second < 14; second += 2 + first % 3)
            goes_on = die_twice("dev.log.1000", first, second);
    assert_true(first > 10);
}

TEST(newlogds_own_files_are_taken_over_whole)
{
    int first = 0;
    for (bool goes_on = true; goes_on; first++)
        goes_on = die_twice("dev.log.upload987", first, first / 2);
    assert_true(first > 10);
}
