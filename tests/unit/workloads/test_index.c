/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "workloads/index.h"

/* An index and what it woke. */
struct scene {
    struct workload_index *ix;
    struct arena *arena;
    size_t n_wakes;
    struct str last;
};

static void on_wake(void *ctx, struct str key, int64_t delay_ms)
{
    struct scene *s = ctx;
    (void) delay_ms;
    s->n_wakes++;
    s->last = arena_str(s->arena, key);
}

static void scene_init(struct scene *s)
{
    *s = (struct scene){.arena = arena_new()};
    s->ix = workload_index_new(on_wake, s);
}

static void scene_done(struct scene *s)
{
    workload_index_free(s->ix);
    arena_free(s->arena);
}

#define SCENE \
    CLEANUP(scene_done) struct scene s; \
    scene_init(&s)

static struct json *parse(struct scene *s, struct str text)
{
    char *copy = arena_strz(s->arena, text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(s->arena, str_of(copy));
    assert_non_null(v);
    return v;
}

static void tell(struct scene *s, enum kube_event_type type, const char *collection,
                 const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    const struct kube_event e = {.type = type,
                                 .collection = str_of(collection),
                                 .namespace = json_get_str(meta, STR("namespace")),
                                 .name = json_get_str(meta, STR("name")),
                                 .uid = json_get_str(meta, STR("uid")),
                                 .has_owners = json_get(meta, STR("ownerReferences")) != NULL,
                                 .text = json_text(s->arena, object)};
    workload_index_event(s->ix, &e);
}

static const struct json *owner(struct scene *s, const char *uid)
{
    return parse(s, arena_printf(s->arena,
                                 "{'metadata':{'namespace':'n','name':'%s','uid':'%s','generation':"
                                 "1},'spec':{'selector':{'matchLabels':{'app':'%s'}}}}",
                                 uid, uid, uid));
}

#define OWNERS "applicationdeployments.eve.lfedge.org"
#define APPS "applications.eve.lfedge.org"

/* owner_uid NULL: nobody's. */
static const struct json *app(struct scene *s, const char *name, const char *owner_uid, int version,
                              const char *status)
{
    const struct str owners =
        owner_uid
            ? arena_printf(s->arena,
                           ",'ownerReferences':[{'apiVersion':'eve.lfedge.org/v1beta1','kind':"
                           "'ApplicationDeployment','uid':'%s','controller':true}]",
                           owner_uid)
            : STR("");
    return parse(s,
                 arena_printf(s->arena,
                              "{'metadata':{'namespace':'n','name':'%s','uid':'u-%s',"
                              "'resourceVersion':'%d','labels':{'app':'web'}%.*s},'status':{%s}}",
                              name, name, version, STR_ARG(owners), status));
}

#define READY "'conditions':[{'type':'Ready','status':'True'}]"

static struct index_view view(struct scene *s, const char *uid)
{
    struct index_view v = {0};
    assert_true(workload_index_view(s->ix, s->arena, str_of(uid), NULL, &v));
    return v;
}

TEST(an_application_finds_its_owner_in_any_order)
{
    SCENE;
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", "web", 1, ""));
    assert_int_equal(s.n_wakes, 0);
    struct index_view v;
    assert_false(workload_index_view(s.ix, s.arena, STR("web"), NULL, &v));
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    assert_str(s.last, "ApplicationDeployment/n/web");
    v = view(&s, "web");
    assert_int_equal(v.n_applications, 1);
    assert_true(v.applications[0].is_ours);
}

TEST(what_does_not_matter_wakes_nobody)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", "web", 1, ""));
    const size_t n = s.n_wakes;
    tell(&s, KUBE_MODIFIED, APPS, app(&s, "a", "web", 2, "'state':'BOOTING'"));
    tell(&s, KUBE_MODIFIED, OWNERS, owner(&s, "web"));
    assert_int_equal(s.n_wakes, n);
    tell(&s, KUBE_MODIFIED, APPS, app(&s, "a", "web", 3, READY));
    assert_int_equal(s.n_wakes, n + 1);
    assert_true(view(&s, "web").applications[0].is_ready);
}

TEST(an_answer_counts_before_its_event)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", "web", 5, ""));
    workload_index_learn_application(s.ix, app(&s, "b", "web", 7, ""));
    assert_int_equal(view(&s, "web").n_applications, 2);
    tell(&s, KUBE_ADDED, APPS, app(&s, "b", "web", 7, ""));
    assert_int_equal(view(&s, "web").n_applications, 2);
}

TEST(an_answer_that_comes_after_the_end_counts_for_nothing)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, APPS, app(&s, "b", "web", 7, ""));
    tell(&s, KUBE_DELETED, APPS, app(&s, "b", "web", 8, ""));
    workload_index_learn_application(s.ix, app(&s, "b", "web", 7, ""));
    assert_int_equal(view(&s, "web").n_applications, 0);
    /* Unless somebody has just seen it. */
    workload_index_found(s.ix, app(&s, "c", "web", 6, ""));
    assert_int_equal(view(&s, "web").n_applications, 1);
}

TEST(news_from_before_the_end_do_not_bring_it_back)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", "web", 1, ""));
    workload_index_gone(s.ix, STR("u-a"));
    assert_int_equal(view(&s, "web").n_applications, 0);
    tell(&s, KUBE_MODIFIED, APPS, app(&s, "a", "web", 2, READY));
    assert_int_equal(view(&s, "web").n_applications, 0);
    tell(&s, KUBE_DELETED, APPS, app(&s, "a", "web", 3, READY));
    assert_int_equal(view(&s, "web").n_applications, 0);
}

TEST(old_news_change_nothing)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    workload_index_learn_application(s.ix, app(&s, "a", "web", 9, READY));
    tell(&s, KUBE_MODIFIED, APPS, app(&s, "a", "web", 8, ""));
    assert_true(view(&s, "web").applications[0].is_ready);
}

TEST(what_is_nobodys_waits_for_whom_it_fits)
{
    SCENE;
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", NULL, 1, ""));
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "other"));
    assert_int_equal(view(&s, "other").n_candidates, 0);
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    assert_int_equal(view(&s, "web").n_candidates, 1);
    tell(&s, KUBE_DELETED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    assert_int_equal(view(&s, "web").n_candidates, 1);
    tell(&s, KUBE_MODIFIED, APPS, app(&s, "a", "other", 2, ""));
    assert_int_equal(view(&s, "web").n_candidates, 0);
    /* Taken, but the labels are another's. */
    assert_int_equal(view(&s, "other").n_applications, 1);
    assert_false(view(&s, "other").applications[0].is_ours);
    /* Somebody else's entirely. */
    const struct json *foreign = parse(
        &s,
        STR("{'metadata':{'namespace':'n','name':'a','uid':'u-a','resourceVersion':'3','labels':"
            "{'app':'web'},'ownerReferences':[{'apiVersion':'x/v1','kind':'Y','uid':'z',"
            "'controller':true}]}}"));
    tell(&s, KUBE_MODIFIED, APPS, foreign);
    assert_int_equal(view(&s, "other").n_applications, 0);
    assert_int_equal(view(&s, "web").n_candidates, 0);
}

TEST(devices_say_who_is_out_of_touch)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    tell(&s, KUBE_ADDED, APPS, app(&s, "a", "web", 1, "'device':'d'"));
    assert_false(view(&s, "web").applications[0].is_offline);
    size_t n = s.n_wakes;
    const struct json *never =
        parse(&s, STR("{'metadata':{'namespace':'n','name':'d','uid':'d'}}"));
    tell(&s, KUBE_ADDED, "devices.eve.lfedge.org", never);
    assert_true(view(&s, "web").applications[0].is_offline);
    assert_int_equal(s.n_wakes, n + 1);
    const struct json *ready =
        parse(&s, STR("{'metadata':{'namespace':'n','name':'d','uid':'d'},'status':{" READY "}}"));
    tell(&s, KUBE_MODIFIED, "devices.eve.lfedge.org", ready);
    assert_false(view(&s, "web").applications[0].is_offline);
    assert_int_equal(s.n_wakes, n + 2);
    tell(&s, KUBE_MODIFIED, "devices.eve.lfedge.org", ready);
    assert_int_equal(s.n_wakes, n + 2);
    tell(&s, KUBE_DELETED, "devices.eve.lfedge.org", ready);
    assert_int_equal(s.n_wakes, n + 3);
}

TEST(doubts_stay_until_they_are_cleared)
{
    SCENE;
    tell(&s, KUBE_ADDED, OWNERS, owner(&s, "web"));
    workload_index_doubt(s.ix, STR("web"), STR("a"));
    workload_index_doubt(s.ix, STR("web"), STR("a"));
    workload_index_doubt(s.ix, STR("web"), STR("b"));
    workload_index_doubt(s.ix, STR("nobody"), STR("b"));
    const struct index_view v = view(&s, "web");
    assert_int_equal(v.n_doubts, 2);
    assert_str(v.doubts[1], "b");
    workload_index_clear_doubts(s.ix, STR("web"));
    assert_int_equal(view(&s, "web").n_doubts, 0);
}
