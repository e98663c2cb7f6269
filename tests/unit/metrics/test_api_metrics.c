/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

#include "test.h"

static const struct kind_subresource status = {.name = STR("status")};
static const struct kind devices = {
    .group = STR("eve.lfedge.org"), .version = STR("v1"), .plural = STR("devices")};
static struct registry registry = {.generation = 3};

struct fixture {
    struct api_metrics *metrics;
    struct request_meter *meter;
    struct buf text;
};

static void open_metrics(struct fixture *f)
{
    *f = (struct fixture){.metrics = api_metrics_new(&(struct api_metrics_options){0})};
    f->meter = request_meter_new(f->metrics);
}

static void close_metrics(struct fixture *f)
{
    request_meter_free(f->meter);
    api_metrics_free(f->metrics);
    buf_done(&f->text);
}

static void assert_line(struct fixture *f, const char *line)
{
    BUF_AUTO whole = {0};
    buf_printf(&whole, "\n%s\n", line);
    buf_reset(&f->text);
    api_metrics_text(f->metrics, &f->text);
    if (str_find_str(buf_str(&f->text), buf_str(&whole)) < 0)
        fail_msg("there is no line %s in\n%.*s", line, (int) MIN(f->text.n, (size_t) 3000),
                 f->text.p);
}

static struct request_measure device_request(enum verb verb)
{
    return (struct request_measure){.registry = &registry,
                                    .kind = &devices,
                                    .is_resource = true,
                                    .has_verb = true,
                                    .verb = verb,
                                    .has_namespace = true,
                                    .code = 200,
                                    .duration_us = 30000,
                                    .response_bytes = 5000};
}

#define DEVICES(verb, subresource, scope) \
    "verb=\"" verb \
    "\",group=\"eve.lfedge.org\",version=\"v1\",resource=\"devices\",subresource=\"" subresource \
    "\",scope=\"" scope "\",component=\"apiserver\""

TEST(requests_are_counted_and_timed)
{
    struct fixture f;
    open_metrics(&f);
    struct request_measure r = device_request(VERB_GET);
    r.has_name = true;
    for (int i = 0; i < 3; i++)
        request_meter_count(f.meter, &r);
    r.code = 404;
    request_meter_count(f.meter, &r);
    assert_line(&f, "apiserver_request_total{" DEVICES("GET", "",
                                                       "resource") ",dry_run=\"\",code=\"200\"} 3");
    assert_line(&f, "apiserver_request_total{" DEVICES("GET", "",
                                                       "resource") ",dry_run=\"\",code=\"404\"} 1");
    assert_line(&f, "apiserver_request_duration_seconds_bucket{" DEVICES(
                        "GET", "", "resource") ",dry_run=\"\",le=\"0.025\"} 0");
    assert_line(&f, "apiserver_request_duration_seconds_bucket{" DEVICES(
                        "GET", "", "resource") ",dry_run=\"\",le=\"0.05\"} 4");
    assert_line(&f, "apiserver_request_duration_seconds_sum{" DEVICES(
                        "GET", "", "resource") ",dry_run=\"\"} 0.12");
    assert_line(
        &f, "apiserver_request_sli_duration_seconds_count{" DEVICES("GET", "", "resource") "} 4");
    assert_line(&f, "apiserver_response_sizes_sum{" DEVICES("GET", "", "resource") "} 20000");
    close_metrics(&f);
}

TEST(verbs_scopes_and_subresources_show)
{
    static const struct {
        enum verb verb;
        bool is_apply, is_dry_run, has_namespace, has_name, is_status;
        const char *line;
    } cases[] = {
        {VERB_LIST, 0, 0, 1, 0, 0, DEVICES("LIST", "", "namespace") ",dry_run=\"\""},
        {VERB_LIST, 0, 0, 0, 0, 0, DEVICES("LIST", "", "cluster") ",dry_run=\"\""},
        {VERB_WATCH, 0, 0, 1, 0, 0, DEVICES("WATCH", "", "namespace") ",dry_run=\"\""},
        {VERB_CREATE, 0, 1, 1, 0, 0, DEVICES("POST", "", "resource") ",dry_run=\"All\""},
        {VERB_UPDATE, 0, 0, 1, 1, 1, DEVICES("PUT", "status", "resource") ",dry_run=\"\""},
        {VERB_PATCH, 0, 0, 1, 1, 0, DEVICES("PATCH", "", "resource") ",dry_run=\"\""},
        {VERB_PATCH, 1, 0, 1, 1, 0, DEVICES("APPLY", "", "resource") ",dry_run=\"\""},
        {VERB_DELETE, 0, 0, 1, 1, 0, DEVICES("DELETE", "", "resource") ",dry_run=\"\""},
        {VERB_DELETE_COLLECTION, 0, 0, 1, 0, 0,
         DEVICES("DELETECOLLECTION", "", "namespace") ",dry_run=\"\""},
    };
    struct fixture f;
    open_metrics(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO line = {0};
        struct request_measure r = device_request(cases[i].verb);
        r.is_apply = cases[i].is_apply;
        r.is_dry_run = cases[i].is_dry_run;
        r.has_namespace = cases[i].has_namespace;
        r.has_name = cases[i].has_name;
        r.subresource = cases[i].is_status ? &status : NULL;
        request_meter_count(f.meter, &r);
        buf_printf(&line, "apiserver_request_total{%s,code=\"200\"} 1", cases[i].line);
        assert_line(&f, line.p);
    }
    close_metrics(&f);
}

#define NO_KIND(verb, subresource, scope) \
    "verb=\"" verb "\",group=\"\",version=\"\",resource=\"\",subresource=\"" subresource \
    "\",scope=\"" scope "\",component=\"apiserver\",dry_run=\"\""

TEST(what_peers_make_up_makes_no_series)
{
    static const struct {
        bool is_resource;
        const char *method, *path, *line;
    } cases[] = {
        {false, "GET", "/readyz", NO_KIND("GET", "/readyz", "")},
        {false, "GET", "/readyz/etcd", NO_KIND("GET", "/readyz", "")},
        {false, "GET", "/readyzz", NO_KIND("GET", "", "")},
        {false, "GET", "/apis/nobody/knows", NO_KIND("GET", "/apis", "")},
        {false, "GET", "/openapi/v3/apis/apps/v1", NO_KIND("GET", "/openapi/v3", "")},
        {false, "BREW", "/coffee", NO_KIND("other", "", "")},
        {false, "", "", NO_KIND("other", "", "")},
        {true, "GET", "/api/v1/unicorns", NO_KIND("other", "", "cluster")},
    };
    struct fixture f;
    open_metrics(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO line = {0};
        struct request_measure r = {.is_resource = cases[i].is_resource,
                                    .method = str_of(cases[i].method),
                                    .path = str_of(cases[i].path),
                                    .code = 400 + (int) i};
        request_meter_count(f.meter, &r);
        buf_printf(&line, "apiserver_request_total{%s,code=\"40%zu\"} 1", cases[i].line, i);
        assert_line(&f, line.p);
    }
    assert_int_equal(str_find_str(buf_str(&f.text), STR("unicorns")), -1);
    assert_int_equal(str_find_str(buf_str(&f.text), STR("BREW")), -1);
    close_metrics(&f);
}

TEST(a_kind_at_the_same_address_is_another_after_a_change)
{
    struct kind kind = devices;
    struct fixture f;
    open_metrics(&f);
    struct request_measure r = device_request(VERB_LIST);
    r.kind = &kind;
    request_meter_count(f.meter, &r);
    kind.plural = STR("gadgets");
    registry.generation++;
    request_meter_count(f.meter, &r);
    assert_line(&f, "apiserver_request_total{verb=\"LIST\",group=\"eve.lfedge.org\",version=\"v1\","
                    "resource=\"gadgets\",subresource=\"\",scope=\"namespace\",component="
                    "\"apiserver\",dry_run=\"\",code=\"200\"} 1");
    close_metrics(&f);
}

TEST(watches_count_while_they_run_and_have_no_sli)
{
    struct fixture f;
    open_metrics(&f);
    struct request_measure r = device_request(VERB_WATCH);
    r.is_long_running = true;
    request_meter_long_running(f.meter, &r, 1);
    request_meter_long_running(f.meter, &r, 1);
    request_meter_long_running(f.meter, &r, -1);
    assert_line(&f, "apiserver_longrunning_requests{" DEVICES("WATCH", "", "namespace") "} 1");
    request_meter_count(f.meter, &r);
    struct watch_meter w = api_metrics_watch(f.metrics, &devices);
    watch_meter_event(&w, 2000);
    assert_line(&f, "apiserver_watch_events_total{group=\"eve.lfedge.org\",version=\"v1\","
                    "resource=\"devices\"} 1");
    assert_line(&f, "apiserver_watch_events_sizes_bucket{group=\"eve.lfedge.org\",version=\"v1\","
                    "resource=\"devices\",le=\"2048\"} 1");
    assert_int_equal(str_find_str(buf_str(&f.text), STR("sli_duration_seconds_count")), -1);
    close_metrics(&f);
}

TEST(shed_requests_and_logins_are_counted)
{
    struct fixture f;
    open_metrics(&f);
    struct request_measure r = device_request(VERB_LIST);
    r.code = 429;
    r.is_shed = true;
    request_meter_count(f.meter, &r);
    assert_line(&f, "apiserver_request_terminations_total{" DEVICES(
                        "LIST", "", "namespace") ",code=\"429\"} 1");
    api_metrics_login(f.metrics, LOGIN_SUCCESS, STR("jane"));
    api_metrics_login(f.metrics, LOGIN_SUCCESS, STR("jane@example.org"));
    api_metrics_login(f.metrics, LOGIN_SUCCESS, STR("admin"));
    api_metrics_login(f.metrics, LOGIN_FAILURE, STR(""));
    assert_line(&f, "authentication_attempts{result=\"success\"} 3");
    assert_line(&f, "authentication_attempts{result=\"failure\"} 1");
    assert_line(&f, "authenticated_user_requests{username=\"other\"} 1");
    assert_line(&f, "authenticated_user_requests{username=\"email_id\"} 1");
    assert_line(&f, "authenticated_user_requests{username=\"admin\"} 1");
    close_metrics(&f);
}

static size_t two_queues(void *ctx, struct queue_figures *to, size_t max)
{
    assert_true(max >= 2);
    to[0] = (struct queue_figures){.name = "gc", .depth = 1, .n_adds = 7, .n_retries = 2};
    to[1] = (struct queue_figures){.name = ctx};
    static const int64_t waits_us[] = {0, 1, 2, 10, 11, 1000000000, 1000000001};
    for (size_t i = 0; i < N_ELEMENTS(waits_us); i++)
        queue_histogram_add(&to[0].waited, waits_us[i]);
    return 2;
}

TEST(queues_are_asked)
{
    static char name[] = "crd";
    struct fixture f;
    open_metrics(&f);
    api_metrics_set_queues(f.metrics, two_queues, name);
    assert_line(&f, "workqueue_depth{name=\"gc\"} 1");
    assert_line(&f, "workqueue_adds_total{name=\"gc\"} 7");
    assert_line(&f, "workqueue_retries_total{name=\"gc\"} 2");
    assert_line(&f, "workqueue_depth{name=\"crd\"} 0");
#define WAITED(le) "workqueue_queue_duration_seconds_bucket{name=\"gc\",le=\"" le "\"} "
    assert_line(&f, WAITED("1e-08") "1");
    assert_line(&f, WAITED("1e-07") "1");
    assert_line(&f, WAITED("1e-06") "2");
    assert_line(&f, WAITED("1e-05") "4");
    assert_line(&f, WAITED("0.0001") "5");
    assert_line(&f, WAITED("1000") "6");
    assert_line(&f, WAITED("+Inf") "7");
    assert_line(&f, "workqueue_work_duration_seconds_count{name=\"crd\"} 0");
    close_metrics(&f);
}

TEST(the_process_is_described)
{
    struct fixture f;
    open_metrics(&f);
    assert_line(&f, "# TYPE process_cpu_seconds_total counter");
    struct str text = buf_str(&f.text);
    static const char *const names[] = {
        "\nprocess_open_fds ", "\nprocess_max_fds ", "\nprocess_resident_memory_bytes ",
        "\nprocess_start_time_seconds 1.", "\nkubernetes_build_info{"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        assert_true(str_find_str(text, str_of(names[i])) > 0);
    close_metrics(&f);
}
