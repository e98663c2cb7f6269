/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates in the wrappings they arrive in. */
#include <errno.h>

#include "base/base64.h"
#include "pki/pki_internal.h"

/* Base64 of base64 of PEM, which is base64 itself. */
#define MAX_WRAPPINGS 2

static const struct str pem_begin = {"-----BEGIN ", 11};

static bool is_pem(struct str s)
{
    return str_find_str(s, pem_begin) >= 0;
}

/* DER of a certificate is a SEQUENCE of more than 127 bytes; no text begins so. */
static bool is_der(struct str s)
{
    return s.n > 1 && s.p[0] == 0x30 && (s.p[1] & 0x80);
}

/* YAML folds lines to blanks, which base64 does not have. */
static struct str without_blanks(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != ' ' && text.p[i] != '\t')
            out[n++] = text.p[i];
    return str_range(out, n);
}

static int unwrap(struct arena *a, struct str *text, const char **ret_reason)
{
    for (int n_wrappings = 0;; n_wrappings++) {
        if ((n_wrappings > 0 && is_der(*text)) || is_pem(*text))
            return 0;
        if (n_wrappings == MAX_WRAPPINGS) {
            *ret_reason = "holds neither PEM nor DER";
            return -EINVAL;
        }
        struct str bytes;
        if (base64_decode(a, str_trim(without_blanks(a, *text)), BASE64_STANDARD, &bytes, NULL) <
            0) {
            *ret_reason = n_wrappings ? "base64 of something that is no certificate"
                                      : "neither PEM nor base64";
            return -EINVAL;
        }
        *text = bytes;
    }
}

/* PEM or DER from its beginning on. */
static int find_cert(struct arena *a, struct str text, struct str *ret, const char **ret_reason)
{
    if (str_trim(text).n == 0) {
        *ret_reason = "empty";
        return -EINVAL;
    }
    if (text.n > PKI_FILE_MAX_BYTES) {
        *ret_reason = "too long for a certificate";
        return -EINVAL;
    }
    if (unwrap(a, &text, ret_reason) < 0)
        return -EINVAL;
    /* PEM may have words before it, and those begin with any character. */
    *ret = is_der(text) ? text : str_from(text, (size_t) str_find_str(text, pem_begin));
    return 0;
}

int pki_cert_decode(struct str text, struct pki_cert **ret_cert, const char **ret_reason)
{
    ARENA_AUTO a = arena_new();
    struct str cert;
    if (find_cert(a, text, &cert, ret_reason) < 0)
        return -EINVAL;
    bool der = is_der(cert);
    if (pki_cert_parse(cert, ret_cert) < 0) {
        *ret_reason = der ? "DER of no readable certificate" : "PEM without a readable certificate";
        return -EINVAL;
    }
    return 0;
}

/* ---- fingerprints --------------------------------------------------------------------------- */

/* As every certificate of real size is written: a SEQUENCE with its length in two bytes, nothing
 * behind it. */
static bool is_plain_der(struct str s)
{
    return s.n > 0xff && is_der(s) && (unsigned char) s.p[1] == 0x82 &&
           (size_t) ((unsigned char) s.p[2] << 8 | (unsigned char) s.p[3]) + 4 == s.n;
}

static bool plain_der(struct arena *a, struct str cert, struct str *ret)
{
    static const struct str begin = STR("-----BEGIN CERTIFICATE-----\n"),
                            end = STR("-----END CERTIFICATE-----");
    *ret = cert;
    if (!is_der(cert)) {
        ptrdiff_t n = str_find_str(cert, end);
        if (!str_starts_with(cert, begin) || n < (ptrdiff_t) begin.n ||
            base64_decode(a, str_trim(str_sub(cert, begin.n, (size_t) n)), BASE64_STANDARD, ret,
                          NULL) < 0)
            return false;
    }
    return is_plain_der(*ret);
}

int pki_cert_decode_fingerprint(struct str text, unsigned char out[SHA256_BYTES])
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_cert_freep) struct pki_cert *parsed = NULL;
    const char *reason = NULL;
    struct str cert, der;
    if (find_cert(a, text, &cert, &reason) < 0)
        return -EINVAL;
    if (plain_der(a, cert, &der)) {
        pki_sha256(der, out);
        return 0;
    }
    if (pki_cert_parse(cert, &parsed) < 0)
        return -EINVAL;
    pki_cert_fingerprint(parsed, out);
    return 0;
}
