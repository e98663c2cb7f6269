/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "test.h"

static const char *const verb_and_code[] = {"verb", "code", NULL};
static const double bounds[] = {0.005, 1, 1000000};

static const struct metric_family requests = {
    .name = "requests_total",
    .help = "Requests,\nby \\ verb.",
    .type = METRIC_COUNTER,
    .labels = verb_and_code,
    .max_series = 3,
};
static const struct metric_family sizes = {
    .name = "sizes",
    .help = "Sizes.",
    .type = METRIC_HISTOGRAM,
    .labels = verb_and_code,
    .bounds = bounds,
    .n_bounds = N_ELEMENTS(bounds),
};
static const struct metric_family level = {
    .name = "level", .help = "A level.", .type = METRIC_GAUGE};

static struct str text_of(struct metrics *m, struct buf *b)
{
    buf_reset(b);
    metrics_text(m, b);
    return buf_str(b);
}

TEST(counters_are_written_with_their_labels)
{
    struct metrics *m = metrics_new();
    struct metric *f = metric_register(m, &requests);
    BUF_AUTO b = {0};
    assert_str(text_of(m, &b), "");
    metric_add(metric_series(f, (struct str[]){STR("GET"), STR("200")}), 2);
    metric_add(metric_series(f, (struct str[]){STR("LIST"), STR("200")}), 1);
    metric_add(metric_series(f, (struct str[]){STR("GET"), STR("200")}), 1);
    assert_str(text_of(m, &b), "# HELP requests_total Requests,\\nby \\\\ verb.\n"
                               "# TYPE requests_total counter\n"
                               "requests_total{verb=\"GET\",code=\"200\"} 3\n"
                               "requests_total{verb=\"LIST\",code=\"200\"} 1\n");
    metrics_free(m);
}

TEST(label_values_are_escaped)
{
    struct metrics *m = metrics_new();
    struct metric *f = metric_register(m, &requests);
    BUF_AUTO b = {0};
    metric_add(metric_series(f, (struct str[]){STR("a\"b\\c\nd"), STR("")}), 1);
    assert_true(str_find_str(text_of(m, &b), STR("{verb=\"a\\\"b\\\\c\\nd\",code=\"\"} 1\n")) > 0);
    metrics_free(m);
}

TEST(values_that_join_alike_are_different_series)
{
    struct metrics *m = metrics_new();
    struct metric *f = metric_register(m, &requests);
    assert_ptr_not_equal(metric_series(f, (struct str[]){STR("ab"), STR("c")}),
                         metric_series(f, (struct str[]){STR("a"), STR("bc")}));
    metrics_free(m);
}

TEST(what_is_too_much_counts_as_other)
{
    struct metrics *m = metrics_new();
    struct metric *f = metric_register(m, &requests);
    BUF_AUTO b = {0};
    char name[16];
    for (int i = 0; i < 10; i++) {
        (void) snprintf(name, sizeof(name), "V%d", i);
        metric_add(metric_series(f, (struct str[]){str_of(name), STR("200")}), 1);
    }
    struct str text = text_of(m, &b);
    assert_true(str_find_str(text, STR("verb=\"V2\"")) > 0);
    assert_int_equal(str_find_str(text, STR("verb=\"V3\"")), -1);
    assert_true(str_ends_with(text, STR("requests_total{verb=\"other\",code=\"other\"} 7\n")));
    /* A series that exists is still found. */
    metric_add(metric_series(f, (struct str[]){STR("V0"), STR("200")}), 1);
    assert_true(str_find_str(text_of(m, &b), STR("{verb=\"V0\",code=\"200\"} 2\n")) > 0);
    metrics_free(m);
}

TEST(histograms_accumulate)
{
    struct metrics *m = metrics_new();
    struct metric *f = metric_register(m, &sizes);
    struct metric_series *s = metric_series(f, (struct str[]){STR("GET"), STR("200")});
    BUF_AUTO b = {0};
    metric_observe(s, 0.005); /* a bound belongs to its bucket */
    metric_observe(s, 0.5);
    metric_observe(s, 0.25);
    metric_observe(s, 2e6);
    assert_str(text_of(m, &b), "# HELP sizes Sizes.\n"
                               "# TYPE sizes histogram\n"
                               "sizes_bucket{verb=\"GET\",code=\"200\",le=\"0.005\"} 1\n"
                               "sizes_bucket{verb=\"GET\",code=\"200\",le=\"1\"} 3\n"
                               "sizes_bucket{verb=\"GET\",code=\"200\",le=\"1e+06\"} 3\n"
                               "sizes_bucket{verb=\"GET\",code=\"200\",le=\"+Inf\"} 4\n"
                               "sizes_sum{verb=\"GET\",code=\"200\"} 2.000000755e+06\n"
                               "sizes_count{verb=\"GET\",code=\"200\"} 4\n");
    metrics_free(m);
}

TEST(gauges_rise_and_fall)
{
    struct metrics *m = metrics_new();
    struct metric_series *s = metric_series(metric_register(m, &level), NULL);
    BUF_AUTO b = {0};
    metric_add(s, 3);
    metric_add(s, -5);
    assert_true(str_ends_with(text_of(m, &b), STR("\nlevel -2\n")));
    metric_set(s, 2.5);
    assert_true(str_ends_with(text_of(m, &b), STR("\nlevel 0.5\n")));
    metrics_free(m);
}

TEST(numbers_are_written_as_go_writes_them)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {-1, "-1"},
        {42, "42"},
        {999999, "999999"},
        {1000000, "1e+06"},
        {1234567, "1.234567e+06"},
        {-1234567, "-1.234567e+06"},
        {100500000, "1.005e+08"},
        {0.1, "0.1"},
        {0.30000000000000004, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {0.0001, "0.0001"},
        {0.00012, "0.00012"},
        {0.00001, "1e-05"},
        {12.5, "12.5"},
        {-123456.75, "-123456.75"},
        {1e300, "1e+300"},
        {1700000000.25, "1.70000000025e+09"},
        {9007199254740993.0, "9.007199254740992e+15"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
        {NAN, "NaN"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO b = {0};
        metrics_write_value(&b, "x", NULL, cases[i].value);
        assert_str(str_trim(str_from(buf_str(&b), 2)), cases[i].text);
    }
}

static void collect(void *ctx, struct buf *b)
{
    BUF_AUTO labels = {0};
    metrics_write_head(b, "kept", "Kept elsewhere.", METRIC_GAUGE);
    metrics_write_label(&labels, "name", STR("a"));
    metrics_write_label(&labels, "type", STR("b"));
    metrics_write_value(b, "kept", &labels, *(const double *) ctx);
}

TEST(collectors_are_asked_each_time)
{
    struct metrics *m = metrics_new();
    double value = 1;
    BUF_AUTO b = {0};
    metrics_on_collect(m, collect, &value);
    assert_true(str_ends_with(text_of(m, &b), STR("\nkept{name=\"a\",type=\"b\"} 1\n")));
    value = 7;
    assert_true(str_ends_with(text_of(m, &b), STR("\nkept{name=\"a\",type=\"b\"} 7\n")));
    metrics_free(m);
}

/* ---- threads ------------------------------------------------------------------------------- */

#define N_THREADS 40 /* more than there are slots */
#define N_ROUNDS 500

struct shared {
    struct metric *counter, *histogram;
};

static void *count(void *arg)
{
    struct shared *sh = arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct str values[] = {i % 2 ? STR("GET") : STR("LIST"), STR("200")};
        metric_add(metric_series(sh->counter, values), 1);
        metric_observe(metric_series(sh->histogram, values), 0.5);
    }
    return NULL;
}

TEST(threads_lose_nothing)
{
    struct metrics *m = metrics_new();
    struct shared sh = {metric_register(m, &requests), metric_register(m, &sizes)};
    pthread_t threads[N_THREADS];
    BUF_AUTO b = {0};
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &sh), 0);
    for (int i = 0; i < 20; i++)
        (void) text_of(m, &b); /* reading meanwhile */
    for (size_t i = 0; i < N_THREADS; i++)
        (void) pthread_join(threads[i], NULL);
    struct str text = text_of(m, &b);
    assert_true(str_find_str(text, STR("requests_total{verb=\"GET\",code=\"200\"} 10000\n")) > 0);
    assert_true(str_find_str(text, STR("requests_total{verb=\"LIST\",code=\"200\"} 10000\n")) > 0);
    assert_true(str_find_str(text, STR("sizes_count{verb=\"GET\",code=\"200\"} 10000\n")) > 0);
    assert_true(str_find_str(text, STR("sizes_sum{verb=\"GET\",code=\"200\"} 5000\n")) > 0);
    metrics_free(m);
}
