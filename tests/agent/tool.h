/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of this directory share that are told what to do on standard input, one JSON
 * object a line, and answer with lines of standard output. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct loop;
struct tool_lines;

/* on_line: v is NULL where the line is no JSON; both live in a, which ends with the call. on_end
 * (NULL: the loop stops) comes once, when standard input has ended. */
struct tool_lines *tool_read_lines(struct loop *l,
                                   void (*on_line)(void *arg, struct arena *a,
                                                   const struct json *v),
                                   void (*on_end)(void *arg), void *arg);
/* Before the loop; standard input stays open. */
void tool_lines_free(struct tool_lines *t);

/* One line, which whoever reads has at once. */
void tool_say(const char *format, ...) PRINTF_LIKE(1, 2);
/* {"error":r} */
void tool_say_result(int r);
/* {"event":"..","<name>":".."} */
void tool_say_event(const char *event, const char *name, struct str text);
/* {"event":"error","words":".."} */
void tool_say_error(int r);
