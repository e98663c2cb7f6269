/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device.h"
#include "logs.h"
#include "loguploader/collector_internal.h"
#include "test.h"

#define APP "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

/* A device with its log directories. */
struct world {
    struct device device;
    struct logs logs; /* of the device: not made by itself */
    struct collector *collector;
};

static void world_init(struct world *w)
{
    log_set_level(-1);
    device_init(&w->device);
    w->logs = (struct logs){.arena = arena_new()};
    (void) snprintf(w->logs.root, sizeof(w->logs.root), "%s",
                    device_path(&w->device, "persist/newlog"));
    w->collector = NULL;
}

static void world_start(struct world *w, const struct collector_options *o)
{
    device_start(&w->device, /* is_simulated= */ true);
    assert_int_equal(
        collector_new(w->device.node, o ? o : &(struct collector_options){0}, &w->collector), 0);
}

static void world_stop(struct world *w)
{
    collector_free(TAKE(w->collector));
    loop_settle(w->device.loop);
    device_stop(&w->device);
}

static void world_done(struct world *w)
{
    arena_free(w->logs.arena);
    device_done(&w->device);
}

static int add(struct world *w, const char *app, const char *content)
{
    return collector_add(w->collector,
                         &(struct collector_line){.app = str_of(app),
                                                  .app_name = str_of(app ? "web" : NULL),
                                                  .source = STR("test"),
                                                  .severity = STR("info"),
                                                  .content = str_of(content)});
}

TEST(lines_become_files_of_newlogds_form)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    assert_int_equal(add(&w, NULL, "one"), 0);
    assert_int_equal(add(&w, NULL, "two \xff \n \"x\""), 0);
    assert_int_equal(add(&w, APP, "mine"), 0);
    assert_str(logs_names(&w.logs, LOG_DEV_UPLOAD), "");
    collector_rotate(w.collector);
    struct logs_lines device = {0}, app = {0};
    logs_collect(&w.logs, LOG_DEV_UPLOAD, false, &device);
    logs_collect(&w.logs, LOG_APP_UPLOAD, false, &app);
    assert_true(device.n == 2 && app.n == 1);
    assert_str(device.items[1].content, "two \xef\xbf\xbd \n \"x\"");
    assert_true(device.items[0].msgid == 1 && device.items[1].msgid == 2 &&
                app.items[0].msgid == 1);
    assert_true(device.items[0].seconds == w.device.clock.now_us / 1000000);
    struct str name = str_trim(logs_names(&w.logs, LOG_APP_UPLOAD));
    struct newlog_head head;
    assert_int_equal(
        newlog_read_head(w.logs.arena, logs_read(&w.logs, LOG_APP_UPLOAD, name), &head), 0);
    assert_str(head.name, "web");
    assert_true(str_starts_with(name, STR("app." APP ".log.")));
    world_stop(&w);
    world_done(&w);
}

TEST(bad_applications_are_refused)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    assert_int_equal(add(&w, "nobody", "x"), -EINVAL);
    assert_int_equal(add(&w, "00000000-0000-0000-0000-000000000000", "x"), -EINVAL);
    world_stop(&w);
    world_done(&w);
}

static bool has_file(void *arg)
{
    struct world *w = arg;
    w->device.clock.now_us += 1000000;
    return logs_names(&w->logs, LOG_DEV_UPLOAD).n > 0;
}

TEST(age_rotates)
{
    struct world w;
    world_init(&w);
    world_start(&w, &(struct collector_options){.rotate_s = 1});
    assert_int_equal(add(&w, NULL, "one"), 0);
    device_run_until(&w.device, has_file, &w);
    world_stop(&w);
    world_done(&w);
}

TEST(size_rotates)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    char *content = mem_zalloc(5001);
    memset(content, 'x', 5000);
    for (int i = 0; i < 120; i++)
        assert_int_equal(add(&w, NULL, content), 0);
    mem_free(content);
    struct logs_lines lines = {0};
    logs_collect(&w.logs, LOG_DEV_UPLOAD, false, &lines);
    assert_true(lines.n >= 100 && lines.n < 120);
    world_stop(&w);
    logs_collect(&w.logs, LOG_DEV_UPLOAD, true, &lines);
    world_done(&w);
}

/* ---- lives that end without a word ---------------------------------------------------------- */

struct death {
    struct world *world;
    int first, n_lines;
    bool rotates;
};

static void die_after_lines(void *arg)
{
    struct death *d = arg;
    world_start(d->world, NULL);
    for (int i = 0; i < d->n_lines; i++) {
        char text[32];
        (void) snprintf(text, sizeof(text), "line %d", d->first + i);
        if (add(d->world, i % 3 ? NULL : APP, text) < 0)
            _exit(5);
        if (d->rotates && i == d->n_lines / 2)
            collector_rotate(d->world->collector);
    }
    _exit(9);
}

TEST(lines_survive_and_message_ids_go_on)
{
    struct world w;
    world_init(&w);
    struct logs_lines device = {0}, app = {0};
    for (int life = 0; life < 6; life++) {
        struct death d = {&w, life * 30, 30, life % 2};
        assert_int_equal(logs_in_child(die_after_lines, &d), 9);
        struct death silent = {.world = &w}; /* packs what there is, says nothing */
        assert_int_equal(logs_in_child(die_after_lines, &silent), 9);
        if (life == 3) /* the uploader has been there */
            logs_collect(&w.logs, LOG_DEV_UPLOAD, true, &device);
    }
    world_start(&w, NULL);
    world_stop(&w);
    logs_collect(&w.logs, LOG_DEV_UPLOAD, true, &device);
    logs_collect(&w.logs, LOG_APP_UPLOAD, true, &app);
    assert_true(device.n == 120 && app.n == 60);
    for (size_t i = 0; i < device.n; i++)
        assert_int_equal(device.items[i].msgid, i + 1);
    for (size_t i = 0; i < app.n; i++) {
        char expected[32];
        (void) snprintf(expected, sizeof(expected), "line %zu", i * 3);
        assert_int_equal(app.items[i].msgid, i + 1);
        assert_str(app.items[i].content, expected);
    }
    world_done(&w);
}

TEST(a_clock_that_was_set_back_gives_no_name_twice)
{
    struct world w;
    world_init(&w);
    struct logs_lines lines = {0};
    for (int life = 0; life < 5; life++) {
        world_start(&w, NULL);
        assert_int_equal(add(&w, NULL, "x"), 0);
        world_stop(&w);
        w.device.clock.now_us -= 3600 * (int64_t) 1000000;
    }
    logs_collect(&w.logs, LOG_DEV_UPLOAD, false, &lines);
    assert_int_equal(lines.n, 5);
    for (size_t i = 0; i < lines.n; i++)
        assert_int_equal(lines.items[i].msgid, i + 1);
    world_done(&w);
}

/* ---- room ----------------------------------------------------------------------------------- */

static void set_quota(struct world *w)
{
    assert_int_equal(
        items_set(w->device.node->items, STR("newlog.gzipfiles.ondisk.maxmegabytes"), STR("10")),
        0);
}

static void fill(struct world *w, enum log_directory d, int n, int first)
{
    for (int i = 0; i < n; i++) {
        char name[80];
        (void) snprintf(name, sizeof(name), "app." APP ".log.%d.gz", first + i);
        logs_put_size(&w->logs, d, name, 1000000);
    }
}

TEST(what_was_sent_makes_room)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    set_quota(&w);
    fill(&w, LOG_KEEP_SENT, 6, 100);
    fill(&w, LOG_FAILED, 3, 200);
    fill(&w, LOG_APP_UPLOAD, 3, 300);
    w.collector->counts.disk_bytes = 12000000; /* as if it had made them */
    assert_int_equal(add(&w, NULL, "x"), 0);
    collector_rotate(w.collector);
    /* Down to 10 MB less a little. */
    assert_false(logs_has(&w.logs, LOG_KEEP_SENT, "app." APP ".log.102.gz"));
    assert_true(logs_has(&w.logs, LOG_KEEP_SENT, "app." APP ".log.103.gz"));
    assert_true(logs_has(&w.logs, LOG_FAILED, "app." APP ".log.200.gz"));
    assert_int_equal(w.collector->counts.n_removed, 0);
    assert_int_equal(add(&w, NULL, "y"), 0);
    fill(&w, LOG_APP_UPLOAD, 8, 300);
    w.collector->counts.disk_bytes = 20000000;
    collector_rotate(w.collector);
    assert_str(logs_names(&w.logs, LOG_KEEP_SENT), "");
    assert_false(logs_has(&w.logs, LOG_FAILED, "app." APP ".log.200.gz"));
    assert_true(w.collector->counts.n_removed >= 1);
    assert_true(logs_has(&w.logs, LOG_APP_UPLOAD, "app." APP ".log.300.gz"));
    world_stop(&w);
    world_done(&w);
}

TEST(the_oldest_unsent_files_go_last_and_are_counted)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    set_quota(&w);
    fill(&w, LOG_KEEP_SENT, 2, 500);
    fill(&w, LOG_FAILED, 2, 400);
    fill(&w, LOG_APP_UPLOAD, 5, 300);
    for (int i = 0; i < 7; i++) {
        char name[40];
        (void) snprintf(name, sizeof(name), "dev.log.%d.gz", 100 + i);
        logs_put_size(&w.logs, LOG_DEV_UPLOAD, name, 1000000);
    }
    w.collector->counts.disk_bytes = 16000000;
    assert_int_equal(add(&w, NULL, "taken"), 0);
    collector_rotate(w.collector);
    assert_str(logs_names(&w.logs, LOG_KEEP_SENT), "");
    assert_str(logs_names(&w.logs, LOG_FAILED), "");
    /* Applications' before the device's, whatever their age. */
    assert_false(logs_has(&w.logs, LOG_APP_UPLOAD, "app." APP ".log.302.gz"));
    assert_true(logs_has(&w.logs, LOG_APP_UPLOAD, "app." APP ".log.303.gz"));
    assert_true(logs_has(&w.logs, LOG_DEV_UPLOAD, "dev.log.100.gz"));
    assert_int_equal(w.collector->counts.n_removed, 5);
    /* Only those of the device are left, and lines are still taken. */
    (void) logfiles_remove_oldest(w.logs.root, LOG_APP_UPLOAD, 0, 5);
    for (int i = 0; i < 5; i++) {
        char name[40];
        (void) snprintf(name, sizeof(name), "dev.log.%d.gz", 200 + i);
        logs_put_size(&w.logs, LOG_DEV_UPLOAD, name, 1000000);
    }
    w.collector->counts.disk_bytes = 12000000;
    assert_int_equal(add(&w, NULL, "taken, too"), 0);
    collector_rotate(w.collector);
    assert_false(logs_has(&w.logs, LOG_DEV_UPLOAD, "dev.log.102.gz"));
    assert_true(logs_has(&w.logs, LOG_DEV_UPLOAD, "dev.log.103.gz"));
    assert_int_equal(w.collector->counts.n_removed, 8);
    assert_int_equal(w.collector->counts.n_refused, 0);
    world_stop(&w);
    world_done(&w);
}

TEST(lines_of_a_service_are_taken_as_far_as_its_level_says)
{
    static const struct {
        const char *item, *value;
        bool passes[4]; /* err, warning, info, debug */
    } cases[] = {
        {NULL, NULL, {true, true, true, false}},
        {"debug.default.remote.loglevel", "warning", {true, true, false, false}},
        {"agent.nim.remote.loglevel", "error", {true, false, false, false}},
        {"agent.nim.remote.loglevel", "none", {false, false, false, false}},
        {"agent.nim.remote.loglevel", "debug", {true, true, true, false}},
        {"agent.nim.loglevel", "trace", {true, true, true, true}},
        {"agent.nim.loglevel", "warn", {true, true, false, false}},
        {"agent.other.loglevel", "none", {true, true, false, false}},
    };
    static const char *const severities[] = {"err", "warning", "info", "debug"};
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        if (cases[i].item)
            assert_int_equal(
                items_set(w.device.node->items, str_of(cases[i].item), str_of(cases[i].value)), 0);
        for (size_t k = 0; k < N_ELEMENTS(severities); k++) {
            const uint64_t before = w.collector->counts.n_events[0];
            struct collector_line line = {.source = STR("nim"),
                                          .severity = str_of(severities[k]),
                                          .content = STR("x"),
                                          .is_of_service = true};
            assert_int_equal(collector_add(w.collector, &line), 0);
            assert_int_equal(w.collector->counts.n_events[0] - before, cases[i].passes[k]);
            line.is_of_service = false;
            assert_int_equal(collector_add(w.collector, &line), 0);
            assert_int_equal(w.collector->counts.n_events[0] - before, cases[i].passes[k] + 1);
        }
    }
    world_stop(&w);
    world_done(&w);
}

/* ---- topics --------------------------------------------------------------------------------- */

static bool is_skipped(void *arg)
{
    struct world *w = arg;
    struct uuid app;
    (void) uuid_parse(STR(APP), &app);
    return collector_stream_of(w->collector, &app)->is_skipped;
}

TEST(an_application_whose_logs_are_disabled_is_not_uploaded)
{
    struct world w;
    world_init(&w);
    world_start(&w, NULL);
    struct publication *apps;
    const struct pubsub_name name = {.agent = STR("zedagent"), .topic = STR("AppInstanceConfig")};
    assert_int_equal(publication_new(w.device.node->pubsub, &name, &apps), 0);
    assert_int_equal(add(&w, APP, "wanted"), 0);
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        publication_publish(apps, STR(APP),
                            json_parse_quick(a, STR("{\"UUIDandVersion\":{\"UUID\":\"" APP
                                                    "\"},\"DisplayName\":\"shop\","
                                                    "\"DisableLogs\":true}"))),
        0);
    device_run_until(&w.device, is_skipped, &w);
    assert_int_equal(add(&w, APP, "not wanted"), 0);
    collector_rotate(w.collector);
    struct logs_lines sent = {0}, kept = {0};
    logs_collect(&w.logs, LOG_APP_UPLOAD, false, &sent);
    logs_collect(&w.logs, LOG_KEEP_SENT, false, &kept);
    assert_true(sent.n == 1 && kept.n == 1);
    assert_true(str_starts_with(logs_names(&w.logs, LOG_KEEP_SENT), STR("app.skipTx." APP)));
    publication_free(apps);
    world_stop(&w);
    world_done(&w);
}

/* ---- syslog --------------------------------------------------------------------------------- */

static bool has_two(void *arg)
{
    struct world *w = arg;
    return w->collector->counts.n_syslog == 2;
}

TEST(syslog_is_taken)
{
    struct world w;
    world_init(&w);
    char path[96];
    (void) snprintf(path, sizeof(path), "%s/log", w.device.root);
    world_start(&w, &(struct collector_options){.syslog_path = path});
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    static const char *const lines[] = {"<30>Jan  2 15:04:05 crond[7]: tick", "<31>x: too fine",
                                        "<27>Jan  2 15:04:06 crond: tock"};
    for (size_t i = 0; i < N_ELEMENTS(lines); i++)
        assert_int_equal(sendto(fd, lines[i], strlen(lines[i]), 0, (struct sockaddr *) &address,
                                sizeof(address)),
                         strlen(lines[i]));
    (void) close(fd);
    device_run_until(&w.device, has_two, &w);
    world_stop(&w);
    assert_int_not_equal(access(path, F_OK), 0);
    struct logs_lines taken = {0};
    logs_collect(&w.logs, LOG_DEV_UPLOAD, false, &taken);
    assert_int_equal(taken.n, 2);
    assert_str(taken.items[0].source, "crond");
    assert_str(taken.items[0].iid, "7");
    assert_str(taken.items[1].severity, "err");
    assert_str(taken.items[1].iid, "");
    world_done(&w);
}
