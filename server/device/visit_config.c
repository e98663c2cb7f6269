/* SPDX-License-Identifier: Apache-2.0 */
/* The request devices make most: is my configuration still the one? */
#include "device/config.h"
#include "device/visit.h"

/* A hash and a token: what is larger is nothing a device sends, and would only keep the loop. */
#define REQUEST_MAX_BYTES ((size_t) 64 * 1024)

static void answer_unchanged(struct device_visit *v)
{
    v->call.status = 304;
    device_visit_answer(v);
}

static void answer_config(struct device_visit *v, struct device_config *config)
{
    device_config_given(&v->call, config);
    v->call.status = 200;
    v->call.shared_body = (struct slice){config->envelope, &config->bytes};
    device_visit_answer(v);
}

void device_visit_config(struct device_visit *v)
{
    struct device_call *c = &v->call;
    struct device_config *config = NULL;
    const Eve__Config__ConfigRequest *q =
        c->payload.n <= REQUEST_MAX_BYTES
            ? PB_UNPACK(c->arena, eve__config__config_request, c->payload)
            : NULL;
    if (!q) {
        (void) device_refuse(c, 422, "the body is no ConfigRequest");
        device_visit_answer(v);
        return;
    }
    if (!c->is_v1 && device_config_check_token(c, pb_bytes(q->integrity_token)) < 0) {
        device_visit_answer(v);
        return;
    }
    switch (device_config_poll(c, pb_text(q->confighash), &config)) {
    case CONFIG_UNCHANGED:
        answer_unchanged(v);
        return;
    case CONFIG_READY:
        if (!c->is_v1) {
            answer_config(v, config);
            return;
        }
        bytes_unref(&config->bytes); /* v1 wants it bare */
        break;
    case CONFIG_TO_MAKE:
        break;
    }
    device_visit_run(v);
}
