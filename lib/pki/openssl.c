/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/openssl.h"

#include <errno.h>
#include <openssl/err.h>

#include "pki/pki_internal.h"

int pki_openssl_error(const char **ret_reason)
{
    /* The first error is the cause; later ones tell who passed it on. */
    unsigned long code = ERR_get_error();
    ERR_clear_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    int r = -EBADMSG;
    if (code && ERR_SYSTEM_ERROR(code)) {
        r = -ERR_GET_REASON(code);
        reason = strerrordesc_np(-r);
    } else if (code && ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) {
        r = -ENOMEM;
    }
    if (ret_reason)
        *ret_reason = reason ? reason : "unknown error";
    return r;
}

int pki_no_passphrase(char *buffer, int size, int is_writing, void *arg)
{
    (void) buffer, (void) size, (void) is_writing, (void) arg;
    return -1;
}

struct str pki_bio_str(struct arena *a, BIO *bio)
{
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    return arena_str(a, str_range(n > 0 ? p : "", n > 0 ? (size_t) n : 0));
}
