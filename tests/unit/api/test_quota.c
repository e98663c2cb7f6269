/* SPDX-License-Identifier: Apache-2.0 */
#include "../store/fixture.h"

#include "api/admission/quota_ledger.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = json_parse_quick(a, str_of(text));
    assert_non_null(v);
    return v;
}

/* ---- charges ------------------------------------------------------------------------------ */

TEST(keys_of_hard_say_what_they_limit)
{
    static const struct {
        const char *resource, *collection, *class;
        bool is_storage, is_plain, is_count_asked;
    } cases[] = {
        {"secrets", "secrets", NULL, false, true, false},
        {"count/secrets", "secrets", NULL, false, true, true},
        {"count/things.example.com", "things.example.com", NULL, false, true, true},
        {"requests.storage", "persistentvolumeclaims", NULL, true, false, false},
        {"persistentvolumeclaims", "persistentvolumeclaims", NULL, false, true, false},
        {"gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims", "gold",
         true, false, false},
        {"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "persistentvolumeclaims",
         "gold", false, false, false},
        {"requests.example.com/gpu", "requests.example.com/gpu", NULL, false, true, false},
        {"limits.cpu", "limits.cpu", NULL, false, true, false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quota_limit l = quota_limit_of(NULL, str_of(cases[i].resource));
        assert_str(l.collection, cases[i].collection);
        assert_true(str_eq(l.class, str_of(cases[i].class)));
        assert_int_equal(!l.class.p, !cases[i].class);
        assert_int_equal(l.is_storage, cases[i].is_storage);
        assert_int_equal(l.is_count_asked, cases[i].is_count_asked);
        assert_int_equal(quota_limit_is_plain(&l), cases[i].is_plain);
    }
}

#define QUOTA(spec) "{\"spec\":{" spec "}}"
#define SCOPE(condition) \
    QUOTA("\"scopeSelector\":{\"matchExpressions\":[{\"scopeName\":\"VolumeAttributesClass\"," \
          "\"operator\":" condition "}]}")
#define CLAIM(more) "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"2Gi\"}}" more "}}"
#define FAST CLAIM(",\"volumeAttributesClassName\":\"fast\"")
#define GOLD "gold.storageclass.storage.k8s.io/"

TEST(claims_are_charged_by_class_scope_and_size)
{
    static const struct {
        const char *quota, *resource, *claim, *charge;
    } cases[] = {
        {"{}", "requests.storage", CLAIM(""), "2Gi"},
        {"{}", "persistentvolumeclaims", CLAIM(""), "1"},
        {"{}", "requests.storage", "{}", "0"},
        {"{}", "requests.storage",
         "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1500m\"}}}}", "2"},
        {"{}", "requests.storage",
         "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}},\"status\":"
         "{\"allocatedResources\":{\"storage\":\"3Gi\"}}}",
         "3Gi"},
        {"{}", GOLD "requests.storage", CLAIM(",\"storageClassName\":\"gold\""), "2Gi"},
        {"{}", GOLD "persistentvolumeclaims", CLAIM(",\"storageClassName\":\"gold\""), "1"},
        {"{}", GOLD "persistentvolumeclaims", CLAIM(",\"storageClassName\":\"lead\""), "0"},
        {"{}", GOLD "persistentvolumeclaims", CLAIM(""), "0"},
        {"{}", GOLD "persistentvolumeclaims",
         "{\"metadata\":{\"annotations\":{\"volume.beta.kubernetes.io/storage-class\":\"gold\"}},"
         "\"spec\":{\"storageClassName\":\"lead\"}}",
         "1"},
        {SCOPE("\"In\",\"values\":[\"fast\"]"), "persistentvolumeclaims", FAST, "1"},
        {SCOPE("\"In\",\"values\":[\"fast\"]"), "persistentvolumeclaims", CLAIM(""), "0"},
        {SCOPE("\"NotIn\",\"values\":[\"fast\"]"), "persistentvolumeclaims", FAST, "0"},
        {SCOPE("\"NotIn\",\"values\":[\"fast\"]"), "persistentvolumeclaims", CLAIM(""), "1"},
        {SCOPE("\"Exists\""), "requests.storage", FAST, "2Gi"},
        {SCOPE("\"Exists\""), "requests.storage", CLAIM(""), "0"},
        {SCOPE("\"DoesNotExist\""), "requests.storage", CLAIM(""), "2Gi"},
        {QUOTA("\"scopes\":[\"VolumeAttributesClass\"]"), "requests.storage", FAST, "2Gi"},
        {QUOTA("\"scopes\":[\"BestEffort\"]"), "requests.storage", FAST, "0"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct quota_limit l = quota_limit_of(parse(a, cases[i].quota), str_of(cases[i].resource));
        struct quota_facts f = quota_facts_of(STR(QUOTA_CLAIMS), parse(a, cases[i].claim));
        struct quantity charge = quota_charge(&l, &f);
        assert_str(quantity_text(a, &charge), cases[i].charge);
    }
}

TEST(scoped_quotas_charge_nothing_but_claims)
{
    ARENA_AUTO a = arena_new();
    struct quota_facts f = quota_facts_of(STR("secrets"), parse(a, "{}"));
    struct quota_limit free = quota_limit_of(parse(a, SCOPE("\"DoesNotExist\"")), STR("secrets"));
    struct quota_limit charged = quota_limit_of(parse(a, "{}"), STR("secrets"));
    struct quantity nothing = quota_charge(&free, &f), one = quota_charge(&charged, &f);
    assert_false(quota_limit_is_plain(&free));
    assert_int_equal(quantity_sign(&nothing), 0);
    assert_str(quantity_text(a, &one), "1");
}

/* ---- the ledger --------------------------------------------------------------------------- */

struct books {
    struct fixture f;
    struct quota_ledger *ledger;
};

static void books_init(struct books *b)
{
    fixture_init(&b->f);
    fixture_open(&b->f);
    b->ledger = quota_ledger_new();
}

static void books_done(struct books *b)
{
    quota_ledger_free(b->ledger);
    fixture_done(&b->f);
}

#define BOOKS \
    CLEANUP(books_done) struct books b; \
    books_init(&b)

static void assert_used(struct books *b, const char *resource, const char *expected)
{
    ARENA_AUTO a = arena_new();
    struct quota_limit limit = quota_limit_of(NULL, str_of(resource));
    struct quantity used;
    quota_ledger_begin(b->ledger);
    assert_int_equal(quota_ledger_used(b->ledger, b->f.store, &limit, STR("n"), &used), 0);
    quota_ledger_end(b->ledger);
    assert_str(quantity_text(a, &used), expected);
}

static void add(struct books *b, struct quota_pending *p)
{
    quota_ledger_begin(b->ledger);
    quota_ledger_add(b->ledger, p);
    quota_ledger_end(b->ledger);
}

static struct quota_pending secret(const char *namespace, const char *name, const char *key)
{
    return (struct quota_pending){.collection = STR("secrets"),
                                  .namespace = str_of(namespace),
                                  .name = str_of(name),
                                  .key = str_of(key)};
}

TEST(a_write_counts_once_before_and_after_the_store_shows_it)
{
    BOOKS;
    (void) create(&b.f, "secrets/n/old", "");
    assert_used(&b, "secrets", "1");
    struct quota_pending p = secret("n", "new", "secrets/n/new");
    add(&b, &p);
    assert_used(&b, "secrets", "2");
    (void) create(&b.f, "secrets/n/new", "");
    assert_used(&b, "secrets", "2");
    quota_ledger_remove(b.ledger, &p);
    assert_used(&b, "secrets", "2");
}

TEST(a_write_that_fails_leaves_nothing)
{
    BOOKS;
    struct quota_pending p = secret("n", "new", "secrets/n/new");
    add(&b, &p);
    assert_used(&b, "count/secrets", "1");
    quota_ledger_remove(b.ledger, &p);
    assert_used(&b, "count/secrets", "0");
}

TEST(other_namespaces_and_kinds_do_not_count)
{
    BOOKS;
    struct quota_pending p = secret("other", "a", "secrets/other/a");
    add(&b, &p);
    (void) create(&b.f, "secrets/n2/a", "");
    assert_used(&b, "secrets", "0");
    assert_used(&b, "configmaps", "0");
    quota_ledger_remove(b.ledger, &p);
}

#define SIZE(size) "\",\"spec\":{\"resources\":{\"requests\":{\"storage\":\"" size "\"}}},\"x\":\""

static struct quota_pending claim(struct arena *a, const char *name, const char *key,
                                  const char *object)
{
    return (struct quota_pending){.collection = STR(QUOTA_CLAIMS),
                                  .namespace = STR("n"),
                                  .name = str_of(name),
                                  .key = str_of(key),
                                  .facts = quota_facts_of(STR(QUOTA_CLAIMS), parse(a, object))};
}

TEST(a_claim_counts_as_it_is_or_will_be_whichever_is_more)
{
    BOOKS;
    ARENA_AUTO a = arena_new();
    int64_t revision = create(&b.f, QUOTA_CLAIMS "/n/p", SIZE("1Gi"));
    assert_used(&b, "requests.storage", "1Gi");
    struct quota_pending grown = claim(a, "p", QUOTA_CLAIMS "/n/p", CLAIM(""));
    struct quota_pending made = claim(a, "q", QUOTA_CLAIMS "/n/q", CLAIM(""));
    add(&b, &grown);
    assert_used(&b, "requests.storage", "2Gi");
    assert_used(&b, "persistentvolumeclaims", "1");
    add(&b, &made);
    assert_used(&b, "requests.storage", "4Gi");
    assert_used(&b, "persistentvolumeclaims", "2");
    (void) replace(&b.f, QUOTA_CLAIMS "/n/p", revision, SIZE("5Gi"));
    (void) create(&b.f, QUOTA_CLAIMS "/n/q", SIZE("2Gi"));
    assert_used(&b, "requests.storage", "7Gi");
    quota_ledger_remove(b.ledger, &grown);
    quota_ledger_remove(b.ledger, &made);
    assert_used(&b, "requests.storage", "7Gi");
}
