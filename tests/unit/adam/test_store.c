/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/store.h"

#include <errno.h>

#include "test.h"

TEST(lists_of_serial_numbers_are_unpacked)
{
    static const struct {
        struct str packed;
        const char *serials;
    } cases[] = {
        {STR("\x90"), ""},
        {STR("\xc0"), ""},
        {STR("\x92\xa1*\xa2s1"), "*\ns1\n"},
        {STR("\x91\xd9\x03"
             "abc"),
         "abc\n"},
        {STR("\x91\xda\x00\x03"
             "abc"),
         "abc\n"},
        {STR("\x91\xdb\x00\x00\x00\x03"
             "abc"),
         "abc\n"},
        {STR("\xdc\x00\x01\xa1x"), "x\n"},
        {STR("\xdd\x00\x00\x00\x01\xa1x"), "x\n"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct str serials = STR_NONE;
        assert_int_equal(adam_store_unpack_serials(a, cases[i].packed, &serials), 0);
        assert_str(serials, cases[i].serials);
    }
}

TEST(what_is_no_list_of_texts_is_refused)
{
    static const struct str cases[] = {
        STR(""),
        STR("\xa1x"),
        STR("\x91"),
        STR("\x91\x07"),
        STR("\x91\xa2x"),
        STR("\x91\xa1xtail"),
        STR("\xdc\x00"),
        STR("\xdd\xff\xff\xff\xff\xa1x"),
        STR("\x91\xdb\xff\xff\xff\xff"),
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct str serials = STR_NONE;
        assert_int_equal(adam_store_unpack_serials(a, cases[i], &serials), -EBADMSG);
    }
}
