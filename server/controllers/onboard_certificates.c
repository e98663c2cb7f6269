/* SPDX-License-Identifier: Apache-2.0 */
/* What lets devices register (OnboardCertificates and both kinds of authorities): their status says
 * which certificate it is, whether and until when it is good, and how many Devices came by it. */
#include "controllers/onboard_certificates.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "controllers/conditions.h"
#include "controllers/objects.h"
#include "controllers/onboard_tally.h"
#include "pki/pki.h"

#define GROUP STR("eve.lfedge.org")
#define SECOND_US ((int64_t) 1000000)
/* Devices that come together are counted together. */
#define COUNT_DELAY_MS 500
/* A clock that jumps is noticed within this. */
#define MAX_WAIT_MS ((int64_t) 3600 * 1000)

static const struct sponsor_kind {
    const char *kind, *plural, *collection;
    bool is_authority;
} sponsor_kinds[] = {
    {"OnboardCertificate", "onboardcertificates", "onboardcertificates.eve.lfedge.org", false},
    {"OnboardCertificateAuthority", "onboardcertificateauthorities",
     "onboardcertificateauthorities.eve.lfedge.org", true},
    {"DeviceCertificateAuthority", "devicecertificateauthorities",
     "devicecertificateauthorities.eve.lfedge.org", true},
};

/* ---- waking -------------------------------------------------------------------------------- */

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    return onboard_tally_new();
}

static void stop(void *tally)
{
    onboard_tally_free(tally);
}

static void on_count(void *queue, struct str sponsor)
{
    controller_enqueue(queue, sponsor, COUNT_DELAY_MS);
}

/* Keys are "<Kind>/<namespace>/<name>". */
static void on_event(void *tally, const struct kube_event *e, struct controller_queue *q)
{
    if (str_is(e->collection, "devices.eve.lfedge.org")) {
        onboard_tally_event(tally, e, on_count, q);
        return;
    }
    for (size_t i = 0; i < N_ELEMENTS(sponsor_kinds) && e->type != KUBE_DELETED; i++)
        if (str_is(e->collection, sponsor_kinds[i].collection)) {
            ARENA_AUTO a = arena_new();
            controller_enqueue(q,
                               arena_printf(a, "%s/%.*s/%.*s", sponsor_kinds[i].kind,
                                            STR_ARG(e->namespace), STR_ARG(e->name)),
                               0);
        }
}

/* ---- what there is to say ------------------------------------------------------------------ */

struct task {
    const struct sponsor_kind *kind;
    struct arena *arena;
    struct json *object, *status;
    int64_t now_us;
    int64_t next_us; /* when it must be looked at again; INT64_MAX: never */
};

static void set_validity(struct task *t, bool is_valid, const char *reason, struct str message)
{
    const bool is_expired = str_is(str_of(reason), "Expired");
    const struct condition valid = {"Valid", is_valid ? "True" : "False", str_of(reason), message};
    const struct condition expired = {"Expired", is_expired ? "True" : "False",
                                      is_expired ? STR("Expired") : STR("NotExpired"),
                                      is_expired ? message : STR("")};
    struct json *conditions = conditions_of(t->arena, t->object);
    (void) conditions_set(t->arena, conditions, &valid, t->now_us);
    (void) conditions_set(t->arena, conditions, &expired, t->now_us);
}

static struct str time_text(struct arena *a, int64_t s)
{
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(s * SECOND_US, text);
    return arena_str(a, str_of(text));
}

static void judge(struct task *t, const struct pki_cert *cert)
{
    const int64_t from_us = pki_cert_not_before(cert) * SECOND_US,
                  until_us = pki_cert_not_after(cert) * SECOND_US;
    const struct str from = time_text(t->arena, pki_cert_not_before(cert)),
                     until = time_text(t->arena, pki_cert_not_after(cert));
    if (t->now_us > until_us) {
        set_validity(
            t, false, "Expired",
            arena_printf(t->arena, "the certificate expired %.*s; renew it", STR_ARG(until)));
    } else if (t->kind->is_authority && !pki_cert_is_authority(cert)) {
        set_validity(t, false, "NotAnAuthority",
                     STR("the certificate may not sign others (basic constraints CA), so nothing "
                         "is registered by it"));
        t->next_us = until_us;
    } else if (t->now_us < from_us) {
        set_validity(t, false, "NotYetValid",
                     arena_printf(t->arena, "the certificate begins %.*s", STR_ARG(from)));
        t->next_us = from_us;
    } else {
        set_validity(
            t, true, "Accepted",
            arena_printf(t->arena, "devices may register by it until %.*s", STR_ARG(until)));
        t->next_us = until_us;
    }
}

static void set_text(struct task *t, const char *key, struct str value)
{
    (void) json_set(t->arena, t->status, str_of(key), json_string(value));
}

static void describe(struct task *t, size_t n_registered)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    const char *reason = "";
    const struct str text = json_str(json_at(t->object, "spec", "certificate", NULL));
    const struct json *generation = object_meta_at(t->object, "generation");
    t->status = json_ensure_object(t->arena, t->object, STR("status"));
    if (pki_cert_decode(text, &cert, &reason) < 0) {
        (void) json_remove(t->status, STR("fingerprint"));
        (void) json_remove(t->status, STR("notAfter"));
    } else {
        unsigned char hash[SHA256_BYTES];
        pki_cert_fingerprint(cert, hash);
        set_text(t, "fingerprint", pki_hex(t->arena, hash, sizeof(hash)));
        set_text(t, "notAfter", time_text(t->arena, pki_cert_not_after(cert)));
    }
    (void) json_set(t->arena, t->status, STR("registered"), json_int((int64_t) n_registered));
    if (generation)
        (void) json_set(t->arena, t->status, STR("observedGeneration"), *generation);
    if (cert)
        judge(t, cert);
    else
        set_validity(t, false, "NoCertificate",
                     arena_printf(t->arena, "spec.certificate: %s", reason));
}

/* ---- reconciling --------------------------------------------------------------------------- */

/* False when the key is no object's: a Device says whatever it says. */
static bool parse_key(struct str key, const struct registry *kinds, struct object_place *at,
                      const struct sponsor_kind **ret_kind)
{
    struct str rest = key, kind;
    if (!str_split(&rest, '/', &kind) || !str_split(&rest, '/', &at->namespace))
        return false;
    at->name = rest;
    for (size_t i = 0; i < N_ELEMENTS(sponsor_kinds); i++)
        if (str_is(kind, sponsor_kinds[i].kind)) {
            *ret_kind = &sponsor_kinds[i];
            at->kind = registry_find(kinds, GROUP, STR("v1beta1"), str_of(sponsor_kinds[i].plural));
            return at->kind && at->name.n && at->namespace.n && str_find(at->name, '/') < 0;
        }
    return false;
}

static int64_t wait_ms(const struct task *t)
{
    if (t->next_us == INT64_MAX)
        return 0;
    return MIN((t->next_us - t->now_us) / 1000 + 1000, MAX_WAIT_MS);
}

static int64_t reconcile(void *tally, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place at = {0};
    struct task t = {.arena = a, .now_us = ctx->clock->wall_us(ctx->clock), .next_us = INT64_MAX};
    if (!parse_key(key, kinds, &at, &t.kind))
        return 0;
    int r = objects_get(ctx, a, &at, &t.object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (object_is_deleting(t.object))
        return 0;
    const struct json before = json_clone(a, t.object);
    describe(&t, onboard_tally_count(tally, key));
    if (!json_equal(&before, t.object)) {
        r = objects_update(ctx, a, &at, "status", t.object, NULL);
        if (r < 0)
            return r == -ENOENT ? 0 : r;
    }
    return wait_ms(&t);
}

const struct controller onboard_certificates_controller = {.name = "onboard-certificates",
                                                           .start = start,
                                                           .on_event = on_event,
                                                           .reconcile = reconcile,
                                                           .stop = stop};
