/* SPDX-License-Identifier: Apache-2.0 */
/* What the device API counts: by endpoint and class, never by device. */
#pragma once

#include "device/route.h"
#include "device/server.h"

struct figures;
struct figures *figures_new(struct metrics *m, struct device_api *api);
void figures_free(struct figures *f);

/* A request is over; endpoint NULL: the path was nobody's. */
void figures_count(struct device_server *s, const struct endpoint *e, int status,
                   int64_t duration_us);
/* Turned away to protect the server; by its own limit. */
void figures_shed(struct device_server *s, enum device_class class);
void figures_limited(struct device_server *s);
