/* SPDX-License-Identifier: Apache-2.0 */
#include "http/gzip.h"

#include <zlib.h>

#include "base/alloc.h"
#include "test.h"

static char *inflate_all(struct str in, size_t room, size_t *ret_n)
{
    char *out = mem_alloc(room);
    z_stream z = {.next_in = (Bytef *) in.p,
                  .avail_in = (uInt) in.n,
                  .next_out = (Bytef *) out,
                  .avail_out = (uInt) room};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_n = room - z.avail_out;
    (void) inflateEnd(&z);
    return out;
}

TEST(slices_become_one_gzip_member)
{
    const struct slice in[] = {slice_static(STR("hello ")), slice_static(STR("")),
                               slice_static(STR("world"))};
    struct slice out;
    assert_int_equal(http_gzip(in, N_ELEMENTS(in), &out), 0);
    size_t n = 0;
    char *text = inflate_all(out.s, 100, &n);
    assert_str(str_range(text, n), "hello world");
    mem_free(text);
    slice_unref(out);
}

TEST(nothing_is_a_valid_gzip)
{
    struct slice out;
    assert_int_equal(http_gzip(NULL, 0, &out), 0);
    size_t n = 1;
    mem_free(inflate_all(out.s, 1, &n));
    assert_int_equal(n, 0);
    slice_unref(out);
}

TEST(large_body_that_does_not_shrink_survives)
{
    size_t size = 1024 * 1024;
    char *noise = mem_alloc(size);
    uint32_t seed = 1;
    for (size_t i = 0; i < size; i++)
        noise[i] = (char) ((seed = seed * 1664525 + 1013904223) >> 24);
    const struct slice in[] = {slice_static(str_range(noise, 700)),
                               slice_static(str_range(noise + 700, size - 700))};
    struct slice out;
    assert_int_equal(http_gzip(in, 2, &out), 0);
    size_t n = 0;
    char *back = inflate_all(out.s, size, &n);
    assert_int_equal(n, size);
    assert_memory_equal(back, noise, size);
    mem_free(back);
    mem_free(noise);
    slice_unref(out);
}
