/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include <errno.h>

#include "base/alloc.h"
#include "http/queue.h"
#include "test.h"

TEST(target_is_split)
{
    static const struct {
        const char *method, *target, *path, *query, *authority; /* path NULL: refused */
    } cases[] = {
        {"GET", "/", "/", "", "host"},
        {"GET", "/a%2Fb?c=d?e", "/a%2Fb", "c=d?e", "host"},
        {"GET", "/?", "/", "", "host"},
        {"GET", "//x", "//x", "", "host"},
        {"GET", "http://o:1/p?q", "/p", "q", "o:1"},
        {"GET", "http://o", "/", "", "o"},
        {"OPTIONS", "*", "*", "", "host"},
        {"GET", "*", NULL, NULL, NULL},
        {"GET", "", NULL, NULL, NULL},
        {"CONNECT", "o:1", NULL, NULL, NULL},
        {"GET", "://o/", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct message m = {.method = str_of(cases[i].method),
                            .target = str_of(cases[i].target),
                            .authority = STR("host")};
        struct str path, query;
        int r = message_split_target(&m, &path, &query);
        assert_int_equal(r, cases[i].path ? 0 : -EINVAL);
        if (r < 0)
            continue;
        assert_str(path, cases[i].path);
        assert_str(query, cases[i].query);
        assert_str(m.authority, cases[i].authority);
    }
}

TEST(tokens_of_a_list_are_found_in_any_case)
{
    assert_true(message_has_token(STR("keep-alive, Upgrade"), STR("upgrade")));
    assert_true(message_has_token(STR("UPGRADE"), STR("upgrade")));
    assert_false(message_has_token(STR("upgraded, keep"), STR("upgrade")));
    assert_false(message_has_token(STR_NONE, STR("upgrade")));
}

TEST(queue_gives_back_what_was_put_in)
{
    struct slice_queue q = {0};
    BUF_AUTO expected = {0}, got = {0};
    for (int i = 0; i < 1000; i++) {
        struct slice parts[2] = {slice_copy(STR("abcdefg")),
                                 slice_static(i % 3 ? STR("xy") : STR(""))};
        buf_append_str(&expected, parts[0].s);
        buf_append_str(&expected, parts[1].s);
        slice_queue_append(&q, parts, 2);
        for (int k = 0; k < 2 && q.n_bytes > 0; k++) {
            struct str front = slice_queue_front(&q);
            size_t n = front.n > 2 ? front.n - 2 : front.n;
            buf_append(&got, front.p, n);
            slice_queue_consume(&q, n);
        }
    }
    assert_true(q.n_bytes > 0);
    while (q.n_bytes > 0) {
        struct str front = slice_queue_front(&q);
        buf_append_str(&got, front);
        slice_queue_consume(&q, front.n);
    }
    assert_int_equal(slice_queue_front(&q).n, 0);
    assert_int_equal(got.n, expected.n);
    assert_memory_equal(got.p, expected.p, got.n);
    struct slice left = slice_copy(STR("dropped"));
    slice_queue_append(&q, &left, 1);
    slice_queue_done(&q);
}
