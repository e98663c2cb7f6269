/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate requests: whatever is accepted can be signed or is refused with a reason, and the
 * certificate names whom the request named, under our issuer, as no CA. The same bytes are tried as
 * a signer's answer. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "pki/csr.h"

#define NOW_S ((int64_t) 1800000000)
#define LINE 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

struct authority {
    struct pki_key *key;
    struct pki_cert *cert;
};

/* One for all inputs: what is tested does not change it. */
static const struct authority *authority(void)
{
    static struct authority ca;
    if (!ca.key) {
        ca.key = pki_key_new();
        ca.cert = pki_cert_new(
            &(struct pki_cert_options){.common_name = STR("ca"), .is_ca = true, .valid_days = 3650},
            ca.key, NULL, NULL);
    }
    return &ca;
}

static void require_same_names(struct arena *a, const struct pki_request *r,
                               const struct pki_cert *c)
{
    struct str *asked = NULL, *given = NULL;
    size_t n = pki_request_organizations(a, r, &asked);
    require(str_eq(pki_request_common_name(a, r), pki_cert_common_name(a, c)));
    require(pki_cert_organizations(a, c, &given) == n);
    for (size_t i = 0; i < n; i++)
        require(str_eq(asked[i], given[i]));
}

static void sign(struct arena *a, const struct pki_request *r)
{
    const struct pki_request_terms terms = {.not_before_s = NOW_S,
                                            .not_after_s = NOW_S + 3600,
                                            .digital_signature = true,
                                            .client_auth = true};
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL, *again = NULL;
    const char *reason = NULL;
    struct str fault = STR_NONE;
    if (pki_request_sign(r, &terms, authority()->cert, authority()->key, &c, &reason) < 0) {
        require(!c && reason);
        return;
    }
    const struct str pem = pki_cert_pem(a, c);
    require(pki_cert_parse(pem, &again) == 0 && pki_request_check_answer(a, pem, &fault) == 0);
    require_same_names(a, r, again);
    require(pki_cert_not_after(again) == NOW_S + 3600);
}

/* Base64 hides the structure from the fuzzer: bytes that are no PEM are put into some. */
static struct str as_pem(struct arena *a, struct str der)
{
    BUF_AUTO b = {0};
    struct str text = base64_encode(a, der, BASE64_STANDARD);
    buf_append_str(&b, STR("-----BEGIN CERTIFICATE REQUEST-----\n"));
    for (size_t i = 0; i < text.n; i += LINE) {
        buf_append_str(&b, str_sub(text, i, MIN(i + LINE, text.n)));
        buf_append_char(&b, '\n');
    }
    buf_append_str(&b, STR("-----END CERTIFICATE REQUEST-----\n"));
    return arena_str(a, buf_str(&b));
}

static void check(struct arena *a, struct str pem)
{
    CLEANUP(pki_request_freep) struct pki_request *r = NULL;
    const char *reason = NULL;
    if (pki_request_parse(pem, &r, &reason) < 0)
        require(!r && reason);
    else
        sign(a, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    const struct str input = str_range((const char *) data, size);
    struct str fault = STR_NONE;
    require((pki_request_check_answer(a, input, &fault) < 0) == (fault.n > 0));
    check(a, input);
    check(a, as_pem(a, input));
    return 0;
}
