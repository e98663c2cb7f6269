/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of one exchange: what comes before it and its end are transfer.c's; what goes
 * over the socket is a carrier's. */
#pragma once

#include "base/buf.h"
#include "controllerconn/lookup.h"
#include "controllerconn/response.h"
#include "controllerconn/tls_internal.h"
#include "controllerconn/url.h"
#include "controllerconn/wire_internal.h"

/* Of libcurl. */
struct uplink_by_curl {
    CURL *easy;
    struct curl_slist *headers, *resolve;
    struct buf body;
    char error[CURL_ERROR_SIZE];
    int socket_errno; /* of making or binding the socket */
    bool is_resumed, is_too_large, is_added;
    unsigned n_contexts;
    /* Of a stream: its pieces wait in the body until libcurl has returned. */
    struct loop_timer *deadline; /* until it is open */
    struct loop_deferred hand_over;
    bool is_open, is_paused, is_over;
};

/* Of our own: one connection of HTTPS without a proxy, which is nearly all that a device needs. */
struct uplink_by_us {
    struct str addresses; /* those not yet tried, joined by commas */
    int dial_errno;       /* of the last one tried, and at what */
    const char *dial_step;
    int fd;
    struct loop_fd *watch; /* of fd */
    struct loop_timer *deadline;
    struct uplink_tls_end end;
    struct ssl_st *ssl;
    struct buf request;
    size_t n_sent;
    struct uplink_response response;
    bool is_dialed, is_shaken;
};

struct uplink_carrier {
    /* Addresses joined by commas; absent: the host is one. May tell the end at once. */
    void (*carry)(struct uplink_transfer *t, struct str addresses);
    bool (*is_dialed)(const struct uplink_transfer *t);
    void (*done)(struct uplink_transfer *t);
};
extern const struct uplink_carrier uplink_curl_carrier, uplink_own_carrier;

struct uplink_transfer {
    struct curl_wire *wire;
    struct uplink_exchange x;
    struct arena *arena;
    struct uplink_url target, proxy;
    const char *target_host, *proxy_host;
    struct uplink_lookup *lookup;
    struct loop_timer *dial_timer;
    struct loop_deferred soon;     /* fails, or is carried */
    enum uplink_fault early_fault; /* of what fails before it begins */
    struct str early_error;
    const struct uplink_carrier *carrier;
    union {
        struct uplink_by_curl by_curl;
        struct uplink_by_us by_us;
    };
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

/* Tell the owner and free it. */
void uplink_transfer_tell(struct uplink_transfer *t, const struct uplink_reply *r);
void uplink_transfer_tell_fault(struct uplink_transfer *t, enum uplink_fault fault,
                                struct str error);
/* Of the verdict on the server's certificate. */
enum uplink_fault uplink_transfer_certificate_fault(long verdict);
/* To the port's device and the source address. Negative errno; -EAFNOSUPPORT: the source is of
 * another family. */
int uplink_transfer_bind(const struct uplink_transfer *t, int fd, int family);
