/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/enrollment.h"
#include "world.h"

#define KIND "eve.lfedge.org/v1beta1/enrollmentrequests"
#define COLLECTION "enrollmentrequests.eve.lfedge.org"
#define DEVICES "eve.lfedge.org/v1beta1/devices"
#define MINUTE_MS ((int64_t) 60 * 1000)
#define DAY_MS (24 * 60 * MINUTE_MS)
#define SYSTEM "eve-system"

static const struct controller *const table[] = {&enrollment_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, world_seed(), table); \
    assert_int_equal(world_create(&w, "v1/namespaces", "", "{'metadata':{'name':'eve-system'}}"), \
                     0); \
    assert_int_equal( \
        world_create(&w, KIND, SYSTEM, "{'metadata':{'name':'r'},'spec':{'certificate':'c'}}"), 0)

static struct str with_quotes(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return str_of(copy);
}

static bool is_there(struct world *w)
{
    return world_has(w, COLLECTION, SYSTEM, "r");
}

static void patch_status(struct world *w, struct arena *a, const char *text)
{
    const struct kube_request r = {.verb = VERB_PATCH,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = STR("enrollmentrequests"),
                                   .namespace = STR(SYSTEM),
                                   .name = STR("r"),
                                   .subresource = STR("status"),
                                   .content_type = STR("application/merge-patch+json"),
                                   .body = json_parse_quick(a, with_quotes(a, text))};
    assert_non_null(r.body);
    assert_int_equal(fake_request(&w->api, a, &r, NULL), 0);
}

/* What people and onboarding write. */
static void set_status(struct world *w, const char *condition, const char *more)
{
    char now[CLOCK_SECONDS_BYTES];
    ARENA_AUTO a = arena_new();
    clock_format_seconds(w->clock.now_us, now);
    const struct str text = arena_printf(a,
                                         "{'status':{'conditions':[{'type':'%s','status':'True',"
                                         "'lastTransitionTime':'%s'}]%s}}",
                                         condition, now, more);
    patch_status(w, a, text.p);
}

TEST(what_nobody_decides_goes_after_a_week)
{
    WORLD;
    world_pass(&w, 6 * DAY_MS);
    assert_true(is_there(&w));
    char now[CLOCK_SECONDS_BYTES];
    ARENA_AUTO a = arena_new();
    clock_format_seconds(w.clock.now_us, now);
    const struct str asked = arena_printf(a, "{'status':{'lastRequestTime':'%s'}}", now);
    patch_status(&w, a, asked.p);
    world_pass(&w, 6 * DAY_MS);
    assert_true(is_there(&w));
    world_pass(&w, 2 * DAY_MS);
    assert_false(is_there(&w));
}

TEST(a_denial_holds_for_a_month)
{
    WORLD;
    set_status(&w, "Denied", "");
    world_pass(&w, 29 * DAY_MS);
    assert_true(is_there(&w));
    world_pass(&w, 2 * DAY_MS);
    assert_false(is_there(&w));
}

TEST(an_approval_goes_soon_after_its_device_is_made)
{
    WORLD;
    set_status(&w, "Approved", ",'namespace':'n'");
    world_pass(&w, DAY_MS);
    assert_true(is_there(&w));
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'d'}}"), 0);
    set_status(&w, "Approved", ",'namespace':'n','device':'d'");
    world_pass(&w, MINUTE_MS / 2);
    assert_true(is_there(&w));
    world_pass(&w, MINUTE_MS);
    assert_false(is_there(&w));
}

TEST(an_approval_goes_with_its_device)
{
    WORLD;
    assert_int_equal(
        world_create(&w, DEVICES, "n",
                     "{'metadata':{'name':'d','annotations':{'eve.lfedge.org/onboarded-by':"
                     "'EnrollmentRequest/r'}}}"),
        0);
    set_status(&w, "Approved", ",'namespace':'n','device':'d'");
    world_pass(&w, 1000);
    assert_true(is_there(&w));
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    world_pass(&w, 1000);
    assert_false(is_there(&w));
}
