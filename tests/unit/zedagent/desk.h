/* SPDX-License-Identifier: Apache-2.0 */
/* A zedagent of a test that reaches no controller: configurations are handed to it as the cycle
 * would. */
#pragma once

#include "device.h"
#include "zedagent/zedagent_internal.h"

#define DEVICE_UUID "0e000000-0000-4000-8000-000000000001"

struct desk {
    struct device d;
    struct zedagent *z;
    struct publication *nodeagent;
    struct zedagent_listener listener;
    int n_events[ZEDAGENT_LOCAL + 1];
};

void desk_init(struct desk *k);
void desk_start(struct desk *k);
void desk_stop(struct desk *k);
void desk_done(struct desk *k);
const Eve__Config__EdgeDevConfig *desk_config(struct desk *k, const char *text);
enum apply_result desk_apply(struct desk *k, const char *text);
struct str desk_envelope(struct desk *k, const struct authority *by, const char *text);
void desk_leave(struct desk *k, const char *file, struct str content);
void desk_leave_certs(struct desk *k);
struct json *desk_published(struct desk *k, enum section_id id, const char *key);
struct json *desk_status(struct desk *k);
void desk_say_nodeagent(struct desk *k, const char *text);
