/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates in the specs of our kinds, in any of the encodings people use. */
#pragma once

#include "api/hooks.h"
#include "schema/causes.h"

/* "Invalid value" with the reason when spec.<member> is there and no certificate. What old (perhaps
 * NULL) has too was judged before. */
void device_certificate_check(struct causes *causes, const struct json *old,
                              const struct json *object, const char *member);
/* The SHA-256 of the certificate in hex, whatever its encoding; STR_NONE when it is none. */
struct str device_certificate_fingerprint(struct arena *a, const struct json *text);
