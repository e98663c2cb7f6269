/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf/message.h"

#include "all_messages.h"
#include "base/buf.h"
#include "eve/config.pb-c.h"
#include "every_type.pb-c.h"
#include "random_message.h"
#include "test.h"

static Test__EveryType *unpack(struct arena *a, struct str bytes)
{
    return PB_UNPACK(a, test__every_type, bytes);
}

static Test__Nested *unpack_nested(struct arena *a, struct str bytes)
{
    return PB_UNPACK(a, test__nested, bytes);
}

static void assert_bytes(struct str got, struct str expected)
{
    assert_int_equal(got.n, expected.n);
    assert_memory_equal(got.p, expected.p, expected.n);
}

/* ---- round trips -------------------------------------------------------------------------- */

/* Our decoder and protobuf-c's see the same message. */
static void check_round_trip(struct arena *a, const ProtobufCMessageDescriptor *d, struct str bytes)
{
    ProtobufCMessage *ours = pb_unpack(a, d, bytes);
    assert_non_null(ours);
    assert_bytes(pb_pack(a, ours), bytes);
    ProtobufCMessage *theirs =
        protobuf_c_message_unpack(d, NULL, bytes.n, (const uint8_t *) bytes.p);
    assert_non_null(theirs);
    assert_bytes(pb_pack(a, theirs), bytes);
    protobuf_c_message_free_unpacked(theirs, NULL);
}

static void check_random(const ProtobufCMessageDescriptor *d, uint64_t seed)
{
    ARENA_AUTO a = arena_new();
    struct source r = {seed};
    check_round_trip(a, d, pb_pack(a, random_message(a, d, &r, 6)));
}

TEST(random_messages_of_every_type_survive_packing)
{
    for (size_t i = 0; i < n_all_messages; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++)
            check_random(all_messages[i], seed);
    }
    for (uint64_t seed = 1; seed <= 200; seed++)
        check_random(&test__every_type__descriptor, seed);
}

TEST(a_message_of_shared_fields_packs_alike)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        ARENA_AUTO a = arena_new();
        struct source r = {seed};
        const ProtobufCMessage *from = random_message(a, &test__every_type__descriptor, &r, 4);
        Test__EveryType to = TEST__EVERY_TYPE__INIT;
        for (unsigned i = 0; i < from->descriptor->n_fields; i++)
            pb_share_field(&to.base, from, from->descriptor->fields[i].id);
        assert_bytes(pb_pack(a, &to.base), pb_pack(a, from));
    }
}

TEST(no_prefix_of_a_message_does_harm)
{
    ARENA_AUTO a = arena_new();
    struct source r = {7};
    struct str bytes = pb_pack(a, random_message(a, &test__every_type__descriptor, &r, 4));
    assert_true(bytes.n > 100);
    size_t n_refused = 0;
    for (size_t n = 0; n < bytes.n; n++) {
        ARENA_AUTO b = arena_new();
        /* On the heap, so that reading behind the end is seen. */
        BUF_AUTO prefix = {0};
        buf_append(&prefix, bytes.p, n);
        n_refused += unpack(b, buf_str(&prefix)) == NULL;
    }
    assert_true(n_refused > 0);
}

/* ---- what the wire format allows ---------------------------------------------------------- */

TEST(the_last_of_several_values_counts)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = unpack(a, STR("\x08\x01\x08\x02"));
    assert_int_equal(m->an_int32, 2);
}

TEST(a_message_that_occurs_again_is_merged)
{
    ARENA_AUTO a = arena_new();
    /* a_message {number 1, children [{}], unknown 9: 1}, then a_message {children [{}], unknown} */
    Test__EveryType *m = unpack(a, STR("\x8a\x01\x06\x08\x01\x1a\x00\x48\x01"
                                       "\x8a\x01\x04\x1a\x00\x48\x02"));
    assert_int_equal(m->a_message->number, 1);
    assert_int_equal(m->a_message->n_children, 2);
    assert_int_equal(pb_count_unknown(&m->base), 2);
}

TEST(a_oneof_keeps_its_last_member)
{
    ARENA_AUTO a = arena_new();
    /* chosen_text "text", chosen_number 5 */
    Test__EveryType *m = unpack(a, STR("\xd2\x02\x04text\xc8\x02\x05"));
    assert_int_equal(m->choice_case, TEST__EVERY_TYPE__CHOICE_CHOSEN_NUMBER);
    assert_int_equal(m->chosen_number, 5);
    /* chosen_number 5, chosen_message {number 1}, chosen_message {children [{}]}: merged */
    m = unpack(a, STR("\xc8\x02\x05\xe2\x02\x02\x08\x01\xe2\x02\x02\x1a\x00"));
    assert_int_equal(m->choice_case, TEST__EVERY_TYPE__CHOICE_CHOSEN_MESSAGE);
    assert_int_equal(m->chosen_message->number, 1);
    assert_int_equal(m->chosen_message->n_children, 1);
    /* chosen_message {}, chosen_text "" */
    m = unpack(a, STR("\xe2\x02\x00\xd2\x02\x00"));
    assert_int_equal(m->choice_case, TEST__EVERY_TYPE__CHOICE_CHOSEN_TEXT);
    assert_string_equal(m->chosen_text, "");
}

TEST(repeated_numbers_may_be_packed_or_not)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = unpack(a, STR("\xaa\x01\x02\x01\x02\xa8\x01\x03\xaa\x01\x01\x04"));
    assert_int_equal(m->n_int32s, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(m->int32s[i], i + 1);
    /* Half a fixed32 is none. */
    assert_null(unpack(a, STR("\xe2\x01\x02\x01\x02")));
}

TEST(numbers_are_cut_to_their_type)
{
    ARENA_AUTO a = arena_new();
    /* an_int32: 2^32 + 5; a_bool: 2; a_sint32: 3, which is -2 */
    Test__EveryType *m = unpack(a, STR("\x08\x85\x80\x80\x80\x10\x68\x02\x10\x03"));
    assert_int_equal(m->an_int32, 5);
    assert_int_equal(m->a_bool, 1);
    assert_int_equal(m->a_sint32, -2);
    /* -1 takes ten bytes; an eleventh, or more than 64 bits, is no number. */
    m = unpack(a, STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    assert_int_equal(m->an_int32, -1);
    assert_null(unpack(a, STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")));
    assert_null(unpack(a, STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")));
}

TEST(bad_bytes_are_no_message)
{
    static const struct str bad[] = {
        STR("\x08"),         /* a tag alone */
        STR("\x00\x01"),     /* field 0 */
        STR("\x0e\x01"),     /* wire type 6 */
        STR("\x0c"),         /* the end of no group */
        STR("\x7a\x05text"), /* shorter than it says */
        STR("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        STR("\x1d\x01\x02\x03"),         /* a fixed32 of three bytes */
        STR("\x8a\x01\x01\x08"),         /* bad within a message */
        STR("\x80\x80\x80\x80\x10\x01"), /* a field number beyond 2^29 */
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_null(unpack(a, bad[i]));
    assert_non_null(unpack(a, STR("")));
}

/* ---- text --------------------------------------------------------------------------------- */

TEST(text_is_taken_as_it_is_but_for_nul)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = unpack(a, STR("\x7a\x03"
                                       "a\xff"
                                       "b"));
    assert_string_equal(m->a_string, "a\xff"
                                     "b");
    /* What stands behind a NUL is not lost. */
    m = unpack(a, STR("\x7a\x04"
                      "a\x00"
                      "b\x00"));
    assert_string_equal(m->a_string, "a\xef\xbf\xbd"
                                     "b\xef\xbf\xbd");
    m = unpack(a, STR("\x82\x01\x02\x00\x01"));
    assert_bytes(pb_bytes(m->some_bytes), STR("\x00\x01"));
}

TEST(unset_text_and_bytes_are_empty)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = unpack(a, STR(""));
    assert_str(pb_text(m->a_string), "");
    assert_str(pb_text(NULL), "");
    assert_int_equal(pb_bytes(m->some_bytes).n, 0);
    assert_non_null(pb_bytes(m->some_bytes).p);
}

/* ---- unknown fields ----------------------------------------------------------------------- */

TEST(unknown_fields_survive_and_are_counted)
{
    static const struct str kinds[] = {
        STR("\xb8\x3e\x96\x01"),                                 /* varint */
        STR("\xb9\x3e\x01\x02\x03\x04\x05\x06\x07\x08"),         /* 64 bits */
        STR("\xba\x3e\x03new"),                                  /* bytes */
        STR("\xbd\x3e\x01\x02\x03\x04"),                         /* 32 bits */
        STR("\xbb\x3e\x08\x01\xc3\x3e\x08\x02\xc4\x3e\xbc\x3e"), /* a group with a group */
        STR("\x0a\x01x"),                                        /* bytes where an int32 is known */
        STR("\x7d\x01\x02\x03\x04"), /* 32 bits where a string is known */
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
        Test__EveryType *m = unpack(a, kinds[i]);
        assert_non_null(m);
        assert_int_equal(pb_count_unknown(&m->base), 1);
        assert_bytes(pb_pack(a, &m->base), kinds[i]);
    }
}

TEST(unknown_fields_are_counted_at_every_level)
{
    ARENA_AUTO a = arena_new();
    /* children [{unknown}, {deeper {unknown, unknown}}], unknown */
    Test__Nested *m =
        unpack_nested(a, STR("\x1a\x02\x48\x01\x1a\x06\x12\x04\x48\x01\x48\x02\x48\x03"));
    assert_int_equal(pb_count_unknown(&m->base), 4);
}

/* ---- limits ------------------------------------------------------------------------------- */

/* So many messages, each in the one before. */
static struct str nested_bytes(struct arena *a, unsigned depth)
{
    Test__Nested *outermost = NULL;
    for (unsigned i = 0; i < depth; i++) {
        Test__Nested *m = ARENA_NEW(a, Test__Nested);
        test__nested__init(m);
        m->deeper = outermost;
        outermost = m;
    }
    return pb_pack(a, &outermost->base);
}

TEST(nesting_is_limited)
{
    ARENA_AUTO a = arena_new();
    Test__Nested *m = unpack_nested(a, nested_bytes(a, PB_MAX_DEPTH));
    unsigned depth = 0;
    for (; m; m = m->deeper)
        depth++;
    assert_int_equal(depth, PB_MAX_DEPTH);
    assert_null(unpack_nested(a, nested_bytes(a, PB_MAX_DEPTH + 1)));
}

static struct str repeat(struct buf *b, struct str piece, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_append_str(b, piece);
    return buf_str(b);
}

TEST(nesting_of_groups_is_limited)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO opened = {0};
    assert_null(unpack(a, repeat(&opened, STR("\xbb\x3e"), 100000)));
}

TEST(the_number_of_values_is_limited)
{
    BUF_AUTO values = {0};
    {
        ARENA_AUTO a = arena_new();
        assert_non_null(unpack(a, repeat(&values, STR("\x08\x01"), PB_MAX_VALUES)));
    }
    ARENA_AUTO a = arena_new();
    assert_null(unpack(a, repeat(&values, STR("\x08\x01"), 1)));
}

TEST(elements_of_packed_fields_are_values_too)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO values = {0};
    /* PB_MAX_VALUES ones in one field: with the field itself one too many. */
    buf_append_str(&values, STR("\xaa\x01\x80\x80\x40"));
    assert_null(unpack(a, repeat(&values, STR("\x01"), PB_MAX_VALUES)));
}

TEST(memory_is_limited)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO values = {0};
    /* Two bytes for each application instance, which is a large struct. */
    size_t n = PB_MAX_UNPACKED_BYTES / sizeof(Eve__Config__AppInstanceConfig);
    assert_true(n < PB_MAX_VALUES);
    assert_null(PB_UNPACK(a, eve__config__edge_dev_config, repeat(&values, STR("\x22\x00"), n)));
    assert_true(arena_used(a) <= PB_MAX_UNPACKED_BYTES + sizeof(Eve__Config__EdgeDevConfig) + 64);
}

/* ---- walking ------------------------------------------------------------------------------ */

static void collect(void *ctx, ProtobufCMessage *found)
{
    struct buf *numbers = ctx;
    buf_printf(numbers, "%d ", ((Test__Nested *) found)->number);
}

TEST(visit_finds_messages_depth_first)
{
    BUF_AUTO numbers = {0};
    Test__Nested n1 = TEST__NESTED__INIT, n2 = TEST__NESTED__INIT, n3 = TEST__NESTED__INIT,
                 n4 = TEST__NESTED__INIT, n5 = TEST__NESTED__INIT;
    n1.number = 1, n2.number = 2, n3.number = 3, n4.number = 4, n5.number = 5;
    Test__Nested *children[] = {&n2, &n3};
    n1.children = children, n1.n_children = 2;
    Test__EveryType__ByStringEntry entry = TEST__EVERY_TYPE__BY_STRING_ENTRY__INIT;
    entry.value = &n5;
    Test__EveryType__ByStringEntry *entries[] = {&entry};
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.a_message = &n1;
    m.choice_case = TEST__EVERY_TYPE__CHOICE_CHOSEN_MESSAGE;
    m.chosen_message = &n4;
    m.by_string = entries, m.n_by_string = 1;

    pb_visit(&m.base, &test__nested__descriptor, collect, &numbers);
    assert_str(buf_str(&numbers), "1 2 3 4 5 ");
    buf_reset(&numbers);
    /* The place of a oneof holds a number now. */
    m.choice_case = TEST__EVERY_TYPE__CHOICE_CHOSEN_NUMBER;
    m.chosen_number = 17;
    pb_visit(&m.base, &test__nested__descriptor, collect, &numbers);
    assert_str(buf_str(&numbers), "1 2 3 5 ");
    buf_reset(&numbers);
    pb_visit(&n3.base, &test__nested__descriptor, collect, &numbers);
    assert_str(buf_str(&numbers), "3 ");
}
