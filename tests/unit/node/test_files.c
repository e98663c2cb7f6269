/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "test.h"

static struct str read_of(struct device *d, const char *name)
{
    BUF_AUTO content = {0};
    if (node_file_read(d->node, NODE_PERSIST, str_of(name), &content) < 0)
        return STR_NONE;
    return arena_str(d->arena, buf_str(&content));
}

TEST(a_file_is_written_with_its_directories_and_read_back)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    assert_int_equal(node_file_write(d.node, NODE_PERSIST, STR("a/b/c"), STR("one")), 0);
    assert_str(read_of(&d, "a/b/c"), "one");
    assert_int_equal(node_file_write(d.node, NODE_PERSIST, STR("a/b/c"), STR("second")), 0);
    assert_str(read_of(&d, "a/b/c"), "second");
    assert_null(device_read(&d, "persist/a/b/c.tmp").p);
    assert_int_equal(node_file_remove(d.node, NODE_PERSIST, STR("a/b/c")), 0);
    assert_int_equal(node_file_remove(d.node, NODE_PERSIST, STR("a/b/c")), 0);
    assert_int_equal(node_file_remove(d.node, NODE_PERSIST, STR("no/such/thing")), 0);
    assert_null(read_of(&d, "a/b/c").p);
}

TEST(an_empty_file_reads_as_absent)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    BUF_AUTO content = {0};
    buf_append_str(&content, STR("kept"));
    device_write(&d, "persist/empty", STR(""));
    assert_int_equal(node_file_read(d.node, NODE_PERSIST, STR("empty"), &content), -ENOENT);
    assert_int_equal(node_file_read(d.node, NODE_PERSIST, STR("absent"), &content), -ENOENT);
    assert_str(buf_str(&content), "kept");
}

TEST(what_is_replaced_stays_as_backup)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    assert_int_equal(node_file_replace(d.node, NODE_PERSIST, STR("x"), STR("1")), 0);
    assert_null(read_of(&d, "x.bak").p);
    assert_int_equal(node_file_replace(d.node, NODE_PERSIST, STR("x"), STR("2")), 0);
    assert_int_equal(node_file_replace(d.node, NODE_PERSIST, STR("x"), STR("3")), 0);
    assert_str(read_of(&d, "x"), "3");
    assert_str(read_of(&d, "x.bak"), "2");
}

TEST(leftovers_of_a_power_cut_are_overwritten)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    device_write(&d, "persist/x", STR("whole"));
    device_write(&d, "persist/x.tmp", STR("half of something much longer"));
    assert_str(read_of(&d, "x"), "whole");
    assert_int_equal(node_file_write(d.node, NODE_PERSIST, STR("x"), STR("new")), 0);
    assert_str(read_of(&d, "x"), "new");
    assert_null(device_read(&d, "persist/x.tmp").p);
}

TEST(a_write_that_cannot_be_says_so_and_leaves_nothing)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    device_write(&d, "persist/file", STR("x"));
    assert_int_equal(node_file_write(d.node, NODE_PERSIST, STR("file/below"), STR("y")), -ENOTDIR);
    assert_int_equal(mkdir(device_path(&d, "persist/directory"), 0700), 0);
    assert_int_equal(node_file_write(d.node, NODE_PERSIST, STR("directory"), STR("y")), -EISDIR);
    assert_null(device_read(&d, "persist/directory.tmp").p);
}
