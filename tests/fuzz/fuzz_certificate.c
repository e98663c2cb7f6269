/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of clients: what is read from their fields is text of its own, no longer than the
 * certificate by more than its conversion to UTF-8 makes it, and the same when read again. */
#include <stdlib.h>

#include "base/alloc.h"
#include "net/net_internal.h"

/* A character of a BMPString has two bytes, up to three in UTF-8; of a T61String one, up to two. */
#define UTF8_GROWTH 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static size_t touch(struct str s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s.n; i++)
        sum += (unsigned char) s.p[i];
    require(sum <= s.n * 255);
    return s.n;
}

static size_t check_peer(const struct stream_peer *p)
{
    size_t n = touch(p->common_name);
    for (size_t i = 0; i < p->n_organizations; i++)
        n += touch(p->organizations[i]);
    return n;
}

static void require_same(const struct stream_peer *a, const struct stream_peer *b)
{
    require(str_eq(a->common_name, b->common_name) && a->n_organizations == b->n_organizations);
    for (size_t i = 0; i < a->n_organizations; i++)
        require(str_eq(a->organizations[i], b->organizations[i]));
}

/* Whatever certificate is found, its key may be asked and its DER read again. */
static void use_key(struct arena *a, const struct pki_cert *c)
{
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(c);
    require(pki_verify_der(key, STR("message"), STR("signature")) < 0);
    (void) pki_cert_is_signed_by(c, c);
    CLEANUP(pki_cert_freep) struct pki_cert *again = NULL;
    require(pki_cert_parse(pki_cert_der(a, c), &again) == 0);
}

static void decode(struct arena *a, struct str input)
{
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL;
    const char *reason = NULL;
    if (pki_cert_decode(input, &c, &reason) < 0)
        require(!c && reason);
    else
        use_key(a, c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO arena = arena_new();
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL, *again = NULL;
    struct str input = str_range((const char *) data, size);
    decode(arena, input);
    if (pki_cert_parse(input, &c) < 0) {
        require(!c);
        return 0;
    }
    use_key(arena, c);
    struct stream_peer peer = {0}, copy = {0};
    void *names = stream_peer_name(&peer, c);
    require(check_peer(&peer) <= UTF8_GROWTH * size);
    (void) pki_cert_not_after(c);
    (void) pki_cert_has_name(c, STR("localhost"));
    (void) pki_cert_has_name(c, STR("127.0.0.1"));
    require(pki_cert_parse(pki_cert_pem(arena, c), &again) == 0);
    void *copied = stream_peer_name(&copy, again);
    require_same(&peer, &copy);
    require(pki_cert_not_after(c) == pki_cert_not_after(again));
    mem_free(names);
    mem_free(copied);
    return 0;
}
