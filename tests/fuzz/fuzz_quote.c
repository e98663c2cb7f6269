/* SPDX-License-Identifier: Apache-2.0 */
/* TPMS_ATTEST: what is read lies inside the bytes, a statement that is cut is none, and nothing of
 * it verifies with a key that never signed. */
#include <stdlib.h>

#include "eve/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void require_inside(struct str outer, struct str inner)
{
    require(inner.n == 0 || (inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pki_public *key;
    if (!key) {
        CLEANUP(pki_key_freep) struct pki_key *k = pki_key_new();
        key = pki_public_of_key(k);
    }
    struct str bytes = str_range((const char *) data, size);
    struct quote q = {.attest_data = bytes, .signature = bytes};
    struct quote_statement s, cut;
    if (quote_parse(bytes, &s) < 0) {
        require(quote_verify(&q, key, STR("0123456789ab")) == QUOTE_MALFORMED);
        return 0;
    }
    require_inside(bytes, s.extra_data);
    require_inside(bytes, s.pcr_digest);
    require(s.pcr_mask >> QUOTE_PCRS == 0);
    require(quote_parse(str_sub(bytes, 0, size - 1), &cut) < 0);
    require(quote_verify(&q, key, s.extra_data) == QUOTE_BAD_SIGNATURE);
    return 0;
}
