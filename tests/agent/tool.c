/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "loop/loop.h"

#define READ_BYTES ((size_t) 64 * 1024)

struct tool_lines {
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending;
    void (*on_line)(void *arg, struct arena *a, const struct json *v);
    void (*on_end)(void *arg);
    void *arg;
};

static void end_input(struct tool_lines *t)
{
    loop_fd_watch(t->input, 0); /* an end of file stays readable */
    if (t->on_end)
        t->on_end(t->arg);
    else
        loop_stop(t->loop);
}

static void on_input(void *arg, unsigned ready)
{
    struct tool_lines *t = arg;
    (void) ready;
    const ssize_t n = read(STDIN_FILENO, buf_reserve(&t->pending, READ_BYTES), READ_BYTES);
    if (n <= 0) {
        end_input(t);
        return;
    }
    t->pending.n += (size_t) n;
    ptrdiff_t end;
    while ((end = str_find(buf_str(&t->pending), '\n')) >= 0) {
        ARENA_AUTO a = arena_new();
        const struct str line = str_sub(buf_str(&t->pending), 0, (size_t) end);
        t->on_line(t->arg, a, json_parse_quick(a, line));
        buf_consume(&t->pending, (size_t) end + 1);
    }
}

struct tool_lines *tool_read_lines(struct loop *l,
                                   void (*on_line)(void *arg, struct arena *a,
                                                   const struct json *v),
                                   void (*on_end)(void *arg), void *arg)
{
    struct tool_lines *t = mem_zalloc(sizeof(*t));
    *t = (struct tool_lines){.loop = l, .on_line = on_line, .on_end = on_end, .arg = arg};
    t->input = loop_fd_new(l, STDIN_FILENO, on_input, t);
    loop_fd_watch(t->input, LOOP_READABLE);
    return t;
}

void tool_lines_free(struct tool_lines *t)
{
    loop_fd_free(t->input, NULL, NULL);
    buf_done(&t->pending);
    mem_free(t);
}

void tool_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void) vprintf(format, args);
    va_end(args);
    (void) putchar('\n');
    (void) fflush(stdout);
}

void tool_say_result(int r)
{
    tool_say("{\"error\":%d}", r);
}

void tool_say_event(const char *event, const char *name, struct str text)
{
    BUF_AUTO line = {0};
    json_write_str(&line, text);
    tool_say("{\"event\":\"%s\",\"%s\":%s}", event, name, line.p);
}

void tool_say_error(int r)
{
    tool_say_event("error", "words", str_of(log_errno_text(r)));
}
