/* SPDX-License-Identifier: Apache-2.0 */
/* What all calls share: the store, the kinds, the clock. */
#pragma once

#include "api/registry.h"
#include "base/clock.h"
#include "store/store.h"

struct api;
struct quota_ledger;
struct unique_ledger;
struct references;
struct authenticator;
struct rbac;
struct webhooks;
struct token_issuer;
struct table_live;
struct forecast;

struct api_options {
    struct store *store;
    const struct clock *clock;
    struct authenticator *authenticator; /* what TokenReview asks */
    struct rbac *rbac;
    const struct token_issuer *token_issuer; /* what signs ServiceAccount tokens */
};

/* Builds the registry from the compiled-in kinds and the CRDs in the store. Failure: *ret_error
 * (heap). */
int api_new(const struct api_options *o, struct api **ret_api, char **ret_error);
void api_free(struct api *api);

struct store *api_store(struct api *api);
const struct clock *api_clock(struct api *api);
struct quota_ledger *api_quota_ledger(struct api *api);
struct unique_ledger *api_unique_ledger(struct api *api);
struct references *api_references(struct api *api);
struct authenticator *api_authenticator(struct api *api);
struct rbac *api_rbac(struct api *api);
/* NULL, as at first: none are asked. Set before other threads use api. */
void api_set_webhooks(struct api *api, struct webhooks *w);
struct webhooks *api_webhooks(struct api *api);
/* Likewise: what tables show beyond the objects; kept by reference. */
void api_set_table_live(struct api *api, const struct table_live *live);
const struct table_live *api_table_live(struct api *api);
/* Likewise: what dry runs are told; kept by reference. */
void api_set_forecast(struct api *api, const struct forecast *forecast);
const struct forecast *api_forecast(struct api *api);
const struct token_issuer *api_token_issuer(struct api *api);
/* The kinds as they are now, with a reference. From any thread. */
struct registry *api_registry(struct api *api);
/* Reads the CRDs again and swaps the registry when they changed; called after a CRD was written. */
void api_refresh_registry(struct api *api);
/* Called (on the thread that refreshes) after each swap, with the new registry. */
void api_on_registry(struct api *api, void (*on_registry)(void *ctx, struct registry *r),
                     void *ctx);
