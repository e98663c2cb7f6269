/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end, by its certificate. */
#include "base/alloc.h"
#include "base/clock.h"
#include "net/net_internal.h"
#include "pki/openssl.h"

static struct str copy_to(char **at, struct str s)
{
    char *p = *at;
    if (s.n)
        memcpy(p, s.p, s.n);
    *at += s.n;
    return str_range(p, s.n);
}

/* One block for all: connections live long, arenas come in pages. */
void *stream_peer_name(struct stream_peer *peer, const struct pki_cert *c)
{
    ARENA_AUTO a = arena_new();
    struct str common_name = pki_cert_common_name(a, c);
    struct str *names = NULL;
    size_t n = pki_cert_organizations(a, c, &names);
    size_t n_bytes = common_name.n + n * sizeof(struct str);
    for (size_t i = 0; i < n; i++)
        n_bytes += names[i].n;

    struct str *organizations = mem_alloc(n_bytes);
    char *at = (char *) (organizations + n);
    for (size_t i = 0; i < n; i++)
        organizations[i] = copy_to(&at, names[i]);
    peer->common_name = copy_to(&at, common_name);
    peer->organizations = organizations;
    peer->n_organizations = n;
    return organizations;
}

/* One that only proves to own its key. */
static void *keep_certificate(struct stream_peer *peer, struct str der)
{
    char *copy = mem_dup(der.p, der.n);
    peer->certificate = str_range(copy, der.n);
    return copy;
}

void *stream_peer_identify(struct stream_peer *peer, const SSL *ssl)
{
    const struct str unjudged = tls_ticket_certificate(ssl);
    if (unjudged.n > 0)
        return keep_certificate(peer, unjudged);
    /* In a resumed session it comes from the ticket, with the verdict of that day. */
    X509 *x509 = SSL_get0_peer_certificate(ssl);
    if (!x509)
        return NULL;
    CLEANUP(pki_cert_freep) struct pki_cert *c = pki_cert_of_x509(x509);
    if (SSL_get_verify_result(ssl) == X509_V_ERR_APPLICATION_VERIFICATION) {
        ARENA_AUTO a = arena_new();
        return keep_certificate(peer, pki_cert_der(a, c));
    }
    int64_t not_after = pki_cert_not_after(c);
    int64_t now = clock_system.wall_us(&clock_system) / 1000000;
    if (SSL_get_verify_result(ssl) != X509_V_OK || not_after <= now) {
        peer->certificate_rejected = true;
        return NULL;
    }
    peer->has_certificate = true;
    peer->certificate_not_after = not_after;
    return stream_peer_name(peer, c);
}
