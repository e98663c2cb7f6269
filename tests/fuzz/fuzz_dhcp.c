/* SPDX-License-Identifier: Apache-2.0 */
/* What a virtual machine sends to learn its address: every answer is one that a client can read,
 * for the client that asked, and gives nothing but the lease. */
#include <stdlib.h>
#include <string.h>

#include "apps/dhcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_answer(const struct dhcp_request *q, const struct dhcp_lease *l,
                         struct str answer)
{
    static const unsigned char address[] = {10, 1, 0, 2};
    static const char none[4] = {0};
    bool gives = memcmp(answer.p + 16, address, 4) == 0;
    if (answer.n < 300 || answer.n > DHCP_MAX_BYTES || answer.p[0] != 2)
        abort();
    if (memcmp(answer.p + 28, q->mac, 6) != 0 || (!gives && memcmp(answer.p + 16, none, 4) != 0))
        abort();
    if (q->server && q->server != l->gateway && q->type == 3)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct dhcp_lease lease = {
        .address = 0x0a010002,
        .gateway = 0x0a010001,
        .prefix_bits = 24,
        .resolvers = {0x08080808, 0x01010101, 0x09090909},
        .n_resolvers = 3,
        .mtu = 1400,
        .host_name = STR("a-name"),
        .domain = STR("example.org"),
    };
    struct dhcp_request q;
    BUF_AUTO answer = {0};
    if (dhcp_read(str_range((const char *) data, n), &q) == 0 && dhcp_answer(&q, &lease, &answer))
        check_answer(&q, &lease, buf_str(&answer));
    return 0;
}
