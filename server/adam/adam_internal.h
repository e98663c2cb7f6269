/* SPDX-License-Identifier: Apache-2.0 */
/* What the endpoints share: a call, its answers, and the objects behind. */
#pragma once

#include "adam/adam.h"
#include "adam/objects.h"

struct adam {
    struct adam_options options;
    struct str namespace; /* owned */
};

#define ADAM_MAX_ARGUMENTS 2

struct adam_call {
    struct adam *adam;
    struct arena *arena;
    const struct annex_request *request;
    struct annex_answer *answer;
    struct str arguments[ADAM_MAX_ARGUMENTS]; /* what stands for {cn}, {uuid}, {appuuid} */
    /* Where the path names a device: */
    struct device *device;
    struct json *object; /* its Device */
};

static inline struct adam_place adam_place_of(struct adam_call *c, struct status *st)
{
    return (struct adam_place){c->adam->options.client, c->arena, c->adam->namespace, st};
}

/* Fills the answer, as each of those below does, and returns 0 for a tail call. */
typedef int adam_handler(struct adam_call *c);
adam_handler adam_onboard_list, adam_onboard_get, adam_onboard_add, adam_onboard_remove,
    adam_onboard_clear;
adam_handler adam_device_list, adam_device_get, adam_device_add, adam_device_remove,
    adam_device_clear, adam_device_certs;
adam_handler adam_config_get, adam_config_set;
adam_handler adam_records_logs, adam_records_info, adam_records_metrics, adam_records_requests,
    adam_records_flowlogs, adam_records_app_logs;
adam_handler adam_options_get, adam_options_set, adam_global_options_get, adam_global_options_set;

int adam_answer(struct adam_call *c, int code, struct str content_type, struct str body);
/* An empty one. */
int adam_done(struct adam_call *c, int code);
/* Text for people with a newline, as Go's http.Error. */
int adam_refuse(struct adam_call *c, int code, const char *format, ...) PRINTF_LIKE(3, 4);
int adam_refuse_status(struct adam_call *c, const struct status *st);
/* Whether the one who asks takes protobuf and not JSON. */
bool adam_wants_binary(struct str accept);
/* The media type alone: "text/plain" of "text/plain; charset=utf-8". */
struct str adam_media_type(struct str content_type);

#define ADAM_JSON STR("application/json")
#define ADAM_TEXT STR("text/plain; charset=utf-8")
#define ADAM_BINARY STR("application/x-proto-binary")
