/* SPDX-License-Identifier: Apache-2.0 */
#include "api/annexed.h"

#define GET VERB_BIT(VERB_GET)
#define ANNEXED(subresource, subresource_verbs) \
    { \
        .name = {subresource, sizeof(subresource) - 1}, .group = {"eve.lfedge.org", 14}, \
        .version = {"v1beta1", 7}, .kind = {"Device", 6}, .verbs = (subresource_verbs) \
    }

/* server/reading and server/preview */
static const struct kind_subresource of_devices[] = {
    ANNEXED("flowlog", GET),
    ANNEXED("hardware", GET),
    ANNEXED("info", GET),
    ANNEXED("lastseen", GET),
    ANNEXED("log", GET),
    ANNEXED("metrics", GET),
    ANNEXED("preview", GET | VERB_BIT(VERB_CREATE)),
    ANNEXED("provenance", GET),
    ANNEXED("requests", GET),
};

size_t annexed_subresources(const struct kind *k, const struct kind_subresource **ret)
{
    if (!str_is(k->collection, "devices.eve.lfedge.org"))
        return 0;
    *ret = of_devices;
    return N_ELEMENTS(of_devices);
}
