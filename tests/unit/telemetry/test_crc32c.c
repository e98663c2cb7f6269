/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/crc32c.h"
#include "test.h"

TEST(it_is_castagnoli)
{
    /* RFC 3720 B.4. */
    char zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof(ones));
    for (int i = 0; i < 32; i++)
        rising[i] = (char) i;
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(crc32c(0, rising, 32), 0x46dd794e);
}

TEST(both_ways_agree_at_any_length_and_in_pieces)
{
    unsigned char bytes[100];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char) (i * 131 + 7);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        uint32_t whole = crc32c(12345, bytes, n);
        assert_int_equal(whole, crc32c_plain(12345, bytes, n));
        assert_int_equal(whole, crc32c(crc32c(12345, bytes, n / 3), bytes + n / 3, n - n / 3));
    }
}
