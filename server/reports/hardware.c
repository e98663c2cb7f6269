/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoHardware and what of the metrics belongs into a status. The inventory itself stays readable
 * as telemetry: it is large and nobody selects by it. */
#include "reports/derive.h"
#include "reports/words.h"

/* EVE's own use of the disk moves all the time; only whole steps are written. */
#define STORAGE_STEP_MIB 1024

void derive_hardware(struct derivation *d, const Eve__Info__ZInfoHardware *m)
{
    struct arena *a = d->arena;
    struct json *info = json_ensure_object(a, d->status, STR("nodeInfo"));
    struct str kernel = words_name(a, m->kernel_version);
    if (kernel.n)
        derive_text(a, info, "kernelVersion", kernel);
}

static void set_allocatable(struct derivation *d, const char *key, uint64_t mebibytes)
{
    struct json *allocatable = json_ensure_object(d->arena, d->status, STR("allocatable"));
    (void) json_set(d->arena, allocatable, str_of(key),
                    json_string(words_mebibytes(d->arena, mebibytes)));
}

static uint64_t mebibytes_of(const struct derivation *d, const char *list, const char *key)
{
    struct quantity q;
    struct str ignored;
    struct str text = json_str(json_at(d->status, list, key, NULL));
    if (!text.n || quantity_parse(text, &q, &ignored) < 0)
        return 0;
    double n = quantity_double(&q) / (1024.0 * 1024.0);
    return n > 0 && n < 1e15 ? (uint64_t) n : 0;
}

static void judge_storage(struct derivation *d, uint64_t own)
{
    uint64_t storage = mebibytes_of(d, "capacity", "ephemeral-storage");
    uint64_t old = mebibytes_of(d, "allocatable", "ephemeral-storage");
    if (!storage || !own || own >= storage)
        return;
    uint64_t left = storage - own;
    bool is_near = old && old <= left && left - old < (uint64_t) 2 * STORAGE_STEP_MIB;
    if (!is_near)
        set_allocatable(d, "ephemeral-storage", left / STORAGE_STEP_MIB * STORAGE_STEP_MIB);
}

void derive_metrics(struct derivation *d, const Eve__Metrics__DeviceMetric *m)
{
    const Eve__Metrics__DeviceMemoryMetric *memory = m->devicememory;
    if (memory && memory->memorymb > memory->allocated_evemb)
        set_allocatable(d, "memory", memory->memorymb - memory->allocated_evemb);
    judge_storage(d, m->runtimestorageoverheadmb);
    derive_processed(d, words_time(m->last_received_config), words_time(m->last_processed_config));
}
