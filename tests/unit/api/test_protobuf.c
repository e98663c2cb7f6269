/* SPDX-License-Identifier: Apache-2.0 */
#include "../../test.h"

#include <stdlib.h>

#include "api/protobuf.h"
#include "kinds_fixture.h"
#include "protobuf_fixture.h"

#define BYTES(literal) \
    { \
        "" literal, sizeof(literal) - 1 \
    }
/* ObjectMeta as kubectl sends it: every field that is no pointer. */
#define META(name) \
    "\n\x11\n\x01" name "\x12\0\x1a\0\"\0*\0" \
    "2\0" \
    "8\0" \
    "B\0"
#define RBAC_GROUP "rbac.authorization.k8s.io"

struct fixture {
    struct arena *arena;
    struct registry *registry;
};

static struct fixture fixture_new(void)
{
    return (struct fixture){arena_new(), fixture_registry()};
}

static void fixture_free(struct fixture *f)
{
    registry_unref(f->registry);
    arena_free(f->arena);
}
#define FIXTURE CLEANUP(fixture_free) struct fixture f = fixture_new()

static int decode(struct fixture *f, const char *group_version, const char *kind, struct str bytes,
                  struct json *object, struct str *ret_error)
{
    const struct protobuf_message *m =
        protobuf_find(f->registry->protobuf, str_of(group_version), str_of(kind));
    assert_non_null(m);
    *object = json_object();
    return protobuf_decode(f->arena, m, bytes, object, ret_error);
}

/* Decodes a message of the core group, or of another by "<group version>/<kind>", empties the
 * buffer and compares; JSON has single quotes. */
static void assert_decodes(struct fixture *f, const char *type, struct buf *bytes,
                           const char *expected)
{
    const ptrdiff_t slash = str_find_last(str_of(type), '/');
    const char *group_version =
        slash < 0 ? "v1" : arena_strz(f->arena, str_sub(str_of(type), 0, (size_t) slash));
    struct json object;
    struct str error = STR("");
    if (decode(f, group_version, type + slash + 1, buf_str(bytes), &object, &error) < 0)
        fail_msg("%s: %.*s", type, STR_ARG(error));
    if (!json_equal(&object, fixture_json(f->arena, expected)))
        fail_msg("%s: got %.*s, expected %s", type, STR_ARG(json_text(f->arena, &object)),
                 expected);
    buf_reset(bytes);
}

/* ---- bodies ------------------------------------------------------------------------------- */

/* The bodies that kubectl 1.36 sends. */
static const struct {
    const char *api_version, *kind;
    struct str body;
    const char *object;
} captured[] = {
    {"v1", "ConfigMap", /* create configmap c --from-literal=a=b --from-file=z=<ff 00 01> */
     BYTES("k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12%" META(
         "c") "\x12\x06\n\x01"
              "a\x12\x01"
              "b\x1a\x08\n\x01z\x12\x03\xff\0\x01\x1a\0\"\0"),
     "{'metadata':{'name':'c'},'data':{'a':'b'},'binaryData':{'z':'/wAB'}}"},
    {"v1", "Secret", /* create secret generic s --from-literal=p=q */
     BYTES("k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12\x1d" META(
         "s") "\x12\x06\n\x01p\x12\x01q\x1a\0\x1a\0\"\0"),
     "{'metadata':{'name':'s'},'data':{'p':'cQ=='}}"},
    {"v1", "Namespace", /* create namespace n */
     BYTES("k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x19" META("n") "\x12\0\x1a\x02\n\0\x1a\0\"\0"),
     "{'metadata':{'name':'n'},'spec':{},'status':{}}"},
    {"v1", "ServiceAccount", /* create serviceaccount s */
     BYTES("k8s\0\n\x14\n\x02v1\x12\x0eServiceAccount\x12\x13" META("s") "\x1a\0\"\0"),
     "{'metadata':{'name':'s'}}"},
    {"v1", "ResourceQuota", /* create quota q --hard=pods=3,memory=1Gi --scopes=NotTerminating */
     BYTES("k8s\0\n\x13\n\x02v1\x12\rResourceQuota\x12"
           "E" META("q") "\x12.\n\x0f\n\x06memory\x12\x05\n\x03"
                         "1Gi\n\x0b\n\x04pods\x12\x03\n\x01"
                         "3\x12\x0e"
                         "NotTerminating\x1a\0\x1a\0\"\0"),
     "{'metadata':{'name':'q'},'spec':{'hard':{'memory':'1Gi','pods':'3'},"
     "'scopes':['NotTerminating']},'status':{}}"},
    {RBAC_GROUP "/v1", "RoleBinding", /* create rolebinding b --role=r --user=u
                                         --serviceaccount=d:s */
     BYTES("k8s\0\n+\n\x1c" RBAC_GROUP "/v1\x12\x0bRoleBinding\x12{" META(
         "b") "\x12&\n\x04User\x12\x19" RBAC_GROUP "\x1a\x01u\"\0\x12\x18\n\x0eServiceAccount\x12\0"
              "\x1a\x01s\"\x01"
              "d\x1a$\n\x19" RBAC_GROUP "\x12\x04Role\x1a\x01r\x1a\0\"\0"),
     "{'metadata':{'name':'b'},'subjects':[{'kind':'User','apiGroup':'" RBAC_GROUP
     "','name':'u'},{'kind':'ServiceAccount','name':'s','namespace':'d'}],"
     "'roleRef':{'apiGroup':'" RBAC_GROUP "','kind':'Role','name':'r'}}"},
    {RBAC_GROUP "/v1", "ClusterRole", /* create clusterrole r --verb=get --non-resource-url=/logs */
     BYTES("k8s\0\n+\n\x1c" RBAC_GROUP "/v1\x12\x0b"
           "ClusterRole\x12!" META("r") "\x12\x0c\n\x03get*\x05/logs\x1a\0\"\0"),
     "{'metadata':{'name':'r'},'rules':[{'verbs':['get'],'nonResourceURLs':['/logs']}]}"},
    {RBAC_GROUP "/v1", "ClusterRole", /* create clusterrole r --aggregation-rule=a=b */
     BYTES("k8s\0\n+\n\x1c" RBAC_GROUP "/v1\x12\x0b"
           "ClusterRole\x12\x1f" META("r") "\x1a\n\n\x08\n\x06\n\x01"
                                           "a\x12\x01"
                                           "b\x1a\0\"\0"),
     "{'metadata':{'name':'r'},'aggregationRule':{'clusterRoleSelectors':"
     "[{'matchLabels':{'a':'b'}}]}}"},
    {RBAC_GROUP "/v1", "ClusterRoleBinding", /* create clusterrolebinding b --clusterrole=r
                                                --group=g */
     BYTES("k8s\0\n2\n\x1c" RBAC_GROUP "/v1\x12\x12"
           "ClusterRoleBinding\x12i" META("b") "\x12'\n\x05Group\x12\x19" RBAC_GROUP
                                               "\x1a\x01g\"\0\x1a+\n\x19" RBAC_GROUP "\x12\x0b"
                                               "ClusterRole\x1a\x01r\x1a\0\"\0"),
     "{'metadata':{'name':'b'},'subjects':[{'kind':'Group','apiGroup':'" RBAC_GROUP
     "','name':'g'}],'roleRef':{'apiGroup':'" RBAC_GROUP "','kind':'ClusterRole','name':'r'}}"},
};

TEST(what_kubectl_sends_is_what_was_meant)
{
    FIXTURE;
    for (size_t i = 0; i < N_ELEMENTS(captured); i++) {
        struct protobuf_envelope e;
        struct str error = STR("");
        if (protobuf_open(f.arena, captured[i].body, &e, &error) < 0)
            fail_msg("%s: %.*s", captured[i].kind, STR_ARG(error));
        assert_str(e.api_version, captured[i].api_version);
        assert_str(e.kind, captured[i].kind);
        struct json object;
        if (decode(&f, captured[i].api_version, captured[i].kind, e.object, &object, &error) < 0)
            fail_msg("%s: %.*s", captured[i].kind, STR_ARG(error));
        if (!json_equal(&object, fixture_json(f.arena, captured[i].object)))
            fail_msg("%s: got %.*s", captured[i].kind, STR_ARG(json_text(f.arena, &object)));
    }
}

TEST(a_body_cut_short_is_refused_or_a_smaller_one)
{
    FIXTURE;
    const struct str body = captured[0].body;
    for (size_t n = 0; n < body.n; n++) {
        /* A copy of its own size: reading past it is an error of its own. */
        char *copy = malloc(MAX(n, 1u));
        if (n > 0)
            memcpy(copy, body.p, n);
        struct protobuf_envelope e;
        struct str error = STR("");
        const int r = protobuf_open(f.arena, str_range(copy, n), &e, &error);
        assert_true(r == 0 || error.n > 0);
        free(copy);
    }
}

TEST(envelopes_say_what_is_wrong)
{
    static const struct {
        struct str body;
        const char *error;
    } cases[] = {
        {BYTES(""), "empty data"},
        {BYTES("{\"a\":1}"), "provided data does not appear to be a protobuf message, expected "
                             "prefix [107 56 115 0]"},
        {BYTES("k8"), "provided data does not appear to be a protobuf message, expected prefix "
                      "[107 56 115 0]"},
        {BYTES("k8s\0"), "empty body"},
        {BYTES("k8s\0\n"), "unexpected EOF"},
        {BYTES("k8s\0\n\x05"
               "abc"),
         "unexpected EOF"},
        {BYTES("k8s\0\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "unexpected EOF"},
        {BYTES("k8s\0\x08\x01"), "proto: wrong wireType = 0 for field TypeMeta"},
        {BYTES("k8s\0\x10\x01"), "proto: wrong wireType = 0 for field Raw"},
        {BYTES("k8s\0\x1a\x04gzip"), "unable to decode content encoding \"gzip\""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct protobuf_envelope e;
        struct str error = STR("");
        assert_true(protobuf_open(a, cases[i].body, &e, &error) < 0);
        assert_str(error, cases[i].error);
    }
}

TEST(a_type_may_be_left_out)
{
    ARENA_AUTO a = arena_new();
    struct protobuf_envelope e;
    struct str error;
    assert_int_equal(protobuf_open(a, STR("k8s\0\x12\x01x"), &e, &error), 0);
    assert_int_equal(e.api_version.n, 0);
    assert_int_equal(e.kind.n, 0);
    assert_str(e.object, "x");
}

TEST(a_status_reads_as_it_was_written)
{
    FIXTURE;
    BUF_AUTO b = {0}, object = {0};
    const char *text =
        "{'metadata':{},'status':'Failure','message':'m','reason':'Invalid','details':"
        "{'name':'n','kind':'k','causes':[{'reason':'r','message':'c','field':'f'},"
        "{'reason':'r2'}],'retryAfterSeconds':3},'code':406}";
    struct json *status = fixture_json(f.arena, text);
    (void) json_set(f.arena, status, STR("apiVersion"), json_string(STR("v1")));
    (void) json_set(f.arena, status, STR("kind"), json_string(STR("Status")));
    protobuf_write_status(&b, f.registry->protobuf, status);
    struct protobuf_envelope e;
    struct str error = STR("");
    assert_int_equal(protobuf_open(f.arena, buf_str(&b), &e, &error), 0);
    assert_str(e.api_version, "v1");
    assert_str(e.kind, "Status");
    buf_append_str(&object, e.object);
    assert_decodes(&f, "meta.k8s.io/v1/Status", &object, text);
}

/* ---- values ------------------------------------------------------------------------------- */

TEST(zeros_count_only_where_they_may_be_absent)
{
    FIXTURE;
    BUF_AUTO b = {0}, inner = {0}, source = {0}, volume = {0};
    wire_int(&b, 7, 0);  /* generation */
    wire_int(&b, 10, 0); /* deletionGracePeriodSeconds */
    wire_bytes(&b, 1, STR(""));
    wire_bytes(&inner, 1, STR("Node"));
    wire_int(&inner, 6, 0); /* controller */
    wire_message(&b, 13, &inner);
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b,
                   "{'deletionGracePeriodSeconds':0,'ownerReferences':[{'kind':'Node',"
                   "'controller':false}]}");

    wire_int(&volume, 2, 0);            /* lun */
    wire_int(&volume, 4, 0);            /* readOnly */
    wire_message(&source, 10, &volume); /* fc */
    wire_message(&inner, 2, &source);
    wire_bytes(&inner, 6, STR("")); /* storageClassName */
    wire_bytes(&inner, 8, STR("")); /* volumeMode */
    wire_message(&b, 2, &inner);
    assert_decodes(&f, "PersistentVolume", &b, "{'spec':{'fc':{'lun':0},'volumeMode':''}}");
}

TEST(the_last_of_a_field_counts)
{
    FIXTURE;
    BUF_AUTO b = {0}, inner = {0};
    wire_bytes(&b, 3, STR("First"));
    wire_bytes(&b, 3, STR("Second"));
    wire_int(&b, 8, 5);
    wire_int(&b, 8, 0);
    wire_bytes(&inner, 1, STR("component"));
    wire_message(&b, 5, &inner);
    wire_bytes(&inner, 2, STR("host"));
    wire_message(&b, 5, &inner);
    assert_decodes(&f, "Event", &b, "{'reason':'Second','source':{'host':'host'}}");
}

TEST(numbers_keep_their_sign_and_size)
{
    FIXTURE;
    BUF_AUTO b = {0};
    wire_int(&b, 1, INT64_MIN);
    assert_decodes(&f, "meta.k8s.io/v1/DeleteOptions", &b,
                   "{'gracePeriodSeconds':-9223372036854775808}");
    wire_int(&b, 2, -7); /* ten bytes on the wire */
    assert_decodes(&f, "coordination.k8s.io/v1/LeaseSpec", &b, "{'leaseDurationSeconds':-7}");
    wire_int(&b, 2, 0x100000005);
    assert_decodes(&f, "coordination.k8s.io/v1/LeaseSpec", &b, "{'leaseDurationSeconds':5}");
}

static void put_time(struct buf *b, uint32_t number, int64_t seconds, int64_t nanos)
{
    BUF_AUTO inner = {0};
    wire_int(&inner, 1, seconds);
    wire_int(&inner, 2, nanos);
    wire_message(b, number, &inner);
}

TEST(times_are_those_of_go)
{
    FIXTURE;
    BUF_AUTO b = {0};
    put_time(&b, 3, 1700000000, 123456789);
    put_time(&b, 4, -1, 999999999);
    assert_decodes(&f, "coordination.k8s.io/v1/LeaseSpec", &b,
                   "{'acquireTime':'2023-11-14T22:13:20.123456Z',"
                   "'renewTime':'1969-12-31T23:59:59.999999Z'}");
    put_time(&b, 8, 1700000000, 123456789); /* seconds alone are kept */
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b,
                   "{'creationTimestamp':'2023-11-14T22:13:20Z'}");
    put_time(&b, 8, 0, 0);
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b,
                   "{'creationTimestamp':'1970-01-01T00:00:00Z'}");
    wire_bytes(&b, 8, STR("")); /* Go's zero */
    put_time(&b, 9, -62135596800, 0);
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b, "{}");
    put_time(&b, 8, 253402300799, 0);
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b,
                   "{'creationTimestamp':'9999-12-31T23:59:59Z'}");
}

TEST(times_beyond_the_calendar_are_refused)
{
    static const int64_t cases[][2] = {
        {253402300800, 0}, {-62135596801, 0}, {INT64_MAX, 0},
        {INT64_MIN, 0},    {0, -1},           {0, 1000000000},
    };
    FIXTURE;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO b = {0};
        struct json object;
        struct str error = STR("");
        put_time(&b, 3, cases[i][0], cases[i][1]);
        assert_true(
            decode(&f, "coordination.k8s.io/v1", "LeaseSpec", buf_str(&b), &object, &error) < 0);
        assert_str(error, "Time.MarshalJSON: year outside of range [0,9999]");
    }
}

TEST(maps_take_the_last_of_a_key_and_lack_no_value)
{
    FIXTURE;
    BUF_AUTO b = {0}, entry = {0};
    wire_entry(&b, 2, "a", "1");
    wire_entry(&b, 2, "b", "2");
    wire_entry(&b, 2, "a", "3");
    wire_bytes(&entry, 1, STR("c")); /* no value */
    wire_message(&b, 2, &entry);
    wire_message(&b, 2, &entry); /* nothing at all */
    wire_int(&entry, 9, 1);      /* unknown */
    wire_bytes(&entry, 2, STR("5"));
    wire_bytes(&entry, 1, STR("d"));
    wire_message(&b, 2, &entry);
    wire_bytes(&entry, 1, STR("x"));
    wire_message(&b, 3, &entry);
    assert_decodes(&f, "ConfigMap", &b,
                   "{'data':{'a':'3','b':'2','c':'','':'','d':'5'},'binaryData':{'x':''}}");
}

TEST(text_that_is_no_utf8_reads_as_in_go)
{
    static const struct {
        struct str bytes;
        const char *text;
    } cases[] = {
        {BYTES("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f"},
        {BYTES("a\xff"
               "b"),
         "a\xef\xbf\xbd"
         "b"},
        {BYTES("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd"},
        {BYTES("\xe2\x82\xac\xe2"), "\xe2\x82\xac\xef\xbf\xbd"},
        {BYTES("\xf0\x9f\x98\x80\x80"), "\xf0\x9f\x98\x80\xef\xbf\xbd"},
    };
    FIXTURE;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO b = {0};
        struct json object;
        struct str error = STR("");
        wire_bytes(&b, 4, cases[i].bytes);
        assert_int_equal(decode(&f, "v1", "Event", buf_str(&b), &object, &error), 0);
        assert_str(json_get_str(&object, STR("message")), cases[i].text);
    }
}

TEST(raw_json_becomes_part_of_the_object)
{
    FIXTURE;
    BUF_AUTO b = {0}, inner = {0}, raw = {0};
    wire_bytes(&raw, 1, STR("{\"f:data\":{\"f:a\":{}}}"));
    wire_bytes(&inner, 1, STR("m"));
    wire_message(&inner, 7, &raw);
    wire_message(&b, 17, &inner);
    assert_decodes(&f, "meta.k8s.io/v1/ObjectMeta", &b,
                   "{'managedFields':[{'manager':'m','fieldsV1':{'f:data':{'f:a':{}}}}]}");
    wire_bytes(&raw, 1, STR("[1, \"x\", null]"));
    wire_message(&b, 2, &raw);
    wire_int(&b, 3, 4);
    assert_decodes(&f, "apps/v1/ControllerRevision", &b, "{'data':[1,'x',null],'revision':4}");
    wire_message(&b, 2, &raw); /* empty */
    assert_decodes(&f, "apps/v1/ControllerRevision", &b, "{}");
}

TEST(schemas_have_values_of_several_types)
{
    FIXTURE;
    BUF_AUTO b = {0}, inner = {0}, schema = {0};
    wire_bytes(&schema, 5, STR("string"));
    wire_message(&inner, 1, &schema);
    wire_message(&b, 24, &inner); /* items: one schema */
    wire_int(&inner, 1, 0);
    wire_message(&b, 30, &inner); /* additionalProperties: false */
    wire_int(&inner, 1, 1);
    wire_bytes(&schema, 5, STR("integer"));
    wire_message(&inner, 2, &schema);
    wire_message(&b, 33, &inner); /* additionalItems: a schema */
    wire_bytes(&inner, 1, STR("null"));
    wire_message(&b, 20, &inner);
    wire_bytes(&inner, 1, STR("1.5"));
    wire_message(&b, 20, &inner);
    wire_bytes(&inner, 1, STR("\"x\""));
    wire_message(&b, 8, &inner);
    wire_double(&b, 9, 64);
    wire_double(&b, 11, -0.25);
    wire_double(&b, 19, 1e300);
    wire_int(&b, 14, 0);
    wire_int(&b, 10, 0);
    wire_bytes(&b, 23, STR("")); /* an item stays, whatever it is */
    assert_decodes(
        &f, "apiextensions.k8s.io/v1/JSONSchemaProps", &b,
        "{'items':{'type':'string'},'additionalProperties':false,"
        "'additionalItems':{'type':'integer'},'enum':[null,1.5],'default':'x',"
        "'maximum':64,'minimum':-0.25,'multipleOf':1e300,'minLength':0,'required':['']}");
    wire_message(&inner, 2, &schema);
    wire_message(&inner, 2, &schema);
    wire_message(&b, 24, &inner); /* items: a list */
    assert_decodes(&f, "apiextensions.k8s.io/v1/JSONSchemaProps", &b, "{'items':[{},{}]}");
}

TEST(whole_numbers_are_integers_as_in_text)
{
    FIXTURE;
    BUF_AUTO b = {0};
    struct json object;
    struct str error = STR("");
    wire_double(&b, 9, 64);
    wire_double(&b, 11, 1e16);
    assert_int_equal(
        decode(&f, "apiextensions.k8s.io/v1", "JSONSchemaProps", buf_str(&b), &object, &error), 0);
    assert_int_equal(json_get(&object, STR("maximum"))->type, JSON_INT);
    assert_int_equal(json_get(&object, STR("minimum"))->type, JSON_DOUBLE);
}

TEST(unknown_fields_are_skipped)
{
    FIXTURE;
    BUF_AUTO b = {0};
    wire_int(&b, 900, 7);
    wire_double(&b, 901, 7);
    wire_bytes(&b, 536870911, STR("\xff"));
    buf_append_str(&b, STR("\x9d\x3f"
                           "abcd")); /* 1011, four bytes */
    wire_bytes(&b, 3, STR("Opaque"));
    assert_decodes(&f, "Secret", &b, "{'type':'Opaque'}");
}

/* ---- what is refused ---------------------------------------------------------------------- */

TEST(malformed_messages_are_refused)
{
    static const struct {
        const char *kind;
        struct str bytes;
        const char *error;
    } cases[] = {
        {"Secret", BYTES("\x1a"), "unexpected EOF"},
        {"Secret", BYTES("\x1a\x7fx"), "unexpected EOF"},
        {"Secret", BYTES("\x1a\x80"), "unexpected EOF"},
        {"Secret", BYTES("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "unexpected EOF"},
        {"Secret", BYTES("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "proto: integer overflow"},
        {"Secret", BYTES("\x18\x01"), "proto: wrong wireType = 0 for field type"},
        {"Secret", BYTES("\x2a\x01\x01"), "proto: wrong wireType = 2 for field immutable"},
        {"Secret", BYTES("\x10\x01"), "proto: wrong wireType = 0 for field data"},
        {"Secret", BYTES("\x12\x02\x08\x01"), "proto: wrong wireType = 0 for field data"},
        {"Secret", BYTES("\x12\x02\x10\x01"), "proto: wrong wireType = 0 for field data"},
        {"Secret", BYTES("\x12\x02\n\x05"), "unexpected EOF"},
        {"Secret", BYTES("\x02\x01x"), "proto: illegal tag 0 (wire type 2)"},
        {"Secret", BYTES("\xfa\xff\xff\xff\x7f\x01x"),
         "proto: illegal tag 4294967295 (wire type 2)"},
        {"Secret", BYTES("\x9b\x06"), "proto: illegal wireType 3"},
        {"Secret", BYTES("\x9c\x06"), "proto: illegal wireType 4"},
        {"Secret", BYTES("\x9e\x06"), "proto: illegal wireType 6"},
        {"Secret",
         BYTES("\x99\x06"
               "1234567"),
         "unexpected EOF"},
        {"Secret",
         BYTES("\x9d\x06"
               "123"),
         "unexpected EOF"},
        {"Event", BYTES("2\x02\n\x01"), "proto: wrong wireType = 2 for field Seconds"},
        {"Event", BYTES("2\x02\x08\x80"), "unexpected EOF"},
    };
    FIXTURE;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct json object;
        struct str error = STR("");
        assert_true(decode(&f, "v1", cases[i].kind, cases[i].bytes, &object, &error) < 0);
        if (!str_is(error, cases[i].error))
            fail_msg("case %zu: got \"%.*s\", expected \"%s\"", i, STR_ARG(error), cases[i].error);
    }
}

TEST(raw_json_must_be_json)
{
    FIXTURE;
    BUF_AUTO b = {0}, raw = {0};
    struct json object;
    struct str error = STR("");
    wire_bytes(&raw, 1, STR("{nope"));
    wire_message(&b, 2, &raw);
    assert_true(decode(&f, "apps/v1", "ControllerRevision", buf_str(&b), &object, &error) < 0);
    assert_true(error.n > 0);
}

TEST(numbers_that_are_none_are_refused)
{
    FIXTURE;
    const double cases[] = {__builtin_nan(""), __builtin_inf(), -__builtin_inf()};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO b = {0};
        struct json object;
        struct str error = STR("");
        wire_double(&b, 9, cases[i]);
        assert_true(decode(&f, "apiextensions.k8s.io/v1", "JSONSchemaProps", buf_str(&b), &object,
                           &error) < 0);
    }
}

/* `not` inside `not`, so many deep. */
static int decode_nested(struct fixture *f, size_t depth)
{
    BUF_AUTO b = {0}, outer = {0};
    for (size_t i = 0; i < depth; i++) {
        wire_bytes(&outer, 28, buf_str(&b));
        buf_reset(&b);
        buf_append_str(&b, buf_str(&outer));
        buf_reset(&outer);
    }
    struct json object;
    struct str error = STR("");
    const int r =
        decode(f, "apiextensions.k8s.io/v1", "JSONSchemaProps", buf_str(&b), &object, &error);
    if (r < 0)
        assert_str(error, "exceeded max depth");
    return r;
}

TEST(depth_is_bounded)
{
    FIXTURE;
    assert_int_equal(decode_nested(&f, PROTOBUF_MAX_DEPTH - 1), 0);
    assert_true(decode_nested(&f, PROTOBUF_MAX_DEPTH) < 0);
    assert_true(decode_nested(&f, 5000) < 0);
}

TEST(depth_of_raw_json_adds_up)
{
    FIXTURE;
    BUF_AUTO b = {0}, raw = {0}, text = {0};
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_append_char(&text, '[');
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_append_char(&text, ']');
    struct json object;
    struct str error = STR("");
    wire_bytes(&raw, 1, buf_str(&text));
    wire_message(&b, 8, &raw);
    assert_int_equal(
        decode(&f, "apiextensions.k8s.io/v1", "JSONSchemaProps", buf_str(&b), &object, &error), 0);
    BUF_AUTO outer = {0};
    wire_bytes(&outer, 28, buf_str(&b));
    assert_true(decode(&f, "apiextensions.k8s.io/v1", "JSONSchemaProps", buf_str(&outer), &object,
                       &error) < 0);
    assert_str(error, "exceeded max depth");
}

/* ---- the table ---------------------------------------------------------------------------- */

TEST(tables_with_nonsense_do_not_compile)
{
    static const char *const cases[] = {
        "{'v1':{'A':{'b':'string'}}}",
        "{'v1':{'A':{'b':'0 string'}}}",
        "{'v1':{'A':{'b':'536870912 string'}}}",
        "{'v1':{'A':{'b':'1'}}}",
        "{'v1':{'A':{'b':'1 B'}}}",
        "{'v1':{'A':{'b':'1 twice string'}}}",
        "{'v1':{'A':{'b':'1 inline string'}}}",
        "{'v1':{'A':{'b':'1 map string string'}}}",
        "{'v1':{'A':{'b':7}}}",
        "{'v1':{'A':['string']}}",
        "{'v1':{'A':{'b':'1 B'}},'v2':{'B':{}}}",
    };
    ARENA_AUTO a = arena_new();
    const struct protobuf *p;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str error = STR("");
        if (protobuf_compile(a, fixture_json(a, cases[i]), &p, &error) >= 0)
            fail_msg("%s compiles", cases[i]);
        assert_true(error.n > 0);
    }
}

TEST(a_message_is_found_in_its_own_group_first)
{
    ARENA_AUTO a = arena_new();
    const struct protobuf *p;
    struct str error = STR("");
    const struct json *table =
        fixture_json(a, "{'v1':{'B':{},'C':{}},'g/v1':{'A':{'b':'1 B','c':'2 C','m':'3 M'},'B':{}},"
                        "'meta.k8s.io/v1':{'M':{}}}");
    assert_int_equal(protobuf_compile(a, table, &p, &error), 0);
    const struct protobuf_message *m = protobuf_find(p, STR("g/v1"), STR("A"));
    assert_str(m->fields[0].message->group_version, "g/v1");
    assert_str(m->fields[1].message->group_version, "v1");
    assert_str(m->fields[2].message->group_version, "meta.k8s.io/v1");
    assert_null(protobuf_find(p, STR("g/v1"), STR("C")));
}
