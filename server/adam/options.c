/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/options and /admin/device/{uuid}/options: how devices attest. */
#include <errno.h>

#include "adam/adam_internal.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "eve/attest.pb-c.h"
#include "protobuf/message.h"
#include "roster/state.h"
#include "settings/settings.h"

/* ---- of a device ----------------------------------------------------------------------------- */

static struct str nonce_of(struct arena *a, struct device *d)
{
    (void) pthread_mutex_lock(&d->lock);
    const struct str nonce = pki_hex(a, d->nonce, d->nonce_n);
    (void) pthread_mutex_unlock(&d->lock);
    return nonce;
}

static struct str version_of(const Eve__Attest__ZAttestQuote *quote,
                             Eve__Attest__AttestVersionType type)
{
    for (size_t i = 0; i < quote->n_versions; i++)
        if (quote->versions[i]->version_type == type)
            return pb_text(quote->versions[i]->version);
    return STR("");
}

static struct json template_of(struct arena *a, const Eve__Attest__ZAttestQuote *quote)
{
    struct json template = json_object(), values = json_array();
    for (size_t i = 0; i < quote->n_pcr_values; i++) {
        const Eve__Attest__TpmPCRValue *pcr = quote->pcr_values[i];
        struct json one = json_object();
        (void) json_append_member(a, &one, STR("index"), json_int(pcr->index));
        adam_add(a, &one, "value", pki_hex(a, pcr->value.data, pcr->value.len));
        (void) json_push(a, &values, one);
    }
    adam_add(a, &template, "eveVersion",
             version_of(quote, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_EVE));
    adam_add(a, &template, "firmwareVersion",
             version_of(quote, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_FIRMWARE));
    (void) json_append_member(a, &template, STR("PCRValues"), values);
    return template;
}

static int load(struct adam_call *c, struct device_state *ret, struct status *st)
{
    status_init(st, c->arena);
    return device_state_load(c->adam->options.client, c->arena, c->device, ret, st);
}

/* Adam's event log is a list of entries, which devices no longer send: what they send has a name of
 * its own. */
int adam_options_get(struct adam_call *c)
{
    struct arena *a = c->arena;
    struct status st;
    struct device_state state = {0};
    struct json answer = json_object();
    if (load(c, &state, &st) < 0)
        return adam_refuse_status(c, &st);
    const Eve__Attest__ZAttestQuote *quote =
        state.pcrs.n ? PB_UNPACK(a, eve__attest__zattest_quote, state.pcrs) : NULL;
    adam_add(a, &answer, "nonce", nonce_of(a, c->device));
    adam_add(a, &answer, "integrityToken", state.integrity_token);
    (void) json_append_member(a, &answer, STR("receivedPCRTemplate"),
                              quote ? template_of(a, quote) : json_null());
    (void) json_append_member(a, &answer, STR("attested"), json_bool(state.integrity_token.n > 0));
    (void) json_append_member(a, &answer, STR("eventLog"), json_null());
    if (state.event_log.n)
        adam_add(a, &answer, "tpmBinaryEventLog",
                 base64_encode(a, state.event_log, BASE64_STANDARD));
    return adam_answer(c, 200, ADAM_JSON, json_text(a, &answer));
}

/* As the Secret's own event does it in a moment. */
static void set_token(struct device *d, struct str token)
{
    (void) pthread_mutex_lock(&d->lock);
    mem_free((char *) (uintptr_t) d->integrity_token.p);
    d->integrity_token = str_range(mem_dup(token.p, token.n), token.n);
    (void) pthread_mutex_unlock(&d->lock);
}

/* The token is the one thing here that is not the device's own word: without one it has to attest
 * again. */
int adam_options_set(struct adam_call *c)
{
    struct status st;
    struct device_state state = {0};
    struct json_parse_result parsed = {0};
    if (json_parse(c->arena, c->request->body, &parsed) < 0 || !json_is(parsed.value, JSON_OBJECT))
        return adam_refuse(c, 400, "failed to read the options: %.*s",
                           STR_ARG(parsed.error.n ? parsed.error : STR("an object is expected")));
    const struct json *given = adam_member(parsed.value, "integrityToken");
    if (given && !json_is(given, JSON_STRING) && !json_is(given, JSON_NULL))
        return adam_refuse(c, 400, "failed to read the options: integrityToken is a string");
    const struct str token = json_is(given, JSON_STRING) ? json_str(given) : STR("");
    if (load(c, &state, &st) < 0)
        return adam_refuse_status(c, &st);
    if (str_eq(token, state.integrity_token))
        return adam_done(c, 200);
    const struct device_state change = {.integrity_token = token};
    if (device_state_save(c->adam->options.client, c->arena, c->device, &change, &st) < 0)
        return adam_refuse_status(c, &st);
    set_token(c->device, token);
    return adam_done(c, 200);
}

/* ---- of all ---------------------------------------------------------------------------------- */

static struct adam_place system_place(struct adam_call *c, struct status *st)
{
    return (struct adam_place){c->adam->options.client, c->arena, STR(SETTINGS_GLOBAL_NAMESPACE),
                               st};
}

int adam_global_options_get(struct adam_call *c)
{
    struct status st;
    struct json *options = NULL, *templates = NULL, answer = json_object();
    const struct adam_place place = system_place(c, &st);
    int r = adam_get(&place, STR("configmaps"), STR(SETTINGS_GLOBAL_NAME), &options);
    if (r == 0 || r == -ENOENT)
        r = adam_get(&place, STR("configmaps"), STR("pcr-templates"), &templates);
    if (r < 0 && r != -ENOENT)
        return adam_refuse_status(c, &st);
    const struct json *data = json_get(templates, STR("data"));
    const struct str text = json_get_str(data, STR("templates.json"));
    const struct json *list = text.n ? json_parse_quick(c->arena, text) : NULL;
    const bool is_enforced =
        str_is(json_str(json_at(options, "data", "attestation", NULL)), "enforce") &&
        !str_is(json_get_str(data, STR("enforce")), "false");
    (void) json_append_member(c->arena, &answer, STR("enforceTemplateAttestation"),
                              json_bool(is_enforced));
    (void) json_append_member(c->arena, &answer, STR("PCRTemplates"),
                              json_is(list, JSON_ARRAY) ? *list : json_array());
    return adam_answer(c, 200, ADAM_JSON, json_text(c->arena, &answer));
}

int adam_global_options_set(struct adam_call *c)
{
    struct status st;
    struct json_parse_result parsed = {0};
    const struct adam_place place = system_place(c, &st);
    status_init(&st, c->arena);
    if (json_parse(c->arena, c->request->body, &parsed) < 0)
        return adam_refuse(c, 400, "failed to read the options: %.*s", STR_ARG(parsed.error));
    return adam_put_global_options(&place, parsed.value) < 0 ? adam_refuse_status(c, &st)
                                                             : adam_done(c, 200);
}
