/* SPDX-License-Identifier: Apache-2.0 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "device/delivery.h"
#include "device/endpoint.h"
#include "test.h"
#include "world.h"

#define EVE "eve.lfedge.org/v1beta1/"
#define CONFIGS "deviceconfigs.eve.lfedge.org"
#define SECOND_MS ((int64_t) 1000)
#define N_SEEDS 20

/* ---- the roster, which hears of everything first --------------------------------------------- */

static void *feed_start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) q;
    return ctx->devices->roster;
}

static void feed(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) q;
    roster_on_event(state, e);
}

static int64_t nothing(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    (void) ctx;
    (void) key;
    return 0;
}

static const struct controller feeder = {
    .name = "roster", .start = feed_start, .on_event = feed, .reconcile = nothing};
static const struct controller *const table[] = {&feeder, &delivery_controller, NULL};

/* ---- the scene ------------------------------------------------------------------------------- */

/* The certificates outlive restarts, as their files do. */
static struct {
    char directory[40];
    struct device_api api;
} scene;

static void begin(struct world *w)
{
    scene.api.client = &w->api.client;
    scene.api.clock = &w->clock.clock;
    scene.api.roster = roster_new(&(struct roster_options){.clock = &w->clock.clock});
    w->ctx.devices = &scene.api;
}

static void end(struct world *w)
{
    (void) w;
    roster_free(scene.api.roster);
}

static void make_root(struct arena *a)
{
    const struct pki_cert_options root = {
        .common_name = STR("root"), .is_ca = true, .valid_days = 3650, .backdate_s = 200000};
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&root, key, NULL, NULL);
    assert_int_equal(mkdir(arena_printf(a, "%s/pki", scene.directory).p, 0700), 0);
    assert_int_equal(pki_key_save(key, arena_printf(a, "%s/pki/root-key.pem", scene.directory).p),
                     0);
    assert_int_equal(
        pki_cert_save(cert, arena_printf(a, "%s/pki/root-certificate.pem", scene.directory).p), 0);
}

static void open_scene(struct world *w)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    log_set_level(LOG_ERROR);
    (void) snprintf(scene.directory, sizeof(scene.directory), "/tmp/seth-delivery-XXXXXX");
    assert_non_null(mkdtemp(scene.directory));
    make_root(a);
    const struct controller_certs_options certs = {.data_dir = scene.directory,
                                                   .clock = &clock_system,
                                                   .signing_cert_file = "",
                                                   .signing_key_file = "",
                                                   .ecdh_cert_file = "",
                                                   .ecdh_key_file = "",
                                                   .lifetime_s = (int64_t) 3000 * 86400};
    assert_int_equal(controller_certs_open(&certs, &scene.api.certs, &error), 0);
    world_init_shared(w, world_seed(), table, begin, end);
    assert_int_equal(world_create(w, EVE "devices", "n", "{'metadata':{'name':'d'}}"), 0);
}

static int remove_entry(const char *name, const struct stat *st, int type, struct FTW *at)
{
    (void) st;
    (void) type;
    (void) at;
    return remove(name);
}

static void close_scene(struct world *w)
{
    world_done(w);
    controller_certs_free(scene.api.certs);
    (void) nftw(scene.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
#define SCENE(w) \
    CLEANUP(close_scene) struct world w; \
    open_scene(&w)

static void make_config(struct world *w)
{
    assert_int_equal(
        world_create(w, EVE "deviceconfigs", "n",
                     "{'metadata':{'name':'d'},'spec':{'config':{'deviceName':'first'}}}"),
        0);
}

static void edit(struct world *w, const char *device_name)
{
    ARENA_AUTO a = arena_new();
    const struct str patch =
        arena_printf(a, "{'spec':{'config':{'deviceName':'%s'}}}", device_name);
    assert_int_equal(world_patch(w, EVE "deviceconfigs", "n", "d", patch.p), 0);
}

static struct str status_of(struct world *w, const char *key)
{
    return world_text(w, CONFIGS, "n", "d", "status", key);
}

static int64_t version_of(struct world *w)
{
    int64_t n = 0;
    return str_to_i64(status_of(w, "version"), &n) == 0 ? n : 0;
}

static struct str delivered(struct world *w, const char *key)
{
    JSON_FOR_EACH_ITEM (world_at(w, CONFIGS, "n", "d", "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Delivered"))
            return json_get_str(c, str_of(key));
    return STR_NONE;
}

static bool is_settled(struct world *w)
{
    const struct json *generation = world_at(w, CONFIGS, "n", "d", "metadata", "generation", NULL);
    const struct json *observed =
        world_at(w, CONFIGS, "n", "d", "status", "observedGeneration", NULL);
    return generation && observed && json_equal(generation, observed) &&
           status_of(w, "hash").n == DEVICE_CONFIG_HASH_BYTES;
}

/* What reports write when the device fetches. */
static void fetch(struct world *w)
{
    ARENA_AUTO a = arena_new();
    char *text = arena_strz(
        a, arena_printf(a,
                        "{\"status\":{\"config\":{\"version\":\"%.*s\",\"hash\":\"%.*s\","
                        "\"renderedAt\":\"%.*s\"}}}",
                        STR_ARG(status_of(w, "version")), STR_ARG(status_of(w, "hash")),
                        STR_ARG(status_of(w, "renderedAt"))));
    const struct kube_request r = {.verb = VERB_PATCH,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = STR("devices"),
                                   .namespace = STR("n"),
                                   .name = STR("d"),
                                   .subresource = STR("status"),
                                   .content_type = STR("application/merge-patch+json"),
                                   .body = json_parse_quick(a, str_of(text))};
    assert_int_equal(fake_request(&w->api, a, &r, NULL), 0);
}

static void rotate(void)
{
    char *error = NULL;
    bool is_changed = false;
    assert_int_equal(
        controller_certs_rotate(scene.directory, CONTROLLER_SIGNING, 86400 * 3000, &error), 0);
    assert_int_equal(controller_certs_reload(scene.api.certs, &is_changed, &error), 0);
    assert_true(is_changed);
    roster_forget_configs(scene.api.roster);
}

/* ---- what it does ---------------------------------------------------------------------------- */

TEST(every_change_has_a_version_a_time_and_a_hash)
{
    SCENE(w);
    make_config(&w);
    world_pass(&w, SECOND_MS);
    assert_true(is_settled(&w));
    assert_int_equal(version_of(&w), 1);
    assert_str(status_of(&w, "renderedAt"), "2027-01-15T08:00:00Z");
    assert_str(delivered(&w, "status"), "False");
    assert_str(delivered(&w, "reason"), "Waiting");
    ARENA_AUTO a = arena_new();
    const struct str before = arena_str(a, status_of(&w, "hash"));
    world_pass(&w, 60 * SECOND_MS);
    edit(&w, "second");
    world_pass(&w, SECOND_MS);
    assert_true(is_settled(&w));
    assert_int_equal(version_of(&w), 2);
    assert_str(status_of(&w, "renderedAt"), "2027-01-15T08:01:01Z");
    assert_false(str_eq(status_of(&w, "hash"), before));
}

TEST(nothing_is_written_that_is_so_already)
{
    SCENE(w);
    make_config(&w);
    world_pass(&w, SECOND_MS);
    const size_t n_writes = w.api.n_writes;
    world_restart(&w);
    world_pass(&w, 60 * SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes);
    assert_int_equal(
        world_patch(&w, EVE "deviceconfigs", "n", "d", "{'metadata':{'labels':{'a':'b'}}}"), 0);
    fetch(&w);
    world_pass(&w, 60 * SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes + 2); /* the patches themselves */
    assert_int_equal(version_of(&w), 1);
}

TEST(one_change_is_one_write)
{
    SCENE(w);
    make_config(&w);
    world_pass(&w, SECOND_MS);
    const size_t n_writes = w.api.n_writes;
    edit(&w, "second");
    world_pass(&w, 60 * SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes + 2);
}

TEST(other_certificates_make_another_hash_and_no_other_version)
{
    SCENE(w);
    ARENA_AUTO a = arena_new();
    make_config(&w);
    world_pass(&w, SECOND_MS);
    const struct str before = arena_str(a, status_of(&w, "hash"));
    const struct str rendered = arena_str(a, status_of(&w, "renderedAt"));
    rotate();
    world_pass(&w, 60 * SECOND_MS);
    assert_false(str_eq(status_of(&w, "hash"), before));
    assert_int_equal(version_of(&w), 1);
    assert_true(str_eq(status_of(&w, "renderedAt"), rendered));
    assert_str(delivered(&w, "reason"), "Waiting");
}

TEST(a_configuration_may_be_there_before_its_device)
{
    SCENE(w);
    assert_int_equal(world_delete(&w, EVE "devices", "n", "d", NULL), 0);
    make_config(&w);
    world_pass(&w, 60 * SECOND_MS);
    assert_int_equal(status_of(&w, "hash").n, 0);
    assert_int_equal(world_create(&w, EVE "devices", "n", "{'metadata':{'name':'d'}}"), 0);
    world_pass(&w, SECOND_MS);
    assert_true(is_settled(&w));
}

TEST(versions_and_times_go_on_when_it_is_deleted_and_made_again)
{
    SCENE(w);
    ARENA_AUTO a = arena_new();
    make_config(&w);
    world_pass(&w, SECOND_MS);
    edit(&w, "second");
    world_pass(&w, SECOND_MS);
    fetch(&w);
    world_pass(&w, SECOND_MS);
    const struct str rendered = arena_str(a, status_of(&w, "renderedAt"));
    assert_int_equal(world_delete(&w, EVE "deviceconfigs", "n", "d", NULL), 0);
    world_pass(&w, SECOND_MS);
    world_restart(&w);
    w.clock.now_us -= (int64_t) 3600 * 1000000; /* and the clock is set back */
    make_config(&w);
    world_pass(&w, SECOND_MS);
    assert_true(is_settled(&w));
    assert_int_equal(version_of(&w), 3);
    assert_true(str_eq(status_of(&w, "renderedAt"), rendered));
}

TEST(a_whole_configuration_keeps_its_own_time_and_what_follows_is_not_older)
{
    SCENE(w);
    assert_int_equal(
        world_create(&w, EVE "deviceconfigs", "n",
                     "{'metadata':{'name':'d','annotations':{'eve.lfedge.org/composed':'false'}},"
                     "'spec':{'config':{'id':{'version':'of mine'},"
                     "'configTimestamp':'2030-01-01T00:00:00Z'}}}"),
        0);
    world_pass(&w, SECOND_MS);
    assert_int_equal(version_of(&w), 1);
    assert_str(status_of(&w, "renderedAt"), "2030-01-01T00:00:00Z");
    assert_int_equal(world_patch(&w, EVE "deviceconfigs", "n", "d",
                                 "{'metadata':{'annotations':{'eve.lfedge.org/composed':null}},"
                                 "'spec':{'config':{'deviceName':'x'}}}"),
                     0);
    world_pass(&w, SECOND_MS);
    assert_int_equal(version_of(&w), 2);
    assert_str(status_of(&w, "renderedAt"), "2030-01-01T00:00:00Z");
}

TEST(what_cannot_be_read_says_so_and_is_mended_by_an_edit)
{
    SCENE(w);
    make_config(&w);
    world_pass(&w, SECOND_MS);
    assert_int_equal(world_patch(&w, EVE "deviceconfigs", "n", "d",
                                 "{'spec':{'config':{'configTimestamp':'not a time'}}}"),
                     0);
    world_pass(&w, SECOND_MS);
    assert_str(delivered(&w, "reason"), "Undeliverable");
    assert_true(str_find_str(delivered(&w, "message"), STR("onfigTimestamp")) >= 0);
    assert_int_equal(version_of(&w), 1);
    const size_t n_writes = w.api.n_writes;
    world_restart(&w);
    world_pass(&w, 60 * SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes);
    assert_int_equal(world_patch(&w, EVE "deviceconfigs", "n", "d",
                                 "{'spec':{'config':{'configTimestamp':null}}}"),
                     0);
    world_pass(&w, SECOND_MS);
    assert_str(delivered(&w, "reason"), "Waiting");
    assert_int_equal(version_of(&w), 2);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Between two steps everything comes to rest, or, with restarts, nothing does before the restart.
 */
static void rest(struct world *w, bool restarts)
{
    if (restarts) {
        world_pass(w, 1);
        world_restart(w);
    }
    world_pass(w, 600 * SECOND_MS);
}

/* A life with five changes. */
static void live_through(struct world *w, bool restarts)
{
    rest(w, restarts);
    make_config(w);
    rest(w, restarts);
    edit(w, "second");
    rest(w, restarts);
    fetch(w);
    edit(w, "third");
    rest(w, restarts);
    fetch(w);
    rest(w, restarts);
    assert_int_equal(world_delete(w, EVE "deviceconfigs", "n", "d", NULL), 0);
    rest(w, restarts);
    make_config(w);
    rest(w, restarts);
    edit(w, "last");
    rest(w, restarts);
}

static void check_end(struct world *w)
{
    assert_true(is_settled(w));
    assert_int_equal(version_of(w), 5);
    assert_str(delivered(w, "reason"), "Waiting");
}

TEST(a_restart_at_every_step_makes_no_difference)
{
    SCENE(w);
    live_through(&w, /* restarts= */ true);
    check_end(&w);
}

TEST(requests_that_fail_or_whose_answers_are_lost_count_nothing_twice)
{
    for (unsigned i = 0; i < N_SEEDS; i++) {
        SCENE(w);
        w.api.fail_percent = 20;
        w.api.lose_percent = 20;
        w.repeat_percent = 20;
        live_through(&w, /* restarts= */ i % 2);
        check_end(&w);
    }
}

TEST(events_that_are_lost_are_made_up_for_at_the_next_start)
{
    SCENE(w);
    make_config(&w);
    world_pass(&w, SECOND_MS);
    w.drop_percent = 100;
    edit(&w, "second");
    world_pass(&w, 60 * SECOND_MS);
    assert_false(is_settled(&w));
    w.drop_percent = 0;
    world_restart(&w);
    world_pass(&w, SECOND_MS);
    assert_true(is_settled(&w));
    assert_int_equal(version_of(&w), 2);
}
