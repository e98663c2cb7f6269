/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a device in Adam's store, in the forms its releases have written. */
#include <errno.h>

#include "adam/objects.h"
#include "adam/takeover_internal.h"
#include "base/uuid.h"
#include "eve/attest.pb-c.h"
#include "protobuf/protojson.h"

/* What Adam gives a device that nobody has configured. */
#define BASE_VERSION "4"

void taken_device_done(struct taken_device *d)
{
    pki_cert_free(d->cert);
    pki_cert_free(d->onboard);
}

static int PRINTF_LIKE(3, 4)
    refuse(struct arena *a, struct str *ret_reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *ret_reason = arena_vprintf(a, format, args);
    va_end(args);
    return -EINVAL;
}

static int read_uuid(struct arena *a, struct str text, struct str *ret, struct str *ret_reason)
{
    struct uuid uuid;
    char lower[UUID_TEXT_BYTES];
    if (uuid_parse(text, &uuid) < 0 || uuid_is_zero(&uuid))
        return refuse(a, ret_reason, "'%.*s' is no UUID", STR_ARG(text));
    uuid_text(&uuid, lower);
    *ret = arena_str(a, str_of(lower));
    return 0;
}

static int read_certs(struct arena *a, const struct adam_stored_device *stored,
                      struct taken_device *d, struct str *ret_reason)
{
    const char *reason = NULL;
    const struct str cert = stored->parts[ADAM_CERT], onboard = stored->parts[ADAM_ONBOARD];
    if (!cert.n)
        return refuse(a, ret_reason, "it has no certificate");
    if (pki_cert_decode(cert, &d->cert, &reason) < 0)
        return refuse(a, ret_reason, "its certificate: %s", reason);
    if (onboard.n && pki_cert_decode(onboard, &d->onboard, &reason) < 0)
        return refuse(a, ret_reason, "its onboarding certificate: %s", reason);
    return 0;
}

/* ---- the configuration ----------------------------------------------------------------------- */

/* Older releases wrote JSON; no message begins with a brace. */
static int read_config(struct arena *a, struct str text, struct taken_device *d,
                       struct str *ret_reason)
{
    struct str error = STR_NONE;
    struct uuid uuid, own;
    const bool is_json = str_starts_with(str_trim(text), STR("{"));
    d->config = adam_read_config(a, text, !is_json, &error);
    if (!d->config)
        return refuse(a, ret_reason, "its configuration cannot be read: %.*s", STR_ARG(error));
    if (!d->config->id) {
        d->config->id = ARENA_NEW(a, Eve__Config__UUIDandVersion);
        eve__config__uuidand_version__init(d->config->id);
    }
    const struct str given = pb_text(d->config->id->uuid);
    (void) uuid_parse(d->uuid, &own);
    if (given.n && (uuid_parse(given, &uuid) < 0 || !uuid_eq(&uuid, &own)))
        return refuse(a, ret_reason, "its configuration is of another device, %.*s",
                      STR_ARG(given));
    d->config->id->uuid = arena_strz(a, d->uuid);
    if (!pb_text(d->config->id->version).n)
        d->config->id->version = (char *) BASE_VERSION;
    return 0;
}

/* ---- what it has attested -------------------------------------------------------------------- */

/* Go's plain JSON of a message: names of the .proto, enums by number. */
static void *read_message(struct arena *a, const ProtobufCMessageDescriptor *d, struct str text,
                          struct str *ret_error)
{
    struct json_parse_result parsed = {0};
    if (json_parse(a, text, &parsed) < 0) {
        *ret_error = parsed.error;
        return NULL;
    }
    return protojson_read(a, d, parsed.value, PROTOJSON_REFUSE_UNKNOWN, /* ret_n_ignored= */ NULL,
                          ret_error);
}

static int read_attest_certs(struct arena *a, struct str text, struct taken_device *d,
                             struct str *ret_reason)
{
    struct str error = STR_NONE;
    Eve__Attest__ZAttestReq *certs =
        read_message(a, &eve__attest__zattest_req__descriptor, text, &error);
    if (!certs)
        return refuse(a, ret_reason, "its attestation certificates cannot be read: %.*s",
                      STR_ARG(error));
    certs->reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_CERT;
    d->state.certificates = pb_pack(a, &certs->base);
    return 0;
}

/* The token is kept apart. */
static int read_storage_keys(struct arena *a, struct str text, struct taken_device *d,
                             struct str *ret_reason)
{
    struct str error = STR_NONE;
    Eve__Attest__AttestStorageKeys *keys =
        read_message(a, &eve__attest__attest_storage_keys__descriptor, text, &error);
    if (!keys)
        return refuse(a, ret_reason, "its storage keys cannot be read: %.*s", STR_ARG(error));
    keys->integrity_token = pb_data(STR(""));
    d->state.storage_keys = pb_pack(a, &keys->base);
    return 0;
}

/* A device that has quoted registers has a TPM, and is not to do without from now on. */
static int read_options(struct arena *a, struct str text, struct taken_device *d,
                        struct str *ret_reason)
{
    struct json_parse_result parsed = {0};
    if (json_parse(a, text, &parsed) < 0 || !json_is(parsed.value, JSON_OBJECT))
        return refuse(a, ret_reason, "its options cannot be read: %.*s",
                      STR_ARG(parsed.error.n ? parsed.error : STR("they are no object")));
    const struct str token = json_str(adam_member(parsed.value, "integrityToken"));
    const struct json *template = adam_member(parsed.value, "receivedPCRTemplate");
    if (token.n)
        d->state.integrity_token = token;
    d->state.has_tpm = json_count(adam_member(template, "PCRValues")) > 0;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- */

int taken_device_read(struct arena *a, const struct adam_stored_device *stored,
                      struct taken_device *ret, struct str *ret_reason)
{
    const struct str config = stored->parts[ADAM_CONFIG], certs = stored->parts[ADAM_CERTS],
                     keys = stored->parts[ADAM_STORAGE_KEYS], options = stored->parts[ADAM_OPTIONS],
                     serial = stored->parts[ADAM_SERIAL];
    int r = read_uuid(a, stored->uuid, &ret->uuid, ret_reason);
    if (r == 0)
        r = read_certs(a, stored, ret, ret_reason);
    ret->serial = serial.n ? str_trim(serial) : STR("");
    if (r == 0)
        r = read_config(a, config.n ? config : STR("{}"), ret, ret_reason);
    if (r == 0 && certs.n)
        r = read_attest_certs(a, certs, ret, ret_reason);
    if (r == 0 && keys.n)
        r = read_storage_keys(a, keys, ret, ret_reason);
    if (r == 0 && options.n)
        r = read_options(a, options, ret, ret_reason);
    return r;
}
