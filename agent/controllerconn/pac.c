/* SPDX-License-Identifier: Apache-2.0 */
/* A script's evaluation in a process of its own: names it asks for are looked up here, at the
 * port's servers, and it runs again. */
#include "controllerconn/pac.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "controllerconn/lookup.h"

#define CHILD_SECONDS 1        /* of the processor */
#define SCRIPT_TIMEOUT_MS 5000 /* for all runs and lookups of one question */
#define CHILD_PIPE_FD 3

struct uplink_script {
    struct curl_wire *wire;
    const struct uplink_port *port;
    struct arena *arena;
    struct str source, url, script;
    struct uplink_pac_world world;
    pid_t child; /* 0: none */
    int pipe_fd; /* -1: none */
    struct loop_fd *watch;
    struct buf said; /* by the child: its result, then the text */
    struct uplink_lookup *lookup;
    struct loop_timer *timer;
    struct loop_deferred fail;
    void (*on_answer)(void *arg, struct str answer);
    void *arg;
};

static void run_again(struct uplink_script *s);

/* ---- the child ----------------------------------------------------------------------------- */

static void limit_child(void)
{
    const struct rlimit cpu = {CHILD_SECONDS, CHILD_SECONDS}, none = {0, 0};
    (void) setrlimit(RLIMIT_CPU, &cpu);
    (void) setrlimit(RLIMIT_CORE, &none);
    (void) setrlimit(RLIMIT_NPROC, &none);
    (void) signal(SIGXCPU, SIG_DFL);
    (void) signal(SIGABRT, SIG_DFL);
}

/* Never returns. Nothing of the parent's is touched: it keeps its sockets and its loop. */
static void be_child(const struct uplink_script *s, int to)
{
    (void) dup2(to, CHILD_PIPE_FD);
    (void) close_range(CHILD_PIPE_FD + 1, ~0U, 0);
    limit_child();
    struct buf text = {0}, said = {0};
    const enum uplink_pac_result r = uplink_pac_evaluate(s->script, s->url, &s->world, &text);
    buf_append_char(&said, (char) r);
    buf_append_str(&said, buf_str(&text));
    _exit(write(CHILD_PIPE_FD, said.p, said.n) == (ssize_t) said.n ? 0 : 1);
}

static void end_child(struct uplink_script *s)
{
    loop_fd_free(TAKE(s->watch), NULL, NULL);
    if (s->pipe_fd >= 0)
        (void) close(s->pipe_fd);
    s->pipe_fd = -1;
    if (s->child > 0) {
        (void) kill(s->child, SIGKILL);
        (void) waitpid(s->child, NULL, 0);
    }
    s->child = 0;
}

/* ---- the question -------------------------------------------------------------------------- */

static void free_script(struct uplink_script *s)
{
    end_child(s);
    uplink_lookup_cancel(s->lookup);
    loop_undefer(s->wire->loop, &s->fail);
    loop_timer_free(s->timer);
    buf_done(&s->said);
    arena_free(s->arena);
    mem_free(s);
}

void uplink_pac_cancel(struct uplink_script *s)
{
    free_script(s);
}

static void answer(struct uplink_script *s, struct str text)
{
    end_child(s);
    s->on_answer(s->arg, text);
    free_script(s);
}

static void on_timeout(void *arg)
{
    answer(arg, STR_NONE);
}

static void on_fail(struct loop_deferred *d)
{
    answer(CONTAINER_OF(d, struct uplink_script, fail), STR_NONE);
}

static void on_lookup(void *arg, struct str addresses, struct str error)
{
    struct uplink_script *s = arg;
    struct str first = STR("");
    (void) error;
    s->lookup = NULL;
    (void) str_split(&addresses, ',', &first);
    s->world.names[s->world.n_names++].address = arena_str(s->arena, first);
    run_again(s);
}

static void look_up(struct uplink_script *s, struct str name)
{
    if (s->world.n_names >= UPLINK_PAC_MAX_NAMES) {
        answer(s, STR_NONE);
        return;
    }
    name = arena_str(s->arena, name);
    s->world.names[s->world.n_names].name = name;
    const struct uplink_lookup_query q = {.port = s->port, .source = s->source, .host = name};
    s->lookup = uplink_lookup_start(s->wire->loop, &q, on_lookup, s);
}

static void on_child_over(struct uplink_script *s)
{
    const struct str said = buf_str(&s->said);
    const struct str text = str_from(said, 1);
    end_child(s);
    if (said.n > 0 && said.p[0] == UPLINK_PAC_ASKS)
        look_up(s, text);
    else
        answer(s, said.n > 0 && said.p[0] == UPLINK_PAC_ANSWERED ? text : STR_NONE);
}

static void on_readable(void *arg, unsigned ready)
{
    struct uplink_script *s = arg;
    char *to = buf_reserve(&s->said, UPLINK_PAC_MAX_ANSWER_BYTES + 2);
    (void) ready;
    const ssize_t n = read(s->pipe_fd, to, UPLINK_PAC_MAX_ANSWER_BYTES + 2);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && s->said.n <= UPLINK_PAC_MAX_ANSWER_BYTES) {
        s->said.n += (size_t) n;
        return;
    }
    on_child_over(s);
}

static int start_child(struct uplink_script *s)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    const pid_t child = fork();
    if (child == 0)
        be_child(s, ends[1]);
    (void) close(ends[1]);
    s->pipe_fd = ends[0];
    if (child < 0)
        return -EAGAIN;
    s->child = child;
    s->watch = loop_fd_new(s->wire->loop, ends[0], on_readable, s);
    if (!s->watch)
        return -EIO;
    loop_fd_watch(s->watch, LOOP_READABLE);
    return 0;
}

static void run_again(struct uplink_script *s)
{
    buf_reset(&s->said);
    if (start_child(s) < 0)
        loop_defer(s->wire->loop, &s->fail);
}

struct uplink_script *uplink_pac_ask(struct uplink_wire *wire, const struct uplink_port *port,
                                     struct str source, struct str url,
                                     void (*on_answer)(void *arg, struct str answer), void *arg)
{
    struct uplink_script *s = NEW(struct uplink_script);
    s->wire = CONTAINER_OF(wire, struct curl_wire, wire);
    s->port = port;
    s->arena = arena_new();
    s->source = arena_str(s->arena, source);
    s->url = arena_str(s->arena, url);
    s->pipe_fd = -1;
    s->fail.fn = on_fail;
    s->on_answer = on_answer;
    s->arg = arg;
    s->world.my_address = s->source;
    s->world.wall_us = s->wire->clock->wall_us(s->wire->clock);
    s->timer = loop_timer_new(s->wire->loop, on_timeout, s);
    loop_timer_start_real(s->timer, SCRIPT_TIMEOUT_MS, /* repeat_ms= */ 0);
    if (base64_decode(s->arena, port->pac, BASE64_STANDARD, &s->script, NULL) < 0)
        loop_defer(s->wire->loop, &s->fail);
    else
        run_again(s);
    return s;
}
