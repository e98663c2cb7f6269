/* SPDX-License-Identifier: Apache-2.0 */
/* Tars written by hand, so that they can say what no honest tool writes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/layer.h"
#include "test.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "runtime/tree.h"

struct entry {
    char type; /* '0' file, '1' hard link, '2' symbolic link, '3' device, '5' directory, '6' fifo */
    const char *name, *text; /* content or target */
    unsigned mode;
    long long size; /* promised; 0: that of the text */
};

struct place {
    char top[64];
    struct buf root, outside, tar;
    int fd;
};

static void place_init(struct place *p)
{
    *p = (struct place){.top = "/tmp/layer-XXXXXX"};
    assert_non_null(mkdtemp(p->top));
    buf_printf(&p->root, "%s/root", p->top);
    buf_printf(&p->outside, "%s/outside", p->top);
    buf_printf(&p->tar, "%s/layer.tar", p->top);
    assert_int_equal(mkdir(p->root.p, 0755), 0);
    assert_int_equal(mkdir(p->outside.p, 0755), 0);
    BUF_AUTO secret = {0};
    buf_printf(&secret, "%s/secret", p->outside.p);
    int fd = open(secret.p, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "s", 1), 1);
    (void) close(fd);
    p->fd = open(p->root.p, O_RDONLY | O_DIRECTORY);
    assert_true(p->fd >= 0);
}

static void place_done(struct place *p)
{
    (void) close(p->fd);
    assert_int_equal(tree_remove(AT_FDCWD, p->top), 0);
    buf_done(&p->root);
    buf_done(&p->outside);
    buf_done(&p->tar);
}

/* "%O" in a name or target stands for the directory outside. */
static void expand(const struct place *p, const char *pattern, struct buf *ret)
{
    const char *at = strstr(pattern, "%O");
    buf_reset(ret);
    if (at)
        buf_printf(ret, "%.*s%s%s", (int) (at - pattern), pattern, p->outside.p, at + 2);
    else
        buf_printf(ret, "%s", pattern);
}

static void append_entry(const struct place *p, struct buf *tar, const struct entry *e)
{
    char header[512] = {0};
    BUF_AUTO name = {0};
    BUF_AUTO text = {0};
    expand(p, e->name, &name);
    expand(p, e->text ? e->text : "", &text);
    bool is_link = e->type == '1' || e->type == '2';
    long long size = e->size ? e->size : e->type == '0' ? (long long) text.n : 0;
    memcpy(header, name.p, MIN(name.n, (size_t) 100));
    (void) snprintf(header + 100, 8, "%07o", e->mode ? e->mode : 0644U);
    (void) snprintf(header + 108, 8, "%07o", 0U);
    (void) snprintf(header + 116, 8, "%07o", 0U);
    (void) snprintf(header + 124, 12, "%011llo", size);
    (void) snprintf(header + 136, 12, "%011o", 0U);
    header[156] = e->type;
    if (is_link)
        memcpy(header + 157, text.p, MIN(text.n, (size_t) 100));
    memcpy(header + 257, "ustar\00000", 8);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(header); i++)
        sum += (unsigned char) header[i];
    (void) snprintf(header + 148, 8, "%06o", sum);
    buf_append(tar, header, sizeof(header));
    if (e->type == '0') {
        buf_append_str(tar, buf_str(&text));
        while (tar->n % 512)
            buf_append_char(tar, 0);
    }
}

static void write_tar(const struct place *p, struct str bytes)
{
    int fd = open(p->tar.p, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes.p, bytes.n), (ssize_t) bytes.n);
    (void) close(fd);
}

static int apply(const struct place *p, const struct entry *entries, struct layer_target *t)
{
    BUF_AUTO tar = {0};
    char *error = NULL;
    for (; entries->name; entries++)
        append_entry(p, &tar, entries);
    for (int i = 0; i < 1024; i++)
        buf_append_char(&tar, 0);
    write_tar(p, buf_str(&tar));
    t->root_fd = p->fd;
    int e = layer_apply(t, p->tar.p, &error);
    assert_true(!e == !error);
    mem_free(error);
    return e;
}

static struct layer_target target(void)
{
    return (struct layer_target){.bytes_left = 1 << 20, .entries_left = 100};
}

/* What lies outside is as it was: one file with one byte, nothing else. */
static void check_outside(const struct place *p)
{
    struct stat st;
    BUF_AUTO secret = {0};
    buf_printf(&secret, "%s/secret", p->outside.p);
    assert_int_equal(stat(secret.p, &st), 0);
    assert_int_equal(st.st_size, 1);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(unlink(secret.p), 0);
    assert_int_equal(rmdir(p->outside.p), 0); /* empty */
    BUF_AUTO escape = {0};
    buf_printf(&escape, "%s/escape", p->top);
    assert_int_equal(access(escape.p, F_OK), -1);
}

TEST(hostile_layers_touch_nothing_outside)
{
    enum { ANY = 1, FINE = 0 };
    static const struct {
        const char *what;
        int result; /* ANY: some failure */
        struct entry entries[6];
    } cases[] = {
        {"a name with ..", -EPERM, {{'0', "../escape", "x"}}},
        {"a name with .. inside", -EPERM, {{'0', "a/../../escape", "x"}}},
        {"an absolute name", FINE, {{'0', "/escape", "x"}}},
        {"a link to outside, then a file through it",
         ANY,
         {{'2', "out", "%O"}, {'0', "out/secret", "changed"}}},
        {"a relative link to outside, then a file through it",
         ANY,
         {{'2', "out", "../outside"}, {'0', "out/secret", "changed"}}},
        {"a file through a link to a file outside",
         FINE,
         {{'2', "file", "%O/secret"}, {'0', "file", "changed"}}},
        {"a link to a link to outside",
         ANY,
         {{'2', "one", "two"}, {'2', "two", "%O"}, {'0', "one/x", "x"}}},
        {"a directory that becomes a link",
         ANY,
         {{'5', "d", NULL, 0755}, {'2', "d", "%O"}, {'0', "d/x", "x"}}},
        {"a directory made through a link", ANY, {{'2', "out", "%O"}, {'5', "out/d", NULL, 0777}}},
        {"a directory in place of a link to outside, for its mode",
         FINE,
         {{'2', "out", "%O/secret"}, {'5', "out", NULL, 0777}}},
        {"a hard link with ..", -EPERM, {{'1', "h", "../outside/secret"}}},
        {"an absolute hard link", -EBADMSG, {{'1', "h", "%O/secret"}}},
        {"a hard link through a link", ANY, {{'2', "out", "%O"}, {'1', "h", "out/secret"}}},
        {"a hard link to a link, then a file over it",
         FINE,
         {{'2', "l", "%O/secret"}, {'1', "h", "l"}, {'0', "h", "changed"}}},
        {"a device", FINE, {{'3', "null", NULL, 0666}}},
        {"a block device", FINE, {{'4', "disk", NULL, 0666}}},
        {"the root as a link", -EPERM, {{'2', ".", "%O"}}},
        {"a hard link to the root", -EPERM, {{'1', "h", "."}}},
        {"a whiteout of .", FINE, {{'0', "d/.wh..", ""}}},
        {"a whiteout through a link", FINE, {{'2', "out", "%O"}, {'0', "out/.wh.secret", ""}}},
        {"an opaque mark through a link",
         FINE,
         {{'2', "out", "%O"}, {'0', "out/.wh..wh..opq", ""}}},
        {"more bytes than allowed", -EFBIG, {{'0', "big", "x", 0644, (long long) 2 << 20}}},
        {"a size beyond all measure", -EFBIG, {{'0', "big", "x", 0644, 0x1fffffffffLL}}},
        {"a data that ends early", ANY, {{'0', "big", "x", 0644, 500000}}},
        {"a file as a directory", ANY, {{'0', "f", "x"}, {'0', "f/g", "x"}}},
        {"a fifo", FINE, {{'6', "pipe", NULL, 0644}}},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct place p;
        place_init(&p);
        struct layer_target first = target(), second = target();
        first.is_first = true;
        int e = apply(&p, cases[i].entries, &first);
        if (cases[i].result == ANY ? e >= 0 : e != cases[i].result)
            fail_msg("%s: %d", cases[i].what, e);
        /* And once more, as an upper layer: whiteouts and replacing come into play. */
        e = apply(&p, cases[i].entries, &second);
        if (cases[i].result == ANY && e >= 0)
            fail_msg("%s, again: %d", cases[i].what, e);
        check_outside(&p);
        place_done(&p);
    }
}

TEST(whiteouts_of_dots_are_refused_in_an_upper_layer)
{
    static const char *const names[] = {"d/.wh..", "d/.wh...", "d/.wh."};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct place p;
        place_init(&p);
        struct layer_target first = target(), second = target();
        first.is_first = true;
        assert_int_equal(apply(&p, (struct entry[]){{'0', "d/x", "x"}, {0}}, &first), 0);
        assert_int_equal(apply(&p, (struct entry[]){{'0', names[i], ""}, {0}}, &second), -EPERM);
        assert_int_equal(faccessat(p.fd, "d/x", F_OK, 0), 0);
        check_outside(&p);
        place_done(&p);
    }
}

TEST(device_nodes_are_counted_and_not_made)
{
    struct place p;
    place_init(&p);
    struct layer_target t = target();
    assert_int_equal(apply(&p, (struct entry[]){{'3', "dev/null", NULL, 0666}, {0}}, &t), 0);
    assert_int_equal(t.n_skipped, 1);
    assert_int_equal(faccessat(p.fd, "dev/null", F_OK, 0), -1);
    place_done(&p);
}

TEST(entries_are_limited)
{
    struct place p;
    place_init(&p);
    struct layer_target t = target();
    t.entries_left = 2;
    assert_int_equal(
        apply(&p, (struct entry[]){{'0', "a", "x"}, {'0', "b", "x"}, {'0', "c", "x"}, {0}}, &t),
        -EFBIG);
    place_done(&p);
}

TEST(a_cancelled_layer_stops)
{
    struct place p;
    place_init(&p);
    atomic_bool yes = true;
    struct layer_target t = target();
    t.is_cancelled = &yes;
    assert_int_equal(apply(&p, (struct entry[]){{'0', "a", "x"}, {0}}, &t), -ECANCELED);
    place_done(&p);
}

TEST(broken_archives_are_refused)
{
    static const struct {
        struct str bytes;
        int result;
    } cases[] = {
        {{"no tar at all, but some text that goes on for a while", 54}, -EBADMSG},
        {{"\x1f\x8b\x08\x00garbage", 11}, -EBADMSG},
        {{"\x28\xb5\x2f\xfdgarbage", 11}, -EBADMSG},
        {{"", 0}, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct place p;
        char *error = NULL;
        place_init(&p);
        write_tar(&p, cases[i].bytes);
        struct layer_target t = target();
        t.root_fd = p.fd;
        assert_int_equal(layer_apply(&t, p.tar.p, &error), cases[i].result);
        mem_free(error);
        place_done(&p);
    }
}

TEST(layers_lie_one_upon_the_other)
{
    struct place p;
    place_init(&p);
    struct layer_target first = target(), second = target();
    first.is_first = true;
    assert_int_equal(apply(&p,
                           (struct entry[]){{'5', "usr", NULL, 0755},
                                            {'5', "usr/lib", NULL, 0755},
                                            {'2', "lib", "usr/lib"},
                                            {'0', "gone", "g"},
                                            {'0', "dir/old", "o"},
                                            {'0', "becomes", "a file"},
                                            {'5', "was", NULL, 0700},
                                            {'0', "was/inner", "i"},
                                            {0}},
                           &first),
                     0);
    /* The mark stands behind what its own layer brings, and hides only what was below. */
    assert_int_equal(apply(&p,
                           (struct entry[]){{'0', "lib/libc", "c", 04755},
                                            {'0', "dir/new", "n"},
                                            {'0', "dir/.wh..wh..opq", ""},
                                            {'0', ".wh.gone", ""},
                                            {'5', "becomes", NULL, 0711},
                                            {'0', "was", "a file now"},
                                            {0}},
                           &second),
                     0);
    struct stat st;
    assert_int_equal(fstatat(p.fd, "usr/lib/libc", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 04755);
    assert_int_equal(faccessat(p.fd, "gone", F_OK, 0), -1);
    assert_int_equal(faccessat(p.fd, "dir/old", F_OK, 0), -1);
    assert_int_equal(faccessat(p.fd, "dir/new", F_OK, 0), 0);
    assert_int_equal(fstatat(p.fd, "becomes", &st, 0), 0);
    assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0711);
    assert_int_equal(fstatat(p.fd, "was", &st, 0), 0);
    assert_true(S_ISREG(st.st_mode));
    place_done(&p);
}

TEST(a_draft_has_its_name_only_when_it_is_whole)
{
    struct place p;
    place_init(&p);
    struct tree_draft d;
    assert_int_equal(tree_draft_begin(&d, p.root.p, "x"), 0);
    assert_int_equal(faccessat(p.fd, "x", F_OK, 0), -1);
    assert_int_equal(tree_draft_commit(&d), 0);
    tree_draft_done(&d);
    assert_int_equal(faccessat(p.fd, "x", F_OK, 0), 0);
    assert_int_equal(tree_draft_begin(&d, p.root.p, "x"), 0);
    assert_int_equal(tree_draft_commit(&d), -EEXIST);
    tree_draft_done(&d);
    /* One that is left over goes with the next sweep, and nothing else. */
    assert_int_equal(mkdirat(p.fd, ".new-left", 0700), 0);
    assert_int_equal(mkdirat(p.fd, ".kept", 0700), 0);
    tree_sweep(p.root.p);
    assert_int_equal(faccessat(p.fd, ".new-left", F_OK, 0), -1);
    assert_int_equal(faccessat(p.fd, ".kept", F_OK, 0), 0);
    assert_int_equal(tree_discard(p.root.p, "x"), 0);
    assert_int_equal(tree_discard(p.root.p, "x"), 0);
    assert_int_equal(faccessat(p.fd, "x", F_OK, 0), -1);
    place_done(&p);
}
