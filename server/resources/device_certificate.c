/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/device_certificate.h"

#include "pki/pki.h"

/* So much of a text tells people which it is. */
#define SHOWN_BYTES 40

static struct json shown_part(struct arena *a, struct str text)
{
    if (text.n <= SHOWN_BYTES || !str_is_utf8(str_sub(text, 0, SHOWN_BYTES)))
        return json_string(text);
    return json_string(arena_printf(a, "%.*s...", SHOWN_BYTES, text.p));
}

void device_certificate_check(struct causes *causes, const struct json *old,
                              const struct json *object, const char *member)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *was = json_at(old, "spec", member, NULL),
                      *text = json_at(object, "spec", member, NULL);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    const char *reason = "";
    if (!json_is(text, JSON_STRING) || (was && json_equal(was, text)) ||
        pki_cert_decode(json_str(text), &cert, &reason) == 0)
        return;
    const struct json value = shown_part(causes->arena, json_str(text));
    causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&spec, str_of(member)), &value,
               "must be a certificate: %s", reason);
}

struct str device_certificate_fingerprint(struct arena *a, const struct json *text)
{
    unsigned char hash[SHA256_BYTES];
    if (!json_is(text, JSON_STRING) || pki_cert_decode_fingerprint(json_str(text), hash) < 0)
        return STR_NONE;
    return pki_hex(a, hash, sizeof(hash));
}
