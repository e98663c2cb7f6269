/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/gc.h"
#include "controllers/protection.h"
#include "volumes/volumes.h"
#include "world.h"

#define GROUP "eve.lfedge.org/v1beta1/"
#define APPLICATIONS GROUP "applications"
#define DEVICES GROUP "devices"
#define VOLUMES GROUP "volumes"
#define CLAIMS "v1/persistentvolumeclaims"
#define CLASSES "storage.k8s.io/v1/storageclasses"

static const struct controller *const table[] = {&volumes_controller, &protection_controller,
                                                 &gc_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, table); \
    make_class(&w)

/* ---- what users do --------------------------------------------------------------------------- */

static void make_class(struct world *w)
{
    assert_int_equal(
        world_create(w, CLASSES, NULL, "{'metadata':{'name':'blank'},'provisioner':'eve'}"), 0);
}

static void make_device(struct world *w, const char *name)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        world_create(w, DEVICES, "n", arena_printf(a, "{'metadata':{'name':'%s'}}", name).p), 0);
}

static void make_claim(struct world *w, const char *name, const char *class)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a,
        "{'metadata':{'name':'%s'},'spec':{'storageClassName':'%s','accessModes':['ReadWriteOnce'],"
        "'resources':{'requests':{'storage':'1Gi'}}}}",
        name, class);
    assert_int_equal(world_create(w, CLAIMS, "n", text.p), 0);
}

static void make_application(struct world *w, const char *name, const char *claim)
{
    ARENA_AUTO a = arena_new();
    const struct str text =
        arena_printf(a,
                     "{'metadata':{'name':'%s'},'spec':{'volumes':[{'name':'data',"
                     "'persistentVolumeClaim':{'claimName':'%s'}}]}}",
                     name, claim);
    assert_int_equal(world_create(w, APPLICATIONS, "n", text.p), 0);
}

static void make_own(struct world *w, const char *name)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a,
        "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Application','metadata':{'name':'%s'},"
        "'spec':{'volumes':[{'name':'data','ephemeral':{'volumeClaimTemplate':{"
        "'metadata':{'labels':{'x':'y'}},'spec':{'storageClassName':'blank','accessModes':["
        "'ReadWriteOnce'],'resources':{'requests':{'storage':'2Gi'}}}}}}]}}",
        name);
    assert_int_equal(world_create(w, APPLICATIONS, "n", text.p), 0);
}

static void schedule(struct world *w, const char *application, const char *device)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(a, "{'status':{'device':'%s'}}", device);
    assert_int_equal(world_patch(w, APPLICATIONS, "n", application, text.p), 0);
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* "<claim> on <device> for <application>" of all Volumes, sorted; by the claim alone. */
struct shown {
    struct arena *arena;
    struct str lines[32];
    size_t n;
};

static void take(void *ctx, struct str collection, const struct json *o)
{
    struct shown *s = ctx;
    const struct json *spec = json_get(o, STR("spec"));
    if (!str_is(collection, "volumes.eve.lfedge.org"))
        return;
    assert_true(s->n < N_ELEMENTS(s->lines));
    s->lines[s->n++] = arena_printf(
        s->arena, "%.*s on %.*s for %.*s", STR_ARG(json_get_str(spec, STR("claim"))),
        STR_ARG(json_get_str(spec, STR("device"))),
        STR_ARG(json_get(spec, STR("application")) ? json_get_str(spec, STR("application"))
                                                   : STR("nobody")));
}

static struct str volumes_of(struct world *w, struct arena *a)
{
    struct shown s = {.arena = a};
    BUF_AUTO b = {0};
    fake_each(&w->api, take, &s);
    for (size_t i = 0; i < s.n; i++) {
        size_t least = i;
        for (size_t k = i + 1; k < s.n; k++)
            if (str_cmp(s.lines[k], s.lines[least]) < 0)
                least = k;
        const struct str line = s.lines[least];
        s.lines[least] = s.lines[i];
        s.lines[i] = line;
        buf_printf(&b, "%s%.*s", i ? ", " : "", STR_ARG(line));
    }
    return arena_str(a, buf_str(&b));
}

static void assert_volumes(struct world *w, const char *expected)
{
    ARENA_AUTO a = arena_new();
    assert_str(volumes_of(w, a), expected);
}

static void assert_phase(struct world *w, const char *claim, const char *phase)
{
    assert_str(world_text(w, "persistentvolumeclaims", "n", claim, "status", "phase"), phase);
}

static struct str volume_name(struct world *w, const char *claim)
{
    return world_text(w, "persistentvolumeclaims", "n", claim, "spec", "volumeName");
}

struct told {
    const char *reason;
    int64_t n;
};

static void count_told(void *ctx, struct str collection, const struct json *o)
{
    struct told *t = ctx;
    if (str_is(collection, "events") && str_is(json_get_str(o, STR("reason")), t->reason))
        t->n += json_get_int(o, STR("count"), 0);
}

static int64_t told(struct world *w, const char *reason)
{
    struct told t = {reason, 0};
    fake_each(&w->api, count_told, &t);
    return t.n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_claim_waits_for_who_uses_it)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    world_pass(&w, 5000);
    assert_phase(&w, "c", "Pending");
    assert_int_equal(told(&w, "WaitForFirstConsumer"), 0);
    world_pass(&w, 3600000);
    assert_int_equal(told(&w, "WaitForFirstConsumer"), 1);
    make_application(&w, "a", "c");
    world_pass(&w, 1000);
    assert_phase(&w, "c", "Pending");
    assert_volumes(&w, "");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for a");
    assert_phase(&w, "c", "Bound");
    assert_int_equal(told(&w, "ProvisioningSucceeded"), 1);
    const struct str name = volume_name(&w, "c");
    ARENA_AUTO a = arena_new();
    const struct json *volume =
        fake_get(&w.api, "volumes.eve.lfedge.org", "n", arena_strz(a, name));
    assert_non_null(volume);
    assert_true(json_str(json_at(volume, "status", "uuid", NULL)).n > 0);
    const struct json *owner = &json_at(volume, "metadata", "ownerReferences", NULL)->items[0];
    assert_true(
        str_eq(json_get_str(owner, STR("uid")), world_uid(&w, "persistentvolumeclaims", "n", "c")));
    assert_true(json_get_bool(owner, STR("controller"), false));
    assert_str(json_str(world_at(&w, "persistentvolumeclaims", "n", "c", "status", "capacity",
                                 "storage", NULL)),
               "1Gi");
}

TEST(nothing_is_written_when_nothing_changes)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    make_own(&w, "b");
    schedule(&w, "a", "d");
    schedule(&w, "b", "d");
    world_pass(&w, 60000);
    const size_t n_writes = w.api.n_writes;
    world_restart(&w);
    assert_int_equal(world_patch(&w, APPLICATIONS, "n", "a", "{'status':{'state':'RUNNING'}}"), 0);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'status':{'x':'y'}}"), 0);
    world_pass(&w, 3600000);
    assert_int_equal(w.api.n_writes, n_writes + 2);
}

TEST(data_stays_when_its_application_goes)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    const struct str name = volume_name(&w, "c");
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 60000);
    assert_volumes(&w, "c on d for nobody");
    assert_phase(&w, "c", "Bound");
    make_application(&w, "b", "c");
    schedule(&w, "b", "d");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for b");
    assert_true(str_eq(name, volume_name(&w, "c")));
    /* Both use it, and the one that had it keeps it. */
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for b");
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "b", NULL), 0);
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for a");
}

TEST(a_claim_takes_its_volumes_along)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    assert_int_equal(world_delete(&w, CLAIMS, "n", "c", NULL), 0);
    world_pass(&w, 60000);
    assert_volumes(&w, "");
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "c"));
}

TEST(a_device_takes_its_volumes_along)
{
    WORLD;
    make_device(&w, "d");
    make_device(&w, "e");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    ARENA_AUTO a = arena_new();
    const struct str before = arena_str(a, volume_name(&w, "c"));
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    world_pass(&w, 60000);
    assert_volumes(&w, "");
    assert_phase(&w, "c", "Lost");
    assert_int_equal(told(&w, "ClaimLost"), 1);
    schedule(&w, "a", "e");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on e for a");
    assert_phase(&w, "c", "Bound");
    assert_false(str_eq(before, volume_name(&w, "c")));
}

/* Another Device of the same name has nothing of what the first had. */
TEST(a_device_made_again_begins_anew)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    ARENA_AUTO a = arena_new();
    const char *name = arena_strz(a, volume_name(&w, "c"));
    const struct str uid = arena_str(a, world_uid(&w, "volumes.eve.lfedge.org", "n", name));
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    make_device(&w, "d");
    world_pass(&w, 60000);
    assert_volumes(&w, "c on d for a");
    assert_false(str_eq(uid, world_uid(&w, "volumes.eve.lfedge.org", "n", name)));
}

TEST(one_claim_on_two_devices_has_two_volumes)
{
    WORLD;
    make_device(&w, "d");
    make_device(&w, "e");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    make_application(&w, "b", "c");
    schedule(&w, "a", "d");
    schedule(&w, "b", "e");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for a, c on e for b");
    /* What is left behind on a device that is still there is the user's data. */
    schedule(&w, "b", "d");
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for a, c on e for nobody");
}

TEST(claims_of_others_are_left_alone)
{
    WORLD;
    assert_int_equal(
        world_create(&w, CLASSES, NULL, "{'metadata':{'name':'other'},'provisioner':'x.org/y'}"),
        0);
    make_device(&w, "d");
    make_claim(&w, "c", "other");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 3600000);
    assert_volumes(&w, "");
    assert_phase(&w, "c", "Pending");
    assert_int_equal(fake_count(&w.api, "events"), 0);
}

TEST(a_class_may_come_later)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "late");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 60000);
    assert_volumes(&w, "");
    assert_true(told(&w, "ProvisioningFailed") > 0);
    assert_int_equal(
        world_create(&w, CLASSES, NULL, "{'metadata':{'name':'late'},'provisioner':'eve'}"), 0);
    world_pass(&w, 1000);
    assert_volumes(&w, "c on d for a");
}

TEST(a_volume_somebody_made_is_not_taken)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "c", "blank");
    make_application(&w, "a", "c");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    ARENA_AUTO a = arena_new();
    const char *name = arena_strz(a, volume_name(&w, "c"));
    assert_int_equal(world_delete(&w, VOLUMES, "n", name, NULL), 0);
    assert_int_equal(
        world_create(&w, VOLUMES, "n",
                     arena_printf(a, "{'metadata':{'name':'%s'},'spec':{'claim':'z'}}", name).p),
        0);
    world_pass(&w, 60000);
    assert_volumes(&w, "z on  for nobody");
    assert_true(told(&w, "ProvisioningFailed") > 0);
    assert_int_equal(world_delete(&w, VOLUMES, "n", name, NULL), 0);
    world_pass(&w, 120000);
    assert_volumes(&w, "c on d for a");
}

/* ---- claims of an Application's own ---------------------------------------------------------- */

TEST(an_application_has_claims_of_its_own)
{
    WORLD;
    make_device(&w, "d");
    make_own(&w, "a");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    const struct json *claim = fake_get(&w.api, "persistentvolumeclaims", "n", "a-data");
    assert_non_null(claim);
    assert_str(json_str(json_at(claim, "metadata", "labels", "x", NULL)), "y");
    const struct json *owner = &json_at(claim, "metadata", "ownerReferences", NULL)->items[0];
    assert_str(json_get_str(owner, STR("kind")), "Application");
    assert_volumes(&w, "a-data on d for a");
    assert_null(
        world_at(&w, "applications.eve.lfedge.org", "n", "a", "status", "conditions", NULL)->n > 1
            ? owner
            : NULL);
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 60000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "a-data"));
    assert_volumes(&w, "");
}

static const struct json *condition(struct world *w, const char *application)
{
    JSON_FOR_EACH_ITEM (
        world_at(w, "applications.eve.lfedge.org", "n", application, "status", "conditions", NULL),
        c)
        if (str_is(json_get_str(c, STR("type")), "VolumesBound"))
            return c;
    return NULL;
}

TEST(a_claim_of_somebody_else_is_not_taken)
{
    WORLD;
    make_device(&w, "d");
    make_claim(&w, "a-data", "blank");
    make_own(&w, "a");
    schedule(&w, "a", "d");
    world_pass(&w, 60000);
    assert_volumes(&w, "");
    assert_phase(&w, "a-data", "Pending");
    assert_int_equal(told(&w, "FailedBinding"), 1);
    assert_str(json_get_str(condition(&w, "a"), STR("status")), "False");
    assert_str(json_get_str(condition(&w, "a"), STR("message")),
               "ephemeral volume data: PVC n/a-data was not created for application n/a "
               "(application is not owner)");
    assert_int_equal(world_delete(&w, CLAIMS, "n", "a-data", NULL), 0);
    world_pass(&w, 60000);
    assert_volumes(&w, "a-data on d for a");
    assert_str(json_get_str(condition(&w, "a"), STR("status")), "True");
}

TEST(a_claim_of_its_own_is_kept_while_it_is_used)
{
    WORLD;
    make_device(&w, "d");
    make_own(&w, "a");
    schedule(&w, "a", "d");
    world_pass(&w, 1000);
    ARENA_AUTO a = arena_new();
    const struct str uid = arena_str(a, world_uid(&w, "persistentvolumeclaims", "n", "a-data"));
    assert_int_equal(world_delete(&w, CLAIMS, "n", "a-data", NULL), 0);
    world_pass(&w, 3600000);
    assert_true(str_eq(uid, world_uid(&w, "persistentvolumeclaims", "n", "a-data")));
    assert_volumes(&w, "a-data on d for a");
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", "Foreground"), 0);
    world_pass(&w, 60000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "a-data"));
    assert_false(world_has(&w, "applications.eve.lfedge.org", "n", "a"));
    assert_volumes(&w, "");
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A story in steps; after the last there is c on e for b, own-data on e for own. */
static bool tell_story(struct world *w, int step)
{
    switch (step) {
    case 0:
        make_class(w);
        make_device(w, "d");
        make_claim(w, "c", "blank");
        return true;
    case 1:
        make_application(w, "a", "c");
        make_own(w, "own");
        return true;
    case 2:
        schedule(w, "a", "d");
        schedule(w, "own", "d");
        return true;
    case 3:
        make_device(w, "e");
        assert_int_equal(world_delete(w, DEVICES, "n", "d", NULL), 0);
        return true;
    case 4:
        make_application(w, "b", "c");
        schedule(w, "b", "e");
        schedule(w, "own", "e");
        return true;
    case 5:
        assert_int_equal(world_delete(w, APPLICATIONS, "n", "a", NULL), 0);
        return true;
    default:
        return false;
    }
}

static void assert_end_of_story(struct world *w)
{
    assert_volumes(w, "c on e for b, own-data on e for own");
    assert_phase(w, "c", "Bound");
    assert_phase(w, "own-data", "Bound");
    assert_null(condition(w, "own"));
    assert_int_equal(fake_count(&w->api, "persistentvolumeclaims"), 2);
}

TEST(it_ends_the_same_whenever_it_is_restarted)
{
    for (int at = 0; at < 6; at++)
        for (int early = 0; early < 2; early++) {
            CLEANUP(world_done) struct world w;
            world_init(&w, 1, table);
            for (int step = 0; tell_story(&w, step); step++) {
                if (step == at && early)
                    world_restart(&w);
                world_pass(&w, early ? 1000 : 0);
                if (step == at && !early)
                    world_restart(&w);
            }
            world_pass(&w, 60000);
            assert_end_of_story(&w);
        }
}

/* Killed after every single write. */
TEST(it_ends_the_same_when_it_is_killed_after_every_write)
{
    CLEANUP(world_done) struct world w;
    world_init(&w, 1, table);
    for (int step = 0; tell_story(&w, step); step++)
        for (int i = 0; i < 25; i++) {
            w.api.n_writes_left = 1;
            world_pass(&w, 0);
            world_pass(&w, 2000);
            w.api.n_writes_left = -1;
            world_restart(&w);
        }
    world_pass(&w, 60000);
    assert_end_of_story(&w);
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 30; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, table);
        w.api.fail_percent = w.api.lose_percent = 20;
        w.drop_percent = 20;
        w.repeat_percent = 30;
        for (int step = 0; tell_story(&w, step); step++) {
            world_pass(&w, (int64_t) fake_random(&w.api, 2000));
            if (fake_random(&w.api, 3) == 0)
                world_restart(&w);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_end_of_story(&w);
    }
}
