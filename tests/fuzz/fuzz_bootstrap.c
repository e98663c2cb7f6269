/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap-config.pb: whatever it holds, it is refused or is the one configuration that the key of
 * corpus/bootstrap has signed. */
#include <stdlib.h>

#include "zedagent/bootstrap.h"

#define AT_S 1767225600 /* 2026-01-01 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char root[] = "-----BEGIN CERTIFICATE-----\n"
                           "MIIBNTCB26ADAgECAhQSAaOAiqWdaj7rzi4rCapiJLbU1jAKBggqhkjOPQQDAjAP\n"
                           "MQ0wCwYDVQQDDARyb290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAw\n"
                           "WjAPMQ0wCwYDVQQDDARyb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4aLo\n"
                           "egdbhpzU8R4AfZXdd/jQOGpplEFsbiUOoMYCrs5u6jUbZnbBy39T/grpYjytCI1/\n"
                           "mpXmw6jaw2wpeY2y+qMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJ\n"
                           "ADBGAiEAtWXdQb968A2kkGxfgXDZ6aUXjjf2JLQno5sKHaytbeYCIQDHkvjJRTBe\n"
                           "44z8e8ugP65MSuKE32VlsfP0HCXW8iLYxQ==\n"
                           "-----END CERTIFICATE-----\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    const Eve__Config__EdgeDevConfig *config = NULL;
    const char *reason = NULL;
    const int r = bootstrap_open(a, str_range((const char *) data, size), str_of(root), AT_S,
                                 &config, &reason);
    if (r == 0 ? !config || !str_is(str_of(config->device_name), "edge-1") : !reason || config)
        abort();
    return 0;
}
