/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/dhcp.h"

#include <errno.h>

enum { FROM_CLIENT = 1, FROM_SERVER = 2, ETHERNET = 1, MAC_BYTES = 6 };
enum { DISCOVER = 1, OFFER = 2, REQUEST = 3, ACK = 5, NAK = 6, INFORM = 8 };
enum {
    OPTION_PAD = 0,
    OPTION_MASK = 1,
    OPTION_ROUTER = 3,
    OPTION_RESOLVERS = 6,
    OPTION_HOST_NAME = 12,
    OPTION_DOMAIN = 15,
    OPTION_MTU = 26,
    OPTION_REQUESTED = 50,
    OPTION_LEASE = 51,
    OPTION_TYPE = 53,
    OPTION_SERVER = 54,
    OPTION_END = 255,
};
enum { AT_XID = 4, AT_FLAGS = 10, AT_CLIENT = 12, AT_MAC = 28, AT_COOKIE = 236, AT_OPTIONS = 240 };
#define COOKIE 0x63825363U
#define MIN_BYTES 300 /* of an answer, as old clients want it (RFC 1542 2.1) */

/* ---- reading -------------------------------------------------------------------------------- */

static uint32_t number(struct str packet, size_t at, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | (unsigned char) packet.p[at + i];
    return v;
}

static void take_option(unsigned code, struct str value, struct dhcp_request *ret)
{
    if (code == OPTION_TYPE && value.n == 1)
        ret->type = number(value, 0, 1);
    else if (code == OPTION_REQUESTED && value.n == 4)
        ret->requested = number(value, 0, 4);
    else if (code == OPTION_SERVER && value.n == 4)
        ret->server = number(value, 0, 4);
}

static int read_options(struct str packet, struct dhcp_request *ret)
{
    for (size_t at = AT_OPTIONS; at < packet.n;) {
        unsigned code = (unsigned char) packet.p[at++];
        if (code == OPTION_END)
            return 0;
        if (code == OPTION_PAD)
            continue;
        if (at >= packet.n || at + 1 + (unsigned char) packet.p[at] > packet.n)
            return -EBADMSG;
        size_t n = (unsigned char) packet.p[at++];
        take_option(code, str_range(packet.p + at, n), ret);
        at += n;
    }
    return 0;
}

int dhcp_read(struct str packet, struct dhcp_request *ret)
{
    struct dhcp_request q = {0};
    if (packet.n < AT_OPTIONS || packet.n > DHCP_MAX_BYTES || packet.p[0] != FROM_CLIENT ||
        packet.p[1] != ETHERNET || packet.p[2] != MAC_BYTES ||
        number(packet, AT_COOKIE, 4) != COOKIE)
        return -EBADMSG;
    q.xid = number(packet, AT_XID, 4);
    q.flags = (uint16_t) number(packet, AT_FLAGS, 2);
    q.client = number(packet, AT_CLIENT, 4);
    memcpy(q.mac, packet.p + AT_MAC, sizeof(q.mac));
    if (read_options(packet, &q) < 0)
        return -EBADMSG;
    if (q.type != DISCOVER && q.type != REQUEST && q.type != INFORM)
        return -EBADMSG;
    *ret = q;
    return 0;
}

/* ---- answering ------------------------------------------------------------------------------ */

static void put_number(struct buf *to, uint32_t v, size_t n)
{
    for (size_t i = n; i-- > 0;)
        buf_append_char(to, (char) (v >> (8 * i)));
}

static void put_option(struct buf *to, unsigned code, uint32_t v, size_t n)
{
    buf_append_char(to, (char) code);
    buf_append_char(to, (char) n);
    put_number(to, v, n);
}

static void put_text(struct buf *to, unsigned code, struct str text)
{
    if (!text.n || text.n > UINT8_MAX)
        return;
    buf_append_char(to, (char) code);
    buf_append_char(to, (char) text.n);
    buf_append_str(to, text);
}

static void put_zeros(struct buf *to, size_t n)
{
    memset(buf_reserve(to, n), 0, n);
    to->n += n;
}

static void put_head(struct buf *to, const struct dhcp_request *q, uint32_t yours)
{
    buf_append_char(to, FROM_SERVER);
    buf_append_char(to, ETHERNET);
    buf_append_char(to, MAC_BYTES);
    buf_append_char(to, 0);
    put_number(to, q->xid, 4);
    put_number(to, 0, 2);
    put_number(to, q->flags, 2);
    put_number(to, q->client, 4);
    put_number(to, yours, 4);
    put_zeros(to, 8);
    buf_append_str(to, str_range((const char *) q->mac, sizeof(q->mac)));
    put_zeros(to, AT_COOKIE - AT_MAC - sizeof(q->mac));
    put_number(to, COOKIE, 4);
}

static void put_settings(struct buf *to, const struct dhcp_lease *l)
{
    put_option(to, OPTION_MASK, l->prefix_bits ? ~(uint32_t) 0 << (32 - l->prefix_bits) : 0, 4);
    put_option(to, OPTION_ROUTER, l->gateway, 4);
    if (l->n_resolvers) {
        buf_append_char(to, OPTION_RESOLVERS);
        buf_append_char(to, (char) (4 * l->n_resolvers));
        for (size_t i = 0; i < l->n_resolvers; i++)
            put_number(to, l->resolvers[i], 4);
    }
    if (l->mtu)
        put_option(to, OPTION_MTU, l->mtu, 2);
    put_text(to, OPTION_HOST_NAME, l->host_name);
    put_text(to, OPTION_DOMAIN, l->domain);
}

/* Which answer; 0: none, because it has chosen another server. */
static unsigned decide(const struct dhcp_request *q, const struct dhcp_lease *l)
{
    uint32_t wanted = q->requested ? q->requested : q->client;
    if (q->type == DISCOVER)
        return OFFER;
    if (q->type == INFORM)
        return ACK;
    if (q->server && q->server != l->gateway)
        return 0;
    return wanted == l->address ? ACK : NAK;
}

bool dhcp_answer(const struct dhcp_request *q, const struct dhcp_lease *l, struct buf *to)
{
    unsigned type = decide(q, l);
    bool gives = type != NAK && q->type != INFORM;
    size_t begin = to->n;
    if (!type)
        return false;
    put_head(to, q, gives ? l->address : 0);
    put_option(to, OPTION_TYPE, type, 1);
    put_option(to, OPTION_SERVER, l->gateway, 4);
    if (gives)
        put_option(to, OPTION_LEASE, DHCP_LEASE_S, 4);
    if (type != NAK)
        put_settings(to, l);
    buf_append_char(to, (char) OPTION_END);
    if (to->n - begin < MIN_BYTES)
        put_zeros(to, MIN_BYTES - (to->n - begin));
    return true;
}
