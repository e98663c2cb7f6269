/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in touch, and what of it survives a restart. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "test.h"
#include "world.h"

#define APP_1 "22222222-0000-4000-8000-000000000001"

static struct str ready(struct world *w, const char *key)
{
    return world_condition(w, "devices", "site", "edge-1", "Ready", key);
}

static int64_t last_seen(struct world *w)
{
    struct uuid uuid;
    assert_int_equal(uuid_parse(STR(DEVICE_1), &uuid), 0);
    struct device *d = roster_by_uuid(w->roster, &uuid);
    int64_t at = atomic_load(&d->last_seen_us);
    device_unref(d);
    return at;
}

static void poll_for(struct world *w, int seconds)
{
    for (int i = 0; i < seconds; i += 30) {
        world_poll(w, DEVICE_1);
        world_pass(w, 30000);
    }
}

TEST(ready_is_unknown_until_the_device_is_seen)
{
    struct world w;
    world_open(&w);
    size_t n_writes = w.client.n_writes;
    world_pass(&w, 600000);
    assert_str(ready(&w, "status"), "Unknown");
    assert_str(ready(&w, "reason"), "NeverSeen");
    assert_int_equal(w.client.n_writes, n_writes);
    world_poll(&w, DEVICE_1);
    world_pass(&w, 5000);
    assert_str(ready(&w, "status"), "True");
    world_close(&w);
}

TEST(three_missed_polls_make_it_unknown)
{
    struct world w;
    world_open(&w);
    world_poll(&w, DEVICE_1);
    world_pass(&w, 5000);
    assert_str(ready(&w, "status"), "True");
    assert_int_equal(world_events(&w, "site", "edge-1", "DeviceReady"), 1);
    world_pass(&w, 170000);
    assert_str(ready(&w, "status"), "True");
    world_pass(&w, 20000);
    assert_str(ready(&w, "status"), "Unknown");
    assert_str(ready(&w, "reason"), "Silent");
    assert_str(ready(&w, "message"), "lastSeen: 2027-01-15T08:00:00Z");
    assert_str(ready(&w, "lastHeartbeatTime"), "2027-01-15T08:00:00Z");
    world_poll(&w, DEVICE_1);
    world_pass(&w, 5000);
    assert_str(ready(&w, "status"), "True");
    world_close(&w);
}

TEST(the_poll_interval_of_the_device_counts)
{
    struct world w;
    world_open(&w);
    world_create(&w, "configmaps", "eve-system",
                 "{'metadata':{'name':'global-options'},"
                 "'data':{'config.timer.config.interval':'600'}}");
    poll_for(&w, 30);
    world_pass(&w, 1700000);
    assert_str(ready(&w, "status"), "True");
    world_create(&w, "configmaps", "site",
                 "{'metadata':{'name':'eve-options'},"
                 "'data':{'config.timer.config.interval':'300'}}");
    world_pass(&w, 10000);
    assert_str(ready(&w, "status"), "Unknown");
    poll_for(&w, 30);
    world_pass(&w, 600000);
    assert_str(ready(&w, "status"), "True");
    world_patch(&w, "devices", "site", "edge-1", NULL,
                "{'metadata':{'annotations':{'eve.lfedge.org/config.timer.config.interval':"
                "'20'}}}");
    world_pass(&w, 10000);
    assert_str(ready(&w, "status"), "Unknown");
    world_close(&w);
}

TEST(a_heartbeat_is_not_a_write)
{
    struct world w;
    world_open(&w);
    poll_for(&w, 60);
    size_t n_writes = w.client.n_writes;
    poll_for(&w, 1700);
    assert_int_equal(w.client.n_writes, n_writes);
    poll_for(&w, 200);
    assert_int_equal(w.client.n_writes, n_writes + 1);
    assert_str(ready(&w, "status"), "True");
    world_close(&w);
}

TEST(a_restart_makes_nobody_unknown_or_ready)
{
    struct world w;
    world_open(&w);
    poll_for(&w, 60);
    int64_t seen_us = last_seen(&w);
    assert_true(seen_us > 0);
    size_t n_writes = w.client.n_writes;
    /* The server is down for an hour. */
    for (int is_crash = 0; is_crash < 2; is_crash++) {
        w.clock.now_us += 3600 * SECOND_US;
        world_restart(&w, is_crash);
        world_pass(&w, 60000);
        assert_str(ready(&w, "status"), "True");
        assert_int_equal(w.client.n_writes, n_writes);
        assert_int_equal(last_seen(&w), seen_us);
    }
    assert_str(world_condition(&w, "devices", "site", "edge-2", "Ready", "reason"), "NeverSeen");
    /* Then it has had its time. */
    world_pass(&w, 150000);
    assert_str(ready(&w, "reason"), "Silent");
    assert_str(ready(&w, "message"), "lastSeen: 2027-01-15T08:00:30Z");
    /* And stays silent over a restart. */
    world_restart(&w, /* is_crash= */ false);
    world_pass(&w, 60000);
    assert_str(ready(&w, "reason"), "Silent");
    assert_str(ready(&w, "message"), "lastSeen: 2027-01-15T08:00:30Z");
    world_close(&w);
}

TEST(what_the_device_said_of_itself_survives)
{
    struct world w;
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoDevice info;
    Eve__Info__MaintenanceModeReason reasons[] = {
        EVE__INFO__MAINTENANCE_MODE_REASON__MAINTENANCE_MODE_REASON_LOW_DISK_SPACE};
    world_open(&w);
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_device__init(&info);
    info.maintenance_mode = true;
    info.maintenance_mode_reasons = reasons;
    info.n_maintenance_mode_reasons = 1;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO;
    m.dinfo = &info;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 20000);
    assert_str(ready(&w, "message"), "maintenance mode: low disk space");
    world_restart(&w, /* is_crash= */ true);
    world_pass(&w, 200000);
    assert_str(ready(&w, "reason"), "Silent");
    world_poll(&w, DEVICE_1);
    world_pass(&w, 5000);
    assert_str(ready(&w, "message"), "maintenance mode: low disk space");
    world_close(&w);
}

/* ---- the checkpoint
 * ------------------------------------------------------------------------------ */

static const char *checkpoint(struct world *w)
{
    return arena_printf(w->arena, "%s/reports", w->directory).p;
}

static void damage(struct world *w, off_t at)
{
    unsigned char byte = 0;
    int fd = open(checkpoint(w), O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0xff;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void) close(fd);
}

TEST(a_damaged_or_missing_checkpoint_takes_up_everything)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    (void) world_send_app(&w, DEVICE_1, APP_1, 6, 0);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 1);
    world_pass(&w, 20000);
    for (int i = 0; i < 3; i++) {
        world_patch(&w, "applications", "site", "web", "status",
                    "{'status':{'state':'','statuses':null}}");
        world_restart(&w, /* is_crash= */ false);
        if (i == 0)
            (void) unlink(checkpoint(&w));
        else if (i == 1)
            damage(&w, 30);
        else
            assert_int_equal(truncate(checkpoint(&w), 60), 0);
        world_restart(&w, /* is_crash= */ true);
        world_pass(&w, 5000);
        const struct json *app = world_get(&w, "applications", "site", "web");
        assert_str(json_str(json_at(app, "status", "state", NULL)), "RUNNING");
        assert_int_equal(json_count(json_at(app, "status", "statuses", NULL)), 2);
    }
    world_close(&w);
}

TEST(a_checkpoint_that_cannot_be_read_is_an_error)
{
    char *error = NULL;
    struct reports *r = NULL;
    struct world w;
    world_open(&w);
    struct reports_options o = {.client = &w.client.client,
                                .roster = w.roster,
                                .clock = &w.clock.clock,
                                .checkpoint_path = w.directory};
    assert_true(reports_create(&o, &r, &error) < 0);
    assert_non_null(error);
    mem_free(error);
    world_close(&w);
}

/* ---- crashes and faults
 * ---------------------------------------------------------------------------- */

static void assert_history(struct world *w, size_t n)
{
    const struct json *app = world_get(w, "applications", "site", "web");
    const struct json *list = json_at(app, "status", "statuses", NULL);
    assert_int_equal(json_count(list), n);
    for (size_t i = 0; i < n; i++)
        assert_str(json_get_str(&list->items[i], STR("state")), i % 2 ? "RUNNING" : "HALTING");
}

TEST(a_restart_at_any_step_loses_and_repeats_nothing)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    for (int i = 0; i < 24; i++) {
        /* At times the record is on disk and the process ends before anybody is told. */
        w.is_not_told = i % 5 == 4;
        (void) world_send_app(&w, DEVICE_1, APP_1, i % 2 ? 7 : 8, i);
        w.is_not_told = false;
        world_pass(&w, i % 3 == 0 ? 0 : i % 3 == 1 ? 1200 : 7000);
        if (i % 2 || i % 5 == 4)
            world_restart(&w, /* is_crash= */ i % 3 != 0 || i % 5 == 4);
    }
    world_pass(&w, 10000);
    assert_history(&w, 24);
    world_close(&w);
}

TEST(failed_writes_are_made_again)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    world_pass(&w, 5000);
    for (int i = 0; i < 10; i++) {
        w.client.n_to_fail = i % 2 ? 3 : 0;
        w.client.n_to_lose = i % 2 ? 0 : 3;
        (void) world_send_app(&w, DEVICE_1, APP_1, i % 2 ? 7 : 8, i);
        world_pass(&w, 30000);
        w.client.n_to_fail = w.client.n_to_lose = 0;
    }
    assert_history(&w, 10);
    assert_true(world_stats(&w).n_failures > 0);
    world_close(&w);
}

TEST(what_could_not_be_written_is_taken_up_after_the_end)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    world_pass(&w, 5000);
    w.client.n_to_fail = 1000;
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 0);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 1);
    world_pass(&w, 20000);
    world_restart(&w, /* is_crash= */ false);
    w.client.n_to_fail = 0;
    world_pass(&w, 5000);
    assert_history(&w, 2);
    world_close(&w);
}

TEST(somebody_elses_writes_meanwhile_are_kept)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 0);
    world_patch(&w, "applications", "site", "web", "status",
                "{'status':{'conditions':[{'type':'Scheduled','status':'True'}]}}");
    world_pass(&w, 5000);
    assert_str(world_condition(&w, "applications", "site", "web", "Scheduled", "status"), "True");
    assert_str(world_condition(&w, "applications", "site", "web", "Ready", "status"), "False");
    world_close(&w);
}

TEST(more_than_the_queue_holds_is_read_from_the_disk)
{
    struct world w;
    world_open(&w);
    world_application(&w, "site", "web", APP_1, "edge-1");
    world_pass(&w, 5000);
    /* Fills the queue, so that what follows finds no room. */
    struct telemetry_record filler = {.stream = TELEMETRY_METRICS};
    char *bytes = arena_zalloc(w.arena, 4 << 20);
    assert_int_equal(uuid_parse(STR(DEVICE_1), &filler.device), 0);
    filler.bytes = str_range(bytes, 4 << 20);
    for (int i = 0; i < 20; i++)
        reports_take(w.reports, &filler);
    assert_true(world_stats(&w).n_queued_bytes <= REPORTS_MAX_QUEUED_BYTES);
    bytes = arena_zalloc(w.arena, 3 << 20);
    filler.bytes = str_range(bytes, 3 << 20);
    while (world_stats(&w).n_queued_bytes + (3 << 20) < REPORTS_MAX_QUEUED_BYTES)
        reports_take(w.reports, &filler);
    for (filler.bytes.n = 1 << 20; filler.bytes.n; filler.bytes.n /= 2)
        reports_take(w.reports, &filler);
    uint64_t n_missed = world_stats(&w).n_missed;
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 0);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 1);
    assert_true(world_stats(&w).n_missed > n_missed);
    world_pass(&w, 5000);
    assert_history(&w, 2);
    assert_int_equal(world_stats(&w).n_queued_bytes, 0);
    world_close(&w);
}
