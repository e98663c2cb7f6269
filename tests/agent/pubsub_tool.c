/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher or a subscriber as a process of its own, for tests of two processes:
 *
 *     pubsub_tool <root> publish|subscribe <agent> <scope> <topic> persistent|volatile
 *
 * The directories are <root>/run and <root>/persist. A publisher does what standard input says and
 * answers each line with 0 or a negative errno: `put <key> <json>`, `delete <key>`, `restarted`,
 * `clear`; `ready` comes first. A subscriber prints every event as a line of JSON. Both end with
 * standard input. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "pubsub/publication.h"
#include "pubsub/subscription.h"

#define RETRY_MS 50 /* in place of ten seconds */
#define READ_BYTES ((size_t) 64 * 1024)

struct tool {
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending; /* of standard input: no whole line yet */
    struct publication *publication;
    struct subscription *subscription;
};

/* ---- publishing ----------------------------------------------------------------------------- */

static int run_line(struct tool *t, struct str line)
{
    ARENA_AUTO a = arena_new();
    struct str verb = STR_NONE, key = STR_NONE;
    (void) str_split(&line, ' ', &verb);
    if (str_is(verb, "restarted"))
        return publication_signal_restarted(t->publication);
    if (str_is(verb, "clear"))
        return publication_clear_restarted(t->publication);
    (void) str_split(&line, ' ', &key);
    if (str_is(verb, "delete"))
        return publication_unpublish(t->publication, key);
    struct json_parse_result value;
    if (!str_is(verb, "put") || json_parse(a, line, &value) < 0)
        return -EINVAL;
    return publication_publish(t->publication, key, value.value);
}

static void run_lines(struct tool *t)
{
    for (;;) {
        struct str all = buf_str(&t->pending);
        ptrdiff_t end = str_find(all, '\n');
        if (end < 0)
            return;
        printf("%d\n", run_line(t, str_sub(all, 0, (size_t) end)));
        (void) fflush(stdout);
        buf_consume(&t->pending, (size_t) end + 1);
    }
}

static void on_input(void *arg, unsigned ready)
{
    (void) ready;
    struct tool *t = arg;
    ssize_t n = read(STDIN_FILENO, buf_reserve(&t->pending, READ_BYTES), READ_BYTES);
    if (n <= 0) {
        loop_stop(t->loop);
        return;
    }
    t->pending.n += (size_t) n;
    if (t->publication)
        run_lines(t);
    else
        buf_reset(&t->pending);
}

/* ---- subscribing ---------------------------------------------------------------------------- */

static void print_event(const char *event, struct str key, const struct json *value)
{
    BUF_AUTO line = {0};
    buf_printf(&line, "{\"event\":\"%s\",\"key\":", event);
    json_write_str(&line, key);
    buf_append_str(&line, STR(",\"value\":"));
    json_write(&line, value);
    buf_append_str(&line, STR("}\n"));
    (void) fwrite(line.p, 1, line.n, stdout);
    (void) fflush(stdout);
}

static void on_create(void *arg, struct str key, const struct json *value)
{
    (void) arg;
    print_event("create", key, value);
}

static void on_modify(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) arg;
    (void) old;
    print_event("modify", key, value);
}

static void on_delete(void *arg, struct str key, const struct json *last)
{
    (void) arg;
    print_event("delete", key, last);
}

static void on_restarted(void *arg, int64_t counter)
{
    (void) arg;
    struct json v = json_int(counter);
    print_event("restarted", STR(""), &v);
}

static void on_synchronized(void *arg)
{
    (void) arg;
    struct json v = json_null();
    print_event("synchronized", STR(""), &v);
}

/* ---- both ----------------------------------------------------------------------------------- */

static struct pubsub *open_root(struct tool *t, const char *root)
{
    ARENA_AUTO a = arena_new();
    return pubsub_new(
        &(struct pubsub_options){.loop = t->loop,
                                 .clock = &clock_system,
                                 .run_directory = arena_printf(a, "%s/run", root).p,
                                 .persist_directory = arena_printf(a, "%s/persist", root).p,
                                 .retry_ms = RETRY_MS});
}

static int begin(struct tool *t, struct pubsub *ps, char **argv)
{
    static const struct subscription_handlers handlers = {on_create, on_modify, on_delete,
                                                          on_restarted, on_synchronized};
    struct pubsub_name name = {.agent = str_of(argv[3]),
                               .scope = str_of(argv[4]),
                               .topic = str_of(argv[5]),
                               .is_persistent = str_is(str_of(argv[6]), "persistent")};
    if (str_is(str_of(argv[2]), "subscribe"))
        return subscription_new(ps, &name, &handlers, t, &t->subscription);
    int r = publication_new(ps, &name, &t->publication);
    if (r == 0) {
        puts("ready");
        (void) fflush(stdout);
    }
    return r;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr,
                "usage: %s <root> publish|subscribe <agent> <scope> <topic> persistent|volatile\n",
                argv[0]);
        return 2;
    }
    struct tool t = {.loop = loop_new()};
    struct pubsub *ps = open_root(&t, argv[1]);
    int r = begin(&t, ps, argv);
    if (r == 0) {
        t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
        loop_fd_watch(t.input, LOOP_READABLE);
        loop_run(t.loop);
        loop_fd_free(t.input, NULL, NULL);
    }
    publication_free(t.publication);
    subscription_free(t.subscription);
    buf_done(&t.pending);
    pubsub_free(ps);
    loop_free(t.loop);
    if (r < 0)
        fprintf(stderr, "%s\n", strerror(-r));
    return r < 0;
}
