/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's own thread while others hand it records and objects change. */
#include <stdio.h>

#include "protobuf/message.h"
#include "test.h"
#include "world.h"

#define N_THREADS 4
#define N_MESSAGES 200
#define APP_1 "22222222-0000-4000-8000-000000000001"
#define APP_2 "22222222-0000-4000-8000-000000000002"

struct sender {
    pthread_t thread;
    struct reports *reports;
    struct device *device;
    struct str messages[N_MESSAGES];
    size_t from;
};

static void *send_all(void *arg)
{
    struct sender *s = arg;
    for (size_t i = s->from; i < N_MESSAGES; i += N_THREADS) {
        struct telemetry_record record = {.id = i + 1,
                                          .device = s->device->uuid,
                                          .stream = TELEMETRY_INFO,
                                          .arrived_us = WORLD_NOW_US,
                                          .bytes = s->messages[i]};
        reports_take(s->reports, &record);
        reports_config_fetched(s->reports, s->device,
                               &(struct config_fetched){.hash = STR("hash"), .is_confirmed = true});
        struct reports_stats stats;
        reports_stats(s->reports, &stats);
    }
    return NULL;
}

static struct str message(struct world *w, const char *app, int64_t at_s)
{
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoApp info;
    Google__Protobuf__Timestamp at;
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_app__init(&info);
    google__protobuf__timestamp__init(&at);
    at.seconds = WORLD_NOW_US / SECOND_US + at_s;
    info.appid = (char *) world_uuid(w, app);
    info.appname = (char *) "web";
    info.state =
        at_s == N_MESSAGES - 1 ? EVE__INFO__ZSW_STATE__RUNNING : EVE__INFO__ZSW_STATE__BOOTING;
    m.devid = (char *) DEVICE_1;
    m.attimestamp = &at;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO;
    m.ainfo = &info;
    return pb_pack(w->arena, &m.base);
}

struct watching {
    struct reports *reports;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_synced;
};

static void on_event(void *ctx, const struct kube_event *e)
{
    struct watching *watching = ctx;
    reports_on_event(watching->reports, e);
    (void) pthread_mutex_lock(&watching->lock);
    watching->is_synced = watching->is_synced || e->type == KUBE_SYNCED;
    (void) pthread_cond_signal(&watching->wake);
    (void) pthread_mutex_unlock(&watching->lock);
}

static void wait_for_sync(struct watching *watching)
{
    (void) pthread_mutex_lock(&watching->lock);
    while (!watching->is_synced)
        (void) pthread_cond_wait(&watching->wake, &watching->lock);
    (void) pthread_mutex_unlock(&watching->lock);
}

static bool has_come(struct world *w)
{
    const struct json *app = world_get(w, "applications", "site", "web");
    const struct json *device = world_get(w, "devices", "site", "edge-1");
    return str_is(json_str(json_at(app, "status", "state", NULL)), "RUNNING") &&
           str_is(json_str(json_at(device, "status", "config", "hash", NULL)), "hash");
}

TEST(many_threads_tell_and_the_newest_is_shown)
{
    struct world w;
    struct sender senders[N_THREADS];
    struct uuid uuid;
    struct reports *r = NULL;
    char *error = NULL;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    world_settle(&w);
    struct reports_options o = {.client = w.client.real,
                                .roster = w.roster,
                                .clock = &clock_system,
                                .checkpoint_path =
                                    arena_printf(w.arena, "%s/second", w.directory).p};
    assert_int_equal(reports_new(&o, &r, &error), 0);
    struct kube_client *watcher = kube_client_local(w.api, "test-threads");
    struct watching watching = {
        .reports = r, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    kube_watch(watcher, on_event, &watching);
    assert_int_equal(uuid_parse(STR(DEVICE_1), &uuid), 0);
    struct device *device = roster_by_uuid(w.roster, &uuid);
    for (size_t i = 0; i < N_THREADS; i++) {
        senders[i] = (struct sender){.reports = r, .device = device, .from = i};
        for (size_t j = 0; j < N_MESSAGES; j++)
            senders[i].messages[j] = message(&w, APP_1, (int64_t) j);
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    world_application(&w, "site", "other", APP_2, "edge-1");
    for (size_t i = 0; i < N_THREADS; i++)
        (void) pthread_join(senders[i].thread, NULL);
    /* The end writes what waits, once the objects are known. */
    wait_for_sync(&watching);
    kube_client_free(watcher);
    reports_free(r);
    assert_true(has_come(&w));
    device_unref(device);
    world_close(&w);
}

TEST(the_end_writes_what_waits)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    world_pass(&w, 2000);
    (void) world_send_app(&w, DEVICE_1, APP_1, 6, 0);
    world_pass(&w, 1);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 1);
    world_restart(&w, /* is_crash= */ false);
    const struct json *app = world_get(&w, "applications", "site", "web");
    assert_str(json_str(json_at(app, "status", "state", NULL)), "RUNNING");
    world_close(&w);
}

TEST(ending_before_anything_is_known_is_no_harm)
{
    struct world w;
    struct reports *r = NULL;
    char *error = NULL;
    struct telemetry_record record = {.stream = TELEMETRY_INFO, .bytes = STR("x")};
    world_open(&w);
    struct reports_options o = {
        .client = w.client.real, .roster = w.roster, .clock = &clock_system};
    assert_int_equal(reports_new(&o, &r, &error), 0);
    reports_take(r, &record);
    reports_free(r);
    reports_free(NULL);
    world_close(&w);
}
