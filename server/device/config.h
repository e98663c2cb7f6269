/* SPDX-License-Identifier: Apache-2.0 */
/* What a device is to do, as it is told: its DeviceConfig, completed, hashed and signed. An
 * unchanged one costs a comparison; one that must be made anew is made on a worker. */
#pragma once

#include "device/endpoint.h"
#include "eve/config.pb-c.h"

enum config_poll {
    CONFIG_UNCHANGED, /* the device has it */
    CONFIG_READY,     /* here it is */
    CONFIG_TO_MAKE    /* device_config_make(), where one may block */
};
/* *ret_config with a reference when ready. From any thread; never blocks. */
enum config_poll device_config_poll(struct device_call *c, struct str known_hash,
                                    struct device_config **ret_config);

/* A configuration in its three forms. */
struct config_made {
    const struct device_config *sealed; /* as long as c->shared_body, which is its envelope */
    struct str config;                  /* EdgeDevConfig, in the call's arena */
    struct str response;                /* ConfigResponse, likewise */
};
/* Makes it from what is stored and remembers it for polls to come; known_hash is what the device
 * asks with. 0, or a negative errno with c->reason: the device then keeps what it has. */
int device_config_make(struct device_call *c, struct str known_hash, struct config_made *ret);
/* It is being sent. From any thread; never blocks. */
void device_config_given(struct device_call *c, const struct device_config *config);

/* POST config, and GET on v1, when it has to be made. */
device_handler device_config_answer;
/* 403 filled in when the device must attest first; 0 otherwise. */
int device_config_check_token(struct device_call *c, struct str token);
