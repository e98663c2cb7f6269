/* SPDX-License-Identifier: Apache-2.0 */
/* What a resolver, or who pretends to be one, sends to an application: names that come out of it
 * are host names, and of themselves. */
#include <stdlib.h>
#include <string.h>

#include "apps/network_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hosts_answer a;
    char again[HOSTS_NAME_BYTES];
    if (!hosts_read_answer(str_range((const char *) data, n), &a))
        return 0;
    if (a.n_addresses == 0 || a.n_addresses > HOSTS_MAX_ADDRESSES)
        abort();
    if (!hosts_normal(str_of(a.name), again) || strcmp(again, a.name) != 0 ||
        !hosts_is_of(a.name, a.name))
        abort();
    return 0;
}
