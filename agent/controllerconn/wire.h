/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of the process, behind a table of functions: one exchange over one source address,
 * and what must be known before it. A test puts its own in place. */
#pragma once

#include "controllerconn/outcome.h"
#include "controllerconn/ports.h"

struct clock;
struct loop;
struct uplink_tls;
struct uplink_trace;

/* Everything is borrowed until on_done or cancel. */
struct uplink_exchange {
    struct str url; /* complete */
    bool is_post;
    struct str body;
    const struct str *headers; /* "Name: value" */
    size_t n_headers;
    const struct uplink_port *port; /* its DNS servers are asked; NULL: the URL must name an IP */
    struct str source;              /* address to send from; absent: any */
    struct str proxy;               /* URL; absent: none */
    struct uplink_tls *tls;         /* may be NULL for http */
    int64_t timeout_ms;             /* of the whole */
    int64_t dial_timeout_ms;        /* of lookup and TCP connect; 0: no limit of its own */
    size_t max_reply_bytes;
    /* As in struct uplink_request, with the arg of start(); timeout_ms is of what comes before. */
    void (*on_data)(void *arg, struct str piece);
    int64_t keepalive_s;
    struct uplink_trace *trace; /* NULL: not traced */
};

/* Strings are valid during on_done. */
struct uplink_reply {
    enum uplink_fault fault; /* UPLINK_FAULT_NONE: there is an HTTP answer */
    struct str error;        /* of a fault, for people */
    int http_status;
    struct str body, content_type, location;
    bool is_resumed;
};

struct uplink_transfer;
struct uplink_script;
struct uplink_wire;

struct uplink_wire_ops {
    /* on_done is never called before this returns. */
    struct uplink_transfer *(*start)(struct uplink_wire *w, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg);
    /* No on_done comes after it. */
    void (*cancel)(struct uplink_transfer *t);
    /* The answer of the port's PAC script for a URL, absent when it has none: it does not
     * parse, fails, or takes too long. Never before this returns. */
    struct uplink_script *(*ask_script)(struct uplink_wire *w, const struct uplink_port *port,
                                        struct str source, struct str url,
                                        void (*on_answer)(void *arg, struct str answer), void *arg);
    void (*cancel_script)(struct uplink_script *s);
};

struct uplink_wire {
    const struct uplink_wire_ops *ops;
};

/* libcurl and c-ares on a loop; one serves any number of uplinks of that loop. NULL: libcurl cannot
 * be initialized. The clock, which outlives it, is what scripts are told. */
struct uplink_wire *uplink_wire_new(struct loop *l, const struct clock *clock);
/* After all transfers have ended or were cancelled. */
void uplink_wire_free(struct uplink_wire *w);
