/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/aead.h"

#include <errno.h>

#include "base/alloc.h"
#include "pki/pki.h"
#include "test.h"

static struct str hex(struct arena *a, struct str s)
{
    return pki_hex(a, (const unsigned char *) s.p, s.n);
}

/* The published answers of c2sp.org/XAES-256-GCM: both ways a carry can go in the derivation. */
TEST(known_answers)
{
    static const struct {
        unsigned char key_byte;
        const char *bound, *sealed;
    } cases[] = {
        {1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
        {3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
    };
    ARENA_AUTO a = arena_new();
    const unsigned char *nonce = (const unsigned char *) "ABCDEFGHIJKLMNOPQRSTUVWX";
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        unsigned char key[AEAD_KEY_BYTES];
        memset(key, cases[i].key_byte, sizeof(key));
        BUF_AUTO sealed = {0};
        BUF_AUTO plain = {0};
        assert_int_equal(
            aead_seal_with(key, nonce, str_of(cases[i].bound), STR("XAES-256-GCM"), &sealed), 0);
        assert_memory_equal(sealed.p, nonce, AEAD_NONCE_BYTES);
        assert_str(hex(a, str_from(buf_str(&sealed), AEAD_NONCE_BYTES)), cases[i].sealed);
        assert_int_equal(aead_open(key, str_of(cases[i].bound), buf_str(&sealed), &plain), 0);
        assert_str(buf_str(&plain), "XAES-256-GCM");
    }
}

static const unsigned char key[AEAD_KEY_BYTES] = {7, 1, 2};

TEST(what_is_sealed_opens_whatever_its_length)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 4096, 100001};
    for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
        char *text = mem_zalloc(lengths[i] + 1);
        memset(text, 'x', lengths[i]);
        BUF_AUTO sealed = {0};
        BUF_AUTO plain = {0};
        buf_append_str(&sealed, STR("before"));
        buf_append_str(&plain, STR("before"));
        assert_int_equal(aead_seal(key, STR("key"), str_range(text, lengths[i]), &sealed), 0);
        assert_int_equal(sealed.n, 6 + lengths[i] + AEAD_OVERHEAD_BYTES);
        assert_int_equal(aead_open(key, STR("key"), str_from(buf_str(&sealed), 6), &plain), 0);
        assert_int_equal(plain.n, 6 + lengths[i]);
        assert_memory_equal(plain.p, "before", 6);
        assert_memory_equal(plain.p + 6, text, lengths[i]);
        mem_free(text);
    }
}

TEST(same_text_is_never_sealed_alike)
{
    BUF_AUTO one = {0};
    BUF_AUTO two = {0};
    assert_int_equal(aead_seal(key, STR("key"), STR("text"), &one), 0);
    assert_int_equal(aead_seal(key, STR("key"), STR("text"), &two), 0);
    assert_false(str_eq(str_sub(buf_str(&one), 0, AEAD_NONCE_BYTES),
                        str_sub(buf_str(&two), 0, AEAD_NONCE_BYTES)));
    assert_false(str_eq(str_from(buf_str(&one), AEAD_NONCE_BYTES),
                        str_from(buf_str(&two), AEAD_NONCE_BYTES)));
}

static void assert_does_not_open(const unsigned char *with, struct str bound, struct str sealed)
{
    BUF_AUTO plain = {0};
    assert_int_equal(aead_open(with, bound, sealed, &plain), -EBADMSG);
    assert_int_equal(plain.n, 0);
}

TEST(every_flipped_bit_is_noticed)
{
    BUF_AUTO sealed = {0};
    assert_int_equal(aead_seal(key, STR("key"), STR("a short text"), &sealed), 0);
    for (size_t bit = 0; bit < sealed.n * 8; bit++) {
        sealed.p[bit / 8] ^= (char) (1 << (bit % 8));
        assert_does_not_open(key, STR("key"), buf_str(&sealed));
        sealed.p[bit / 8] ^= (char) (1 << (bit % 8));
    }
    BUF_AUTO plain = {0};
    assert_int_equal(aead_open(key, STR("key"), buf_str(&sealed), &plain), 0);
}

TEST(other_keys_other_bindings_and_stumps_do_not_open)
{
    static const unsigned char other[AEAD_KEY_BYTES] = {7, 1, 3};
    BUF_AUTO sealed = {0};
    assert_int_equal(aead_seal(key, STR("key"), STR("text"), &sealed), 0);
    assert_does_not_open(other, STR("key"), buf_str(&sealed));
    assert_does_not_open(key, STR("kez"), buf_str(&sealed));
    assert_does_not_open(key, STR(""), buf_str(&sealed));
    for (size_t n = 0; n < sealed.n; n++)
        assert_does_not_open(key, STR("key"), str_range(sealed.p, n));
    buf_append_char(&sealed, 'x');
    assert_does_not_open(key, STR("key"), buf_str(&sealed));
}
