/* SPDX-License-Identifier: Apache-2.0 */
/* The device as the other services publish it: the part of struct msrv_world that topics tell, and
 * the topic on which applications' metadata leaves. What no topic tells, because it takes keys, is
 * asked of the rest. */
#pragma once

#include "msrv/msrv.h"

struct pubsub;
struct msrv_topics;

struct msrv_topics_options {
    struct pubsub *pubsub;
    struct loop *loop;
    int64_t usage_delay_ms; /* 0: 10 s */
    /* The functions on a worker; the others are not called. */
    const struct msrv_world *rest;
    void *rest_ctx;
};

/* Publishes AppInstMetaData and PatchEnvelopeUsage as "msrv", persistent. -EADDRINUSE when somebody
 * does already. */
int msrv_topics_new(const struct msrv_topics_options *o, struct msrv_topics **ret);
/* Leaves the topics; only functions on a worker may still be called. */
void msrv_topics_close(struct msrv_topics *t);
/* When the server's on_freed has said that nobody asks it, or the loop has settled after the
 * server's end. NULL allowed. */
void msrv_topics_free(struct msrv_topics *t);
/* Its ctx is a struct msrv_topics. */
extern const struct msrv_world msrv_topics_world;
/* The server that follows the config items of its rate; NULL: none any more. */
void msrv_topics_follow(struct msrv_topics *t, struct msrv *m);
