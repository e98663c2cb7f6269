/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/fieldset_internal.h"

#include "values.h"

static struct fieldset *set_of(struct arena *a, const char *fields)
{
    struct fieldset *set = NULL;
    assert_int_equal(fieldset_from_json(a, value_of(a, fields), &set), 0);
    return set;
}

static void assert_set(struct arena *a, const struct fieldset *set, const char *expected)
{
    struct json fields = fieldset_to_json(a, set);
    assert_text(a, json_text(a, &fields), expected);
}

TEST(reads_and_writes_fields_v1)
{
    static const char *const same[] = {
        "{}",
        "{'f:data':{}}",
        "{'f:data':{'f:k':{},'f:l':{}},'f:metadata':{'f:labels':{'f:x':{}}}}",
        "{'f:data':{'.':{},'f:a':{}},'f:type':{}}",
        "{'f:a/b.c':{},'f:é':{}}",
        "{'f:spec':{'f:tags':{'.':{},'v:1':{},'v:2':{},'v:10':{}}}}",
        "{'f:spec':{'f:list':{'v:-10':{},'v:-2':{},'v:-1':{},'v:0.5':{},'v:9':{},'v:true':{}}}}",
        "{'f:x':{'i:0':{},'i:2':{},'i:10':{}}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(same); i++)
        assert_set(a, set_of(a, same[i]), same[i]);
}

TEST(spells_each_element_in_one_way)
{
    ARENA_AUTO a = arena_new();
    const struct json *given =
        parse_text(a, "{\"f:p\":{\"k:{ \\\"port\\\": 80, \\\"name\\\":\\\"x\\\"}\":{},"
                      "\"k:{\\\"name\\\":\\\"\\\\u0061\\\"}\":{\"f:q\":{}},\"k:{\\\"name\\\":"
                      "\\\"a\\\"}\":{\".\":{}}}}");
    struct fieldset *set = NULL;
    assert_int_equal(fieldset_from_json(a, given, &set), 0);
    struct json written = fieldset_to_json(a, set);
    assert_str(json_text(a, &written),
               "{\"f:p\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:q\":{}},"
               "\"k:{\\\"name\\\":\\\"x\\\",\\\"port\\\":80}\":{}}}");
}

TEST(orders_fields_keys_values_and_indexes)
{
    static const char *const sorted[] = {
        "f:",
        "f:a",
        "f:aa",
        "f:b",
        "k:{\"n\":-2}",
        "k:{\"n\":1}",
        "k:{\"n\":10}",
        "k:{\"n\":10,\"o\":2}",
        "k:{\"n\":10,\"o\":11}",
        "k:{\"n\":\"x:10\"}",
        "k:{\"n\":\"x:9\"}",
        "v:\"a\"",
        "v:-10",
        "v:-2",
        "v:-1",
        "v:1",
        "v:1.5",
        "v:10",
        "v:false",
        "v:true",
        "i:0",
        "i:9",
        "i:10",
    };
    /* A string sorts before a number here, as text; what matters is that the order is one. */
    struct str texts[N_ELEMENTS(sorted)];
    for (size_t i = 0; i < N_ELEMENTS(sorted); i++)
        texts[i] = str_of(sorted[i]);
    for (size_t i = 0; i < N_ELEMENTS(sorted); i++) {
        for (size_t j = 0; j < N_ELEMENTS(sorted); j++) {
            int order = element_compare(texts[i], texts[j]),
                back = element_compare(texts[j], texts[i]);
            assert_int_equal(order == 0, i == j);
            assert_int_equal(order<0, back> 0);
            for (size_t k = 0; k < N_ELEMENTS(sorted); k++) {
                if (order < 0 && element_compare(texts[j], texts[k]) < 0)
                    assert_true(element_compare(texts[i], texts[k]) < 0);
            }
        }
    }
}

TEST(refuses_what_is_no_fields_v1)
{
    static const char *const bad[] = {
        "[]",           "null",      "'x'",         "{'f:a':1}",  "{'f:a':[]}",  "{'nocolon':{}}",
        "{'':{}}",      "{'f':{}}",  "{'v:':{}}",   "{'v:{':{}}", "{'k:[]':{}}", "{'k:x':{}}",
        "{'i:one':{}}", "{'i:':{}}", "{'fg:x':{}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct fieldset *set = NULL;
        if (fieldset_from_json(a, value_of(a, bad[i]), &set) == 0)
            fail_msg("accepted %s", bad[i]);
    }
}

TEST(ignores_elements_of_a_later_version)
{
    ARENA_AUTO a = arena_new();
    assert_set(a, set_of(a, "{'f:a':{'x:new':{'f:b':{}}},'z:y':{}}"), "{'f:a':{}}");
}

TEST(refuses_sets_that_could_not_be_stored)
{
    ARENA_AUTO a = arena_new();
    struct json nested = json_object();
    for (size_t i = 0; i < FIELDSET_MAX_DEPTH + 1; i++) {
        struct json outer = json_object();
        (void) json_append_member(a, &outer, STR("f:a"), nested);
        nested = outer;
    }
    struct fieldset *set = NULL;
    assert_int_not_equal(fieldset_from_json(a, &nested, &set), 0);
    assert_int_equal(fieldset_from_json(a, &nested.members[0].value, &set), 0);
}

static void add_line(void *ctx, struct str path)
{
    buf_printf(ctx, "%.*s\n", STR_ARG(path));
}

TEST(shows_paths_as_conflicts_do)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    const struct json *given = parse_text(
        a, "{\"f:spec\":{\"f:order\":{},\"f:ports\":{\"k:{\\\"name\\\":\\\"a\\\",\\\"port\\\":1}\":"
           "{\".\":{},\"f:addr\":{}}},\"f:tags\":{\"v:\\\"x\\\"\":{},\"v:2\":{}}},\"f:a\":{\"i:3\":"
           "{}}}");
    struct fieldset *set = NULL;
    assert_int_equal(fieldset_from_json(a, given, &set), 0);
    fieldset_for_each_leaf(a, set, add_line, &b);
    assert_str(buf_str(&b),
               ".a[3]\n.spec.order\n.spec.ports[name=\"a\",port=1]\n"
               ".spec.ports[name=\"a\",port=1].addr\n.spec.tags[=\"x\"]\n.spec.tags[=2]\n");
}

TEST(combines_sets)
{
    ARENA_AUTO a = arena_new();
    const struct fieldset *x = set_of(a, "{'f:a':{'.':{},'f:b':{}},'f:c':{}}");
    const struct fieldset *y = set_of(a, "{'f:a':{'f:b':{},'f:d':{}},'f:e':{}}");
    assert_set(a, fieldset_union(a, x, y), "{'f:a':{'.':{},'f:b':{},'f:d':{}},'f:c':{},'f:e':{}}");
    assert_set(a, fieldset_intersection(a, x, y), "{'f:a':{'f:b':{}}}");
    assert_set(a, fieldset_difference(a, x, y), "{'f:a':{},'f:c':{}}");
    assert_set(a, fieldset_difference(a, y, x), "{'f:a':{'f:d':{}},'f:e':{}}");
    assert_set(a, fieldset_without_trees(a, x, set_of(a, "{'f:a':{}}")), "{'f:c':{}}");
    assert_set(a, fieldset_without_trees(a, x, set_of(a, "{'f:a':{'f:b':{}}}")),
               "{'f:a':{},'f:c':{}}");
}

/* ---- objects ------------------------------------------------------------------------------ */

TEST(gives_the_fields_of_an_applied_object)
{
    static const struct {
        const char *object, *fields;
    } cases[] = {
        {"{'spec':{'serial':'AB-1','order':['p'],'labels':{'k':'v'}}}",
         "{'f:spec':{'f:labels':{'f:k':{}},'f:order':{},'f:serial':{}}}"},
        {"{'spec':{'tags':['x','y']}}", "{'f:spec':{'f:tags':{'v:\\'x\\'':{},'v:\\'y\\'':{}}}}"},
        {"{'spec':{'ports':[{'name':'a','addr':'1'}]}}",
         "{'f:spec':{'f:ports':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:addr':{},'f:name':{}}}}}"},
        /* Whatever is typed by itself owns its maps too. */
        {"{'spec':{'free':{'kept':{'x':1,'l':[1]}}}}",
         "{'f:spec':{'f:free':{'f:kept':{'.':{},'f:l':{},'f:x':{}}}}}"},
        {"{'spec':{'note':null,'labels':{},'nested':{'a':null},'tags':[],'order':[]}}",
         "{'f:spec':{'f:labels':{},'f:nested':{'f:a':{}},'f:note':{},'f:order':{}}}"},
        {"{'spec':{}}", "{'f:spec':{}}"},
        {"{'spec':{'template':{'apiVersion':'v1','metadata':{'name':'e','labels':{'l':'m'}},'any':{"
         "'x':2}}}}",
         "{'f:spec':{'f:template':{'f:any':{'.':{},'f:x':{}},'f:apiVersion':{},"
         "'f:metadata':{'f:labels':{'f:l':{}},'f:name':{}}}}}"},
        {"{'metadata':{'finalizers':['f'],'ownerReferences':[{'uid':'u','kind':'K'}]}}",
         "{'f:metadata':{'f:finalizers':{'v:\\'f\\'':{}},'f:ownerReferences':{'k:{\\'uid\\':\\'u\\'"
         "}':{}}}}"},
        /* Items that share a key are owned by the key alone. */
        {"{'spec':{'ports':[{'name':'a','addr':'1'},{'name':'a'}]}}",
         "{'f:spec':{'f:ports':{'k:{\\'name\\':\\'a\\'}':{}}}}"},
    };
    ARENA_AUTO a = arena_new();
    const struct schema *schema = compile_text(a, device_schema);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_set(a, fieldset_of(a, value_of(a, cases[i].object), schema), cases[i].fields);
}

TEST(types_an_object_without_schema_by_itself)
{
    ARENA_AUTO a = arena_new();
    assert_set(a, fieldset_of(a, value_of(a, "{'a':{'b':[{'c':1}]},'d':null}"), NULL),
               "{'f:a':{'.':{},'f:b':{}},'f:d':{}}");
}

TEST(finds_what_differs)
{
    static const struct {
        const char *old, *new, *changed, *removed;
    } cases[] = {
        {"{}", "{'spec':{'a':1}}", "{'f:spec':{'.':{},'f:a':{}}}", "{}"},
        {"{'spec':{'a':1}}", "{}", "{}", "{'f:spec':{'.':{},'f:a':{}}}"},
        {"{'spec':{'mode':'x','cpus':1}}", "{'spec':{'cpus':2,'mode':'x'}}",
         "{'f:spec':{'f:cpus':{}}}", "{}"},
        {"{'spec':{'cpus':1}}", "{'spec':{'cpus':1.0}}", "{}", "{}"},
        {"{'spec':{'tags':['a','b']}}", "{'spec':{'tags':['b','a']}}", "{}", "{}"},
        {"{'spec':{'tags':['a']}}", "{'spec':{'tags':['b']}}",
         "{'f:spec':{'f:tags':{'v:\\'b\\'':{}}}}", "{'f:spec':{'f:tags':{'v:\\'a\\'':{}}}}"},
        {"{'spec':{'order':['a','b']}}", "{'spec':{'order':['b','a']}}",
         "{'f:spec':{'f:order':{}}}", "{}"},
        {"{'spec':{'ports':[{'name':'a','mtu':1},{'name':'b'}]}}",
         "{'spec':{'ports':[{'name':'b'},{'name':'a','mtu':2}]}}",
         "{'f:spec':{'f:ports':{'k:{\\'name\\':\\'a\\'}':{'f:mtu':{}}}}}", "{}"},
        {"{'spec':{'labels':{}}}", "{'spec':{'labels':{'a':'b'}}}",
         "{'f:spec':{'f:labels':{'f:a':{}}}}", "{}"},
        {"{'spec':{'labels':null}}", "{'spec':{'labels':{}}}", "{'f:spec':{'f:labels':{}}}", "{}"},
        {"{'status':{'conditions':null}}", "{'status':{'conditions':[{'type':'A'}]}}",
         "{'f:status':{'f:conditions':{'k:{\\'type\\':\\'A\\'}':{'.':{},'f:type':{}}}}}", "{}"},
        {"{'spec':{'free':{'x':'s'}}}", "{'spec':{'free':{'x':{'y':1}}}}",
         "{'f:spec':{'f:free':{'f:x':{'.':{},'f:y':{}}}}}", "{}"},
        {"{'spec':{'free':{'x':{'y':1}}}}", "{'spec':{'free':{'x':[1]}}}",
         "{'f:spec':{'f:free':{'f:x':{}}}}", "{'f:spec':{'f:free':{'f:x':{'f:y':{}}}}}"},
        {"{'spec':{'tags':['a']}}", "{'spec':{'tags':['a','a']}}",
         "{'f:spec':{'f:tags':{'v:\\'a\\'':{}}}}", "{}"},
        {"{'spec':{'ports':[{'name':'a'},{'name':'a'}]}}", "{'spec':{'ports':[]}}", "{}",
         "{'f:spec':{'f:ports':{'k:{\\'name\\':\\'a\\'}':{}}}}"},
    };
    ARENA_AUTO a = arena_new();
    const struct schema *schema = compile_text(a, device_schema);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fieldset_difference d =
            fieldset_compare(a, schema, value_of(a, cases[i].old), value_of(a, cases[i].new), NULL);
        assert_set(a, d.changed, cases[i].changed);
        assert_set(a, d.removed, cases[i].removed);
    }
}

TEST(leaves_out_ignored_fields_also_of_what_is_new)
{
    ARENA_AUTO a = arena_new();
    const struct fieldset *ignored = set_of(a, "{'f:metadata':{'f:name':{}},'f:status':{}}");
    struct fieldset_difference d = fieldset_compare(
        a, NULL, value_of(a, "{}"),
        value_of(a, "{'status':{'a':1},'metadata':{'name':'x','labels':{'l':'m'}}}"), ignored);
    assert_set(a, d.changed, "{'f:metadata':{'.':{},'f:labels':{'.':{},'f:l':{}}}}");
}

TEST(takes_very_deep_values_as_one_field)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_append_str(&b, STR("{\"a\":"));
    buf_append_str(&b, STR("1"));
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_append_char(&b, '}');
    struct json *deep = json_parse_quick(a, buf_str(&b));
    assert_non_null(deep);
    struct json fields = fieldset_to_json(a, fieldset_of(a, deep, NULL));
    struct fieldset *again = NULL;
    assert_int_equal(fieldset_from_json(a, &fields, &again), 0);
}

TEST(reads_a_set_by_the_schema_of_today)
{
    static const struct {
        const char *stored, *today;
    } cases[] = {
        {"{'f:spec':{'f:order':{'v:\\'a\\'':{}},'f:serial':{'f:was':{}}}}",
         "{'f:spec':{'f:order':{},'f:serial':{}}}"},
        {"{'f:spec':{'f:free':{'f:x':{'k:{\\'name\\':\\'a\\'}':{}}}}}",
         "{'f:spec':{'f:free':{'f:x':{}}}}"},
        {"{'f:metadata':{'f:ownerReferences':{'k:{\\'uid\\':\\'u\\'}':{'f:name':{}}}}}",
         "{'f:metadata':{'f:ownerReferences':{'k:{\\'uid\\':\\'u\\'}':{}}}}"},
        {"{'f:spec':{'f:labels':{},'f:tags':{'.':{},'v:\\'a\\'':{}}}}",
         "{'f:spec':{'f:labels':{},'f:tags':{'.':{},'v:\\'a\\'':{}}}}"},
    };
    ARENA_AUTO a = arena_new();
    const struct schema *schema = compile_text(a, device_schema);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_set(a, fieldset_reconcile(a, set_of(a, cases[i].stored), schema), cases[i].today);
}

/* ---- laws --------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static struct json random_fields(struct arena *a, uint32_t *seed, unsigned depth)
{
    static const char *const keys[] = {"f:a",          "f:b",     "f:c", "k:{\"n\":1}",
                                       "k:{\"n\":12}", "v:\"x\"", "v:3", "v:20"};
    struct json value = json_object();
    for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
        if (depth < 3 && next_random(seed) % 4 == 0)
            (void) json_append_member(a, &value, str_of(keys[i]),
                                      random_fields(a, seed, depth + 1));
    }
    if (value.n && depth > 0 && next_random(seed) % 2)
        (void) json_append_member(a, &value, STR("."), json_object());
    return value;
}

TEST(obeys_the_laws_of_sets)
{
    uint32_t seed = 7;
    ARENA_AUTO a = arena_new();
    for (int round = 0; round < 300; round++) {
        arena_reset(a);
        struct fieldset *s[3] = {0};
        for (size_t i = 0; i < 3; i++) {
            struct json fields = random_fields(a, &seed, 0);
            assert_int_equal(fieldset_from_json(a, &fields, &s[i]), 0);
            struct json text = fieldset_to_json(a, s[i]);
            assert_true(json_equal(&text, &fields));
        }
        const struct fieldset *x = s[0], *y = s[1], *z = s[2];
        const struct fieldset *both = fieldset_intersection(a, x, y),
                              *all = fieldset_union(a, x, y);
        assert_true(fieldset_equal(all, fieldset_union(a, y, x)));
        assert_true(fieldset_equal(both, fieldset_intersection(a, y, x)));
        assert_true(fieldset_equal(x, fieldset_union(a, x, x)));
        assert_true(fieldset_is_empty(fieldset_difference(a, x, x)));
        assert_true(fieldset_equal(fieldset_union(a, all, z),
                                   fieldset_union(a, x, fieldset_union(a, y, z))));
        assert_true(fieldset_equal(x, fieldset_union(a, fieldset_difference(a, x, y), both)));
        assert_true(fieldset_equal(both, fieldset_difference(a, x, fieldset_difference(a, x, y))));
        assert_true(fieldset_equal(fieldset_difference(a, all, y), fieldset_difference(a, x, y)));
        struct json stored = fieldset_to_json(a, x);
        if (!fieldset_json_has_any(&stored, y))
            assert_true(fieldset_is_empty(both));
        assert_int_equal(fieldset_json_has_all(&stored, y),
                         fieldset_is_empty(fieldset_difference(a, y, x)));
        const struct fieldset *rest = fieldset_difference(a, x, y);
        struct json expected = fieldset_to_json(a, rest), more = stored;
        struct json expected_more = fieldset_to_json(a, all);
        assert_int_equal(fieldset_json_take(a, y, &stored), !fieldset_equal(x, rest));
        assert_true(json_identical(&stored, &expected));
        assert_int_equal(fieldset_json_add(a, y, &more), !fieldset_equal(x, all));
        assert_true(json_identical(&more, &expected_more));
    }
}

TEST(changes_stored_fields_as_it_changes_a_set)
{
    static const char *const sets[] = {
        "{}",
        "{'f:a':{}}",
        "{'f:a':{'f:b':{}}}",
        "{'f:a':{'.':{},'f:b':{}}}",
        "{'f:a':{'.':{},'f:b':{},'f:c':{'.':{},'f:d':{}}},'f:e':{}}",
        "{'f:a':{'f:c':{'f:d':{}}},'f:e':{'f:f':{}}}",
        "{'f:a':{'f:b':{},'f:c':{}},'f:e':{}}",
        "{'f:a':{'f:c':{'.':{}}},'f:l':{'k:{\\'n\\':\\'x\\'}':{'.':{},'f:v':{}}}}",
        "{'f:l':{'k:{\\'n\\':\\'x\\'}':{}}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(sets); i++) {
        for (size_t k = 0; k < N_ELEMENTS(sets); k++) {
            struct fieldset *from = set_of(a, sets[i]), *lost = set_of(a, sets[k]);
            struct json stored = fieldset_to_json(a, from), kept = stored, more = stored;
            struct str before = json_text(a, &stored);
            struct fieldset *rest = fieldset_difference(a, from, lost);
            bool is_changed = fieldset_json_take(a, lost, &kept);
            struct json expected = fieldset_to_json(a, rest);
            assert_int_equal(is_changed, !fieldset_equal(from, rest));
            assert_true(json_identical(&kept, &expected));
            (void) fieldset_json_add(a, lost, &more);
            expected = fieldset_to_json(a, fieldset_union(a, from, lost));
            assert_true(json_identical(&more, &expected));
            assert_true(str_eq(json_text(a, &stored), before));
            assert_int_equal(fieldset_json_is(&stored, lost), fieldset_equal(from, lost));
        }
    }
}
