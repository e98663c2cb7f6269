/* SPDX-License-Identifier: Apache-2.0 */
/* What an application tells the controller: its kubeconfig, its custom status. The JSON itself is
 * none of our business. */
#include <errno.h>

#include "base/base64.h"
#include "base/log.h"
#include "msrv/msrv_internal.h"

static int publish(struct request *r, enum msrv_data_type type)
{
    const struct msrv_options *o = &r->msrv->options;
    if (!o->world->publish_metadata)
        return -ENOENT;
    struct json *value = json_new(r->arena, json_object());
    json_append_member(r->arena, value, STR("AppInstUUID"), json_string(r->app->uuid));
    json_append_member(r->arena, value, STR("Data"),
                       json_string(base64_encode(r->arena, r->body, BASE64_STANDARD)));
    json_append_member(r->arena, value, STR("Type"), json_int(type));
    struct str key = arena_printf(r->arena, "%.*s-%d", STR_ARG(r->app->uuid), (int) type);
    return o->world->publish_metadata(o->ctx, key, value);
}

/* The order of the checks is the reference's: the caller comes last. */
static void take(struct request *r, enum msrv_data_type type)
{
    if (!str_eq(message_header(r->message, STR("content-type")), STR("application/json"))) {
        answer_error(r, 415, STR("Content-Type header is not application/json"));
        return;
    }
    if (r->is_body_cut || r->body.n > MSRV_MAX_METADATA_BYTES) {
        answer_error(r, 500, STR("Internal Server Error"));
        return;
    }
    if (!r->app) {
        r->answer.status = 204;
        return;
    }
    int e = publish(r, type);
    if (e < 0) {
        log_warning("metadata of an application cannot be published", LOG_STR("app", r->app->uuid),
                    LOG_INT("type", type), LOG_ERRNO(e));
        answer_error(r, 500, STR("Internal Server Error"));
        return;
    }
    r->answer.status = 200;
}

void kubeconfig_answer(struct request *r)
{
    take(r, MSRV_DATA_KUBECONFIG);
}

void custom_status_answer(struct request *r)
{
    take(r, MSRV_DATA_CUSTOM_STATUS);
}
