/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pressure.h"

static const int64_t limits_ms[DEVICE_CLASSES] = {
    [DEVICE_ESSENTIAL] = PRESSURE_ESSENTIAL_MS,
    [DEVICE_INFO] = PRESSURE_INFO_MS,
    [DEVICE_METRICS] = PRESSURE_METRICS_MS,
    [DEVICE_LOGS] = PRESSURE_LOGS_MS,
};

/* What is left of the worst: it falls to nothing in a straight line. */
static int64_t remembered_ms(const struct pressure *p, int64_t now_ms)
{
    int64_t age_ms = now_ms - p->at_ms;
    if (age_ms >= PRESSURE_MEMORY_MS)
        return 0;
    return p->behind_ms * (PRESSURE_MEMORY_MS - MAX(age_ms, (int64_t) 0)) / PRESSURE_MEMORY_MS;
}

bool pressure_admits(struct pressure *p, enum device_class class, int64_t now_ms, int64_t behind_ms)
{
    int64_t old_ms = remembered_ms(p, now_ms);
    if (behind_ms >= old_ms)
        *p = (struct pressure){behind_ms, now_ms};
    /* What devices cannot do without goes by this turn alone: a storm that is over is over. */
    return (class == DEVICE_ESSENTIAL ? behind_ms : MAX(behind_ms, old_ms)) < limits_ms[class];
}

int pressure_retry_after_s(enum device_class class)
{
    static const int seconds[DEVICE_CLASSES] = {
        [DEVICE_ESSENTIAL] = 5, [DEVICE_INFO] = 60, [DEVICE_METRICS] = 60, [DEVICE_LOGS] = 300};
    return seconds[class];
}
