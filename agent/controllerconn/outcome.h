/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a request: which HTTP codes and failures of transport count as what. */
#pragma once

#include "base/str.h"

/* The numbers are seen in JSON and metrics. */
enum uplink_status {
    UPLINK_NONE = 0,
    UPLINK_REFUSED = 1,
    UPLINK_UPGRADE = 2,
    UPLINK_CERT_INVALID = 3,
    UPLINK_CERT_MISS = 4,
    UPLINK_SIGN_VERIFY_FAIL = 5,
    UPLINK_ALGO_FAIL = 6,
    UPLINK_HASH_SIZE_ERROR = 7,
    UPLINK_CERT_UNKNOWN_AUTHORITY = 8,
    UPLINK_CERT_UNKNOWN_AUTHORITY_PROXY = 9,
    UPLINK_NOT_FOUND = 10,
    UPLINK_FORBIDDEN = 11,
    UPLINK_FAILED = 12,
    UPLINK_DEBUG = 13, /* still waiting */
};
const char *uplink_status_name(enum uplink_status s);

/* Why there was no HTTP answer. */
enum uplink_fault {
    UPLINK_FAULT_NONE, /* there was one */
    UPLINK_FAULT_REFUSED,
    UPLINK_FAULT_CERT_TIME, /* of the server: expired, or not yet valid */
    UPLINK_FAULT_CERT_AUTHORITY,
    UPLINK_FAULT_NO_ADDRESS, /* nothing of the family of the source address */
    UPLINK_FAULT_TIMEOUT,
    UPLINK_FAULT_LOOKUP,
    UPLINK_FAULT_TOO_LARGE, /* the answer exceeds its limit */
    UPLINK_FAULT_OTHER,
};

/* Without parameters, and however its letters are written. */
bool uplink_type_is(struct str content_type, const char *type);
/* One of those that a controller's message may have. */
bool uplink_type_is_message(struct str content_type);
/* 200, 201, 204, 304; with the option all of 4xx. */
bool uplink_http_is_delivered(int code, bool accepts_4xx);

struct uplink_verdict {
    enum uplink_status status; /* UPLINK_NONE: what was there before stays */
    bool is_final;             /* no further port is tried */
};
/* Of a code that is not delivered. */
struct uplink_verdict uplink_judge_http(int code, bool bails_on_http_error);
struct uplink_verdict uplink_judge_fault(enum uplink_fault fault, bool used_proxy);

/* What the deferred queue does with an entry. */
enum uplink_refusal { UPLINK_REFUSAL_NONE, UPLINK_REFUSAL_LATER, UPLINK_REFUSAL_FINAL };
/* 401, 403, 407, 408, 429 and 5xx may pass; other codes that are not delivered never do. */
enum uplink_refusal uplink_refusal_of(int code);
