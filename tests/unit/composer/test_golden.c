/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of tests/data/compose: <case>.yaml holds steps (objects applied and removed, as a user
 * would), <case>.json what comes out after each. With SETH_WRITE_GOLDEN set the outcomes are
 * written instead of compared; read the difference before it is committed. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "world.h"
#include "json/yaml.h"

static struct str path_of(struct arena *a, const char *name, const char *suffix)
{
    return arena_printf(a, "%s/%s.%s", TEST_DATA, name, suffix);
}

static struct str read_file(struct arena *a, struct str path)
{
    BUF_AUTO text = {0};
    FILE *f = fopen(path.p, "r");
    if (!f)
        return STR("");
    for (size_t n = 1; n > 0;) {
        char *to = buf_reserve(&text, 65536);
        n = fread(to, 1, 65536, f);
        text.n += n;
    }
    fclose(f);
    return arena_str(a, buf_str(&text));
}

static void write_file(struct str path, struct str text)
{
    FILE *f = fopen(path.p, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text.p, 1, text.n, f), text.n);
    assert_int_equal(fclose(f), 0);
}

static void take_step(struct world *w, const struct json *step)
{
    JSON_FOR_EACH_ITEM (json_get(step, STR("apply")), object)
        world_apply(w, object);
    JSON_FOR_EACH_ITEM (json_get(step, STR("remove")), item) {
        const struct str text = json_str(item);
        const ptrdiff_t slash = str_find(text, '/');
        world_remove(w, str_sub(text, 0, (size_t) slash), str_from(text, (size_t) slash + 1));
    }
    w->is_sealable = json_get_bool(step, STR("sealable"), w->is_sealable);
    if (json_get(step, STR("report")))
        w->report = json_get(step, STR("report"));
}

/* Applies what every case begins with, then its steps. */
static void run(const char *name)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed;
    assert_int_equal(yaml_parse(a, read_file(a, path_of(a, "common", "yaml")), &parsed), 0);
    struct world w = {.arena = a};
    take_step(&w, parsed.value);
    assert_int_equal(yaml_parse(a, read_file(a, path_of(a, name, "yaml")), &parsed), 0);
    struct json outcomes = json_array();
    JSON_FOR_EACH_ITEM (json_get(parsed.value, STR("steps")), step) {
        struct compose_result r, again;
        take_step(&w, step);
        world_compose(&w, a, &r);
        (void) json_push(a, &outcomes, *world_outcome(a, &r));
        /* Nothing changed: nothing changes. */
        world_compose(&w, a, &again);
        assert_true(str_eq(world_bytes(a, &r), world_bytes(a, &again)));
        assert_true(json_identical(r.derived, again.derived));
    }
    assert_true(json_count(&outcomes) > 0);
    BUF_AUTO text = {0};
    json_write_pretty(&text, &outcomes);
    buf_append_char(&text, '\n');
    const struct str path = path_of(a, name, "json");
    if (getenv("SETH_WRITE_GOLDEN"))
        write_file(path, buf_str(&text));
    const struct json *expected = json_parse_quick(a, read_file(a, path));
    if (!expected || !json_equal(expected, &outcomes))
        fail_msg("%s differs; it is now:\n%.*s", path.p, (int) text.n, text.p);
}

#define GOLDEN(name) \
    TEST(name) \
    { \
        run(#name); \
    }

GOLDEN(nothing)
GOLDEN(container)
GOLDEN(virtual_machine)
GOLDEN(switch_passthrough)
GOLDEN(static_proxies)
GOLDEN(wifi)
GOLDEN(base_os)
GOLDEN(options)
GOLDEN(removal)
GOLDEN(memory_edit)
GOLDEN(volume_edit)
GOLDEN(user_data)
GOLDEN(management_stays)
GOLDEN(problems)
