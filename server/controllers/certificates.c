/* SPDX-License-Identifier: Apache-2.0 */
/* CertificateSigningRequests: approved ones for clients of this API get their certificate, and all
 * of them go some time after they were decided. */
#include "controllers/certificates.h"

#include <errno.h>

#include "api/user.h"
#include "base/base64.h"
#include "base/log.h"
#include "controllers/conditions.h"
#include "controllers/objects.h"
#include "pki/csr.h"

#define COLLECTION "certificatesigningrequests.certificates.k8s.io"
#define SIGNER "kubernetes.io/kube-apiserver-client"
#define SECOND_US ((int64_t) 1000000)
#define HOUR_US (3600 * SECOND_US)
#define DECIDED_US HOUR_US
#define PENDING_US (24 * HOUR_US)
#define MIN_VALID_S 600
/* The clocks of those who check it may be behind. */
#define BACKDATE_S 300
/* A certificate shorter than this is not shortened further by it. */
#define SHORT_S (8 * 3600)

/* Keys are names. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (str_is(e->collection, COLLECTION) && e->type != KUBE_DELETED)
        controller_enqueue(q, e->name, 0);
}

static struct object_place place(const struct registry *kinds, struct str name)
{
    return (struct object_place){registry_find(kinds, STR("certificates.k8s.io"), STR("v1"),
                                               STR("certificatesigningrequests")),
                                 STR_NONE, name};
}

static struct str decoded(struct arena *a, const struct json *text)
{
    struct str bytes = STR("");
    (void) base64_decode(a, json_str(text), BASE64_STANDARD, &bytes, NULL);
    return bytes;
}

static struct json *conditions_in(const struct json *csr)
{
    return json_at(csr, "status", "conditions", NULL);
}

static const struct json *certificate_in(const struct json *csr)
{
    const struct json *certificate = json_at(csr, "status", "certificate", NULL);
    return json_str(certificate).n ? certificate : NULL;
}

/* ---- signing ------------------------------------------------------------------------------ */

struct task {
    const struct controller_context *ctx;
    struct arena *arena;
    struct json *csr;
};

static bool is_to_be_signed(const struct json *csr)
{
    struct json *conditions = conditions_in(csr);
    return str_is(json_str(json_at(csr, "spec", "signerName", NULL)), SIGNER) &&
           conditions_is_true(conditions, "Approved") && !conditions_find(conditions, "Denied") &&
           !conditions_is_true(conditions, "Failed") && !certificate_in(csr) &&
           !object_is_deleting(csr);
}

static struct str read_usages(struct arena *a, const struct json *usages,
                              struct pki_request_terms *terms)
{
    JSON_FOR_EACH_ITEM (usages, usage) {
        const struct str text = json_str(usage);
        if (str_is(text, "digital signature"))
            terms->digital_signature = true;
        else if (str_is(text, "key encipherment"))
            terms->key_encipherment = true;
        else if (str_is(text, "client auth"))
            terms->client_auth = true;
        else
            return arena_printf(a, "invalid usage for client certificate: %.*s", STR_ARG(text));
    }
    return terms->client_auth ? STR_NONE
                              : STR("missing required usage for client certificate: client auth");
}

static void set_times(const struct task *t, struct pki_request_terms *terms)
{
    const int64_t now_s = t->ctx->clock->wall_us(t->ctx->clock) / SECOND_US;
    const int64_t most_s = t->ctx->signing_duration_s;
    const int64_t asked_s =
        json_get_int(json_get(t->csr, STR("spec")), STR("expirationSeconds"), most_s);
    const int64_t valid_s = MIN(MAX(asked_s, MIN_VALID_S), most_s);
    terms->not_before_s = now_s - BACKDATE_S;
    terms->not_after_s = valid_s < SHORT_S ? now_s + valid_s : terms->not_before_s + valid_s;
}

/* Admission refuses such requests; one that came some other way gets nothing either. */
static bool asks_for_everything(const struct task *t, const struct pki_request *request)
{
    struct str *groups = NULL;
    const size_t n = pki_request_organizations(t->arena, request, &groups);
    for (size_t i = 0; i < n; i++)
        if (str_is(groups[i], GROUP_MASTERS))
            return true;
    return false;
}

/* The certificate as PEM; else STR_NONE, and why in *ret_reason. */
static struct str issue(const struct task *t, struct str *ret_reason)
{
    const struct json *spec = json_get(t->csr, STR("spec"));
    CLEANUP(pki_request_freep) struct pki_request *request = NULL;
    CLEANUP(pki_cert_freep) struct pki_cert *certificate = NULL;
    struct pki_request_terms terms = {0};
    const char *reason = NULL;
    *ret_reason = read_usages(t->arena, json_get(spec, STR("usages")), &terms);
    if (ret_reason->n)
        return STR_NONE;
    set_times(t, &terms);
    int r = pki_request_parse(decoded(t->arena, json_get(spec, STR("request"))), &request, &reason);
    if (r == 0 && asks_for_everything(t, request)) {
        *ret_reason = STR("use of " SIGNER " signer with " GROUP_MASTERS " group is not allowed");
        return STR_NONE;
    }
    if (r == 0)
        r = pki_request_sign(request, &terms, t->ctx->ca_cert, t->ctx->ca_key, &certificate,
                             &reason);
    if (r == 0)
        return pki_cert_pem(t->arena, certificate);
    *ret_reason = str_of(reason);
    return STR_NONE;
}

static void add_failure(const struct task *t, struct str message)
{
    struct json *conditions = conditions_of(t->arena, t->csr);
    (void) conditions_set(t->arena, conditions,
                          &(struct condition){.type = "Failed",
                                              .status = "True",
                                              .reason = STR("SignerValidationFailure"),
                                              .message = message},
                          t->ctx->clock->wall_us(t->ctx->clock));
}

static int sign(const struct task *t, const struct object_place *at)
{
    struct str reason = STR_NONE;
    const struct str pem = issue(t, &reason);
    if (pem.n) {
        struct json *status = json_ensure_object(t->arena, t->csr, STR("status"));
        (void) json_set(t->arena, status, STR("certificate"),
                        json_string(base64_encode(t->arena, pem, BASE64_STANDARD)));
    } else {
        add_failure(t, reason);
    }
    const int r = objects_update(t->ctx, t->arena, at, "status", t->csr, NULL);
    if (r == 0 && pem.n)
        log_info("certificate issued", LOG_STR("request", at->name));
    else if (r == 0)
        log_warning("no certificate issued", LOG_STR("request", at->name),
                    LOG_STR("reason", reason));
    return r == -ENOENT ? 0 : r;
}

static int64_t reconcile_signing(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    const struct object_place at = place(kinds, key);
    struct task t = {.ctx = ctx, .arena = a};
    const int r = objects_get(ctx, a, &at, &t.csr);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return is_to_be_signed(t.csr) ? sign(&t, &at) : 0;
}

const struct controller certificates_controller = {
    .name = "certificates", .on_event = on_event, .reconcile = reconcile_signing};

/* ---- cleaning up -------------------------------------------------------------------------- */

static int64_t time_of(const struct json *text, int64_t or_else)
{
    int64_t at_us = or_else;
    return json_str(text).n && clock_parse(json_str(text), &at_us) == 0 ? at_us : or_else;
}

/* When the condition of this type has been there long enough. */
static int64_t decided_until_us(const struct json *csr, const char *type)
{
    const struct json *condition = conditions_find(conditions_in(csr), type);
    const int64_t changed_us = time_of(json_get(condition, STR("lastTransitionTime")), INT64_MAX);
    const int64_t since_us = time_of(json_get(condition, STR("lastUpdateTime")), changed_us);
    return since_us == INT64_MAX ? INT64_MAX : since_us + DECIDED_US;
}

static int64_t expires_us(struct arena *a, const struct json *csr)
{
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL;
    if (pki_cert_parse(decoded(a, certificate_in(csr)), &c) < 0)
        return INT64_MAX;
    return pki_cert_not_after(c) * SECOND_US;
}

/* When the request may go; INT64_MAX: not before something happens to it. */
static int64_t deadline_us(struct arena *a, const struct json *csr)
{
    int64_t until_us = MIN(decided_until_us(csr, "Denied"), decided_until_us(csr, "Failed"));
    if (json_count(conditions_in(csr)) == 0)
        return time_of(object_meta_at(csr, "creationTimestamp"), INT64_MAX - PENDING_US) +
               PENDING_US;
    if (certificate_in(csr) && conditions_find(conditions_in(csr), "Approved"))
        until_us = MIN(until_us, MIN(decided_until_us(csr, "Approved"), expires_us(a, csr)));
    return until_us;
}

static int64_t reconcile_cleanup(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    const struct object_place at = place(kinds, key);
    struct json *csr = NULL;
    const int r = objects_get(ctx, a, &at, &csr);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const int64_t until_us = deadline_us(a, csr), now_us = ctx->clock->wall_us(ctx->clock);
    if (until_us == INT64_MAX || object_is_deleting(csr))
        return 0;
    if (until_us > now_us)
        return (until_us - now_us) / 1000 + 1;
    const struct delete_terms terms = {.uid = object_meta_text(csr, "uid"),
                                       .revision = object_meta_text(csr, "resourceVersion")};
    return objects_delete(ctx, a, &at, &terms);
}

const struct controller certificate_cleanup_controller = {
    .name = "certificate-cleanup", .on_event = on_event, .reconcile = reconcile_cleanup};
