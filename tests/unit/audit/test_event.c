/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/event.h"

#include "test.h"
#include "json/json.h"

/* 2026-11-16T00:00:00.000123Z */
#define RECEIVED_US ((int64_t) 1794787200000123)

static const struct str groups[] = {STR("dev"), STR("system:authenticated")};
static const struct str scopes[] = {STR("a"), STR("b")};
static const struct user_extra extra[] = {{STR("scopes"), scopes, 2}};
static const struct user jane = {.name = STR("jane"), .groups = groups, .n_groups = 2};
static const struct user other = {
    .name = STR("x\"y"), .uid = STR("42"), .extra = extra, .n_extra = 1};

static struct audit_record record(void)
{
    return (struct audit_record){
        .id = "5d4f1f9a-6f0c-4d3e-9a77-0123456789ab",
        .level = AUDIT_METADATA,
        .received_us = RECEIVED_US,
        .stage_us = RECEIVED_US + 1999877,
        .uri = STR("/api/v1/namespaces/team/configmaps/a?pretty=true"),
        .verb = STR("get"),
        .user = &jane,
        .source_ip = STR("10.0.0.7"),
        .user_agent = STR("kubectl/v1.36"),
        .is_resource = true,
        .version = STR("v1"),
        .resource = STR("configmaps"),
        .namespace = STR("team"),
        .name = STR("a"),
        .decision = STR("allow"),
        .reason = STR("RBAC: allowed by RoleBinding \"dev/team\""),
        .code = 200,
    };
}

static struct str line_of(struct buf *b, const struct audit_record *r, enum audit_stage stage)
{
    struct audit_second second = {0};
    buf_reset(b);
    audit_event_write(b, &second, r, stage);
    assert_int_equal(b->p[b->n - 1], '\n');
    assert_int_equal(str_find(buf_str(b), '\n'), b->n - 1);
    return str_trim(buf_str(b));
}

static void assert_has(struct str line, const char *part)
{
    if (str_find_str(line, str_of(part)) < 0)
        fail_msg("%.*s\nlacks %s", STR_ARG(line), part);
}

static void assert_lacks(struct str line, const char *part)
{
    if (str_find_str(line, str_of(part)) >= 0)
        fail_msg("%.*s\nhas %s", STR_ARG(line), part);
}

TEST(members_come_in_order)
{
    BUF_AUTO b = {0};
    struct audit_record r = record();
    assert_str(
        line_of(&b, &r, AUDIT_RESPONSE_COMPLETE),
        "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Metadata\","
        "\"auditID\":\"5d4f1f9a-6f0c-4d3e-9a77-0123456789ab\",\"stage\":\"ResponseComplete\","
        "\"requestURI\":\"/api/v1/namespaces/team/configmaps/a?pretty=true\",\"verb\":\"get\","
        "\"user\":{\"username\":\"jane\",\"groups\":[\"dev\",\"system:authenticated\"]},"
        "\"sourceIPs\":[\"10.0.0.7\"],\"userAgent\":\"kubectl/v1.36\","
        "\"objectRef\":{\"resource\":\"configmaps\",\"namespace\":\"team\",\"name\":\"a\","
        "\"apiVersion\":\"v1\"},\"responseStatus\":{\"metadata\":{},\"code\":200},"
        "\"requestReceivedTimestamp\":\"2026-11-16T00:00:00.000123Z\","
        "\"stageTimestamp\":\"2026-11-16T00:00:02.000000Z\","
        "\"annotations\":{\"authorization.k8s.io/decision\":\"allow\","
        "\"authorization.k8s.io/reason\":\"RBAC: allowed by RoleBinding \\\"dev/team\\\"\"}}");
}

TEST(the_first_stage_knows_no_answer)
{
    BUF_AUTO b = {0};
    struct audit_record r = record();
    r.decision = r.reason = STR_NONE;
    r.impersonated = &other;
    struct str line = line_of(&b, &r, AUDIT_REQUEST_RECEIVED);
    assert_has(line, "\"stage\":\"RequestReceived\"");
    assert_lacks(line, "responseStatus");
    assert_lacks(line, "annotations");
    assert_has(line, "\"stageTimestamp\":\"2026-11-16T00:00:00.000123Z\"}");
    assert_has(line, ",\"impersonatedUser\":{\"username\":\"x\\\"y\",\"uid\":\"42\","
                     "\"extra\":{\"scopes\":[\"a\",\"b\"]}},");
}

TEST(a_path_has_no_object_and_may_have_no_user)
{
    BUF_AUTO b = {0};
    struct audit_record r = record();
    r.is_resource = false;
    r.user = NULL;
    r.user_agent = STR_NONE;
    r.code = 0;
    struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
    assert_has(line, "\"user\":{},");
    assert_lacks(line, "objectRef");
    assert_lacks(line, "userAgent");
    assert_has(line, "\"responseStatus\":{\"metadata\":{},\"code\":0}");
}

TEST(failures_say_why)
{
    BUF_AUTO b = {0};
    ARENA_AUTO a = arena_new();
    struct audit_record r = record();
    struct status st;
    status_init(&st, a);
    (void) status_fail(&st, 404, "NotFound", "configmaps \"a\" not found");
    st.has_details = true;
    st.name = STR("a");
    st.kind = STR("configmaps");
    r.failure = &st;
    r.code = 404;
    assert_has(line_of(&b, &r, AUDIT_RESPONSE_COMPLETE),
               ",\"responseStatus\":{\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"configmaps \\\"a\\\" not found\",\"reason\":\"NotFound\","
               "\"details\":{\"name\":\"a\",\"kind\":\"configmaps\"},\"code\":404},\"request");
}

/* ---- bodies -------------------------------------------------------------------------------- */

TEST(bodies_depend_on_level_and_stage)
{
    static const struct {
        enum audit_level level;
        enum audit_stage stage;
        bool has_request, has_response;
    } expected[] = {
        {AUDIT_METADATA, AUDIT_RESPONSE_COMPLETE, false, false},
        {AUDIT_REQUEST, AUDIT_REQUEST_RECEIVED, false, false},
        {AUDIT_REQUEST, AUDIT_RESPONSE_STARTED, true, false},
        {AUDIT_REQUEST, AUDIT_RESPONSE_COMPLETE, true, false},
        {AUDIT_REQUEST_RESPONSE, AUDIT_RESPONSE_STARTED, true, false},
        {AUDIT_REQUEST_RESPONSE, AUDIT_RESPONSE_COMPLETE, true, true},
    };
    BUF_AUTO b = {0};
    for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
        struct audit_record r = record();
        r.level = expected[i].level;
        r.request_body = STR("{\"a\":1}");
        r.response_body = STR("{\"b\":2}\n");
        struct str line = line_of(&b, &r, expected[i].stage);
        assert_int_equal(str_find_str(line, STR(",\"requestObject\":{\"a\":1},\"re")) > 0,
                         expected[i].has_request);
        assert_int_equal(str_find_str(line, STR(",\"responseObject\":{\"b\":2},\"request")) > 0,
                         expected[i].has_response);
    }
}

TEST(bodies_become_one_line_of_json)
{
    static const struct {
        const char *body, *written;
    } bodies[] = {
        {"{\n  \"a\": [1,\t2]\r\n}\n", ",\"requestObject\":{\"a\":[1,2]},"},
        {"[{\"op\":\"add\"}]", ",\"requestObject\":[{\"op\":\"add\"}],"},
        {"a: 1\nb: [x]\n", ",\"requestObject\":{\"a\":1,\"b\":[\"x\"]},"},
        {"{\"a\":1},\"user\":\"forged\"", ",\"requestObject\":{\"a\":1},\"requestReceived"},
        {"{\"a\":", "\"code\":200},\"requestReceivedTimestamp\""},
    };
    BUF_AUTO b = {0};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(bodies); i++) {
        struct audit_record r = record();
        r.level = AUDIT_REQUEST;
        r.request_body = str_of(bodies[i].body);
        struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
        assert_has(line, bodies[i].written);
        assert_non_null(json_parse_quick(a, line));
    }
}

TEST(managed_fields_are_left_out)
{
    BUF_AUTO b = {0};
    struct audit_record r = record();
    r.level = AUDIT_REQUEST_RESPONSE;
    r.omit_managed_fields = true;
    r.request_body = STR("{\"metadata\":{\"name\":\"a\",\"managedFields\":[{}]},\"x\":1}");
    r.response_body = STR("{\"items\":[{\"metadata\":{\"managedFields\":[1]}},{\"metadata\":{"
                          "\"managedFields\":[2],\"name\":\"b\"}}]}");
    struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
    assert_has(line, ",\"requestObject\":{\"metadata\":{\"name\":\"a\"},\"x\":1}");
    assert_has(line, ",\"responseObject\":{\"items\":[{\"metadata\":{}},{\"metadata\":{\"name\":"
                     "\"b\"}}]}");
    r.response_body = STR("{\"rows\":[{\"object\":{\"metadata\":{\"managedFields\":[2]}}}]}");
    assert_has(line_of(&b, &r, AUDIT_RESPONSE_COMPLETE),
               "{\"rows\":[{\"object\":{\"metadata\":{}}}]}");
}

TEST(large_bodies_leave_a_mark)
{
    BUF_AUTO b = {0}, body = {0};
    ARENA_AUTO a = arena_new();
    struct audit_record r = record();
    buf_append_str(&body, STR("{\"a\":\""));
    while (body.n < AUDIT_MAX_BODY_BYTES)
        buf_append_str(&body, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    buf_append_str(&body, STR("\"}"));
    r.level = AUDIT_REQUEST_RESPONSE;
    r.request_body = STR("{}");
    r.response_body = buf_str(&body);
    struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
    assert_has(line, "\"requestObject\":{}");
    assert_lacks(line, "responseObject");
    assert_has(line, "\"annotations\":{\"audit.k8s.io/truncated\":\"true\",");
    assert_non_null(json_parse_quick(a, line));
}

TEST(annotations_of_webhooks_are_sorted_and_bounded)
{
    struct call_annotation list[AUDIT_MAX_ANNOTATIONS + 10];
    char keys[N_ELEMENTS(list)][8];
    BUF_AUTO b = {0};
    ARENA_AUTO a = arena_new();
    struct audit_record r = record();
    for (size_t i = 0; i < N_ELEMENTS(list); i++) {
        memcpy(keys[i], "z/000", 6);
        keys[i][3] = (char) ('9' - i / 10);
        keys[i][4] = (char) ('9' - i % 10);
        list[i] = (struct call_annotation){str_of(keys[i]), STR("v"),
                                           i + 1 < N_ELEMENTS(list) ? &list[i + 1] : NULL};
    }
    list[1].key = STR("aa");
    list[2].key = STR("aa"); /* one of them is shown */
    r.annotations = list;
    struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
    assert_has(line, "\"annotations\":{\"aa\":\"v\",\"authorization.k8s.io/decision\":\"allow\",");
    struct json *v = json_parse_quick(a, line);
    assert_int_equal(json_count(json_get(v, STR("annotations"))), AUDIT_MAX_ANNOTATIONS - 1 + 2);
}

TEST(bytes_that_are_no_text_are_replaced)
{
    BUF_AUTO b = {0};
    ARENA_AUTO a = arena_new();
    struct audit_record r = record();
    r.uri = STR("/a\xff\xc3(b\n\"\x01");
    r.user_agent = STR("h\xc3\xa9\xe2\x82");
    struct str line = line_of(&b, &r, AUDIT_RESPONSE_COMPLETE);
    struct json *v = json_parse_quick(a, line);
    assert_non_null(v);
    assert_str(json_get_str(v, STR("requestURI")), "/a\xef\xbf\xbd\xef\xbf\xbd(b\n\"\x01");
    assert_true(str_starts_with(json_get_str(v, STR("userAgent")), STR("h\xc3\xa9\xef\xbf\xbd")));
}

/* Short and long texts go different ways, and a text may be unclean anywhere. */
TEST(texts_of_any_length_are_written_as_they_are)
{
    static const char odd[] = {'"', '\\', '\n', 0x7f, 0x1f, 'x'};
    char text[80], expected[96];
    BUF_AUTO b = {0};
    for (size_t n = 1; n < sizeof(text); n++) {
        for (size_t i = 0; i < n * N_ELEMENTS(odd); i++) {
            ARENA_AUTO a = arena_new();
            struct audit_record r = record();
            memset(text, 'a', n);
            text[i / N_ELEMENTS(odd)] = odd[i % N_ELEMENTS(odd)];
            r.user_agent = str_range(text, n);
            struct json *v = json_parse_quick(a, line_of(&b, &r, AUDIT_RESPONSE_COMPLETE));
            memcpy(expected, text, n);
            expected[n] = '\0';
            assert_str(json_get_str(v, STR("userAgent")), expected);
        }
    }
}

TEST(the_second_is_not_taken_for_another)
{
    struct audit_second second = {0};
    BUF_AUTO b = {0};
    struct audit_record r = record();
    for (int i = 0; i < 3; i++) {
        r.received_us = i * 1000000;
        r.stage_us = i * 1000000 + 999999;
        audit_event_write(&b, &second, &r, AUDIT_RESPONSE_COMPLETE);
    }
    assert_has(
        buf_str(&b),
        "\"1970-01-01T00:00:00.000000Z\",\"stageTimestamp\":\"1970-01-01T00:00:00.999999Z\"");
    assert_has(
        buf_str(&b),
        "\"1970-01-01T00:00:02.000000Z\",\"stageTimestamp\":\"1970-01-01T00:00:02.999999Z\"");
}
