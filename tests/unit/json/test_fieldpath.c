/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "json/fieldpath.h"

TEST(no_path_is_empty)
{
    ARENA_AUTO a = arena_new();
    assert_str(field_path_text(a, NULL), "");
}

TEST(names_keys_and_indices_are_written_as_kubernetes_does)
{
    ARENA_AUTO a = arena_new();
    struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    struct field_path containers = FIELD_NAME(&spec, STR("containers"));
    struct field_path first = FIELD_INDEX(&containers, 0);
    struct field_path name = FIELD_NAME(&first, STR("name"));
    struct field_path labels = FIELD_NAME(&spec, STR("labels"));
    struct field_path label = FIELD_KEY(&labels, STR("a/b"));
    struct field_path empty = FIELD_KEY(&labels, STR(""));
    assert_str(field_path_text(a, &spec), "spec");
    assert_str(field_path_text(a, &name), "spec.containers[0].name");
    assert_str(field_path_text(a, &first), "spec.containers[0]");
    assert_str(field_path_text(a, &label), "spec.labels[a/b]");
    assert_str(field_path_text(a, &empty), "spec.labels[]");
}

TEST(a_path_may_begin_with_an_index)
{
    ARENA_AUTO a = arena_new();
    struct field_path second = FIELD_INDEX(NULL, 1);
    struct field_path large = FIELD_INDEX(&second, INT64_MAX);
    struct field_path name = FIELD_NAME(&large, STR("x"));
    assert_str(field_path_text(a, &name), "[1][9223372036854775807].x");
}
