/* SPDX-License-Identifier: Apache-2.0 */
#include "api/media.h"

#include "test.h"

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define ONLY "only the following media types are accepted: " TYPES
#define ROUTE "406: Not Acceptable\n\nAvailable representations: " TYPES
#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

/* ---- objects ------------------------------------------------------------------------------ */

static const struct {
    const char *accept;
    enum media_endpoint endpoint;
    enum media_encoding encoding;
    enum media_form form;
    const char *version;
    const char *message; /* of a 406 */
} object_cases[] = {
    {"", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"application/json", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"*/*", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"*", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"application/*", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"text/html,*/*;q=0.1", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", NULL},
    {"application/yaml", MEDIA_NATIVE, MEDIA_YAML, MEDIA_OBJECT, "", NULL},
    {"application/json;q=0.5, application/yaml", MEDIA_NATIVE, MEDIA_YAML, MEDIA_OBJECT, "", NULL},
    {"application/yaml;q=0.2,application/json;q=0.30", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "",
     NULL},
    {TABLE, MEDIA_NATIVE, MEDIA_JSON, MEDIA_TABLE, "v1", NULL},
    {"application/json;g=meta.k8s.io;v=v1;as=Table", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_TABLE, "v1",
     NULL},
    {" application/json ; v = v1beta1 ; as=Table; g=meta.k8s.io", MEDIA_CUSTOM, MEDIA_JSON,
     MEDIA_TABLE, "v1beta1", NULL},
    {"application/json;as=Table;v=v1;g=meta.k8s.io,application/"
     "json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
     MEDIA_NATIVE, MEDIA_JSON, MEDIA_TABLE, "v1", NULL},
    {"application/json;as=Table;v=v9;g=meta.k8s.io,application/json", MEDIA_NATIVE, MEDIA_JSON,
     MEDIA_OBJECT, "", NULL},
    {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", MEDIA_NATIVE, MEDIA_JSON,
     MEDIA_PARTIAL, "v1", NULL},
    {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
     "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
     MEDIA_CUSTOM, MEDIA_JSON, MEDIA_PARTIAL, "v1", NULL},
    {"application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", MEDIA_NATIVE,
     MEDIA_JSON, MEDIA_PARTIAL_LIST, "v1beta1", NULL},
    {"application/vnd.kubernetes.protobuf,application/json", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT,
     "", NULL},
    {"application/xml", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", ROUTE},
    {"garbage", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", ROUTE},
    {"text/html", MEDIA_NATIVE_LIST, MEDIA_JSON, MEDIA_OBJECT, "",
     ROUTE ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
    {"application/xml", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", ONLY},
    {"application/json;as=Nope;v=v1;g=meta.k8s.io", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "",
     ONLY},
    {"application/json;as=Table;v=v9;g=meta.k8s.io", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "",
     ONLY},
    {"application/json;as=Table;v=v1;g=other.io", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", ONLY},
    {"application/vnd.kubernetes.protobuf", MEDIA_NATIVE, MEDIA_JSON, MEDIA_OBJECT, "", ONLY},
    {"application/cbor", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", ONLY},
    {"application/json;q=0", MEDIA_CUSTOM, MEDIA_JSON, MEDIA_OBJECT, "", ONLY},
};

TEST(object_forms_follow_the_accept_header)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(object_cases); i++) {
        struct status st;
        status_init(&st, a);
        struct media_choice choice = {0};
        const int r =
            media_choose(str_of(object_cases[i].accept), object_cases[i].endpoint, &choice, &st);
        if (object_cases[i].message) {
            assert_int_equal(st.code, 406);
            assert_str(st.reason, "NotAcceptable");
            assert_str(st.message, object_cases[i].message);
            /* Refused at the route the answer has empty details. */
            assert_int_equal(st.has_details, str_starts_with(st.message, STR("406")));
            assert_true(r < 0);
            continue;
        }
        assert_int_equal(r, 0);
        assert_int_equal(st.code, 0);
        assert_int_equal(choice.encoding, object_cases[i].encoding);
        assert_int_equal(choice.form, object_cases[i].form);
        assert_str(choice.version, object_cases[i].version);
    }
}

TEST(watch_has_no_yaml)
{
    ARENA_AUTO a = arena_new();
    struct status st;
    status_init(&st, a);
    struct media_choice choice;
    assert_int_equal(media_choose_watch(STR("application/yaml,application/json"), MEDIA_NATIVE_LIST,
                                        &choice, &st),
                     0);
    assert_int_equal(choice.encoding, MEDIA_JSON);
    assert_int_equal(
        media_choose_watch(STR("application/json;stream=watch"), MEDIA_NATIVE_LIST, &choice, &st),
        0);
    assert_int_equal(media_choose_watch(STR(TABLE), MEDIA_CUSTOM, &choice, &st), 0);
    assert_int_equal(choice.form, MEDIA_TABLE);
    assert_true(media_choose_watch(STR("application/yaml"), MEDIA_CUSTOM, &choice, &st) < 0);
    assert_str(st.message,
               "only the following media types are accepted: application/json;stream=watch, "
               "application/vnd.kubernetes.protobuf;stream=watch");
}

/* ---- documents ---------------------------------------------------------------------------- */

static const struct {
    const char *accept;
    bool is_aggregated;
} discovery_cases[] = {
    {AGGREGATED, true},
    {AGGREGATED ",application/json", true},
    {"application/json," AGGREGATED, true},
    {"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", true},
    {"application/"
     "json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer," AGGREGATED,
     true},
    {"application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,"
     "application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json",
     true},
    {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
     false},
    {"application/json", false},
    {"*/*", false},
    {"", false},
};

TEST(aggregated_discovery_is_found_wherever_it_stands)
{
    for (size_t i = 0; i < N_ELEMENTS(discovery_cases); i++) {
        enum media_encoding e = MEDIA_YAML;
        assert_int_equal(media_wants_aggregated_discovery(str_of(discovery_cases[i].accept), &e),
                         discovery_cases[i].is_aggregated);
        assert_int_equal(e, discovery_cases[i].is_aggregated ? MEDIA_JSON : MEDIA_YAML);
    }
}

TEST(documents_come_as_json_or_yaml)
{
    ARENA_AUTO a = arena_new();
    struct status st;
    status_init(&st, a);
    enum media_encoding e;
    assert_int_equal(media_choose_plain(STR("application/yaml"), MEDIA_NATIVE, &e, &st), 0);
    assert_int_equal(e, MEDIA_YAML);
    assert_int_equal(media_choose_plain(STR_NONE, MEDIA_NATIVE, &e, &st), 0);
    assert_int_equal(e, MEDIA_JSON);
    assert_true(media_choose_plain(STR("text/html"), MEDIA_NATIVE, &e, &st) < 0);
    assert_str(st.message, ROUTE);
    assert_true(media_choose_plain(STR("application/xml"), MEDIA_CUSTOM, &e, &st) < 0);
    assert_str(st.message, ONLY);
    assert_false(st.has_details);
    assert_true(media_choose_json(STR("text/plain"), &st) < 0);
    assert_str(st.message, "406: Not Acceptable\n\nAvailable representations: application/json");
    assert_int_equal(media_choose_json(STR("application/yaml, */*"), &st), 0);
}

TEST(gzip_is_sent_only_to_who_accepts_it)
{
    assert_true(media_accepts_gzip(STR("gzip")));
    assert_true(media_accepts_gzip(STR("br, GZIP;q=0.5")));
    assert_false(media_accepts_gzip(STR("gzip;q=0")));
    assert_false(media_accepts_gzip(STR("identity")));
    assert_false(media_accepts_gzip(STR_NONE));
}

TEST(accept_with_too_many_ranges_is_cut)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    for (int i = 0; i < 1000; i++)
        buf_append_str(&b, STR("text/a,"));
    buf_append_str(&b, STR("application/json"));
    struct media_range *ranges;
    assert_int_equal(media_parse_accept(a, buf_str(&b), &ranges), MEDIA_MAX_RANGES);
}

/* ---- bodies ------------------------------------------------------------------------------- */

TEST(bodies_are_json_yaml_or_refused)
{
    static const struct {
        const char *type;
        int encoding; /* -1: 415 */
    } cases[] = {
        {"", MEDIA_JSON},
        {"application/json", MEDIA_JSON},
        {"application/json; charset=utf-8", MEDIA_JSON},
        {"application/json;stream=watch", MEDIA_JSON},
        {"application/yaml", MEDIA_YAML},
        {"application/vnd.kubernetes.protobuf", MEDIA_PROTOBUF},
        {"text/plain", -1},
        {"application/xml", -1},
        {"garbage", -1},
        {"text/yaml", -1},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct status st;
        status_init(&st, a);
        enum media_encoding e = MEDIA_JSON;
        const int r = media_body_encoding(str_of(cases[i].type), &e, &st);
        if (cases[i].encoding < 0) {
            assert_true(r < 0);
            assert_int_equal(st.code, 415);
            assert_str(st.message, "the body of the request was in an unknown format - accepted "
                                   "media types include: " TYPES);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(e, cases[i].encoding);
        }
    }
}

TEST(patches_are_known_by_their_type)
{
    static const struct {
        const char *type;
        bool is_native;
        int patch; /* -1: 415 */
    } cases[] = {
        {"application/json-patch+json", true, MEDIA_PATCH_JSON},
        {"application/merge-patch+json; charset=utf-8", true, MEDIA_PATCH_MERGE},
        {"application/strategic-merge-patch+json", true, MEDIA_PATCH_STRATEGIC},
        {"application/apply-patch+yaml", false, MEDIA_PATCH_APPLY},
        {"application/strategic-merge-patch+json", false, -1},
        {"application/json", true, -1},
        {"application/apply-patch+json", true, -1},
        {"", true, -1},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct status st;
        status_init(&st, a);
        enum media_patch p = MEDIA_PATCH_JSON;
        const int r = media_patch_type(str_of(cases[i].type), cases[i].is_native, &p, &st);
        assert_int_equal(r < 0, cases[i].patch < 0);
        if (r == 0) {
            assert_int_equal(p, cases[i].patch);
            continue;
        }
        assert_int_equal(st.code, 415);
        assert_str(st.message, cases[i].is_native
                                   ? "415: Unsupported Media Type"
                                   : "the body of the request was in an unknown format - accepted "
                                     "media types include: "
                                     "application/json-patch+json, application/merge-patch+json, "
                                     "application/apply-patch+yaml");
        assert_int_equal(st.has_details, cases[i].is_native);
    }
}
