/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of proxies that look into TLS: anchors for as long as a port names them. */
#include "base/base64.h"
#include "base/log.h"
#include "node/node_internal.h"

#define MAX_CERTS 64 /* of all ports; each may hold several */

static size_t collect(struct arena *a, const struct json *status, struct str ret[MAX_CERTS])
{
    size_t n = 0;
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port)
        JSON_FOR_EACH_ITEM (json_get(port, STR("pubsub-large-ProxyCertPEM")), item)
            if (n < MAX_CERTS &&
                base64_decode(a, json_str(item), BASE64_STANDARD, &ret[n], NULL) == 0)
                n++;
    return n;
}

/* The first is the device's own root. */
static int make_trust(struct node *n, const struct str *certs, size_t n_certs,
                      struct uplink_trust **ret)
{
    BUF_AUTO root = {0};
    struct str pem[MAX_CERTS + 1];
    size_t which = 0;
    const int r = node_file_read(n, NODE_CONFIG, STR("root-certificate.pem"), &root);
    if (r < 0)
        return r;
    pem[0] = buf_str(&root);
    memcpy(pem + 1, certs, sizeof(certs[0]) * n_certs);
    return uplink_trust_new(
        &(struct uplink_trust_options){.with_system = true, .pem = pem, .n_pem = n_certs + 1}, ret,
        &which);
}

void node_take_proxy_certs(struct node *n, const struct json *status)
{
    ARENA_AUTO a = arena_new();
    struct str certs[MAX_CERTS];
    unsigned char digest[SHA256_BYTES] = {0};
    const size_t n_certs = collect(a, status, certs);
    if (n_certs > 0)
        pki_sha256(arena_join(a, certs, n_certs), digest);
    if (memcmp(digest, n->internal->proxy_certs, sizeof(digest)) == 0)
        return;
    memcpy(n->internal->proxy_certs, digest, sizeof(digest));
    CLEANUP(uplink_trust_unrefp) struct uplink_trust *trust = NULL;
    int r = n_certs > 0 ? make_trust(n, certs, n_certs, &trust) : 0;
    if (r < 0)
        log_warning("certificates of a proxy make no sense, ignoring", LOG_ERRNO(r));
    r = node_identities_trust(n, trust ? trust : n->trust);
    if (r < 0)
        log_error("the anchors of connections cannot be replaced", LOG_ERRNO(r));
}
