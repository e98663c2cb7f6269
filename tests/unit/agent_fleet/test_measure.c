/* SPDX-License-Identifier: Apache-2.0 */
/* Histogram, tally and time line. */
#include "base/alloc.h"
#include "fleet/tally.h"
#include "test.h"

/* ---- histogram ------------------------------------------------------------------------------- */

TEST(an_empty_histogram_has_zeros)
{
    static struct fleet_histogram h;
    assert_int_equal(fleet_histogram_at(&h, 500), 0);
    assert_int_equal(fleet_histogram_at(&h, 1000), 0);
}

TEST(small_times_are_exact)
{
    static struct fleet_histogram h;
    for (int64_t us = 1; us <= 100; us++)
        fleet_histogram_add(&h, us);
    assert_int_equal(h.n, 100);
    assert_int_equal(h.sum_us, 5050);
    assert_int_equal(fleet_histogram_at(&h, 10), 1);
    assert_int_equal(fleet_histogram_at(&h, 500), 50);
    assert_int_equal(fleet_histogram_at(&h, 900), 90);
    assert_int_equal(fleet_histogram_at(&h, 1000), 100);
}

/* Never too low, and too high by at most 1/64. */
TEST(percentiles_keep_their_promise_at_every_size)
{
    for (int64_t us = 1; us < (int64_t) 1 << FLEET_HISTOGRAM_MAX_BITS; us = us * 9 / 8 + 1) {
        static struct fleet_histogram h;
        memset(&h, 0, sizeof(h));
        fleet_histogram_add(&h, us);
        fleet_histogram_add(&h, us * 4); /* so that the largest does not bound it */
        const int64_t found = fleet_histogram_at(&h, 500);
        assert_true(found >= us && found <= us + us / 64);
    }
}

TEST(what_is_beyond_counts_as_the_longest)
{
    static struct fleet_histogram h;
    fleet_histogram_add(&h, -5);
    fleet_histogram_add(&h, INT64_MAX);
    assert_int_equal(h.n, 2);
    assert_int_equal(fleet_histogram_at(&h, 500), 0);
    assert_int_equal(fleet_histogram_at(&h, 1000), ((int64_t) 1 << FLEET_HISTOGRAM_MAX_BITS) - 1);
}

TEST(merged_histograms_are_as_one)
{
    static struct fleet_histogram a, b, all;
    for (int64_t us = 0; us < 20000; us += 7) {
        fleet_histogram_add(us % 2 ? &a : &b, us);
        fleet_histogram_add(&all, us);
    }
    fleet_histogram_merge(&a, &b);
    assert_memory_equal(&a, &all, sizeof(a));
}

/* ---- tally ----------------------------------------------------------------------------------- */

TEST(endpoints_are_known_by_their_urls)
{
#define ID "https://zed.example:8443/api/v2/edgedevice/id/2d0b9c8a-0000-4000-8000-000000000001/"
#define APP ID "apps/instanceid/2d0b9c8a-0000-4000-8000-000000000002/"
    static const struct {
        const char *url;
        enum fleet_endpoint endpoint;
    } cases[] = {
        {"https://zed.example/api/v2/edgedevice/register", FLEET_REGISTER},
        {"https://zed.example/api/v2/edgedevice/certs", FLEET_CERTS},
        {"https://zed.example/api/v2/edgedevice/uuid", FLEET_UUID},
        {"https://zed.example/api/v2/edgedevice/ping", FLEET_PING},
        {"https://zed.example/api/v1/edgedevice/config", FLEET_CONFIG},
        {ID "config", FLEET_CONFIG},
        {ID "config?compress=1/2", FLEET_CONFIG},
        {ID "info", FLEET_INFO},
        {ID "metrics", FLEET_METRICS},
        {ID "attest", FLEET_ATTEST},
        {ID "newlogs", FLEET_LOGS},
        {APP "newlogs", FLEET_APP_LOGS},
        {APP "appinstancemetadata", FLEET_OTHER},
        {ID "flowlog", FLEET_FLOWLOG},
        {ID "hardwarehealth", FLEET_HARDWARE_HEALTH},
        {ID "something", FLEET_OTHER},
        {"https://registry.example/config", FLEET_OTHER},
        {"", FLEET_OTHER},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(fleet_endpoint_of(str_of(cases[i].url)), cases[i].endpoint);
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        assert_non_null(fleet_endpoint_name((enum fleet_endpoint) i));
    for (size_t i = 0; i < FLEET_FAULTS; i++)
        assert_non_null(fleet_fault_name((enum uplink_fault) i));
}

TEST(outcomes_are_counted_by_what_they_are)
{
    struct fleet_tally *t = NEW(struct fleet_tally), *twice = NEW(struct fleet_tally);
    struct fleet_exchanges *sum = NEW(struct fleet_exchanges);
    const struct fleet_outcome outcomes[] = {
        {.endpoint = FLEET_CONFIG, .http_status = 304, .is_resumed = true, .latency_us = 1000},
        {.endpoint = FLEET_CONFIG, .http_status = 200, .bytes_received = 70, .latency_us = 3000},
        {.endpoint = FLEET_INFO, .http_status = 503, .latency_us = 5},
        {.endpoint = FLEET_INFO, .fault = UPLINK_FAULT_REFUSED, .latency_us = 7},
        {.endpoint = FLEET_OTHER, .http_status = 100000},
    };
    for (size_t i = 0; i < N_ELEMENTS(outcomes); i++)
        fleet_tally_outcome(t, &outcomes[i]);
    assert_int_equal(t->endpoints[FLEET_CONFIG].n_answered, 2);
    assert_int_equal(t->endpoints[FLEET_CONFIG].n_failed, 0);
    assert_int_equal(t->endpoints[FLEET_CONFIG].n_resumed, 1);
    assert_int_equal(t->endpoints[FLEET_CONFIG].bytes_received, 70);
    assert_int_equal(t->endpoints[FLEET_CONFIG].latency.max_us, 3000);
    assert_int_equal(t->endpoints[FLEET_INFO].n_answered, 1);
    assert_int_equal(t->endpoints[FLEET_INFO].n_failed, 2);
    assert_int_equal(t->endpoints[FLEET_INFO].latency.n, 1);
    assert_int_equal(t->http[503], 1);
    assert_int_equal(t->http[FLEET_HTTP_STATUSES - 1], 1);
    assert_int_equal(t->faults[UPLINK_FAULT_REFUSED], 1);
    fleet_tally_merge(twice, t);
    fleet_tally_merge(twice, t);
    fleet_tally_sum(twice, sum);
    assert_int_equal(sum->n_answered, 8);
    assert_int_equal(sum->n_failed, 6);
    assert_int_equal(twice->http[503], 2);
    mem_free(t);
    mem_free(twice);
    mem_free(sum);
}

/* ---- time line ------------------------------------------------------------------------------- */

TEST(each_second_has_its_own_counts)
{
    struct fleet_timeline a = {0}, b = {0};
    fleet_timeline_at(&a, 0)->n_started += 3;
    fleet_timeline_at(&a, 999999)->n_started++;
    fleet_timeline_at(&a, 500 * (int64_t) 1000000)->n_failed++;
    fleet_timeline_at(&b, 1000000)->n_answered += 2;
    fleet_timeline_at(&b, -1)->n_started++; /* the clock's beginning is the earliest */
    assert_int_equal(a.n, 501);
    fleet_timeline_merge(&b, &a);
    assert_int_equal(b.n, 501);
    assert_int_equal(b.seconds[0].n_started, 5);
    assert_int_equal(b.seconds[1].n_answered, 2);
    assert_int_equal(b.seconds[2].n_started, 0);
    assert_int_equal(b.seconds[500].n_failed, 1);
    fleet_timeline_done(&a);
    fleet_timeline_done(&b);
}

TEST(the_time_line_is_bounded)
{
    struct fleet_timeline t = {0};
    assert_non_null(fleet_timeline_at(&t, (int64_t) (FLEET_MAX_SECONDS - 1) * 1000000));
    assert_null(fleet_timeline_at(&t, (int64_t) FLEET_MAX_SECONDS * 1000000));
    assert_int_equal(t.n, FLEET_MAX_SECONDS);
    fleet_timeline_done(&t);
}
