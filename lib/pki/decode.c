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

int pki_cert_decode(struct str text, struct pki_cert **ret_cert, const char **ret_reason)
{
    if (str_trim(text).n == 0) {
        *ret_reason = "empty";
        return -EINVAL;
    }
    if (text.n > PKI_FILE_MAX_BYTES) {
        *ret_reason = "too long for a certificate";
        return -EINVAL;
    }
    ARENA_AUTO a = arena_new();
    if (unwrap(a, &text, ret_reason) < 0)
        return -EINVAL;
    bool der = is_der(text);
    /* PEM may have words before it, and those begin with any character. */
    struct str cert = der ? text : str_from(text, (size_t) str_find_str(text, pem_begin));
    if (pki_cert_parse(cert, ret_cert) < 0) {
        *ret_reason = der ? "DER of no readable certificate" : "PEM without a readable certificate";
        return -EINVAL;
    }
    return 0;
}
