/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/unique_ledger.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/codec.h"
#include "api/registry.h"
#include "kinds_fixture.h"
#include "test.h"

/* A store of Devices and the ledger over it. */
struct scene {
    char directory[40];
    struct arena *arena;
    struct registry *registry;
    const struct kind *kind;
    struct store *store;
    struct unique_ledger *ledger;
};

static void scene_init(struct scene *s)
{
    char *error = NULL;
    *s = (struct scene){.directory = "/tmp/seth-unique-XXXXXX", .arena = arena_new()};
    assert_non_null(mkdtemp(s->directory));
    const struct str path = arena_printf(s->arena, "%s/objects.db", s->directory);
    const struct store_options options = {
        .path = path.p, .parse_head = codec_parse_stored, .clock = &clock_system};
    assert_int_equal(store_open(&options, &s->store, &error), 0);
    s->registry = fixture_registry();
    s->kind = fixture_kind(s->registry, "eve.lfedge.org/v1beta1/devices");
    s->ledger = unique_ledger_new();
}

static void scene_done(struct scene *s)
{
    unique_ledger_free(s->ledger);
    store_close(s->store);
    registry_unref(s->registry);
    DIR *d = opendir(s->directory);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    (void) closedir(d);
    assert_int_equal(rmdir(s->directory), 0);
    arena_free(s->arena);
}

#define SCENE \
    CLEANUP(scene_done) struct scene s; \
    scene_init(&s)

static struct str key_of(struct scene *s, const char *name)
{
    return arena_printf(s->arena, "%.*s/n/%s", STR_ARG(s->kind->collection), name);
}

/* Creates or replaces the Device; fingerprint NULL: it goes. */
static void put(struct scene *s, const char *name, const char *fingerprint)
{
    const struct str key = key_of(s, name);
    struct object *old = store_get(s->store, key);
    struct json *object = fixture_json(
        s->arena,
        arena_printf(s->arena,
                     "{'metadata':{'name':'%s','namespace':'n','uid':'u'},'status':{'uuid':'%s',"
                     "'fingerprint':'%s'}}",
                     name, name, fingerprint ? fingerprint : "")
            .p);
    struct store_write w = {.condition = !fingerprint ? STORE_REMOVE
                                         : old        ? STORE_REPLACE
                                                      : STORE_CREATE,
                            .key = key,
                            .expected_revision = old ? old->revision : 0};
    assert_int_equal(codec_encode(s->kind, object, &w.object), 0);
    assert_int_equal(store_write_sync(s->store, &w), 0);
    object_unref(w.committed);
    object_unref(old);
}

static struct unique_claim claim_of(struct scene *s, const char *name, const char *value)
{
    return (struct unique_claim){.kind = s->kind,
                                 .rule = s->kind->hooks->unique,
                                 .value = str_of(value),
                                 .key = key_of(s, name),
                                 .may_wait = true};
}

static int claim(struct scene *s, struct unique_claim *c)
{
    struct str holder = STR_NONE;
    return unique_ledger_claim(s->ledger, s->store, s->arena, c, &holder);
}

/* Asks without claiming. */
static int ask(struct scene *s, const char *name, const char *value)
{
    struct unique_claim c = claim_of(s, name, value);
    c.is_question = true;
    return claim(s, &c);
}

TEST(what_is_stored_is_taken)
{
    SCENE;
    put(&s, "a", "1");
    struct str holder = STR_NONE;
    struct unique_claim c = claim_of(&s, "b", "1");
    c.may_wait = false;
    assert_int_equal(unique_ledger_claim(s.ledger, s.store, s.arena, &c, &holder), -EAGAIN);
    c.may_wait = true;
    assert_int_equal(unique_ledger_claim(s.ledger, s.store, s.arena, &c, &holder), -EEXIST);
    assert_str(holder, arena_strz(s.arena, key_of(&s, "a")));
    assert_int_equal(ask(&s, "a", "1"), 0);
    assert_int_equal(ask(&s, "b", "2"), 0);
}

TEST(what_is_claimed_is_taken_until_it_comes_to_nothing)
{
    SCENE;
    struct unique_claim a = claim_of(&s, "a", "1"), b = claim_of(&s, "b", "1");
    assert_int_equal(claim(&s, &a), 0);
    assert_int_equal(claim(&s, &b), -EEXIST);
    unique_ledger_release(s.ledger, &a);
    assert_int_equal(claim(&s, &b), 0);
    put(&s, "b", "1");
    unique_ledger_release(s.ledger, &b);
    assert_int_equal(ask(&s, "a", "1"), -EEXIST);
}

TEST(what_was_given_up_is_free)
{
    SCENE;
    put(&s, "a", "1");
    put(&s, "b", "2");
    assert_int_equal(ask(&s, "c", "1"), -EEXIST);
    put(&s, "a", "3");
    assert_int_equal(ask(&s, "c", "1"), 0);
    put(&s, "b", NULL);
    assert_int_equal(ask(&s, "c", "2"), 0);
}

TEST(two_rules_do_not_meet)
{
    SCENE;
    put(&s, "a", "1");
    struct unique_claim uuid = claim_of(&s, "b", "1");
    uuid.rule++;
    assert_str(str_of(uuid.rule->field), "status.uuid");
    uuid.is_question = true;
    assert_int_equal(claim(&s, &uuid), 0);
    uuid.value = STR("a");
    assert_int_equal(claim(&s, &uuid), -EEXIST);
}

/* Far more was claimed than is stored: the ledger reads again what is true and keeps what is under
 * way. */
TEST(what_is_not_needed_is_forgotten)
{
    SCENE;
    put(&s, "a", "1");
    struct unique_claim kept = claim_of(&s, "b", "2");
    assert_int_equal(claim(&s, &kept), 0);
    bool has_forgotten = false;
    for (int i = 0; i < 3000; i++) {
        const struct str value = arena_printf(s.arena, "gone-%d", i);
        struct unique_claim c = claim_of(&s, "c", value.p);
        c.may_wait = false;
        if (claim(&s, &c) == -EAGAIN) {
            has_forgotten |= i > 0;
            c.may_wait = true;
            assert_int_equal(claim(&s, &c), 0);
        }
        unique_ledger_release(s.ledger, &c);
    }
    assert_true(has_forgotten);
    assert_int_equal(ask(&s, "d", "1"), -EEXIST);
    assert_int_equal(ask(&s, "d", "2"), -EEXIST);
    unique_ledger_release(s.ledger, &kept);
    assert_int_equal(ask(&s, "d", "2"), 0);
}

#define N_THREADS 8
#define N_TURNS 200

struct racer {
    struct scene *scene;
    const char *name;
    atomic_int *n_holding, *n_wins;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct scene own = *r->scene;
    own.arena = arena_new();
    for (int i = 0; i < N_TURNS; i++) {
        struct unique_claim c = claim_of(&own, r->name, "1");
        if (claim(&own, &c) < 0)
            continue;
        if (atomic_fetch_add(r->n_holding, 1) != 0)
            abort(); /* two hold it */
        atomic_fetch_add(r->n_wins, 1);
        atomic_fetch_sub(r->n_holding, 1);
        unique_ledger_release(own.ledger, &c);
    }
    arena_free(own.arena);
    return NULL;
}

TEST(of_many_at_once_one_holds_it)
{
    SCENE;
    static const char *const names[N_THREADS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    pthread_t threads[N_THREADS];
    struct racer racers[N_THREADS];
    atomic_int n_holding = 0, n_wins = 0;
    for (size_t i = 0; i < N_THREADS; i++) {
        racers[i] = (struct racer){&s, names[i], &n_holding, &n_wins};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++)
        (void) pthread_join(threads[i], NULL);
    assert_true(atomic_load(&n_wins) > 0);
}
