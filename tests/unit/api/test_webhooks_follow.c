/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "api/admission/webhooks_internal.h"
#include "kinds_fixture.h"
#include "token_fixture.h"

#define MUTATING "mutatingwebhookconfigurations.admissionregistration.k8s.io//"
#define VALIDATING "validatingwebhookconfigurations.admissionregistration.k8s.io//"
#define HOOK(resource) \
    ",\"webhooks\":[{\"name\":\"a.example.org\",\"clientConfig\":{\"url\":\"https://h\"}," \
    "\"rules\":[{\"operations\":[\"CREATE\"],\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"]," \
    "\"resources\":[\"" resource "\"]}]}]"

static bool matches(struct webhooks *w, const struct registry *r, const char *kind,
                    unsigned operations)
{
    return webhooks_may_match(w, fixture_kind(r, kind), STR(""), operations);
}

TEST(configurations_count_from_their_write_to_their_end)
{
    struct token_fixture f;
    CLEANUP(registry_unrefp) struct registry *r = fixture_registry();
    assert_true(token_fixture_init(&f));
    assert_true(token_fixture_put(&f, VALIDATING "before", "u1", "", HOOK("secrets")));
    struct webhooks *w = webhooks_new(f.store, NULL);
    assert_true(matches(w, r, "core/v1/secrets", ADMISSION_CREATE));
    assert_false(matches(w, r, "core/v1/secrets", ADMISSION_UPDATE | ADMISSION_DELETE));
    assert_false(matches(w, r, "core/v1/configmaps", ADMISSION_CREATE));

    assert_true(token_fixture_put(&f, MUTATING "after", "u2", "", HOOK("configmaps")));
    assert_true(matches(w, r, "core/v1/configmaps", ADMISSION_CREATE | ADMISSION_UPDATE));
    assert_true(token_fixture_put(&f, MUTATING "after", "u2", "", HOOK("leases")));
    assert_false(matches(w, r, "core/v1/configmaps", ADMISSION_CREATE));

    token_fixture_remove(&f, VALIDATING "before");
    token_fixture_remove(&f, MUTATING "after");
    assert_false(matches(w, r, "core/v1/secrets", ADMISSION_CREATE));
    assert_null(webhooks_current(w));
    webhooks_free(w);
    token_fixture_done(&f);
}

TEST(configurations_are_in_the_order_of_their_names)
{
    static const char *const names[] = {"m", "c", "z", "a", "c"};
    struct token_fixture f;
    assert_true(token_fixture_init(&f));
    struct webhooks *w = webhooks_new(f.store, NULL);
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct str key = arena_printf(f.arena, MUTATING "%s", names[i]);
        assert_true(token_fixture_put(&f, key.p, "u", "", HOOK("configmaps")));
    }
    struct webhook_set *s = webhooks_current(w);
    BUF_AUTO order = {0};
    for (size_t i = 0; i < s->n[WEBHOOK_MUTATING]; i++)
        buf_append_str(&order, s->lists[WEBHOOK_MUTATING][i]->name);
    assert_string_equal(order.p, "acmz");
    assert_int_equal(s->n[WEBHOOK_VALIDATING], 0);
    /* A set in use outlives what follows it. */
    token_fixture_remove(&f, MUTATING "a");
    assert_true(str_is(s->lists[WEBHOOK_MUTATING][0]->hooks[0].configuration, "a"));
    webhook_set_unref(s);
    webhooks_free(w);
    token_fixture_done(&f);
}
