/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "device.h"

/* The value after defaulting and pruning, and what was unknown in it: "text | path path". A tree
 * that shares all of its parts must not change with it. */
static struct str settle(struct arena *a, const char *schema, const char *value)
{
    const struct schema *s = compile_text(a, schema);
    struct json *v = parse_text(a, value);
    const struct json other = *v;
    struct str before = json_text(a, &other);
    struct unknown_field *unknown = NULL;
    schema_default(a, s, v);
    schema_prune(a, s, v, &unknown);
    assert_true(str_eq(json_text(a, &other), before));
    BUF_AUTO b = {0};
    json_write(&b, v);
    for (const struct unknown_field *u = unknown; u; u = u->next)
        buf_printf(&b, "%s%.*s", u == unknown ? " | " : " ", STR_ARG(u->path));
    return arena_str(a, buf_str(&b));
}

#define STRING "{\"type\":\"string\"}"

TEST(fills_defaults)
{
    static const struct {
        const char *schema, *value, *result;
    } cases[] = {
        /* missing, present, null */
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1}}}", "{}",
         "{\"a\":1}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1}}}",
         "{\"a\":0}", "{\"a\":0}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1}}}",
         "{\"a\":null}", "{\"a\":1}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1,"
         "\"nullable\":true}}}",
         "{\"a\":null}", "{\"a\":null}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":null}",
         "{}"},
        /* below what was defaulted, in lists, in maps */
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"default\":{},"
         "\"properties\":{\"b\":"
         "{\"type\":\"string\",\"default\":\"deep\"}}}}}",
         "{}", "{\"a\":{\"b\":\"deep\"}}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{"
         "\"type\":"
         "\"string\",\"default\":\"deep\"}}}}}",
         "{}", "{}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"object\","
         "\"properties\":{\"b\":{\"type\":\"integer\",\"default\":1500}}}}}}",
         "{\"a\":[{},{\"b\":1}]}", "{\"a\":[{\"b\":1500},{\"b\":1}]}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":"
         "{\"type\":"
         "\"object\",\"properties\":{\"b\":{\"type\":\"integer\",\"default\":2}}}}}}",
         "{\"a\":{\"x\":{},\"y\":null}}", "{\"a\":{\"x\":{\"b\":2}}}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"integer\","
         "\"default\":3}}}}",
         "{\"a\":[null,1]}", "{\"a\":[3,1]}"},
        /* within what is preserved, only where specified */
        {"{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"a\":"
         "{\"type\":"
         "\"integer\",\"default\":1}}}",
         "{\"x\":{\"y\":null}}", "{\"x\":{\"y\":null},\"a\":1}"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(settle(a, cases[i].schema, cases[i].value), cases[i].result);
}

TEST(defaults_are_copies)
{
    ARENA_AUTO a = arena_new();
    const struct schema *s = compile_text(a, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                                             "\"object\",\"default\":{\"b\":[1]}}}}");
    struct json *v = parse_text(a, "{}");
    schema_default(a, s, v);
    json_at(v, "a", "b", NULL)->items[0] = json_int(2);
    struct json *again = parse_text(a, "{}");
    schema_default(a, s, again);
    assert_str(json_text(a, again), "{\"a\":{\"b\":[1]}}");
}

TEST(what_is_shared_with_the_old_value_has_its_defaults)
{
    ARENA_AUTO a = arena_new();
    const struct schema *s = compile_text(
        a, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{"
           "\"d\":{\"type\":\"integer\",\"default\":1}}},\"b\":{\"type\":\"array\",\"items\":{"
           "\"type\":\"object\",\"properties\":{\"d\":{\"type\":\"integer\",\"default\":1}}}}}}");
    const struct json *old = parse_text(a, "{\"a\":{\"x\":1},\"b\":[{\"x\":1},{\"x\":2}]}");
    struct json *v = parse_text(a, "{\"a\":{\"x\":1},\"b\":[{\"x\":1},{\"x\":3}]}");
    (void) json_share(v, old);
    schema_default_over(a, s, v, old);
    assert_str(json_text(a, v), "{\"a\":{\"x\":1},\"b\":[{\"x\":1},{\"x\":3,\"d\":1}]}");
    assert_str(json_text(a, old), "{\"a\":{\"x\":1},\"b\":[{\"x\":1},{\"x\":2}]}");
}

TEST(more_defaults_than_fit_a_word_are_filled)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    buf_append_str(&text, STR("{\"type\":\"object\",\"properties\":{"));
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "%s\"p%d\":{\"type\":\"integer\",\"default\":%d}", i ? "," : "", i, i);
    buf_append_str(&text, STR("}}"));
    const struct schema *s = compile_text(a, text.p);
    struct json *v = parse_text(a, "{\"p3\":0,\"p80\":0}");
    schema_default(a, s, v);
    assert_int_equal(json_count(v), 100);
    assert_int_equal(json_get_int(v, STR("p3"), -1), 0);
    assert_int_equal(json_get_int(v, STR("p80"), -1), 0);
    assert_int_equal(json_get_int(v, STR("p99"), -1), 99);
}

TEST(prunes_what_is_not_specified)
{
    static const struct {
        const char *schema, *value, *result;
    } cases[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":" STRING "}}",
         "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"n\"},\"a\":\"1\",\"z\":1,"
         "\"b\":{\"c\":1}}",
         "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"n\"},\"a\":\"1\"} | b z"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"object\","
         "\"properties\":{\"b\":" STRING "}}}}}",
         "{\"a\":[{\"b\":\"x\",\"c\":1}]}", "{\"a\":[{\"b\":\"x\"}]} | a[0].c"},
        /* maps keep their keys; `true` knows nothing of what is below them */
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":"
         "{\"type\":"
         "\"object\",\"properties\":{\"b\":" STRING "}}}}}",
         "{\"a\":{\"k\":{\"b\":\"x\",\"c\":1}}}", "{\"a\":{\"k\":{\"b\":\"x\"}}} | a.k.c"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":"
         "true}}}",
         "{\"a\":{\"k\":{\"b\":1},\"l\":2}}", "{\"a\":{\"k\":{},\"l\":2}} | a.k.b"},
        /* preserved, but not what is specified below */
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\","
         "\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"b\":{\"type\":\"object\","
         "\"properties\":{\"c\":" STRING "}}}}}}",
         "{\"a\":{\"x\":{\"y\":1},\"b\":{\"c\":\"1\",\"d\":1}}}",
         "{\"a\":{\"x\":{\"y\":1},\"b\":{\"c\":\"1\"}}} | a.b.d"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\","
         "\"x-kubernetes-preserve-unknown-fields\":true,\"items\":{\"type\":\"object\","
         "\"properties\":{\"b\":"
         "{\"type\":\"object\"}}}}}}",
         "{\"a\":[{\"x\":1,\"b\":{\"y\":1}}]}", "{\"a\":[{\"x\":1,\"b\":{}}]} | a[0].b.y"},
        /* embedded resources */
        {"{\"type\":\"object\",\"properties\":{\"t\":{\"type\":\"object\",\"x-kubernetes-embedded-"
         "resource\":true,"
         "\"properties\":{\"spec\":{\"type\":\"object\"}}}}}",
         "{\"t\":{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"n\",\"nope\":1,"
         "\"labels\":{\"a\":"
         "\"b\"}},\"spec\":{},\"other\":1}}",
         "{\"t\":{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"n\",\"labels\":{"
         "\"a\":\"b\"}},"
         "\"spec\":{}}} | t.other t.metadata.nope"},
        {"{\"type\":\"object\"}",
         "{\"x\":1,\"metadata\":{\"name\":\"n\",\"nope\":1,\"managedFields\":[{\"fieldsV1\":{\"f:"
         "x\":{}}}]}}",
         "{\"metadata\":{\"name\":\"n\",\"managedFields\":[{\"fieldsV1\":{\"f:x\":{}}}]}} | "
         "metadata.nope x"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(settle(a, cases[i].schema, cases[i].value), cases[i].result);
}

/* Recorded from kube-apiserver 1.36. */
TEST(lists_unknown_fields_in_kube_apiservers_order)
{
    ARENA_AUTO a = arena_new();
    assert_str(settle(a, device_schema,
                      "{\"spec\":{\"serial\":\"AB-1\",\"unknown\":1,\"nested\":{\"a\":{\"zz\":1},"
                      "\"q\":2},\"ports\":["
                      "{\"name\":\"eth0\",\"junk\":true}],\"free\":{\"kept\":{\"x\":1}},"
                      "\"template\":{\"apiVersion\":"
                      "\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"e\",\"nope\":1},"
                      "\"anything\":2}},"
                      "\"extra\":true}"),
               "{\"spec\":{\"serial\":\"AB-1\",\"nested\":{\"a\":{\"b\":\"deep\"}},\"ports\":[{"
               "\"name\":\"eth0\",\"mtu\":"
               "1500}],\"free\":{\"kept\":{\"x\":1}},\"template\":{\"apiVersion\":\"v1\",\"kind\":"
               "\"ConfigMap\","
               "\"metadata\":{\"name\":\"e\"},\"anything\":2},\"mode\":\"active\",\"replicas\":1,"
               "\"enabled\":true}}"
               " | extra spec.nested.a.zz spec.nested.q spec.ports[0].junk spec.unknown "
               "spec.template.metadata.nope");
}

TEST(names_metadata_that_cannot_be_read)
{
    ARENA_AUTO a = arena_new();
    const struct schema *s = compile_text(a, device_schema);
    assert_str(schema_malformed(
                   a, s,
                   parse_text(a, "{\"spec\":{\"template\":{\"apiVersion\":\"v1\",\"kind\":\"X\","
                                 "\"metadata\":{\"name\":5}}}}")),
               "spec.template.metadata: Invalid value: {\"name\":5}: json: cannot unmarshal number "
               "into Go struct "
               "field ObjectMeta.name of type string");
    assert_null(
        schema_malformed(a, s,
                         parse_text(a, "{\"spec\":{\"template\":{\"metadata\":{\"name\":\"x\"}}}}"))
            .p);
}

TEST(object_meta_has_its_list_types)
{
    const struct schema *meta = schema_object_meta();
    const struct schema *owners = schema_member(meta, STR("ownerReferences"));
    assert_int_equal(owners->list_type, SCHEMA_LIST_MAP);
    assert_str(owners->list_map_keys[0], "uid");
    assert_true(owners->items->map_is_atomic);
    assert_int_equal(schema_member(meta, STR("finalizers"))->list_type, SCHEMA_LIST_SET);
    assert_int_equal(schema_member(schema_member(meta, STR("labels")), STR("any"))->type,
                     SCHEMA_STRING);
    assert_null(schema_member(meta, STR("nope")));
    assert_null(schema_member(NULL, STR("nope")));
}
