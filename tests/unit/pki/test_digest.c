/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/pki.h"

#include "test.h"

#include <errno.h>

struct digest_case {
    struct str data;
    const char *sha1, *sha256, *sha512_start;
};

/* FIPS 180-4's examples. */
static const struct digest_case cases[] = {
    {{"", 0},
     "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
     "cf83e1357eefb8bdf1542850d66d8007"},
    {{"abc", 3},
     "a9993e364706816aba3e25717850c26c9cd0d89d",
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
     "ddaf35a193617abacc417349ae204131"},
};

TEST(digests_match_the_standard)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        unsigned char out[SHA512_BYTES];
        pki_sha1(cases[i].data, out);
        assert_str(pki_hex(a, out, 20), cases[i].sha1);
        pki_sha256(cases[i].data, out);
        assert_str(pki_hex(a, out, SHA256_BYTES), cases[i].sha256);
        pki_sha512(cases[i].data, out);
        assert_str(pki_hex(a, out, 16), cases[i].sha512_start);
    }
}

TEST(digest_of_an_absent_string_is_that_of_an_empty_one)
{
    unsigned char absent[SHA256_BYTES], empty[SHA256_BYTES];
    pki_sha256(STR_NONE, absent);
    pki_sha256(STR(""), empty);
    assert_memory_equal(absent, empty, SHA256_BYTES);
}

TEST(hex_is_lower_case)
{
    ARENA_AUTO a = arena_new();
    const unsigned char bytes[] = {0x00, 0xab, 0xff, 0x5c};
    assert_str(pki_hex(a, bytes, sizeof(bytes)), "00abff5c");
    assert_str(pki_hex(a, bytes, 0), "");
}

/* IEEE 802.11, J.4.2. */
TEST(wifi_keys_are_those_of_the_standard)
{
    ARENA_AUTO a = arena_new();
    unsigned char key[WIFI_KEY_BYTES];
    assert_int_equal(pki_wifi_key(STR("password"), STR("IEEE"), key), 0);
    assert_str(pki_hex(a, key, sizeof(key)),
               "f42c6fc52df0ebef9ebb4b90b38a5f902e83fe1b135a70e23aed762e9710a12e");
    assert_int_equal(pki_wifi_key(STR("password"), STR("an ssid of more than 32 characters"), key),
                     -EINVAL);
}

TEST(hmac_is_that_of_rfc_4231)
{
    ARENA_AUTO a = arena_new();
    unsigned char out[SHA256_BYTES];
    pki_hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), out);
    assert_true(str_is(pki_hex(a, out, sizeof(out)),
                       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
}
