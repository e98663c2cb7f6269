/* SPDX-License-Identifier: Apache-2.0 */
/* How pressed a loop is, and whom it still serves. It knows by how long its turns take: what has
 * come in and waits makes a turn long. The least needed class goes first, and comes back last. */
#pragma once

#include "device/endpoint.h"

/* A class is served while the loop is behind by less than this. A device waits two minutes for an
 * answer: half a second is early, and no hiccup of the machine. */
#define PRESSURE_LOGS_MS 500
#define PRESSURE_METRICS_MS 1000
#define PRESSURE_INFO_MS 2000
#define PRESSURE_ESSENTIAL_MS 20000
/* What a loop was behind by counts for this long, falling. */
#define PRESSURE_MEMORY_MS 2000

struct pressure {
    int64_t behind_ms; /* at its worst of late */
    int64_t at_ms;     /* when that was */
};

/* A request begins: now_ms, and how long ago the loop's turn did. Whether its class is served. */
bool pressure_admits(struct pressure *p, enum device_class class, int64_t now_ms,
                     int64_t behind_ms);
/* Seconds after which a class that was turned away may try again. */
int pressure_retry_after_s(enum device_class class);
