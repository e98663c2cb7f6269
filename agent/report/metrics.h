/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured, as one message. */
#pragma once

#include "eve/metrics.pb-c.h"
#include "report/make.h"

Eve__Metrics__ZMetricMsg *metrics_make(struct world *w);

/* metrics_device.c */
Eve__Metrics__DeviceMetric *metrics_device(struct world *w);
Eve__Metrics__MemoryMetric *metrics_memory(struct world *w, uint64_t used_mb, uint64_t available_mb,
                                           double used_percent);
void metrics_cellular(struct world *w, Eve__Metrics__DeviceMetric *d);
/* metrics_network.c: counters of a NetworkMetric; is_swapped: seen from the other end. */
Eve__Metrics__NetworkMetric *metrics_network(struct world *w, const struct json *metric,
                                             bool is_swapped);
const struct json *metrics_find_interface(struct world *w, struct str name);
void metrics_device_network(struct world *w, Eve__Metrics__DeviceMetric *d);
void metrics_network_instances(struct world *w, Eve__Metrics__ZMetricMsg *m);
/* metrics_transport.c: the way to the controller, logs, secrets. */
void metrics_transport(struct world *w, Eve__Metrics__DeviceMetric *d);
void metrics_ciphers(struct world *w, Eve__Metrics__DeviceMetric *d);
/* metrics_newlog.c */
Eve__Metrics__NewlogMetric *metrics_newlog(struct world *w);
/* metrics_apps.c */
void metrics_apps(struct world *w, Eve__Metrics__ZMetricMsg *m);
void metrics_volumes(struct world *w, Eve__Metrics__ZMetricMsg *m);
