/* SPDX-License-Identifier: Apache-2.0 */
/* A quote: what the device's TPM says of the software that booted. The answer is honest whatever
 * the mode; what a bad one means for the device's configuration is not decided here. */
#include <errno.h>

#include "api/event_record.h"
#include "base/alloc.h"
#include "base/log.h"
#include "device/attest_internal.h"
#include "device/pcr_template.h"
#include "eve/quote.h"
#include "settings/settings.h"

/* Of a failure that repeats: devices try again every 15 s. */
#define TELL_AGAIN_US ((int64_t) 300 * 1000000)

#define CODE(name) EVE__ATTEST__ZATTEST_RESPONSE_CODE__Z_ATTEST_RESPONSE_CODE_##name

struct judgement {
    Eve__Attest__ZAttestResponseCode code;
    struct str message;
    bool is_proved; /* by a TPM: the registers are what was sent */
};

static struct judgement judge(Eve__Attest__ZAttestResponseCode code, const char *message)
{
    return (struct judgement){.code = code, .message = str_of(message)};
}

/* ---- the quote ------------------------------------------------------------------------------- */

/* Whatever comes of it, the nonce is used up. Returns its length; 0: there was none. */
static size_t use_nonce(struct device_call *c, unsigned char nonce[DEVICE_NONCE_BYTES])
{
    struct device *d = c->device;
    const int64_t now_us = c->api->clock->monotonic_us(c->api->clock);
    (void) pthread_mutex_lock(&d->lock);
    size_t n = d->nonce_n;
    if (n && now_us - d->nonce_made_us > ATTEST_NONCE_LIFE_US)
        n = 0;
    memcpy(nonce, d->nonce, DEVICE_NONCE_BYTES);
    d->nonce_n = 0;
    (void) pthread_mutex_unlock(&d->lock);
    return n;
}

static bool is_without_tpm(const Eve__Attest__ZAttestQuote *q)
{
    return !q || (!q->attestdata.len && !q->signature.len && !q->n_pcr_values);
}

static struct quote_pcr *read_pcrs(struct arena *a, const Eve__Attest__ZAttestQuote *q)
{
    struct quote_pcr *pcrs = ARENA_ARRAY(a, struct quote_pcr, q->n_pcr_values + 1);
    for (size_t i = 0; i < q->n_pcr_values; i++)
        pcrs[i] = (struct quote_pcr){q->pcr_values[i]->index,
                                     q->pcr_values[i]->hash_algo ==
                                         EVE__ATTEST__TPM_HASH_ALGO__TPM_HASH_ALGO_SHA256,
                                     pb_bytes(q->pcr_values[i]->value)};
    return pcrs;
}

static struct str version_of(const Eve__Attest__ZAttestQuote *q, Eve__Attest__AttestVersionType t)
{
    for (size_t i = 0; i < q->n_versions; i++)
        if (q->versions[i]->version_type == t)
            return pb_text(q->versions[i]->version);
    return STR("");
}

static Eve__Attest__ZAttestResponseCode code_of(enum quote_result r)
{
    return r == QUOTE_GOOD           ? CODE(SUCCESS)
           : r == QUOTE_WRONG_NONCE  ? CODE(NONCE_MISMATCH)
           : r == QUOTE_WRONG_DIGEST ? CODE(QUOTE_FAILED)
                                     : CODE(INVALID);
}

static struct pki_public *quote_key(struct device_call *c, const struct device_state *s)
{
    const Eve__Certs__ZCert *zcert =
        attest_find_cert(c->arena, s, EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_RESTRICTED_SIGNING);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    if (!zcert || pki_cert_parse(pb_bytes(zcert->cert), &cert) < 0)
        return NULL;
    return pki_cert_public(cert);
}

/* ---- templates ------------------------------------------------------------------------------- */

/* 0 also when there is no such ConfigMap. */
static int load_templates(struct device_call *c, const struct json **ret_data, struct status *st)
{
    struct json *map = NULL;
    const struct kube_request get = {.verb = VERB_GET,
                                     .group = STR(""),
                                     .version = STR("v1"),
                                     .resource = STR("configmaps"),
                                     .namespace = STR(SETTINGS_GLOBAL_NAMESPACE),
                                     .name = STR(PCR_TEMPLATES_NAME)};
    const int r = kube_request(c->api->client, c->arena, &get, &map, st);
    *ret_data = json_get(map, STR("data"));
    return r == -ENOENT ? 0 : r;
}

static int judge_registers(struct device_call *c, const Eve__Attest__ZAttestQuote *q,
                           const struct quote *quote, struct judgement *j, struct status *st)
{
    struct quote_statement statement = {0};
    const struct json *data = NULL;
    const int r = load_templates(c, &data, st);
    if (r < 0)
        return r;
    (void) quote_parse(quote->attest_data, &statement);
    const struct pcr_report report = {
        version_of(q, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_EVE),
        version_of(q, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_FIRMWARE), quote->pcrs,
        quote->n_pcrs, statement.pcr_mask};
    switch (pcr_template_judge(c->arena, data, &report, &j->message)) {
    case PCR_UNJUDGED:
        j->message = STR("the quote is good; there are no PCR templates to compare it with");
        break;
    case PCR_FITS:
        j->message = STR("the quote is good and fits a PCR template");
        break;
    case PCR_NO_TEMPLATE:
        j->code = CODE(INVALID);
        break;
    case PCR_DIFFERS:
        j->code = CODE(QUOTE_FAILED);
        break;
    }
    return 0;
}

/* ---- the judgement --------------------------------------------------------------------------- */

static int judge_tpm(struct device_call *c, const Eve__Attest__ZAttestQuote *q,
                     const struct device_state *s, struct str nonce, struct judgement *j,
                     struct status *st)
{
    CLEANUP(pki_public_freep) struct pki_public *key = quote_key(c, s);
    if (!key) {
        *j = judge(CODE(NO_CERT_FOUND), "the device has sent no certificate to verify quotes with");
        return 0;
    }
    const struct quote quote = {pb_bytes(q->attestdata), pb_bytes(q->signature),
                                read_pcrs(c->arena, q), q->n_pcr_values};
    const enum quote_result r = quote_verify(&quote, key, nonce);
    *j = judge(code_of(r), quote_result_text(r));
    if (r != QUOTE_GOOD)
        return 0;
    j->is_proved = true;
    return judge_registers(c, q, &quote, j, st);
}

static bool is_known_to_have_tpm(struct device_call *c, const struct device_state *s)
{
    (void) pthread_mutex_lock(&c->device->lock);
    const bool has_tpm = c->device->has_tpm;
    (void) pthread_mutex_unlock(&c->device->lock);
    return has_tpm || s->has_tpm || attest_certs_show_tpm(c->arena, s);
}

static int judge_quote(struct device_call *c, const Eve__Attest__ZAttestQuote *q,
                       const struct device_state *s, struct judgement *j, struct status *st)
{
    unsigned char nonce[DEVICE_NONCE_BYTES];
    const size_t nonce_n = use_nonce(c, nonce);
    if (atomic_load(&c->device->attestation) == ATTESTATION_OFF) {
        *j = judge(CODE(SUCCESS), "attestation is off: the quote was not looked at");
        return 0;
    }
    if (!nonce_n) {
        *j = judge(CODE(NONCE_MISMATCH), "the device has no nonce, or it has expired");
        return 0;
    }
    if (q && q->n_pcr_values > ATTEST_MAX_PCRS) {
        *j = judge(CODE(INVALID), "the quote has too many registers");
        return 0;
    }
    if (!is_without_tpm(q))
        return judge_tpm(c, q, s, str_range((const char *) nonce, nonce_n), j, st);
    *j = is_known_to_have_tpm(c, s)
             ? judge(CODE(QUOTE_FAILED), "the device has a TPM and sends no quote of it")
             : judge(CODE(SUCCESS), "the device has no TPM: nothing is proved");
    return 0;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

static struct str pack_pcrs(struct device_call *c, const Eve__Attest__ZAttestQuote *q)
{
    Eve__Attest__ZAttestQuote kept;
    eve__attest__zattest_quote__init(&kept);
    kept.n_pcr_values = q->n_pcr_values;
    kept.pcr_values = q->pcr_values;
    kept.n_versions = q->n_versions;
    kept.versions = q->versions;
    return pb_pack(c->arena, &kept.base);
}

static struct str new_token(struct arena *a)
{
    unsigned char bytes[ATTEST_TOKEN_BYTES];
    random_bytes(bytes, sizeof(bytes));
    return pki_hex(a, bytes, sizeof(bytes));
}

/* What is remembered of it. A device whose registers are wrong loses the token it had. */
static struct device_state change_by(struct device_call *c, const Eve__Attest__ZAttestQuote *q,
                                     const struct judgement *j)
{
    struct device_state change = {.has_tpm = j->is_proved};
    if (j->code == CODE(SUCCESS))
        change.integrity_token = new_token(c->arena);
    else if (j->is_proved)
        change.integrity_token = STR("");
    if (j->is_proved)
        change.pcrs = pack_pcrs(c, q);
    if (j->is_proved && q->tpm_binary_event_log.len &&
        q->tpm_binary_event_log.len <= ATTEST_MAX_LOG_BYTES)
        change.event_log = pb_bytes(q->tpm_binary_event_log);
    return change;
}

/* As the Secret's own event does it in a moment: the device's next request must find it so. */
static void remember(struct device *d, const struct device_state *change)
{
    (void) pthread_mutex_lock(&d->lock);
    d->has_tpm |= change->has_tpm;
    if (change->integrity_token.p) {
        mem_free((char *) (uintptr_t) d->integrity_token.p);
        d->integrity_token =
            str_range(mem_dup(change->integrity_token.p, change->integrity_token.n),
                      change->integrity_token.n);
    }
    (void) pthread_mutex_unlock(&d->lock);
}

static bool may_tell(struct device_call *c, bool is_good)
{
    struct device *d = c->device;
    const int64_t now_us = c->api->clock->monotonic_us(c->api->clock);
    (void) pthread_mutex_lock(&d->lock);
    const bool may = !is_good && (!d->attest_told_us || now_us - d->attest_told_us > TELL_AGAIN_US);
    d->attest_told_us = is_good ? 0 : may ? MAX(now_us, (int64_t) 1) : d->attest_told_us;
    (void) pthread_mutex_unlock(&d->lock);
    return may;
}

static void tell(struct device_call *c, const struct judgement *j)
{
    const struct device *d = c->device;
    const bool is_good = j->code == CODE(SUCCESS);
    if (c->api->reports && atomic_load(&d->attestation) != ATTESTATION_OFF)
        reports_attested(c->api->reports, c->device, is_good, j->message);
    if (!may_tell(c, is_good))
        return;
    const struct event_notice n = {
        .about = {STR("eve.lfedge.org/v1beta1"), STR("Device"), d->namespace, d->name, d->uid},
        .is_warning = true,
        .reason = "AttestationFailed",
        .message = j->message};
    const int r = event_record(c->api->client, c->api->clock, &n);
    if (r < 0)
        log_warning("an Event could not be recorded", LOG_STR("name", d->name), LOG_ERRNO(r));
}

/* Keys go with every SUCCESS: a device that gets none takes it that there are none, and makes its
 * vault anew. */
static int answer(struct device_call *c, const struct judgement *j, struct str token,
                  const struct device_state *s)
{
    Eve__Attest__ZAttestQuoteResp quote = EVE__ATTEST__ZATTEST_QUOTE_RESP__INIT;
    Eve__Attest__ZAttestResponse response = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    response.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_QUOTE_RESP;
    response.quoteresp = &quote;
    quote.response = j->code;
    if (j->code == CODE(SUCCESS)) {
        const Eve__Attest__AttestStorageKeys *keys =
            PB_UNPACK(c->arena, eve__attest__attest_storage_keys, s->storage_keys);
        if (!keys)
            return device_refuse(c, 503, "the keys kept for the device are damaged");
        quote.integrity_token = pb_data(token);
        quote.n_keys = keys->n_keys;
        quote.keys = keys->keys;
    }
    c->reason = j->message;
    return attest_answer(c, &response);
}

int attest_quote(struct device_call *c, const Eve__Attest__ZAttestReq *req)
{
    struct device_state state;
    struct judgement j;
    struct status st;
    status_init(&st, c->arena);
    if (device_state_load(c->api->client, c->arena, c->device, &state, &st) < 0 ||
        judge_quote(c, req->quote, &state, &j, &st) < 0)
        return attest_put_off(c, &st);
    const struct device_state change = change_by(c, req->quote, &j);
    if ((change.integrity_token.p || change.pcrs.p) &&
        device_state_save(c->api->client, c->arena, c->device, &change, &st) < 0)
        return attest_put_off(c, &st);
    remember(c->device, &change);
    tell(c, &j);
    return answer(c, &j, change.integrity_token, &state);
}
