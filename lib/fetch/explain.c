/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#include "fetch/fetch_internal.h"

/* OpenSSL's reasons, which libcurl hands through, in Go's words. */
static struct str explain_certificate(struct arena *a, const struct fetch_failure *f,
                                      const struct fetch_request *r, const struct fetch_target *t)
{
    long reason = 0;
    libcurl.easy_getinfo(f->curl, CURLINFO_SSL_VERIFYRESULT, &reason);
    struct str name = r->server_name.n > 0 ? r->server_name : str_of(t->host);
    switch (reason) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return STR("x509: certificate signed by unknown authority");
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return STR("x509: certificate has expired or is not yet valid");
    case X509_V_ERR_INVALID_PURPOSE:
        return STR("x509: certificate specifies an incompatible key usage");
    case X509_V_OK:
    case X509_V_ERR_UNSPECIFIED: /* libcurl's, before it has looked at the chain */
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return arena_printf(a, "x509: certificate is not valid for %.*s", STR_ARG(name));
    default:
        return arena_printf(a, "x509: %s", X509_verify_cert_error_string(reason));
    }
}

static int explain_connect(struct arena *a, const struct fetch_failure *f,
                           const struct fetch_target *t, struct str *ret_why)
{
    long number = 0;
    libcurl.easy_getinfo(f->curl, CURLINFO_OS_ERRNO, &number);
    if (number == 0)
        number = ECONNREFUSED;
    char *text = arena_strz(a, str_of(strerrordesc_np((int) number)));
    text[0] = (char) tolower((unsigned char) text[0]);
    *ret_why = arena_printf(a, "dial tcp %s:%s: connect: %s", t->host, t->port, text);
    return number == ECONNREFUSED ? -ECONNREFUSED : -EIO;
}

static int explain_code(struct arena *a, const struct fetch_failure *f,
                        const struct fetch_request *r, const struct fetch_target *t,
                        struct str *ret_why)
{
    const char *words = f->words[0] ? f->words : libcurl.easy_strerror(f->code);
    switch (f->code) {
    case CURLE_OPERATION_TIMEDOUT:
        *ret_why = STR("context deadline exceeded");
        return -ETIMEDOUT;
    case CURLE_ABORTED_BY_CALLBACK:
        *ret_why = STR("context canceled");
        return -ECANCELED;
    case CURLE_COULDNT_RESOLVE_HOST:
        *ret_why = arena_printf(a, "dial tcp: lookup %s: no such host", t->host);
        return -EIO;
    case CURLE_COULDNT_CONNECT:
        return explain_connect(a, f, t, ret_why);
    case CURLE_PEER_FAILED_VERIFICATION:
        *ret_why = arena_printf(a, "tls: failed to verify certificate: %.*s",
                                STR_ARG(explain_certificate(a, f, r, t)));
        return -EIO;
    case CURLE_SSL_CACERT_BADFILE:
        *ret_why = STR("the trusted certificates are no PEM certificates");
        return -EINVAL;
    case CURLE_SSL_CERTPROBLEM:
        *ret_why = arena_printf(a, "tls: client certificate: %s", words);
        return -EINVAL;
    case CURLE_SSL_CONNECT_ERROR:
        *ret_why = arena_printf(a, "tls: %s", words);
        return -EIO;
    case CURLE_GOT_NOTHING:
        *ret_why = STR("EOF");
        return -EIO;
    case CURLE_PARTIAL_FILE:
        *ret_why = STR("unexpected EOF");
        return -EIO;
    default:
        *ret_why = str_of(words);
        return -EIO;
    }
}

/* Go writes the method as a verb: Get "https://...": why. */
static struct str verb(struct arena *a, const char *method)
{
    char *text = arena_strz(a, str_of(method));
    for (size_t i = 1; i < strlen(method); i++)
        text[i] = (char) tolower((unsigned char) text[i]);
    return str_of(text);
}

int fetch_explain(struct arena *a, const struct fetch_failure *f, const struct fetch_request *r,
                  const struct fetch_target *t, struct str *ret_error)
{
    struct str why = STR_NONE;
    int result = -EMSGSIZE;
    if (f->is_too_large)
        why = arena_printf(a, "the answer is larger than %zu bytes", f->max_bytes);
    else
        result = explain_code(a, f, r, t, &why);
    *ret_error = arena_printf(a, "%.*s \"%.*s\": %.*s", STR_ARG(verb(a, r->method)),
                              STR_ARG(r->url), STR_ARG(why));
    return result;
}
