/* SPDX-License-Identifier: Apache-2.0 */
#include "api/health.h"

#include <stdio.h>

#include "base/log.h"
#include "test.h"

static bool ask_flag(void *ctx, char *reason)
{
    if (*(bool *) ctx)
        return true;
    (void) snprintf(reason, HEALTH_REASON_BYTES, "the disk is gone");
    return false;
}

static void setup(struct health *h, bool *is_store_ok)
{
    log_set_level(LOG_ERROR);
    health_init(h);
    health_add(h, &(struct health_check){STR("etcd"), HEALTH_ALL, ask_flag, is_store_ok});
    health_add(h, &(struct health_check){STR("etcd-readiness"), HEALTH_READYZ, NULL, NULL});
    health_add(h, &(struct health_check){STR("shutdown"), HEALTH_READYZ, NULL, NULL});
}

static struct document_reply get(struct arena *a, const struct health *h, const char *path,
                                 const char *query)
{
    const struct document_request q = {
        .method = HTTP_GET, .path = str_of(path), .query = str_of(query)};
    struct document_reply reply = {.status = 404};
    (void) health_get(a, h, &q, &reply);
    return reply;
}

static const struct {
    const char *path, *query;
    bool no_sniff;
    const char *body; /* NULL: no such path */
} healthy_cases[] = {
    {"/healthz", "", true, "ok"},
    {"/livez", "", true, "ok"},
    {"/readyz", "", true, "ok"},
    {"/healthz/ping", "", false, "ok"},
    {"/readyz/etcd", "", false, "ok"},
    {"/readyz/ping", "verbose", false, "ok"},
    {"/healthz/nope", "", false, NULL},
    {"/livez/etcd-readiness", "", false, NULL},
    {"/healthz/", "", false, NULL},
    {"/healthzz", "", false, NULL},
    {"/readyz", "exclude=ping", true, "ok"},
    {"/healthz", "verbose=false", true,
     "[+]ping ok\n[+]log ok\n[+]etcd ok\nhealthz check passed\n"},
    {"/readyz", "verbose", true,
     "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]shutdown ok\nreadyz check "
     "passed\n"},
    {"/livez", "verbose&exclude=etcd", true,
     "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nlivez check passed\n"},
    {"/livez", "verbose&exclude=nope", true,
     "[+]ping ok\n[+]log ok\n[+]etcd ok\nwarn: some health checks cannot be excluded: no matches "
     "for \"nope\"\n"
     "livez check passed\n"},
};

TEST(healthy_server_says_so)
{
    ARENA_AUTO a = arena_new();
    struct health h;
    bool is_ok = true;
    setup(&h, &is_ok);
    for (size_t i = 0; i < N_ELEMENTS(healthy_cases); i++) {
        struct document_reply reply = get(a, &h, healthy_cases[i].path, healthy_cases[i].query);
        assert_int_equal(reply.status, healthy_cases[i].body ? 200 : 404);
        if (healthy_cases[i].body) {
            assert_str(reply.body.s, healthy_cases[i].body);
            assert_str(reply.content_type, "text/plain; charset=utf-8");
            assert_int_equal(reply.no_sniff, healthy_cases[i].no_sniff);
        }
        slice_unref(reply.body);
    }
}

TEST(failed_check_fails_its_endpoints_and_keeps_its_reason)
{
    ARENA_AUTO a = arena_new();
    struct health h;
    bool is_ok = false;
    setup(&h, &is_ok);
    struct document_reply reply = get(a, &h, "/livez", "");
    assert_int_equal(reply.status, 500);
    assert_str(reply.body.s,
               "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nlivez check failed\n");
    slice_unref(reply.body);

    reply = get(a, &h, "/livez", "exclude=etcd");
    assert_int_equal(reply.status, 200);
    slice_unref(reply.body);

    reply = get(a, &h, "/livez/etcd", "");
    assert_int_equal(reply.status, 500);
    assert_str(reply.body.s, "internal server error: the disk is gone\n");
    slice_unref(reply.body);
}

TEST(paths_name_every_check)
{
    ARENA_AUTO a = arena_new();
    struct health h;
    bool is_ok = true;
    setup(&h, &is_ok);
    struct str *paths;
    const size_t n = health_paths(a, &h, &paths);
    assert_int_equal(n, 3 + 3 + 3 + 5);
    for (size_t i = 0; i < n; i++) {
        struct document_reply reply = get(a, &h, arena_strz(a, paths[i]), "");
        assert_int_equal(reply.status, 200);
        slice_unref(reply.body);
    }
}
