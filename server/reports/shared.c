/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that several devices have, such as Images and DeviceNetworks: one condition over what all
 * of them say. */
#include "reports/derive.h"
#include "reports/words.h"

static struct str error_words(struct arena *a, const struct fact *facts, size_t n, size_t n_errors)
{
    const struct fact *first = NULL;
    for (size_t i = 0; i < n; i++)
        if (facts[i].state == FACT_ERROR && (!first || str_cmp(facts[i].device, first->device) < 0))
            first = &facts[i];
    struct str words =
        arena_printf(a, "device %.*s: %.*s", STR_ARG(first->device), STR_ARG(first->message));
    if (n_errors > 1)
        words = arena_printf(a, "%.*s (and on %zu other devices)", STR_ARG(words), n_errors - 1);
    return words;
}

void derive_shared(struct derivation *d, const struct fact *facts, size_t n)
{
    size_t counts[FACT_ERROR + 1] = {0};
    for (size_t i = 0; i < n; i++)
        counts[facts[i].state]++;
    size_t n_all = n - counts[FACT_GONE];
    struct condition c = {
        "Ready", "False", STR("Preparing"),
        arena_printf(d->arena, "on %zu of %zu devices", counts[FACT_READY], n_all)};
    if (!n_all) {
        c = (struct condition){"Ready", "Unknown", STR("NotOnDevices"),
                               STR("no device has reported it")};
    } else if (counts[FACT_ERROR]) {
        c.reason = STR("DeviceError");
        c.message = error_words(d->arena, facts, n, counts[FACT_ERROR]);
    } else if (counts[FACT_READY] == n_all) {
        c.status = "True";
        c.reason = STR("OnDevices");
    }
    (void) derive_condition(d, &c);
}
