/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the device API and what stands behind each. */
#pragma once

#include "device/endpoint.h"

/* Who must have signed. */
enum device_signer { SIGNED_BY_NOBODY, SIGNED_BY_STRANGER, SIGNED_BY_DEVICE };

struct device_visit;

struct endpoint {
    const char
        *name; /* behind the device's or the API's own prefix; of an application: its last word */
    enum device_class class;
    enum device_signer signer;
    bool takes_get, takes_post;
    bool is_of_app;
    bool wants_uuid;   /* only below id/<uuid>/ on v2 */
    unsigned versions; /* mask of 1 << version */
    /* One of the two: on the loop, answering now or later; or on a worker. */
    void (*begin)(struct device_visit *v);
    device_handler *run;
    /* After run on the loop again, unless that has answered. NULL: it always does. */
    void (*finish)(struct device_visit *v);
    enum telemetry_stream stream; /* of what is kept */
    enum telemetry_form form;
};

struct route {
    const struct endpoint *endpoint;
    bool is_v1;
    bool has_uuid;
    struct uuid uuid; /* of the device, in the path */
    struct uuid app;
};
/* 0; or the status that says why not: 404, 405, 400 for a malformed UUID. */
int route_find(struct str path, enum http_method method, struct route *ret);
/* For the figures: every endpoint once. */
size_t route_count(void);
const struct endpoint *route_endpoint(size_t i);
