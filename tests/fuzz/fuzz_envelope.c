/* SPDX-License-Identifier: Apache-2.0 */
/* AuthContainers: what is found lies inside the bytes, and is what the decoder of all messages
 * finds whenever that takes them too. */
#include <stdlib.h>

#include "eve/auth.pb-c.h"
#include "eve/envelope.h"
#include "protobuf/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void require_inside(struct str outer, struct str inner)
{
    require(inner.p != NULL);
    require(inner.n == 0 || (inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n));
}

static void require_same(const struct envelope *e, const Eve__Auth__AuthContainer *c)
{
    struct str payload = c->protectedpayload ? pb_bytes(c->protectedpayload->payload) : STR("");
    require(str_eq(e->payload, payload));
    require(str_eq(e->sender_hash, pb_bytes(c->sendercerthash)));
    require(str_eq(e->signature, pb_bytes(c->signaturehash)));
    require(str_eq(e->sender_cert, pb_bytes(c->sendercert)));
    require(e->algorithm == (int) c->algo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = str_range((const char *) data, size);
    ARENA_AUTO arena = arena_new();
    struct envelope e;
    if (envelope_parse(bytes, &e) < 0)
        return 0;
    require_inside(bytes, e.payload);
    require_inside(bytes, e.sender_hash);
    require_inside(bytes, e.signature);
    require_inside(bytes, e.sender_cert);
    if (envelope_check_form(&e) == 0)
        require(e.sender_hash.n == (e.algorithm == 1 ? 16 : 32) && e.signature.n > 0);
    require(envelope_verify(&e, NULL) < 0);
    /* Which also looks into what is skipped here, and may refuse it. */
    const Eve__Auth__AuthContainer *c = PB_UNPACK(arena, eve__auth__auth_container, bytes);
    if (c)
        require_same(&e, c);
    return 0;
}
