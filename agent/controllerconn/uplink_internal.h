/* SPDX-License-Identifier: Apache-2.0 */
/* Between uplink.c, which is set up, and call.c, which sends. */
#pragma once

#include "controllerconn/uplink.h"
#include "loop/loop.h"

struct uplink {
    struct uplink_options o;
    struct str server, user_agent, serial, soft_serial; /* owned */
    struct uuid device;
    struct uplink_ports *ports;
    struct uplink_tls *tls;
    int64_t send_timeout_ms, dial_timeout_ms;
    uint64_t iteration;
    struct list calls;
};

/* One HTTP answer at most: a request on its way along ports, addresses and redirects. */
struct uplink_call {
    struct list link;
    struct uplink *uplink;
    struct arena *arena;
    struct uplink_request r;
    struct uplink_ports *ports;
    struct uplink_tls *tls;
    struct buf body; /* as sent: wrapped where that is due */
    uint64_t iteration;
    size_t order[UPLINK_MAX_PORTS], n_order, port_at;
    size_t address_at;
    struct str hop_url; /* of the redirect followed, at first the request's */
    bool hop_is_post;
    unsigned n_redirects;
    struct str proxy;
    int64_t begin_us, deadline_us;
    int64_t open_us;   /* a stream is since then; 0: not yet */
    uint64_t n_stream; /* bytes of it */
    struct uplink_transfer *transfer;
    struct uplink_script *script;
    struct loop_deferred next; /* what can be decided without waiting, outside of callers */
    struct uplink_answer answer;
    struct buf words, opened;
    void (*on_done)(void *arg, const struct uplink_answer *answer);
    void *arg;
};

void uplink_call_free(struct uplink_call *c);
