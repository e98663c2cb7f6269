/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller must remember of a device and users need not see: its certificates, escrowed
 * keys, integrity token. Kept in a Secret `<device>.eve-device` beside the Device and owned by it:
 * durable before it is acknowledged, sealed at rest, in every backup, gone with the Device. */
#pragma once

#include "roster/roster.h"

#define DEVICE_STATE_SUFFIX ".eve-device"
#define DEVICE_STATE_TYPE "eve.lfedge.org/device-state"

/* As it is stored; absent parts are empty. Messages are serialized protobuf. */
struct device_state {
    struct str certificates; /* a ZAttestReq whose certs are the device's, as it sent them */
    struct str storage_keys; /* an AttestStorageKeys */
    struct str integrity_token;
    struct str event_log; /* the last TPM event log, gzip as sent */
    struct str pcrs;      /* the last good quote's PCR values: a ZAttestQuote without attestData */
    bool has_tpm;
};
/* 0 (also when there is none: all empty) or a negative errno with st filled. Blocks. */
int device_state_load(struct kube_client *c, struct arena *a, const struct device *d,
                      struct device_state *ret, struct status *st);
/* Writes the parts that are not STR_NONE, keeps the others. Durable when it returns. Blocks. */
int device_state_save(struct kube_client *c, struct arena *a, const struct device *d,
                      const struct device_state *s, struct status *st);
/* From the Secret's text. */
int device_state_parse(struct arena *a, struct str secret_text, struct device_state *ret);
