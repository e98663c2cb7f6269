/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/view.h"

#include <pthread.h>
#include <stdio.h>

#include "base/map.h"
#include "scheduling/view_internal.h"
#include "test.h"

#define APPLICATIONS STR("applications.eve.lfedge.org")
#define DEVICES STR("devices.eve.lfedge.org")

static void count_wakes(void *ctx, struct str key, int64_t delay_ms)
{
    (void) key;
    (void) delay_ms;
    __atomic_add_fetch((size_t *) ctx, 1, __ATOMIC_RELAXED);
}

#define VIEW \
    size_t n_wakes = 0; \
    CLEANUP(view_freep) struct view *v = view_new(count_wakes, &n_wakes)

static void view_freep(struct view **v)
{
    view_free(*v);
}

static struct str quoted(struct arena *a, struct str text)
{
    char *copy = arena_strz(a, text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return str_of(copy);
}

static void deliver(struct view *v, enum kube_event_type type, struct str collection,
                    struct str text)
{
    ARENA_AUTO a = arena_new();
    const struct str json = quoted(a, text);
    const struct json *meta = json_get(json_parse_quick(a, json), STR("metadata"));
    assert_non_null(meta);
    view_on_event(v, &(struct kube_event){.type = type,
                                          .collection = collection,
                                          .namespace = STR("n"),
                                          .name = json_get_str(meta, STR("name")),
                                          .uid = json_get_str(meta, STR("uid")),
                                          .text = json});
}

static void add_device(struct view *v, const char *name, const char *allocatable)
{
    ARENA_AUTO a = arena_new();
    deliver(v, KUBE_ADDED, DEVICES,
            arena_printf(a,
                         "{'metadata':{'name':'%s','namespace':'n'},'status':{'allocatable':{%s}}}",
                         name, allocatable));
}

/* Of 512 MiB and one CPU. */
static struct str application(struct arena *a, const char *name, int revision, const char *device)
{
    return arena_printf(a,
                        "{'metadata':{'name':'%s','namespace':'n','uid':'u-%s','resourceVersion':"
                        "'%d','generation':1},'spec':{'containers':[{}]},'status':{'device':'%s'}}",
                        name, name, revision, device);
}

static void add_application(struct view *v, const char *name, int revision, const char *device)
{
    ARENA_AUTO a = arena_new();
    deliver(v, KUBE_ADDED, APPLICATIONS, application(a, name, revision, device));
}

static struct str choose(struct view *v, struct arena *a, const char *name)
{
    struct view_outcome o = {0};
    const struct json *object =
        json_parse_quick(a, quoted(a, application(a, name, /* revision= */ 1, "")));
    return view_choose(v, a, object, &o) ? o.device : STR("nothing to say");
}

TEST(what_is_being_written_counts)
{
    ARENA_AUTO a = arena_new();
    VIEW;
    add_device(v, "d", "'memory':'512Mi','cpu':'8'");
    add_application(v, "x", 1, "");
    add_application(v, "y", 1, "");
    assert_str(choose(v, a, "x"), "d");
    assert_str(choose(v, a, "y"), "");
    /* An older version that is told late changes nothing, nor does a newer one of another writer.
     */
    add_application(v, "x", 1, "");
    add_application(v, "x", 2, "");
    assert_str(choose(v, a, "y"), "");
    /* It was not written after all. */
    view_settle(v, STR("n"), STR("x"), NULL);
    view_settle(v, STR("n"), STR("y"), NULL);
    assert_str(choose(v, a, "y"), "d");
    view_settle(v, STR("n"), STR("y"), json_parse_quick(a, quoted(a, application(a, "y", 3, "d"))));
    assert_str(choose(v, a, "x"), "");
}

TEST(a_namesake_is_another)
{
    ARENA_AUTO a = arena_new();
    VIEW;
    add_device(v, "d", "'memory':'512Mi','cpu':'8'");
    add_application(v, "x", 1, "d");
    add_application(v, "y", 1, "");
    assert_str(choose(v, a, "y"), "");
    deliver(v, KUBE_DELETED, APPLICATIONS, STR("{'metadata':{'name':'x','uid':'another'}}"));
    assert_str(choose(v, a, "y"), "");
    deliver(v, KUBE_DELETED, APPLICATIONS, STR("{'metadata':{'name':'x','uid':'u-x'}}"));
    assert_str(choose(v, a, "y"), "d");
}

/* Writes of others wake nobody. */
TEST(only_what_matters_wakes)
{
    VIEW;
    add_device(v, "d", "'memory':'512Mi','cpu':'8'");
    add_application(v, "x", 1, "d");
    const size_t n_before = n_wakes;
    add_application(v, "x", 2, "d");
    add_device(v, "d", "'memory':'512Mi','cpu':'8'");
    add_device(v, "e", "'memory':'512Mi','cpu':'8'");
    assert_int_equal(n_wakes, n_before);
    add_application(v, "x", 3, "e");
    assert_int_equal(n_wakes, n_before + 1);
}

#define THREADS 4
#define EACH 50

struct worker {
    struct view *view;
    int number;
    size_t n_placed;
};

/* Half of the writes fail, and are done again. */
static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < EACH; i++) {
        ARENA_AUTO a = arena_new();
        char name[32];
        (void) snprintf(name, sizeof(name), "app-%d-%d", w->number, i);
        if (i % 2) {
            (void) choose(w->view, a, name);
            view_settle(w->view, STR("n"), str_of(name), NULL);
        }
        const struct str device = choose(w->view, a, name);
        const struct str written = quoted(a, application(a, name, 10, arena_strz(a, device)));
        view_settle(w->view, STR("n"), str_of(name), json_parse_quick(a, written));
        w->n_placed += device.n > 0;
        (void) view_pass(w->view, STR("n"));
    }
    return NULL;
}

static size_t count_on(struct view *v, const char *device)
{
    struct tenant *t = view_tenant_find(v, STR("n"), false);
    return view_device_find(t, str_of(device), false)->n_applications;
}

TEST(threads_never_take_the_same_room)
{
    VIEW;
    add_device(v, "a", "'memory':'20Gi','cpu':'100'"); /* for 40 */
    add_device(v, "b", "'memory':'100Gi','cpu':'60'");
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH; j++) {
            char name[32];
            (void) snprintf(name, sizeof(name), "app-%d-%d", i, j);
            add_application(v, name, 1, "");
        }
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){v, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(count_on(v, "a"), 40);
    assert_int_equal(count_on(v, "b"), 60);
}
