/* SPDX-License-Identifier: Apache-2.0 */
#include "store/object.h"

#include "base/alloc.h"
#include "test.h"

#define TEXT \
    "{\"apiVersion\":\"v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"\"," \
    "\"uid\":\"u-1\",\"labels\":{\"a\":\"b\"}}}"

static struct span find(struct str text, const char *what)
{
    ptrdiff_t at = str_find_str(text, str_of(what));
    assert_true(at >= 0);
    return (struct span){(uint32_t) at, (uint32_t) strlen(what)};
}

static struct object *make(void)
{
    struct str text = STR(TEXT);
    struct object_head head = {
        .name = {find(text, "\"n\"").offset + 1, 1},
        .uid = find(text, "u-1"),
        .body_at = find(text, "\"metadata\"").offset,
        .revision_at = find(text, "resourceVersion").offset + 18,
        .n_labels = 1,
        .labels = mem_alloc(sizeof(struct object_label)),
    };
    head.labels[0] = (struct object_label){{find(text, "\"a\"").offset + 1, 1},
                                           {find(text, "\"b\"").offset + 1, 1}};
    return object_new(text, &head);
}

TEST(revision_is_written_between_the_quotes)
{
    struct object *o = make();
    object_set_revision(o, 9223372036854775807);
    assert_true(str_find_str(object_text(o),
                             STR("\"resourceVersion\":\"9223372036854775807\",\"uid\":\"u-1\"")) >
                0);
    assert_int_equal(o->revision, 9223372036854775807);
    assert_int_equal(o->n, strlen(TEXT) + 19);
    object_unref(o);
}

TEST(spans_move_with_the_text)
{
    struct object *o = make();
    object_set_revision(o, 12345);
    assert_str(object_span(o, o->head.name), "n");
    assert_str(object_span(o, o->head.uid), "u-1");
    assert_str(object_span(o, o->head.labels[0].key), "a");
    assert_str(object_span(o, o->head.labels[0].value), "b");
    assert_true(str_starts_with(str_from(object_text(o), o->head.body_at), STR("\"metadata\"")));
    assert_null(object_span(o, o->head.namespace).p);
    object_unref(o);
}

TEST(slice_outlives_the_last_other_reference)
{
    struct object *o = make();
    object_set_revision(o, 2);
    struct slice s = object_slice(o, o->head.body_at);
    object_unref(o);
    assert_true(str_starts_with(s.s, STR("\"metadata\"")));
    slice_unref(s);
}
