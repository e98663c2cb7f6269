/* SPDX-License-Identifier: Apache-2.0 */
/* One request of a device and what answers it. The door (door.c) has parsed the path, found the
 * class, opened and verified the envelope where the endpoint wants one, and found the device. */
#pragma once

#include "api/client.h"
#include "device/controller_certs.h"
#include "eve/envelope.h"
#include "http/http.h"
#include "loop/workers.h"
#include "protobuf/message.h"
#include "reports/reports.h"
#include "roster/roster.h"
#include "telemetry/telemetry.h"

/* Shed from the last: a device keeps what it could not send of the upper ones. */
enum device_class { DEVICE_ESSENTIAL, DEVICE_INFO, DEVICE_METRICS, DEVICE_LOGS, DEVICE_CLASSES };

struct fetch_client;
struct onboarding;

/* What all endpoints share; lives as long as the server. */
struct device_api {
    atomic_bool is_ready;       /* every Device has been read; until then 503 */
    struct kube_client *client; /* field manager "seth-device" */
    const struct clock *clock;
    struct roster *roster;
    struct controller_certs *certs;
    struct telemetry *telemetry;
    struct reports *reports;
    struct workers *workers;
    struct workers *log_workers;       /* for what is to be inflated: nobody else waits for it */
    struct onboarding *onboarding;     /* who may register: onboarding.h */
    struct fetch_client *fetch_client; /* for SCEP servers */
    /* Composes the DeviceConfig of a Device that has none, and writes it, now; blocks. NULL: nobody
     * does. */
    int (*ensure_config)(void *ctx, struct str namespace, struct str name, struct status *st);
    void *ensure_ctx;
};

struct endpoint;

struct device_call {
    struct device_api *api;
    const struct endpoint *endpoint;
    struct arena *arena;      /* its own: outlives the exchange */
    struct device *device;    /* who signed; NULL where the endpoint needs none */
    struct envelope envelope; /* of v2 */
    struct str payload;       /* verified; the body itself on v1 */
    struct uuid app;          /* from the path; zero: none */
    struct str source;        /* the peer's address */
    struct str request_id;    /* X-Request-Id */
    struct str method, path;
    struct pki_cert *certificate; /* v1: the client certificate; NULL otherwise */
    bool is_v1;
    int64_t device_us;                            /* the time a report says it is of; 0: none */
    unsigned char digest[TELEMETRY_DIGEST_BYTES]; /* of a compressed log */

    /* The answer. */
    int status;
    struct str content_type;  /* NULL: application/x-proto-binary */
    struct str body;          /* what goes out as it is */
    struct slice shared_body; /* instead: bytes that others share */
    int retry_after_s;        /* 0: no such header */
    struct str reason;        /* for the log and the requests stream, in words: "no device has this
                                 certificate" */
};

/* Answers. Each returns 0 so that a handler may `return device_refuse(...)`. The reason goes as
 * text/plain for people who read traces; devices ignore it. */
int device_refuse(struct device_call *c, int status, const char *format, ...) PRINTF_LIKE(3, 4);
/* A message, in an envelope on v2 and bare on v1. */
int device_answer(struct device_call *c, int status, const ProtobufCMessage *m);

/* Runs on a worker: may block. Fills the answer. */
typedef int device_handler(struct device_call *c);
device_handler device_register; /* onboarding.c: POST register, v1 and v2 */
device_handler device_uuid;     /* POST uuid */
device_handler device_attest;   /* attest.c: CERT, NONCE, QUOTE, STORE_KEYS */
device_handler device_scep;     /* scep.c: proxy/scep */
device_handler device_compound_config;
