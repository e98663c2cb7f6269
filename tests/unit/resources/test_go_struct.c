/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/go_struct.h"

#include "../api/kinds_fixture.h"
#include "test.h"

TEST(differences_are_shown_with_three_lines_around_them)
{
    static const struct {
        const char *old, *value, *diff;
    } cases[] = {
        {"{'a':1}", "{'a':1}", ""},
        {"{'a':1}", "{'a':2}", "@@ -1,3 +1,3 @@\n {\n- \"a\": 1\n+ \"a\": 2\n }\n"},
        {"{}", "{'a':1}", "@@ -1 +1,3 @@\n-{}\n+{\n+ \"a\": 1\n+}\n"},
        /* far apart: two pieces */
        {"{'a':1,'b':[1,2,3,4,5,6,7,8],'c':1}", "{'a':2,'b':[1,2,3,4,5,6,7,8],'c':2}",
         "@@ -1,5 +1,5 @@\n {\n- \"a\": 1,\n+ \"a\": 2,\n  \"b\": [\n   1,\n   2,\n@@ -10,5 +10,5 "
         "@@\n   7,\n   8\n  ],\n"
         "- \"c\": 1\n+ \"c\": 2\n }\n"},
        /* near: one */
        {"{'a':1,'b':[1,2],'c':1}", "{'a':2,'b':[1,2],'c':2}",
         "@@ -1,8 +1,8 @@\n {\n- \"a\": 1,\n+ \"a\": 2,\n  \"b\": [\n   1,\n   2\n  ],\n- \"c\": "
         "1\n+ \"c\": 2\n }\n"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(
            go_struct_diff(a, fixture_json(a, cases[i].old), fixture_json(a, cases[i].value)),
            cases[i].diff);
}

TEST(fields_have_the_names_of_go)
{
    ARENA_AUTO a = arena_new();
    assert_str(go_field_name(a, STR(""), STR("storageClassName")), "StorageClassName");
    assert_str(go_field_name(a, STR(""), STR("nfs")), "NFS");
    assert_str(go_field_name(a, STR("rbd"), STR("user")), "RadosUser");
    assert_str(go_field_name(a, STR("cephfs"), STR("user")), "User");
}
