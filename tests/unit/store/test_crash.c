/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 at random moments: what was acknowledged is there, whole, and history goes on without
 * gap. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/random.h"
#include "fixture.h"

#define N_ROUNDS 20
#define N_WRITERS 4
#define N_KEYS 50
/* The killer strikes after so many acknowledgements at most. */
#define MAX_ACKNOWLEDGED 400

/* One acknowledged write, as the child reports it; less than PIPE_BUF, so whole or not at all. */
struct report {
    int64_t revision;
    int64_t previous; /* the revision it replaced, 0 for a create */
    int32_t writer, key;
    int32_t condition;
};

struct child {
    struct fixture *f;
    int fd;
    int writer;
};

/* Each writer has keys of its own, so that every condition holds. */
static void *write_forever(void *ctx)
{
    struct child *c = ctx;
    int64_t revisions[N_KEYS] = {0};
    for (int key = 0; key < N_KEYS; key++) {
        char name[32];
        (void) snprintf(name, sizeof(name), "things/w%d/%d", c->writer, key);
        struct object *o = store_get(c->f->store, str_of(name));
        revisions[key] = o ? o->revision : 0;
        object_unref(o);
    }
    for (int i = 0;; i++) {
        int key = (int) random_below(N_KEYS);
        char name[32], data[64];
        (void) snprintf(name, sizeof(name), "things/w%d/%d", c->writer, key);
        (void) snprintf(data, sizeof(data), "writer %d turn %d key %d", c->writer, i, key);
        enum store_condition condition = !revisions[key]   ? STORE_CREATE
                                         : random_below(6) ? STORE_REPLACE
                                                           : STORE_REMOVE;
        struct outcome out = write_one(c->f, condition, name, revisions[key], data);
        if (out.result < 0)
            _exit(3);
        struct report report = {out.revision, revisions[key], c->writer, key, (int32_t) condition};
        if (write(c->fd, &report, sizeof(report)) != sizeof(report))
            _exit(4);
        revisions[key] = condition == STORE_REMOVE ? 0 : out.revision;
    }
    return NULL;
}

static void run_child(struct fixture *f, int fd)
{
    char *error = NULL;
    f->options.history_max_bytes = 40000; /* so that rows are deleted while it runs */
    if (store_open(&f->options, &f->store, &error) < 0) {
        fprintf(stderr, "# %s\n", error);
        _exit(2);
    }
    struct child children[N_WRITERS];
    pthread_t threads[N_WRITERS];
    for (int i = 0; i < N_WRITERS; i++) {
        children[i] = (struct child){f, fd, i};
        if (pthread_create(&threads[i], NULL, write_forever, &children[i]) != 0)
            _exit(5);
    }
    (void) pthread_join(threads[0], NULL);
    _exit(6);
}

/* What the acknowledgements say each key holds. */
struct expected {
    int64_t revisions[N_WRITERS][N_KEYS]; /* 0: absent */
    int64_t newest;
};

static void note(struct expected *e, const struct report *r)
{
    bool is_removal = r->condition == STORE_REMOVE;
    e->revisions[r->writer][r->key] = is_removal ? 0 : r->revision;
    e->newest = MAX(e->newest, r->revision);
}

/* Reads acknowledgements, kills in between, reads the rest. Returns how many there were. */
static size_t watch_and_kill(pid_t pid, int fd, struct expected *e)
{
    size_t n_until_kill = 1 + (size_t) random_below(MAX_ACKNOWLEDGED), n = 0;
    struct report report;
    while (read(fd, &report, sizeof(report)) == sizeof(report)) {
        note(e, &report);
        if (++n == n_until_kill)
            (void) kill(pid, SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(n >= n_until_kill);
    return n;
}

static void assert_whole(const struct object *o)
{
    char revision[64];
    (void) snprintf(revision, sizeof(revision), "\"resourceVersion\":\"%" PRId64 "\"},\"data\":\"",
                    o->revision);
    assert_true(str_find_str(object_text(o), str_of(revision)) > 0);
    assert_true(str_ends_with(object_text(o), STR("\"}")));
}

/* The file may be ahead of the acknowledgements by what was under way (one write per writer), never
 * behind. */
static void compare(struct fixture *f, struct expected *e)
{
    int64_t newest = store_revision(f->store);
    assert_in_range(newest, e->newest, e->newest + N_WRITERS);
    for (int w = 0; w < N_WRITERS; w++) {
        int n_ahead = 0;
        for (int key = 0; key < N_KEYS; key++) {
            char name[32];
            (void) snprintf(name, sizeof(name), "things/w%d/%d", w, key);
            struct object *o = store_get(f->store, str_of(name));
            int64_t found = o ? o->revision : 0;
            if (found != e->revisions[w][key])
                n_ahead++;
            if (o)
                assert_whole(o);
            /* An unacknowledged write may have replaced or removed it, an older state must not be
             * there. */
            assert_true(found == 0 || found >= e->revisions[w][key]);
            e->revisions[w][key] = found;
            object_unref(o);
        }
        assert_true(n_ahead <= 1);
    }
    e->newest = newest;
}

/* A watcher that stopped anywhere after the floor gets every revision once. */
static void resume(struct fixture *f)
{
    int64_t from = store_compacted(f->store) + 1, to = store_revision(f->store);
    struct store_event **events = NULL;
    size_t n = 0;
    assert_int_equal(store_history(f->store, STR("things"), from, to, &events, &n), 0);
    assert_int_equal(n, to - from);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(events[i]->revision, from + 1 + (int64_t) i);
        assert_whole(events[i]->object);
        assert_true((events[i]->previous == NULL) == (events[i]->type == STORE_ADDED));
        bytes_unref(&events[i]->bytes);
    }
    mem_free(events);
}

TEST(acknowledged_writes_survive_kill)
{
    struct fixture f;
    fixture_init(&f);
    struct expected expected = {.newest = 1};
    size_t n_acknowledged = 0;
    for (int round = 0; round < N_ROUNDS; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void) close(fds[0]);
            run_child(&f, fds[1]);
        }
        (void) close(fds[1]);
        n_acknowledged += watch_and_kill(pid, fds[0], &expected);
        (void) close(fds[0]);
        fixture_open(&f);
        compare(&f, &expected);
        resume(&f);
        fixture_close(&f);
    }
    assert_true(n_acknowledged >= N_ROUNDS);
    fixture_done(&f);
}
