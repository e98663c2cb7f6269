/* SPDX-License-Identifier: Apache-2.0 */
/* A service's way to the controller: requests over several management ports by cost and order,
 * counted, with the envelope made by whoever owns the keys. It looks into no message. An uplink
 * belongs to one loop; thousands fit into a process and share one wire. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "controllerconn/metrics.h"
#include "controllerconn/outcome.h"
#include "controllerconn/ports.h"
#include "controllerconn/tls.h"
#include "controllerconn/trace.h"
#include "controllerconn/url.h"
#include "controllerconn/wire.h"

#define UPLINK_SEND_TIMEOUT_MS 120000
#define UPLINK_DIAL_TIMEOUT_MS 10000
#define UPLINK_MAX_BUDGET_MS 240000 /* all ports and addresses together */
#define UPLINK_MAX_REPLY_BYTES ((size_t) 64 * 1024 * 1024)
#define UPLINK_MAX_REDIRECTS 10
#define UPLINK_MAX_ERROR_BYTES ((size_t) 4096)

/* The AuthContainer, by who knows it. */
struct uplink_envelope {
    /* Appends the wrapped payload; the onboarding identity signs a registration. */
    int (*wrap)(void *arg, bool is_registration, struct str payload, struct buf *to);
    /* Appends the payload of an answer that is believed; else a negative errno and the status that
     * tells why (UPLINK_NONE: it is no envelope). */
    int (*open)(void *arg, struct str body, struct buf *to, enum uplink_status *ret_status);
    void *arg;
};

struct uplink_options {
    struct loop *loop;
    struct uplink_wire *wire;
    const struct clock *clock;
    struct uplink_metrics *metrics;         /* outlives the uplink */
    const struct uplink_envelope *envelope; /* NULL: nothing is wrapped; outlives it too */
    struct str server;                      /* `host[:port]` of the file of that name */
    struct str user_agent;                  /* absent: seth-agent's */
    struct str serial, soft_serial;         /* sent while the UUID is nil */
    enum uplink_api api;
};

struct uplink;
struct uplink *uplink_new(const struct uplink_options *o);
/* Calls under way end without a word. NULL allowed; in the on_done of a call, too. */
void uplink_free(struct uplink *u);

/* Calls under way keep what they began with. */
void uplink_set_ports(struct uplink *u, struct uplink_ports *ports); /* takes a reference */
void uplink_set_tls(struct uplink *u, struct uplink_tls *tls);       /* the same; NULL allowed */
void uplink_set_server(struct uplink *u, struct str server);
void uplink_set_device(struct uplink *u, const struct uuid *device);
/* 0: the default. */
void uplink_set_timeouts(struct uplink *u, int64_t send_ms, int64_t dial_ms);
struct uplink_metrics *uplink_metrics_of(struct uplink *u);
const struct clock *uplink_clock(const struct uplink *u);
/* `<server>/api/v2/edgedevice/...`, with the device's UUID or without. */
struct str uplink_url(const struct uplink *u, struct arena *a, bool with_device, struct str action);

struct uplink_request {
    struct str url;         /* as uplink_url() makes it, or any other */
    struct str body;        /* absent: GET; empty: POST of nothing */
    struct uplink_tls *tls; /* instead of the uplink's, as for a registration */
    struct str port;        /* only this one; absent: all of management, by cost */
    struct str source;      /* only this address of it, needed for is_local */
    bool is_local;          /* to a neighbour: no envelope, no proxy, no serial numbers */
    bool forbids_proxy;
    bool is_dry_run;          /* only what can be seen without sending */
    bool bails_on_http_error; /* 400 to 599 ends it with the answer instead of the next port */
    bool accepts_4xx;
    bool opens_reply;          /* the body of 200 and 201 is an envelope */
    const struct str *headers; /* instead of all that are usual; NULL: those */
    size_t n_headers;
    struct str content_type; /* of a local POST; absent: none */
    size_t max_reply_bytes;  /* 0: UPLINK_MAX_REPLY_BYTES */
    int64_t budget_ms;       /* for all attempts; 0: 3 times the send timeout, 4 min at most */
    /* The body of a 200 comes here piece by piece, for as long as the server likes, and nothing of
     * it is kept; time is limited until that answer has begun, which the first call says, with a
     * piece or without. However it ends, on_done then says 200 and has no body. Has the call's arg;
     * anything may be cancelled in it. */
    void (*on_data)(void *arg, struct str piece);
    int64_t keepalive_s;        /* between TCP's questions whether a stream's peer lives; 0: none */
    struct uplink_trace *trace; /* outlives the call */
};

struct uplink_answer {
    int error; /* 0: delivered. -ENODEV no management port; -EHOSTUNREACH nobody answered, or one
                  with an HTTP error; -EPROTO the HTTP error handed back here; -EKEYREJECTED the
                  envelope is not believed; -EIO it could not be made; -ENOENT no such port */
    enum uplink_status status;
    int http_status;               /* of the answer handed back; 0: none is */
    int last_http_status;          /* of whoever answered last, 0: nobody did */
    struct str body, content_type; /* valid during on_done */
    struct str port;               /* that delivered, or answered */
    struct str words;              /* `send via eth0 with src IP 10.0.0.2: ...; ...` */
    bool is_no_address, is_no_dns; /* of a single port: why nothing could be sent */
    bool is_no_name;               /* a name was asked for, and nobody knew it */
    bool is_dry_run;               /* it was only looked at */
};

struct uplink_call;
/* Each call counts up the iteration that spreads load over ports of the same cost. on_done never
 * comes before this returns; everything in the request but the trace is copied. */
struct uplink_call *uplink_send(struct uplink *u, const struct uplink_request *r,
                                void (*on_done)(void *arg, const struct uplink_answer *answer),
                                void *arg);
/* No on_done comes after it. */
void uplink_cancel(struct uplink_call *c);
