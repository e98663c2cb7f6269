/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/frame.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

static void assert_frame_equal(const struct pubsub_frame *a, const struct pubsub_frame *b)
{
    assert_int_equal(a->word, b->word);
    assert_true(str_eq(a->topic, b->topic));
    assert_true(str_eq(a->key, b->key));
    assert_true(str_eq(a->value, b->value));
    assert_int_equal(a->counter, b->counter);
    assert_int_equal(a->is_persistent, b->is_persistent);
}

/* The bytes of the description, word for word. */
static const struct {
    const char *packet;
    struct pubsub_frame frame;
} golden[] = {
    {"request DeviceNetworkStatus", {.word = PUBSUB_REQUEST, .topic = STR("DeviceNetworkStatus")}},
    {"hello DeviceNetworkStatus false",
     {.word = PUBSUB_HELLO, .topic = STR("DeviceNetworkStatus")}},
    {"hello ZbootStatus true",
     {.word = PUBSUB_HELLO, .topic = STR("ZbootStatus"), .is_persistent = true}},
    {"update T Z2xvYmFs eyJhIjoxfQ==",
     {.word = PUBSUB_UPDATE, .topic = STR("T"), .key = STR("global"), .value = STR("{\"a\":1}")}},
    {"delete T Z2xvYmFs", {.word = PUBSUB_DELETE, .topic = STR("T"), .key = STR("global")}},
    {"complete T", {.word = PUBSUB_COMPLETE, .topic = STR("T")}},
    {"restarted T 3", {.word = PUBSUB_RESTARTED, .topic = STR("T"), .counter = 3}},
    {"restarted T 0", {.word = PUBSUB_RESTARTED, .topic = STR("T"), .counter = 0}},
};

TEST(packets_are_written_and_read_as_described)
{
    for (size_t i = 0; i < N_ELEMENTS(golden); i++) {
        ARENA_AUTO a = arena_new();
        BUF_AUTO packet = {0};
        assert_int_equal(pubsub_frame_write(&packet, &golden[i].frame), 0);
        assert_str(buf_str(&packet), golden[i].packet);
        struct pubsub_frame f = {0};
        assert_int_equal(pubsub_frame_read(a, str_of(golden[i].packet), &f), 0);
        assert_frame_equal(&f, &golden[i].frame);
    }
}

TEST(older_publishers_say_less)
{
    ARENA_AUTO a = arena_new();
    struct pubsub_frame f = {0};
    assert_int_equal(pubsub_frame_read(a, STR("hello T"), &f), 0);
    assert_int_equal(f.word, PUBSUB_HELLO);
    assert_false(f.is_persistent);
    assert_int_equal(pubsub_frame_read(a, STR("restarted T"), &f), 0);
    assert_int_equal(f.counter, 1);
}

TEST(what_is_no_packet_is_refused)
{
    static const char *bad[] = {
        "",
        " ",
        "hello",
        "Hello T true",
        "request",
        "request T more",
        "request  T",
        "update T Z2xvYmFs",
        "update T Z2xvYmFs e30= more",
        "update T Z2xvYmFs e3",
        "update T  Z2xvYmFs e30=",
        "update T Z2x*YmFs e30=",
        "delete T",
        "delete T Z2x",
        "restarted T x",
        "restarted T -1",
        "restarted T +1",
        "restarted T ",
        "restarted T 99999999999999999999",
        "goodbye T",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct pubsub_frame f = {0};
        if (pubsub_frame_read(a, str_of(bad[i]), &f) != -EBADMSG)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

TEST(a_packet_has_fewer_than_65535_bytes)
{
    /* update T a2U= <base64>: 14 bytes before the value, then four for each three. */
    size_t most = (PUBSUB_MAX_PACKET_BYTES - 1 - 14) / 4 * 3;
    char *value = malloc(most + 1);
    assert_non_null(value);
    memset(value, 'x', most + 1);
    struct pubsub_frame f = {
        .word = PUBSUB_UPDATE, .topic = STR("T"), .key = STR("ke"), .value = {value, most}};
    BUF_AUTO packet = {0};
    assert_int_equal(pubsub_frame_write(&packet, &f), 0);
    assert_int_equal(packet.n, pubsub_frame_update_bytes(1, 2, most));
    assert_true(packet.n < PUBSUB_MAX_PACKET_BYTES && packet.n + 4 >= PUBSUB_MAX_PACKET_BYTES);
    f.value.n++;
    size_t before = packet.n;
    assert_int_equal(pubsub_frame_write(&packet, &f), -EMSGSIZE);
    assert_int_equal(packet.n, before);
    free(value);
}
