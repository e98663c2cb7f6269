/* SPDX-License-Identifier: Apache-2.0 */
/* Admission webhooks: the servers that are asked about writes before these happen, as
 * MutatingWebhookConfigurations and ValidatingWebhookConfigurations name them. It follows the
 * store: a configuration counts from the moment its write is answered. From any thread. */
#pragma once

#include "api/kind.h"
#include "store/store.h"

struct webhooks;
struct fetch_client;

/* As bits, for sets of them. */
enum admission_operation {
    ADMISSION_CREATE = 1,
    ADMISSION_UPDATE = 2,
    ADMISSION_DELETE = 4,
    ADMISSION_CONNECT = 8,
};

/* Reads what is in the store and follows it; asks through the client, which must outlive it. */
struct webhooks *webhooks_new(struct store *s, struct fetch_client *client);
/* No call runs any more. NULL allowed. */
void webhooks_free(struct webhooks *w);

/* Might one of them have to be asked about such a write, so that it needs a thread that may block?
 * Cheap, and next to nothing while there is no configuration. False means no; a write that meets
 * one after all ends with must_block, see struct call. w NULL: there are none. */
bool webhooks_may_match(struct webhooks *w, const struct kind *k, struct str subresource,
                        unsigned operations);
