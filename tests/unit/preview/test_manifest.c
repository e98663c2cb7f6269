/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a body, in all the forms in which people have them. */
#include "test.h"

#include "preview/manifest.h"

static int read(struct arena *a, struct str body, struct manifest *m, struct status *st)
{
    status_init(st, a);
    return manifest_read(a, body, m, st);
}

TEST(every_form_gives_its_objects_in_order)
{
    static const struct {
        const char *body, *names;
    } cases[] = {
        {"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"x\"}}", "x"},
        {"apiVersion: v1\nkind: A\nmetadata: {name: x}\n", "x"},
        {"---\napiVersion: v1\nkind: A\nmetadata: {name: x}\n---\n# nothing\n---\napiVersion: "
         "v1\nkind: B\nmetadata: {name: w}",
         "xw"},
        {"apiVersion: v1\nkind: A\nmetadata: {name: x}\n--- # two\napiVersion: v1\nkind: "
         "B\nmetadata: {name: w}\n---\n",
         "xw"},
        {"apiVersion: v1\r\nkind: A\r\nmetadata: {name: x}\r\n---\r\napiVersion: v1\r\nkind: "
         "B\r\nmetadata: {name: w}\r\n",
         "xw"},
        {"[{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"x\"}},{\"apiVersion\":"
         "\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"w\"}}]",
         "xw"},
        {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- "
         "{apiVersion: v1, kind: A, metadata: {name: w}}\n---\napiVersion: v1\nkind: A\nmetadata: "
         "{name: z}\n",
         "xwz"},
        {"apiVersion: v1\nkind: A\nmetadata: {name: x}\ndata:\n  text: |\n    ---\n    inside\n",
         "x"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct manifest *m = ARENA_NEW(a, struct manifest);
        struct status st;
        BUF_AUTO names = {0};
        if (read(a, str_of(cases[i].body), m, &st) < 0)
            fail_msg("%s: %.*s", cases[i].body, STR_ARG(st.message));
        for (size_t k = 0; k < m->n; k++)
            buf_append_str(&names, json_str(json_at(m->objects[k], "metadata", "name", NULL)));
        if (!str_is(buf_str(&names), cases[i].names))
            fail_msg("%s: got \"%.*s\"", cases[i].body, STR_ARG(buf_str(&names)));
    }
}

TEST(what_is_no_object_is_refused)
{
    static const struct {
        const char *body;
        int code;
    } cases[] = {
        {"", 400},
        {"---\n---\n", 400},
        {"just text", 400},
        {"{\"kind\":\"A\"}", 400},
        {"apiVersion: v1", 400},
        {"[1]", 400},
        {"a: [", 400},
        {"apiVersion: v1\nkind: List\nitems: [null]", 400},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct manifest *m = ARENA_NEW(a, struct manifest);
        struct status st;
        assert_true(read(a, str_of(cases[i].body), m, &st) < 0);
        assert_int_equal(st.code, cases[i].code);
    }
}

TEST(limits_are_kept)
{
    ARENA_AUTO a = arena_new();
    struct manifest *m = ARENA_NEW(a, struct manifest);
    struct status st;
    BUF_AUTO many = {0};
    for (size_t i = 0; i < MANIFEST_MAX_OBJECTS; i++)
        buf_append_str(&many, STR("---\napiVersion: v1\nkind: A\n"));
    assert_int_equal(read(a, buf_str(&many), m, &st), 0);
    assert_int_equal(m->n, MANIFEST_MAX_OBJECTS);
    buf_append_str(&many, STR("---\napiVersion: v1\nkind: A\n"));
    assert_true(read(a, buf_str(&many), m, &st) < 0);
    assert_int_equal(st.code, 413);

    BUF_AUTO large = {0};
    memset(buf_reserve(&large, MANIFEST_MAX_BYTES + 1), ' ', MANIFEST_MAX_BYTES + 1);
    large.n = MANIFEST_MAX_BYTES + 1;
    assert_true(read(a, buf_str(&large), m, &st) < 0);
    assert_int_equal(st.code, 413);
}
