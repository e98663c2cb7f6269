/* SPDX-License-Identifier: Apache-2.0 */
#include "api/document.h"

#include "pki/pki.h"

bool document_is_unchanged(const struct document_request *q, struct str etag)
{
    struct str rest = q->if_none_match, tag;
    while (str_split(&rest, ',', &tag)) {
        tag = str_trim(tag);
        if (str_starts_with(tag, STR("W/")))
            tag = str_from(tag, 2);
        if (str_is(tag, "*") || str_eq(tag, etag))
            return true;
    }
    return false;
}

struct str document_etag(struct arena *a, struct str content)
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned char hash[SHA512_BYTES];
    pki_sha512(content, hash);
    char *text = arena_alloc(a, 2 * SHA512_BYTES + 2);
    char *p = text;
    *p++ = '"';
    for (size_t i = 0; i < SHA512_BYTES; i++) {
        *p++ = digits[hash[i] >> 4];
        *p++ = digits[hash[i] & 15];
    }
    *p++ = '"';
    return str_range(text, (size_t) (p - text));
}
