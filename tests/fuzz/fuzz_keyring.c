/* SPDX-License-Identifier: Apache-2.0 */
/* The file of encryption keys, as somebody may have edited it. What is accepted must come back the
 * same from what we write. */
#include <assert.h>

#include "base/alloc.h"
#include "keyring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct keyring ring = {0};
    char *error = NULL;
    int r = keyring_parse(&ring, str_range((const char *) data, size), "fuzz.yaml", "", &error);
    assert((r < 0) == (error != NULL));
    assert((r < 0) == (ring.n == 0));
    for (size_t i = 0; i < ring.n; i++)
        assert(keyring_find(&ring, ring.keys[i].id));
    if (r == 0) {
        BUF_AUTO text = {0};
        struct keyring again = {0};
        keyring_write(&ring, &text);
        r = keyring_parse(&again, buf_str(&text), "fuzz.yaml", "", &error);
        assert(r == 0 && again.n == ring.n);
        for (size_t i = 0; i < ring.n; i++)
            assert(memcmp(again.keys[i].secret, ring.keys[i].secret, AEAD_KEY_BYTES) == 0);
        keyring_done(&again);
    }
    keyring_done(&ring);
    mem_free(error);
    return 0;
}
