/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the real wire. */
#pragma once

#include <curl/curl.h>

#include "base/clock.h"
#include "controllerconn/wire.h"
#include "loop/loop.h"

struct curl_wire {
    struct uplink_wire wire;
    struct loop *loop;
    const struct clock *clock;
    CURLM *multi;
    struct loop_timer *timer;
};

extern const struct uplink_wire_ops uplink_curl_ops;

/* libcurl is done with it: tells the owner and frees it. */
void uplink_transfer_end(struct uplink_transfer *t, CURLcode code);
