/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says when it registers, and that it may say so: the message is signed by the
 * onboarding certificate that comes with it. */
#include "device/onboarding_internal.h"
#include "eve/register.pb-c.h"

/* The validation rules of ZRegisterMsg. */
#define MIN_CERTIFICATE_BYTES 100
#define MAX_CERTIFICATE_BYTES 10240
#define MAX_SERIAL_CHARACTERS 256

/* ---- who signed ----------------------------------------------------------------------------- */

static bool refuse(struct device_call *c, int status, const char *why)
{
    (void) device_refuse(c, status, "%s", why);
    return false;
}

static bool read_sender(struct device_call *c, struct registration *r)
{
    const struct envelope *e = &c->envelope;
    const char *reason = NULL;
    if (envelope_check_form(e) < 0)
        return refuse(c, 401, "the envelope has no signature, or its hash has the wrong length");
    if (!e->sender_cert.n)
        return refuse(c, 401, "a registration must carry its onboarding certificate");
    if (e->sender_cert.n > ENVELOPE_MAX_CERT_BYTES)
        return refuse(c, 401, "the onboarding certificate is too large");
    if (pki_cert_decode(e->sender_cert, &r->onboard, &reason) < 0) {
        (void) device_refuse(c, 401, "the onboarding certificate cannot be read: %s", reason);
        return false;
    }
    pki_cert_fingerprint(r->onboard, r->query.onboard_hash);
    if (e->sender_hash.n > SHA256_BYTES ||
        memcmp(e->sender_hash.p, r->query.onboard_hash, e->sender_hash.n) != 0)
        return refuse(c, 401, "the envelope's hash is not that of the onboarding certificate");
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(r->onboard);
    if (!key || envelope_verify(e, key) < 0)
        return refuse(c, 401, "the signature is not that of the onboarding certificate");
    return true;
}

/* TLS has verified that the peer holds the key. */
static bool read_peer(struct device_call *c, struct registration *r)
{
    const char *reason = NULL;
    if (!c->certificate)
        return refuse(c, 401, "a registration of API v1 needs the onboarding certificate in TLS");
    if (pki_cert_decode(pki_cert_pem(c->arena, c->certificate), &r->onboard, &reason) < 0)
        return refuse(c, 401, reason);
    pki_cert_fingerprint(r->onboard, r->query.onboard_hash);
    return true;
}

/* ---- what it says --------------------------------------------------------------------------- */

static size_t count_characters(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char) s.p[i] & 0xC0) != 0x80;
    return n;
}

static bool is_good_serial(struct str s)
{
    return str_is_utf8(s) && count_characters(s) <= MAX_SERIAL_CHARACTERS;
}

static bool is_good_soft_serial(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return s.n <= MAX_SERIAL_CHARACTERS;
}

static bool read_certificate(struct device_call *c, struct registration *r, struct str text)
{
    const char *reason = NULL;
    if (text.n < MIN_CERTIFICATE_BYTES || text.n > MAX_CERTIFICATE_BYTES)
        return refuse(c, 422, "pemCert must have 100 to 10240 bytes");
    if (pki_cert_decode(text, &r->certificate, &reason) < 0) {
        (void) device_refuse(c, 422, "pemCert cannot be read: %s", reason);
        return false;
    }
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(r->certificate);
    if (!pki_public_is_p256(key))
        return refuse(c, 422, "the device's certificate must have a key on P-256");
    pki_cert_fingerprint(r->certificate, r->query.certificate_hash);
    return true;
}

static bool read_message(struct device_call *c, struct registration *r, struct str payload)
{
    const Eve__Register__ZRegisterMsg *m =
        PB_UNPACK(c->arena, eve__register__zregister_msg, payload);
    if (!m)
        return refuse(c, 422, "the payload is no ZRegisterMsg");
    r->query.serial = pb_text(m->serial);
    r->query.soft_serial = pb_text(m->softserial);
    if (!is_good_serial(r->query.serial))
        return refuse(c, 422, "serial must be text of at most 256 characters");
    if (!is_good_soft_serial(r->query.soft_serial))
        return refuse(c, 422,
                      "softSerial must be at most 256 letters, digits, hyphens and underscores");
    return read_certificate(c, r, pb_bytes(m->pemcert));
}

bool registration_read(struct device_call *c, struct registration *r)
{
    if (!(c->is_v1 ? read_peer(c, r) : read_sender(c, r)))
        return false;
    if (!read_message(c, r, c->is_v1 ? c->payload : c->envelope.payload))
        return false;
    r->query.certificate = r->certificate;
    r->query.onboard = r->onboard;
    return true;
}
