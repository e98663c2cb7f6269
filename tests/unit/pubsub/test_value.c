/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/value.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pubsub/files.h"
#include "test.h"
#include "world.h"

static struct str to_wire(struct world *w, const char *json)
{
    struct pubsub_large large = {.directory = world_path(w, "persist/pubsub-large/a/T")};
    BUF_AUTO text = {0};
    assert_int_equal(pubsub_value_to_wire(&text, world_json(w, json), &large), 0);
    buf_done(&large.names);
    return arena_str(w->arena, buf_str(&text));
}

static struct json *parse(struct world *w, struct str text)
{
    struct json *v = NULL;
    int r = pubsub_value_parse(w->arena, text, world_path(w, "persist/pubsub-large/a/T"), &v);
    return r < 0 ? NULL : v;
}

TEST(the_wire_form_is_that_of_go)
{
    static const struct {
        const char *value, *wire;
    } cases[] = {
        {"{\"b\":1,\"a\":{\"d\":true,\"c\":null}}", "{\"a\":{\"c\":null,\"d\":true},\"b\":1}"},
        {"{\"a\":[],\"b\":{},\"c\":[[]]}", "{\"a\":null,\"b\":{},\"c\":[null]}"},
        {"{\"a\":\"<a href='x'>&\"}", "{\"a\":\"\\u003ca href='x'\\u003e\\u0026\"}"},
        {"{\"a\":\"\\u2028\\u2029\\u2030\"}", "{\"a\":\"\\u2028\\u2029\xe2\x80\xb0\"}"},
        {"{\"a\":1.0,\"b\":1.5,\"c\":-0.0}", "{\"a\":1,\"b\":1.5,\"c\":0}"},
        /* Exact, where Go's way through a double is not. */
        {"{\"a\":9007199254740993}", "{\"a\":9007199254740993}"},
    };
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(to_wire(&w, cases[i].value), cases[i].wire);
    world_done(&w);
}

#define LARGE "persist/pubsub-large/a/T"

TEST(a_large_field_goes_by_file)
{
    struct world w;
    world_init(&w);
    struct str wire = to_wire(&w, "{\"z\":[{\"pubsub-large-CipherData\":\"<abc>\",\"b\":1}]}");
    struct json *v = json_parse_quick(w.arena, wire);
    const struct json *item = &json_at(v, "z", NULL)->items[0];
    assert_null(json_get(item, STR("pubsub-large-CipherData")));
    /* A string that holds a JSON string: encoded twice. */
    struct str quoted = json_get_str(item, STR("pubsub-file-CipherData"));
    assert_int_equal(quoted.p[0], '"');
    struct str path = json_str(json_parse_quick(w.arena, quoted));
    struct str prefix = str_of(world_path(&w, LARGE "/pubsub-file-CipherData"));
    assert_true(str_starts_with(path, prefix));
    assert_int_equal(path.n, prefix.n + 10);
    BUF_AUTO content = {0};
    assert_int_equal(pubsub_file_read(arena_strz(w.arena, path), 1000, &content), 0);
    assert_str(buf_str(&content), "{\"pubsub-large-CipherData\":\"\\u003cabc\\u003e\"}");

    struct json *back = parse(&w, wire);
    assert_str(json_text(w.arena, back),
               "{\"z\":[{\"b\":1,\"pubsub-large-CipherData\":\"<abc>\"}]}");
    assert_int_equal(world_count_files(&w, LARGE), 0);
    /* The file is gone now, and so is the field. */
    assert_str(json_text(w.arena, parse(&w, wire)), "{\"z\":[{\"b\":1}]}");
    world_done(&w);
}

TEST(a_large_field_may_be_empty_in_its_file_or_stay_where_it_is)
{
    struct world w;
    world_init(&w);
    world_write(&w, LARGE "/pubsub-file-Xempty", "");
    world_write(&w, LARGE "/pubsub-file-Xother", "{\"pubsub-large-Y\":1}");
    static const char *names[] = {"empty", "other", "missing"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct str text =
            arena_printf(w.arena, "{\"pubsub-file-X\":\"\\\"%s/pubsub-file-X%s\\\"\"}",
                         world_path(&w, LARGE), names[i]);
        assert_str(json_text(w.arena, parse(&w, text)), "{}");
    }
    assert_str(json_text(w.arena, parse(&w, STR("{\"pubsub-large-X\":[1]}"))),
               "{\"pubsub-large-X\":[1]}");
    world_done(&w);
}

TEST(no_file_but_that_of_a_large_field_is_read_or_removed)
{
    struct world w;
    world_init(&w);
    world_write(&w, "persist/secret", "{\"pubsub-large-X\":\"secret\"}");
    world_write(&w, LARGE "/other", "{\"pubsub-large-X\":\"secret\"}");
    world_write(&w, LARGE "/sub/pubsub-file-Xa", "{\"pubsub-large-X\":\"secret\"}");
    static const char *paths[] = {
        "persist/secret",
        LARGE "/other",
        LARGE "/sub/pubsub-file-Xa",
        LARGE "/../../../secret",
        LARGE "/pubsub-file-X/../other",
        LARGE "/",
        LARGE,
    };
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        struct str text =
            arena_printf(w.arena, "{\"pubsub-file-X\":\"\\\"%s\\\"\"}", world_path(&w, paths[i]));
        assert_str(json_text(w.arena, parse(&w, text)), "{}");
    }
    assert_int_equal(
        symlink(world_path(&w, "persist/secret"), world_path(&w, LARGE "/pubsub-file-Xlink")), 0);
    struct str link = arena_printf(w.arena, "{\"pubsub-file-X\":\"\\\"%s\\\"\"}",
                                   world_path(&w, LARGE "/pubsub-file-Xlink"));
    assert_str(json_text(w.arena, parse(&w, link)), "{}");
    assert_true(world_exists(&w, "persist/secret") && world_exists(&w, LARGE "/other"));
    assert_true(world_exists(&w, LARGE "/sub/pubsub-file-Xa"));
    static const char *odd[] = {"{\"pubsub-file-X\":1}", "{\"pubsub-file-X\":\"/etc/passwd\"}",
                                "{\"pubsub-file-X\":\"\\\"\"}", "{\"pubsub-file-X\":null}"};
    for (size_t i = 0; i < N_ELEMENTS(odd); i++)
        assert_str(json_text(w.arena, parse(&w, str_of(odd[i]))), "{}");
    world_done(&w);
}

TEST(a_field_that_is_too_large_leaves_no_file)
{
    struct world w;
    world_init(&w);
    size_t n = PUBSUB_MAX_LARGE_BYTES;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'x', n);
    struct json v = json_object();
    json_set(w.arena, &v, STR("pubsub-large-A"), json_int(1));
    json_set(w.arena, &v, STR("pubsub-large-B"), json_string(str_range(text, n)));
    struct pubsub_large large = {.directory = world_path(&w, LARGE)};
    BUF_AUTO wire = {0};
    assert_int_equal(pubsub_value_to_wire(&wire, &v, &large), -EFBIG);
    assert_int_equal(world_count_files(&w, LARGE), 0);
    buf_done(&large.names);
    free(text);
    world_done(&w);
}

TEST(files_nobody_came_for_go_after_an_hour)
{
    struct world w;
    world_init(&w);
    world_write(&w, LARGE "/pubsub-file-X1", "{}");
    world_write(&w, LARGE "/mine", "{}");
    struct clock_virtual later;
    clock_virtual_init(&later, clock_system.wall_us(&clock_system) + INT64_C(1800) * 1000000);
    pubsub_large_sweep(world_path(&w, LARGE), &later.clock);
    assert_int_equal(world_count_files(&w, LARGE), 2);
    later.now_us += INT64_C(3600) * 1000000;
    pubsub_large_sweep(world_path(&w, LARGE), &later.clock);
    assert_int_equal(world_count_files(&w, LARGE), 1);
    assert_true(world_exists(&w, LARGE "/mine"));
    world_done(&w);
}

TEST(only_objects_are_values)
{
    struct world w;
    world_init(&w);
    static const char *bad[] = {"", "1", "[]", "null", "{", "{}x", "\"a\"", "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_null(parse(&w, str_of(bad[i])));
    assert_non_null(parse(&w, STR("{}")));
    world_done(&w);
}
