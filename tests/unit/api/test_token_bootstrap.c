/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/bootstrap_tokens.h"

#include <errno.h>

#include "base/base64.h"
#include "base/buf.h"
#include "test.h"
#include "token_fixture.h"

#define KEY "secrets/kube-system/bootstrap-token-abc123"
#define TOKEN "abc123.0123456789abcdef"

static const struct str own[] = {{"api", 3}};
static const struct audiences own_audiences = {own, 1};

struct secret {
    const char *type, *id, *value, *usage, *expiration, *groups;
};

static const struct secret good = {
    "bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true", NULL, NULL};

static void add(struct arena *a, struct buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    buf_printf(b, "%s\"%s\":\"%.*s\"", b->p[b->n - 1] == '{' ? "" : ",", key,
               STR_ARG(base64_encode(a, str_of(value), BASE64_STANDARD)));
}

static void put(struct token_fixture *f, const struct secret *s, const char *meta)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, STR(",\"data\":{"));
    add(f->arena, &b, "token-id", s->id);
    add(f->arena, &b, "token-secret", s->value);
    add(f->arena, &b, "usage-bootstrap-authentication", s->usage);
    add(f->arena, &b, "expiration", s->expiration);
    add(f->arena, &b, "auth-extra-groups", s->groups);
    buf_printf(&b, "},\"type\":\"%s\"", s->type);
    assert_true(token_fixture_put(f, KEY, "u", meta, b.p));
}

static int ask(struct token_fixture *f, struct token_source *s, const char *token,
               struct token_identity *ret)
{
    return s->verify(s, f->arena, str_of(token), NULL, 0, false, ret);
}

TEST(a_secret_is_a_user)
{
    struct token_fixture f;
    struct token_identity i = {0};
    assert_true(token_fixture_init(&f));
    struct token_source *s = bootstrap_tokens_new(f.store, &f.clock.clock, own_audiences);
    struct secret with_groups = good;
    with_groups.groups = "system:bootstrappers:workers,system:bootstrappers:a:b-2";
    with_groups.expiration = "2030-01-01T00:00:00Z";
    put(&f, &with_groups, "");
    assert_int_equal(ask(&f, s, TOKEN, &i), 0);
    assert_str(i.user.name, "system:bootstrap:abc123");
    assert_int_equal(i.user.n_groups, 3);
    assert_str(i.user.groups[0], "system:bootstrappers");
    assert_str(i.user.groups[2], "system:bootstrappers:a:b-2");
    assert_int_equal(i.expires_us, (int64_t) 1893456000 * 1000000);
    assert_true(s->still_valid(s, &i));
    put(&f, &good, ",\"labels\":{\"a\":\"b\"}");
    assert_false(s->still_valid(s, &i)); /* asks again */
    assert_int_equal(ask(&f, s, TOKEN, &i), 0);
    assert_true(s->still_valid(s, &i));
    token_fixture_remove(&f, KEY);
    assert_false(s->still_valid(s, &i));
    assert_int_equal(ask(&f, s, TOKEN, &i), -ENOENT);
    s->free(s);
    token_fixture_done(&f);
}

TEST(what_is_no_bootstrap_token_is_left_to_others)
{
    static const char *const others[] = {"",
                                         "abc123",
                                         "abc123.",
                                         "abc123.0123456789abcde",
                                         "abc123.0123456789abcdeF",
                                         "abc123.0123456789abcdef0",
                                         "ABC123.0123456789abcdef",
                                         "abc/23.0123456789abcdef",
                                         "abc123-0123456789abcdef",
                                         "zzz999.0123456789abcdef"};
    struct token_fixture f;
    struct token_identity i;
    assert_true(token_fixture_init(&f));
    struct token_source *s = bootstrap_tokens_new(f.store, &f.clock.clock, own_audiences);
    put(&f, &good, "");
    for (size_t n = 0; n < N_ELEMENTS(others); n++)
        assert_int_equal(ask(&f, s, others[n], &i), -ENOENT);
    const struct str other[] = {{"other", 5}};
    assert_int_equal(s->verify(s, f.arena, STR(TOKEN), other, 1, false, &i), -ENOENT);
    s->free(s);
    token_fixture_done(&f);
}

TEST(secrets_that_do_not_allow_it_are_refused)
{
    static const struct secret bad[] = {
        {"Opaque", "abc123", "0123456789abcdef", "true", NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc124", "0123456789abcdef", "true", NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdee", "true", NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc123", NULL, "true", NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", NULL, NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "yes", NULL, NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true",
         "2020-01-01T00:00:00Z", NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true", "soon", NULL},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true", NULL,
         "system:masters"},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true", NULL,
         "system:bootstrappers:"},
        {"bootstrap.kubernetes.io/token", "abc123", "0123456789abcdef", "true", NULL,
         "system:bootstrappers:a:"},
    };
    struct token_fixture f;
    struct token_identity i;
    assert_true(token_fixture_init(&f));
    struct token_source *s = bootstrap_tokens_new(f.store, &f.clock.clock, own_audiences);
    for (size_t n = 0; n < N_ELEMENTS(bad); n++) {
        put(&f, &bad[n], "");
        assert_int_equal(ask(&f, s, TOKEN, &i), -EACCES);
    }
    put(&f, &good, ",\"deletionTimestamp\":\"2027-01-01T00:00:00Z\"");
    assert_int_equal(ask(&f, s, TOKEN, &i), -EACCES);
    s->free(s);
    token_fixture_done(&f);
}
