/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/audit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "directory.h"
#include "test.h"

#define N_THREADS 6
#define N_ROUNDS 400

static struct audit_record record(void)
{
    return (struct audit_record){.id = "5d4f1f9a-6f0c-4d3e-9a77-0123456789ab",
                                 .uri = STR("/version"),
                                 .verb = STR("get"),
                                 .code = 200};
}

static struct audit *open_audit(const char *log, const char *policy, int64_t max_size)
{
    struct audit *a = NULL;
    char *error = NULL;
    if (audit_open(&(struct audit_options){.policy_path = policy,
                                           .log_path = log,
                                           .max_size_bytes = max_size,
                                           .clock = &clock_system},
                   &a, &error) < 0)
        fail_msg("%s", error);
    return a;
}

static void record_one(struct audit *a)
{
    struct audit_record r = record();
    audit_begin(a, &r);
    audit_emit(a, &r, AUDIT_REQUEST_RECEIVED);
    audit_emit(a, &r, AUDIT_RESPONSE_COMPLETE);
}

static size_t count_lines(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    (void) fputs(text, f);
    (void) fclose(f);
}

static void *record_many(void *a)
{
    for (int i = 0; i < N_ROUNDS; i++)
        record_one(a);
    return NULL;
}

TEST(every_event_of_every_thread_is_written)
{
    struct directory d = directory_make();
    ARENA_AUTO arena = arena_new();
    struct audit *a = open_audit(directory_file(&d, arena, "a.log"), NULL, 64 * 1024);
    pthread_t threads[N_THREADS];
    struct audit_stats stats;
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_many, a), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        (void) pthread_join(threads[i], NULL);
    audit_stats(a, &stats);
    audit_close(a);
    assert_int_equal(stats.n_events, N_THREADS * N_ROUNDS);
    assert_int_equal(stats.n_dropped, 0);
    assert_int_equal(stats.n_errors, 0);
    const char *names[64];
    size_t n_files = directory_list(&d, arena, names, N_ELEMENTS(names)), n_lines = 0;
    for (size_t i = 0; i < n_files; i++) {
        struct str text = directory_read(&d, arena, names[i]);
        assert_true(text.n <= (size_t) 64 * 1024);
        n_lines += count_lines(text);
    }
    assert_true(n_files > 3);
    assert_int_equal(n_lines, N_THREADS * N_ROUNDS);
    directory_remove(&d);
}

TEST(the_policy_decides_and_is_read_again)
{
    static const char first[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                "rules: [{level: Metadata, omitStages: [ResponseComplete]}]\n";
    static const char second[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                 "rules: [{level: None}]\n";
    struct directory d = directory_make();
    ARENA_AUTO arena = arena_new();
    char *policy = directory_file(&d, arena, "p.yaml"), *error = NULL;
    write_file(policy, first);
    struct audit *a = open_audit(directory_file(&d, arena, "a.log"), policy, 0);
    record_one(a);
    write_file(policy, "rules: 1\n");
    assert_int_equal(audit_reload(a, &error), -EINVAL);
    assert_non_null(strstr(error, "p.yaml: rules: must be a list"));
    mem_free(error);
    record_one(a); /* by the old one */
    write_file(policy, second);
    assert_int_equal(audit_reload(a, &error), 0);
    record_one(a);
    audit_close(a);
    struct str text = directory_read(&d, arena, "a.log");
    assert_int_equal(count_lines(text), 2);
    assert_true(str_find_str(text, STR("ResponseComplete")) < 0);
    directory_remove(&d);
}

TEST(a_reload_follows_a_file_that_was_moved)
{
    struct directory d = directory_make();
    ARENA_AUTO arena = arena_new();
    char *log = directory_file(&d, arena, "a.log"), *error = NULL;
    struct audit *a = open_audit(log, NULL, 0);
    assert_int_equal(rename(log, directory_file(&d, arena, "moved")), 0);
    assert_int_equal(audit_reload(a, &error), 0);
    record_one(a);
    audit_close(a);
    assert_int_equal(count_lines(directory_read(&d, arena, "a.log")), 1);
    assert_int_equal(count_lines(directory_read(&d, arena, "moved")), 0);
    directory_remove(&d);
}

/* Nothing can be written: the queue fills, then events are dropped and counted, and nobody waits;
 * when there is room again, what was queued is written. */
TEST(what_does_not_fit_is_dropped_and_counted)
{
    struct directory d = directory_make();
    ARENA_AUTO arena = arena_new();
    struct rlimit before, none = {0};
    struct audit_stats stats;
    (void) signal(SIGXFSZ, SIG_IGN);
    struct audit *a = open_audit(directory_file(&d, arena, "a.log"), NULL, 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    BUF_AUTO agent = {0};
    while (agent.n < (size_t) 1024 * 1024)
        buf_append_str(&agent, STR("a user agent longer than any other "));
    struct audit_record r = record();
    r.user_agent = buf_str(&agent);
    audit_begin(a, &r);
    for (int i = 0; i < 50; i++)
        audit_emit(a, &r, AUDIT_RESPONSE_COMPLETE);
    do
        audit_stats(a, &stats);
    while (!stats.n_errors); /* the writer has tried */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(stats.n_events + stats.n_dropped, 50);
    assert_true(stats.n_events >= 30 && stats.n_dropped > 0);
    audit_close(a);
    assert_int_equal(count_lines(directory_read(&d, arena, "a.log")), stats.n_events);
    directory_remove(&d);
}

TEST(a_log_that_cannot_be_opened_is_named)
{
    struct audit *a = NULL;
    char *error = NULL;
    assert_int_equal(
        audit_open(&(struct audit_options){.log_path = "/nowhere/a.log", .clock = &clock_system},
                   &a, &error),
        -ENOENT);
    assert_string_equal(error,
                        "cannot open the audit log /nowhere/a.log: No such file or directory");
    mem_free(error);
    audit_close(NULL);
}
