/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "base/base64.h"
#include "controllers/certificates.h"
#include "pki/pki.h"
#include "world.h"

#define KIND "certificates.k8s.io/v1/certificatesigningrequests"
#define COLLECTION "certificatesigningrequests.certificates.k8s.io"
#define CLIENT "kubernetes.io/kube-apiserver-client"
#define MINUTE_MS ((int64_t) 60 * 1000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_S ((int64_t) 86400)

/* O = dev, CN = jane, P-256. */
static const char request[] =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJN"
    "UTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVJSjVkdlNrcGd0S0RC"
    "QXMxNkt1Q1k3RC9vSTd3RG0zbFRselB5K2hiClZBTXFDUUNTZXhsM3JaNnp5cWxHQTFGOXJKNVR4c29PVVZQUXFSL2pt"
    "cm1tMEtBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUURnSllMUnBRTWdhdk1nRnlZWC9KNUhyTjcwRHZVUU1XM0N4"
    "YW4wVGNqc2J3SWdPRVBSbk5XawpmMXFGM1NGOFdZQlVyQTJxWjVDVUN6ME5wbmlEQnhIRll2VT0KLS0tLS1FTkQgQ0VS"
    "VElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/* O = dev, O = system:masters, CN = jane. */
static const char masters_request[] =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlId01JR1lBZ0VBTURZeEREQUtCZ05WQkFvTUEyUmxk"
    "akVYTUJVR0ExVUVDZ3dPYzNsemRHVnRPbTFoYzNSbApjbk14RFRBTEJnTlZCQU1NQkdwaGJtVXdXVEFUQmdjcWhrak9Q"
    "UUlCQmdncWhrak9QUU1CQndOQ0FBVHdOZTRHCi9aazlaUlpyZWNGaVVOM3NIUU9UK3VLaFJLbmV5clNBdGJFVmxRcDBH"
    "aG9YM0doWlBVNGFaMXBXa01PZzA0eVUKWEVGRFFlRzZTL3Y2b0o3Z29BQXdDZ1lJS29aSXpqMEVBd0lEUndBd1JBSWdM"
    "S3Bxa05Oc2VCQmsrRG10cE1qawpsZzBMcUpuYjFBM3ZDKzd2RDZQZHNsNENJQ0pXVDNNWmltZlA0aXdlR1pjN0pEMUt2"
    "VlpIMzVzNStzdnB4TmxUCmlRK1cKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

static const struct controller *const both[] = {&certificates_controller,
                                                &certificate_cleanup_controller, NULL};

/* ---- the world with an authority ---------------------------------------------------------- */

struct scene {
    struct world w;
    struct pki_key *key;
    struct pki_cert *cert;
};

static void scene_init(struct scene *s, uint64_t seed)
{
    world_init(&s->w, seed, both);
    s->key = pki_key_new();
    s->cert = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("ca"), .is_ca = true, .valid_days = 3650},
        s->key, NULL, NULL);
    s->w.ctx.ca_key = s->key;
    s->w.ctx.ca_cert = s->cert;
    s->w.ctx.signing_duration_s = 365 * DAY_S;
}

static void scene_done(struct scene *s)
{
    world_done(&s->w);
    pki_cert_free(s->cert);
    pki_key_free(s->key);
}

#define SCENE \
    CLEANUP(scene_done) struct scene s; \
    scene_init(&s, 1)

static void make_of(struct scene *s, const char *name, const char *pem, const char *signer,
                    const char *more)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(a,
                                   "{'metadata':{'name':'%s'},'spec':{'request':'%s','signerName':"
                                   "'%s','usages':['client auth'%s}}",
                                   name, pem, signer, more);
    assert_int_equal(world_create(&s->w, KIND, NULL, text.p), 0);
}

static void make(struct scene *s, const char *name, const char *signer, const char *more)
{
    make_of(s, name, request, signer, more);
}

static void decide(struct scene *s, const char *name, const char *type)
{
    ARENA_AUTO a = arena_new();
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(s->w.clock.now_us, now);
    struct str text = arena_printf(
        a, "{'status':{'conditions':[{'type':'%s','status':'True','lastUpdateTime':'%s'}]}}", type,
        now);
    assert_int_equal(world_patch(&s->w, KIND, NULL, name, text.p), 0);
}

static bool has(struct scene *s, const char *name)
{
    return world_has(&s->w, COLLECTION, NULL, name);
}

static struct pki_cert *issued(struct scene *s, const char *name)
{
    ARENA_AUTO a = arena_new();
    struct str pem = STR_NONE;
    struct str text = world_text(&s->w, COLLECTION, NULL, name, "status", "certificate");
    struct pki_cert *c = NULL;
    if (!text.n)
        return NULL;
    assert_int_equal(base64_decode(a, text, BASE64_STANDARD, &pem, NULL), 0);
    assert_int_equal(pki_cert_parse(pem, &c), 0);
    return c;
}

static const struct json *condition(struct scene *s, const char *name, const char *type)
{
    JSON_FOR_EACH_ITEM (world_at(&s->w, COLLECTION, NULL, name, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return c;
    return NULL;
}

/* ---- signing ------------------------------------------------------------------------------ */

TEST(an_approved_request_is_signed)
{
    SCENE;
    ARENA_AUTO a = arena_new();
    make(&s, "r", CLIENT, "]");
    world_pass(&s.w, MINUTE_MS);
    assert_null(issued(&s, "r"));
    decide(&s, "r", "Approved");
    world_pass(&s.w, 0);
    CLEANUP(pki_cert_freep) struct pki_cert *c = issued(&s, "r");
    struct str *groups = NULL;
    assert_true(str_is(pki_cert_common_name(a, c), "jane"));
    assert_int_equal(pki_cert_organizations(a, c, &groups), 1);
    assert_true(str_is(groups[0], "dev"));
    /* Begins five minutes early and keeps its length. */
    assert_int_equal(pki_cert_not_after(c), s.w.clock.now_us / 1000000 + 365 * DAY_S - 300);
}

TEST(the_life_that_was_asked_for)
{
    static const struct {
        const char *asked;
        int64_t left_s;
    } cases[] = {{"600", 600},
                 {"1", 600},
                 {"28799", 28799},
                 {"28800", 28500},
                 {"2000000000", 365 * DAY_S - 300}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        SCENE;
        ARENA_AUTO a = arena_new();
        make(&s, "r", CLIENT, arena_printf(a, "],'expirationSeconds':%s", cases[i].asked).p);
        decide(&s, "r", "Approved");
        world_pass(&s.w, 0);
        CLEANUP(pki_cert_freep) struct pki_cert *c = issued(&s, "r");
        assert_int_equal(pki_cert_not_after(c) - s.w.clock.now_us / 1000000, cases[i].left_s);
    }
}

TEST(nothing_else_is_signed)
{
    SCENE;
    make(&s, "denied", CLIENT, "]");
    make(&s, "other", "example.org/signer", "]");
    make(&s, "kubelet", "kubernetes.io/kube-apiserver-client-kubelet", "]");
    decide(&s, "denied", "Denied");
    decide(&s, "other", "Approved");
    decide(&s, "kubelet", "Approved");
    world_pass(&s.w, 10 * MINUTE_MS);
    assert_null(issued(&s, "denied"));
    assert_null(issued(&s, "other"));
    assert_null(issued(&s, "kubelet"));
    assert_null(condition(&s, "other", "Failed"));
}

TEST(a_certificate_is_made_once)
{
    SCENE;
    make(&s, "r", CLIENT, "]");
    decide(&s, "r", "Approved");
    world_pass(&s.w, 0);
    ARENA_AUTO a = arena_new();
    struct str first =
        arena_str(a, world_text(&s.w, COLLECTION, NULL, "r", "status", "certificate"));
    world_restart(&s.w);
    world_pass(&s.w, 30 * MINUTE_MS);
    assert_true(first.n > 0);
    assert_true(str_eq(first, world_text(&s.w, COLLECTION, NULL, "r", "status", "certificate")));
}

TEST(a_usage_that_clients_do_not_have_fails)
{
    SCENE;
    make(&s, "r", CLIENT, ",'server auth']");
    decide(&s, "r", "Approved");
    world_pass(&s.w, 0);
    const struct json *failed = condition(&s, "r", "Failed");
    assert_null(issued(&s, "r"));
    assert_non_null(condition(&s, "r", "Approved"));
    assert_true(str_is(json_get_str(failed, STR("message")),
                       "invalid usage for client certificate: server auth"));
    assert_true(str_is(json_get_str(failed, STR("reason")), "SignerValidationFailure"));
}

TEST(nobody_is_signed_into_system_masters)
{
    SCENE;
    make_of(&s, "r", masters_request, CLIENT, "]");
    decide(&s, "r", "Approved");
    world_pass(&s.w, 0);
    assert_null(issued(&s, "r"));
    assert_true(str_is(json_get_str(condition(&s, "r", "Failed"), STR("message")),
                       "use of " CLIENT " signer with system:masters group is not allowed"));
}

TEST(a_server_that_fails_now_and_then_delays_at_most)
{
    CLEANUP(scene_done) struct scene s;
    scene_init(&s, world_seed());
    s.w.api.fail_percent = 40;
    s.w.api.lose_percent = 20;
    s.w.repeat_percent = 30;
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void) snprintf(name, sizeof(name), "r%d", i);
        make(&s, name, CLIENT, "]");
        decide(&s, name, "Approved");
    }
    world_pass(&s.w, 30 * MINUTE_MS);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void) snprintf(name, sizeof(name), "r%d", i);
        CLEANUP(pki_cert_freep) struct pki_cert *c = issued(&s, name);
        assert_non_null(c);
    }
}

/* ---- cleaning up -------------------------------------------------------------------------- */

TEST(requests_go_in_their_time)
{
    static const struct {
        const char *signer, *decision;
        int64_t hours; /* that it lives; 0: it stays */
    } cases[] = {{CLIENT, "Approved", 1},
                 {CLIENT, "Denied", 1},
                 {"example.org/signer", "Denied", 1},
                 {"example.org/signer", "Approved", 0},
                 {"example.org/signer", "Failed", 1},
                 {"example.org/signer", NULL, 24}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        SCENE;
        make(&s, "r", cases[i].signer, "]");
        if (cases[i].decision) {
            world_pass(&s.w, 5 * HOUR_MS); /* the decision counts, not the request */
            decide(&s, "r", cases[i].decision);
        }
        world_pass(&s.w, MAX(cases[i].hours * HOUR_MS - MINUTE_MS, 0));
        assert_true(has(&s, "r"));
        world_restart(&s.w);
        world_pass(&s.w, cases[i].hours ? 2 * MINUTE_MS : 100 * HOUR_MS);
        assert_int_equal(has(&s, "r"), cases[i].hours == 0);
    }
}

TEST(a_decision_postpones_the_end_of_a_pending_request)
{
    SCENE;
    make(&s, "r", "example.org/signer", "]");
    world_pass(&s.w, 24 * HOUR_MS - MINUTE_MS);
    decide(&s, "r", "Approved");
    world_pass(&s.w, 48 * HOUR_MS);
    assert_true(has(&s, "r"));
}

TEST(an_expired_certificate_takes_its_request_along)
{
    SCENE;
    make(&s, "r", CLIENT, "],'expirationSeconds':600");
    decide(&s, "r", "Approved");
    world_pass(&s.w, 9 * MINUTE_MS);
    assert_true(has(&s, "r"));
    world_pass(&s.w, 2 * MINUTE_MS);
    assert_false(has(&s, "r"));
}

TEST(what_was_over_while_nobody_was_there_goes_at_once)
{
    SCENE;
    make(&s, "r", "example.org/signer", "]");
    s.w.clock.now_us += 25 * HOUR_MS * 1000;
    world_restart(&s.w);
    world_pass(&s.w, 0);
    assert_false(has(&s, "r"));
}
