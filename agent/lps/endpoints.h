/* SPDX-License-Identifier: Apache-2.0 */
/* What a local profile server is told and may order, an endpoint each. */
#pragma once

#include "controllerconn/uplink.h"
#include "report/make.h"

struct report;
struct zedagent;

enum endpoint_id {
    ENDPOINT_PROFILE,
    ENDPOINT_RADIO,
    ENDPOINT_APPS,
    ENDPOINT_DEVICE,
    ENDPOINT_LOCATION,
    ENDPOINT_NETWORK,
    ENDPOINT_BOOT,
    ENDPOINTS,
};

struct endpoint_sides {
    struct zedagent *zedagent;
    struct report *report;
};

struct endpoint {
    const char *path, *interval; /* a config item */
    int64_t throttled_s;         /* how long it is left alone by who does not know it */
    /* What is posted, with why the order before was refused; absent: nothing now. NULL: a GET. */
    struct str (*make)(const struct endpoint_sides *s, struct world *w, struct str refusal);
    const ProtobufCMessageDescriptor *order; /* NULL: nothing is ordered */
    size_t token_at;                         /* in it */
    /* Why it is refused, in the arena; absent: it is not. */
    struct str (*take)(const struct endpoint_sides *s, struct arena *a, const void *order);
    void (*forget)(const struct endpoint_sides *s); /* the server does not know it any more */
};
extern const struct endpoint lps_endpoints[ENDPOINTS];

/* 0: it is understood; -ENOENT: the server does not know the endpoint; -EBADMSG: no such message;
 * -EACCES: another token; others: no answer of use. The refusal as take() has it, also of -EACCES.
 */
int endpoint_answered(const struct endpoint *e, const struct endpoint_sides *s, struct arena *a,
                      const struct uplink_answer *answer, struct str *ret_refusal);
