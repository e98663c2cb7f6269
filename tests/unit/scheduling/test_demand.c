/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/demand.h"

#include <errno.h>

#include "test.h"

static const struct json *parse(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    const struct json *v = json_parse_quick(a, str_of(copy));
    assert_non_null(v);
    return v;
}

TEST(amounts_are_summed_as_the_device_gets_them)
{
    static const struct {
        const char *containers;
        int64_t memory_kib, cpu_milli;
        bool is_bad;
    } cases[] = {
        {"[]", 512 * 1024, 1000, false},
        {"[{}]", 512 * 1024, 1000, false},
        {"[{'resources':{'requests':{'memory':'64Mi','cpu':'2'}}}]", 64 * 1024, 2000, false},
        /* Limits before requests. */
        {"[{'resources':{'limits':{'memory':'1Gi'},'requests':{'memory':'64Mi','cpu':'3'}}}]",
         1024 * 1024, 3000, false},
        /* Every container, each rounded up. */
        {"[{'resources':{'limits':{'memory':'1','cpu':'100m'}}},"
         "{'resources':{'limits':{'memory':1025,'cpu':1}}}]",
         3, 2000, false},
        {"[{'resources':{'limits':{'memory':0,'cpu':'0'}}}]", 512 * 1024, 1000, false},
        {"[{'resources':{'limits':{'memory':'much'}}}]", 512 * 1024, 1000, true},
        {"[{'resources':{'limits':{'cpu':-1}}}]", 512 * 1024, 1000, true},
        {"[{'resources':{'limits':{'memory':'100E'}}}]", 512 * 1024, 1000, true},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct json object = json_object(), spec = json_object();
        (void) json_set(a, &spec, STR("containers"), *parse(a, cases[i].containers));
        (void) json_set(a, &object, STR("spec"), spec);
        struct demand d;
        const char *error = demand_of(a, &object, &d);
        if ((error != NULL) != cases[i].is_bad || d.memory_kib != cases[i].memory_kib ||
            d.cpu_milli != cases[i].cpu_milli)
            fail_msg("case %zu: %lld Ki, %lld m, %s", i, (long long) d.memory_kib,
                     (long long) d.cpu_milli, error ? error : "good");
    }
}

TEST(networks_are_named_in_either_form)
{
    static const struct {
        const char *annotation, *names;
        bool is_bad;
    } cases[] = {
        {"", "", false},
        {" ", "", false},
        {"a", "a,", false},
        {"a, n/b@eth1 ,c@x", "a,b,c,", false},
        {"[{\"name\":\"a\"},{\"name\":\"b\",\"namespace\":\"n\"}]", "a,b,", false},
        {" [\"a\"]", "a,", false},
        {"[{\"name\":", "", true},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct json object = json_object();
        struct json *annotations = json_ensure_object(
            a, json_ensure_object(a, &object, STR("metadata")), STR("annotations"));
        (void) json_set(a, annotations, STR("k8s.v1.cni.cncf.io/networks"),
                        json_string(str_of(cases[i].annotation)));
        struct demand d;
        assert_int_equal(demand_of(a, &object, &d) != NULL, cases[i].is_bad);
        assert_str(d.networks, cases[i].names);
    }
}

TEST(only_lasting_claims_bind)
{
    ARENA_AUTO a = arena_new();
    struct demand d;
    const struct json *object =
        parse(a, "{'spec':{'volumes':[{'name':'x','persistentVolumeClaim':{'claimName':'one'}},"
                 "{'name':'y','ephemeral':{'volumeClaimTemplate':{}}},"
                 "{'name':'z','persistentVolumeClaim':{'claimName':'two'}}]}}");
    assert_null(demand_of(a, object, &d));
    assert_str(d.claims, "one,two,");
}

TEST(selectors_are_kept_as_text)
{
    static const struct {
        const char *spec, *text;
    } cases[] = {
        {"{}", ""},
        {"{'nodeSelector':{},'affinity':{}}", ""},
        {"{'nodeSelector':{'a':'b'},'more':1}", "{\"nodeSelector\":{\"a\":\"b\"}}"},
        {"{'affinity':{'nodeAffinity':{}},'nodeSelector':{'a':'b'}}",
         "{\"nodeSelector\":{\"a\":\"b\"},\"affinity\":{\"nodeAffinity\":{}}}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        assert_str(demand_selection(a, parse(a, cases[i].spec)), cases[i].text);
    }
}

TEST(what_devices_have_is_rounded_down)
{
    ARENA_AUTO a = arena_new();
    int64_t amount = 7;
    assert_int_equal(demand_amount(parse(a, "'1025'"), 1024 * 1000, DEMAND_DOWN, &amount), 0);
    assert_int_equal(amount, 1);
    assert_int_equal(demand_amount(parse(a, "'1025'"), 1024 * 1000, DEMAND_UP, &amount), 0);
    assert_int_equal(amount, 2);
    assert_int_equal(demand_amount(parse(a, "'3500m'"), 1, DEMAND_DOWN, &amount), 0);
    assert_int_equal(amount, 3500);
    assert_int_equal(demand_amount(NULL, 1, DEMAND_DOWN, &amount), -ENOENT);
    assert_int_equal(demand_amount(parse(a, "'x'"), 1, DEMAND_DOWN, &amount), -EINVAL);
    assert_int_equal(amount, 3500);
}
