/* SPDX-License-Identifier: Apache-2.0 */
/* What devices report, taken in: checked for form, put on disk, then acknowledged. */
#pragma once

#include "device/visit.h"

/* A protobuf message of the endpoint's stream: taken (endpoint.begin), read, perhaps on a worker
 * (run), kept (finish). */
void device_visit_take_message(struct device_visit *v);
int device_check_message(struct device_call *c);
void device_visit_keep_message(struct device_visit *v);
/* A compressed log. */
device_handler device_check_gzip;
void device_visit_keep_gzip(struct device_visit *v);
/* That there was a request and how it ended, into the device's own stream of them. */
void intake_note_request(struct device_visit *v);
