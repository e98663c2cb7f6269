/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <errno.h>
#include <pthread.h>

#include "api/admission/quota_ledger.h"
#include "api/admission/references.h"
#include "api/admission/unique_ledger.h"
#include "api/codec.h"
#include "base/alloc.h"
#include "base/log.h"

#define CRD_COLLECTION STR("customresourcedefinitions.apiextensions.k8s.io")

struct api {
    struct api_options options;
    struct quota_ledger *quota_ledger;
    struct unique_ledger *unique_ledger;
    struct references *references;
    struct webhooks *webhooks;
    const struct table_live *table_live;
    const struct forecast *forecast;
    /* Readers take a reference under the lock; a swap is rare. */
    pthread_rwlock_t lock;
    struct registry *registry;
    pthread_mutex_t refreshing;
    uint64_t generation;
    void (*on_registry)(void *ctx, struct registry *r);
    void *ctx;
};

/* Served as soon as its names are accepted, so that whoever sees it established can rely on it; and
 * once established for good. */
static bool is_to_be_served(const struct json *crd)
{
    JSON_FOR_EACH_ITEM (json_at(crd, "status", "conditions", NULL), condition) {
        struct str type = json_get_str(condition, STR("type"));
        if ((str_is(type, "Established") || str_is(type, "NamesAccepted")) &&
            str_is(json_get_str(condition, STR("status")), "True"))
            return true;
    }
    return false;
}

/* A snapshot of all kinds as the store's CRDs have them now. */
static struct registry *build(struct api *api, struct str *ret_error)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range range = {.collection = CRD_COLLECTION};
    if (store_list(api->options.store, &range, &page) < 0)
        return NULL;
    const struct json **crds = ARENA_ARRAY(a, const struct json *, page.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < page.n; i++) {
        const struct json *crd = json_parse_quick(a, object_text(page.objects[i]));
        if (crd && is_to_be_served(crd))
            crds[n++] = crd;
    }
    return registry_build(crds, n, ++api->generation, ret_error);
}

int api_new(const struct api_options *o, struct api **ret_api, char **ret_error)
{
    struct api *api = NEW(struct api);
    struct str error = STR_NONE;
    api->options = *o;
    api->quota_ledger = quota_ledger_new();
    api->unique_ledger = unique_ledger_new();
    (void) pthread_rwlock_init(&api->lock, NULL);
    (void) pthread_mutex_init(&api->refreshing, NULL);
    api->registry = build(api, &error);
    if (!api->registry) {
        struct buf b = {0};
        buf_printf(&b, "the kinds cannot be compiled: %.*s", STR_ARG(error));
        *ret_error = buf_take(&b);
        api_free(api);
        return -EINVAL;
    }
    api->references = references_new(api->options.store, api->registry);
    *ret_api = api;
    return 0;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    references_free(api->references);
    registry_unref(api->registry);
    quota_ledger_free(api->quota_ledger);
    unique_ledger_free(api->unique_ledger);
    (void) pthread_rwlock_destroy(&api->lock);
    (void) pthread_mutex_destroy(&api->refreshing);
    mem_free(api);
}

struct store *api_store(struct api *api)
{
    return api->options.store;
}

const struct clock *api_clock(struct api *api)
{
    return api->options.clock;
}

struct authenticator *api_authenticator(struct api *api)
{
    return api->options.authenticator;
}

struct rbac *api_rbac(struct api *api)
{
    return api->options.rbac;
}

const struct token_issuer *api_token_issuer(struct api *api)
{
    return api->options.token_issuer;
}

void api_set_webhooks(struct api *api, struct webhooks *w)
{
    api->webhooks = w;
}

struct webhooks *api_webhooks(struct api *api)
{
    return api->webhooks;
}

void api_set_table_live(struct api *api, const struct table_live *live)
{
    api->table_live = live;
}

const struct table_live *api_table_live(struct api *api)
{
    return api->table_live;
}

void api_set_forecast(struct api *api, const struct forecast *forecast)
{
    api->forecast = forecast;
}

const struct forecast *api_forecast(struct api *api)
{
    return api->forecast;
}

struct quota_ledger *api_quota_ledger(struct api *api)
{
    return api->quota_ledger;
}

struct unique_ledger *api_unique_ledger(struct api *api)
{
    return api->unique_ledger;
}

struct references *api_references(struct api *api)
{
    return api->references;
}

struct registry *api_registry(struct api *api)
{
    (void) pthread_rwlock_rdlock(&api->lock);
    struct registry *r = registry_ref(api->registry);
    (void) pthread_rwlock_unlock(&api->lock);
    return r;
}

void api_on_registry(struct api *api, void (*on_registry)(void *ctx, struct registry *r), void *ctx)
{
    api->on_registry = on_registry;
    api->ctx = ctx;
    on_registry(ctx, api->registry);
}

void api_refresh_registry(struct api *api)
{
    struct str error = STR_NONE;
    (void) pthread_mutex_lock(&api->refreshing);
    struct registry *fresh = build(api, &error);
    if (fresh) {
        (void) pthread_rwlock_wrlock(&api->lock);
        struct registry *old = api->registry;
        api->registry = fresh;
        (void) pthread_rwlock_unlock(&api->lock);
        if (api->on_registry)
            api->on_registry(api->ctx, fresh);
        registry_unref(old);
    } else {
        log_error("keeping the kinds as they were: a CustomResourceDefinition does not compile",
                  LOG_STR("error", error));
    }
    (void) pthread_mutex_unlock(&api->refreshing);
}
