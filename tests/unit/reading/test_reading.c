/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, rights and answers. */
#include "fixture.h"

#define DEVICE_PATH "/apis/eve.lfedge.org/v1beta1/namespaces/site/devices/edge"

static int claim(struct fixture *f, const char *path, enum http_method method,
                 struct request_path *ret)
{
    struct annex annex = reading_annex(&f->reading);
    enum verb verb = VERB_LIST;
    *ret = (struct request_path){0};
    status_init(&f->status, f->arena);
    int r = annex.claim(annex.ctx, f->arena, str_of(path), method, ret, &verb, &f->status);
    if (ret->is_resource)
        assert_int_equal(verb, VERB_GET);
    return r;
}

TEST(rights_are_those_on_the_subresource_of_the_device)
{
    static const char *const paths[] = {"/edgenode/" UUID_TEXT "/flowlog", DEVICE_PATH "/flowlog"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        struct request_path p;
        assert_int_equal(claim(&f, paths[i], HTTP_GET, &p), 0);
        assert_true(p.is_resource);
        assert_str(p.group, "eve.lfedge.org");
        assert_str(p.version, "v1beta1");
        assert_str(p.resource, "devices");
        assert_str(p.subresource, "flowlog");
        assert_str(p.namespace, "site");
        assert_str(p.name, "edge");
    }
    fixture_done(&f);
}

TEST(other_paths_are_left_to_others)
{
    static const char *const paths[] = {"/",
                                        "/edgenode",
                                        "/edgenode/" UUID_TEXT,
                                        "/edgenode/" UUID_TEXT "/",
                                        "/edgenode/" UUID_TEXT "/logs",
                                        "/edgenode/" UUID_TEXT "/log/x",
                                        DEVICE_PATH,
                                        DEVICE_PATH "/status",
                                        DEVICE_PATH "/log/x",
                                        "/apis/eve.lfedge.org/v1beta1/devices/log",
                                        "/apis/eve.lfedge.org/v1/namespaces/site/devices/edge/log",
                                        "/api/v1/namespaces/site/pods/edge/log"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        struct request_path p;
        assert_int_equal(claim(&f, paths[i], HTTP_GET, &p), -ENOENT);
        assert_false(p.is_resource);
    }
    fixture_done(&f);
}

TEST(nothing_is_written_here)
{
    struct fixture f;
    fixture_init(&f);
    for (enum http_method m = HTTP_HEAD; m <= HTTP_OTHER; m++) {
        struct request_path p;
        assert_true(claim(&f, "/edgenode/" UUID_TEXT "/log", m, &p) < 0);
        assert_int_equal(f.status.code, 405);
        assert_true(claim(&f, DEVICE_PATH "/info", m, &p) < 0);
        assert_int_equal(f.status.code, 405);
    }
    fixture_done(&f);
}

static int ask(struct fixture *f, const char *path, const char *parameters, const char *accept,
               struct annex_answer *ret)
{
    struct annex annex = reading_annex(&f->reading);
    struct annex_request q = {.arena = f->arena,
                              .path = str_of(path),
                              .query = request_parse_query(f->arena, str_of(parameters)),
                              .accept = str_of(accept)};
    *ret = (struct annex_answer){0};
    status_init(&f->status, f->arena);
    return annex.answer(annex.ctx, &q, ret, &f->status);
}

TEST(answers_are_streams_in_the_form_asked_for)
{
    static const struct {
        const char *path, *accept, *type; /* NULL: 406 */
    } cases[] = {
        {"/edgenode/" UUID_TEXT "/log", "", "application/x-ndjson"},
        {"/edgenode/" UUID_TEXT "/log", "*/*", "application/x-ndjson"},
        {DEVICE_PATH "/info", "application/json", "application/x-ndjson"},
        {DEVICE_PATH "/info", "application/x-proto-binary", "application/x-proto-binary"},
        {DEVICE_PATH "/info", "application/x-proto-binary;q=0.5, application/json",
         "application/x-ndjson"},
        {DEVICE_PATH "/requests", "application/x-proto-binary", NULL},
        {DEVICE_PATH "/metrics", "text/html", NULL},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct annex_answer answer;
        int r = ask(&f, cases[i].path, "", cases[i].accept, &answer);
        if (!cases[i].type) {
            assert_true(r < 0);
            assert_int_equal(f.status.code, 406);
            continue;
        }
        assert_int_equal(r, 0);
        assert_int_equal(answer.code, 200);
        assert_str(answer.content_type, cases[i].type);
        answer.stream->close(answer.stream);
    }
    fixture_done(&f);
}

TEST(what_cannot_be_answered_is_said)
{
    static const struct {
        const char *path, *parameters;
        int code;
    } cases[] = {
        {"/edgenode/" APP_TEXT "/log", "", 404},
        {"/edgenode/nobody/log", "", 404},
        {"/apis/eve.lfedge.org/v1beta1/namespaces/site/devices/nobody/log", "", 404},
        {"/apis/eve.lfedge.org/v1beta1/namespaces/other/devices/edge/log", "", 404},
        {DEVICE_PATH "/log", "limit=x", 400},
        {DEVICE_PATH "/lastseen", "limit=1", 400},
        {DEVICE_PATH "/log", "by=device&after=5", 410},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct annex_answer answer;
        assert_true(ask(&f, cases[i].path, cases[i].parameters, "", &answer) < 0);
        assert_int_equal(f.status.code, cases[i].code);
    }
    struct request_path p;
    assert_int_equal(claim(&f, "/edgenode/" APP_TEXT "/log", HTTP_GET, &p), 0);
    assert_false(p.is_resource);
    fixture_done(&f);
}

TEST(last_seen_is_a_time_or_null)
{
    struct fixture f;
    fixture_init(&f);
    struct annex_answer answer;
    assert_int_equal(ask(&f, DEVICE_PATH "/lastseen", "", "", &answer), 0);
    assert_str(answer.body, "{\"device\":\"edge\",\"uuid\":\"" UUID_TEXT "\",\"lastSeen\":null}\n");
    struct device *d = roster_by_uuid(f.roster, &f.device);
    atomic_store(&d->last_seen_us, START_US);
    device_unref(d);
    assert_int_equal(ask(&f, "/edgenode/" UUID_TEXT "/lastseen", "", "", &answer), 0);
    assert_str(answer.body, "{\"device\":\"edge\",\"uuid\":\"" UUID_TEXT
                            "\",\"lastSeen\":\"2023-11-14T22:13:20.000000Z\"}\n");
    assert_str(answer.content_type, "application/json");
    fixture_done(&f);
}
