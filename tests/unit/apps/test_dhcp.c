/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "apps/dhcp.h"

enum { DISCOVER = 1, OFFER = 2, REQUEST = 3, ACK = 5, NAK = 6, RELEASE = 7, INFORM = 8 };
#define OURS 0x0a010001U
#define LEASE 0x0a010002U

static const struct dhcp_lease lease = {
    .address = LEASE,
    .gateway = OURS,
    .prefix_bits = 24,
    .resolvers = {0x08080808},
    .n_resolvers = 1,
    .host_name = {"app", 3},
};

struct said {
    unsigned type;
    uint32_t client, requested, server; /* 0: not said */
};

static void put_address(struct buf *b, unsigned code, uint32_t v)
{
    if (!v)
        return;
    buf_append_char(b, (char) code);
    buf_append_char(b, 4);
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_append_char(b, (char) (v >> shift));
}

static void write_packet(struct buf *b, const struct said *s)
{
    char head[240] = {1, 1, 6};
    memcpy(head + 4, "\x12\x34\x56\x78", 4);
    for (int i = 0; i < 4; i++)
        head[12 + i] = (char) (s->client >> (24 - 8 * i));
    memcpy(head + 28, "\x02\x16\x3e\x01\x02\x03", 6);
    memcpy(head + 236, "\x63\x82\x53\x63", 4);
    buf_append_str(b, str_range(head, sizeof(head)));
    buf_append_str(b, STR("\x35\x01"));
    buf_append_char(b, (char) s->type);
    put_address(b, 50, s->requested);
    put_address(b, 54, s->server);
    buf_append_char(b, (char) 0xff);
}

/* The type of the answer, 0: none; the address that it gives. */
static unsigned ask(const struct said *s, uint32_t *ret_address)
{
    BUF_AUTO packet = {0};
    BUF_AUTO answer = {0};
    struct dhcp_request q;
    *ret_address = 0;
    write_packet(&packet, s);
    if (dhcp_read(buf_str(&packet), &q) < 0 || !dhcp_answer(&q, &lease, &answer))
        return 0;
    assert_true(answer.n >= 300);
    assert_memory_equal(answer.p + 4, "\x12\x34\x56\x78", 4);
    assert_memory_equal(answer.p + 28, "\x02\x16\x3e\x01\x02\x03", 6);
    assert_memory_equal(answer.p + 240, "\x35\x01", 2);
    for (int i = 0; i < 4; i++)
        *ret_address = *ret_address << 8 | (unsigned char) answer.p[16 + i];
    return (unsigned char) answer.p[242];
}

TEST(a_client_gets_its_own_address_and_no_other)
{
    static const struct {
        struct said said;
        unsigned answer;
        uint32_t address;
    } cases[] = {
        {{DISCOVER, 0, 0, 0}, OFFER, LEASE},
        {{DISCOVER, 0, LEASE + 7, 0}, OFFER, LEASE},
        {{REQUEST, 0, LEASE, OURS}, ACK, LEASE},
        {{REQUEST, 0, LEASE, 0}, ACK, LEASE}, /* after it was started again */
        {{REQUEST, LEASE, 0, 0}, ACK, LEASE}, /* renews */
        {{REQUEST, 0, LEASE + 1, OURS}, NAK, 0},
        {{REQUEST, LEASE + 1, 0, 0}, NAK, 0},
        {{REQUEST, 0, LEASE, OURS + 8}, 0, 0}, /* has chosen another */
        {{INFORM, LEASE, 0, 0}, ACK, 0},
        {{RELEASE, LEASE, 0, OURS}, 0, 0},
        {{OFFER, 0, 0, 0}, 0, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        uint32_t address;
        if (ask(&cases[i].said, &address) != cases[i].answer || address != cases[i].address)
            fail_msg("case %zu: address %x", i, address);
    }
}

TEST(what_is_no_request_is_not_read)
{
    BUF_AUTO packet = {0};
    struct dhcp_request q;
    write_packet(&packet, &(struct said){.type = DISCOVER});
    for (size_t n = 0; n < 243; n++)
        assert_int_equal(dhcp_read(str_range(packet.p, n), &q), -EBADMSG);
    assert_int_equal(dhcp_read(buf_str(&packet), &q), 0);
    packet.p[2] = 16; /* no hardware address of Ethernet */
    assert_int_equal(dhcp_read(buf_str(&packet), &q), -EBADMSG);
}
