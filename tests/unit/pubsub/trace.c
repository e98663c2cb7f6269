/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void note(struct trace *t, const char *what, struct str key, const struct json *value)
{
    ARENA_AUTO a = arena_new();
    buf_printf(&t->text, "%s%s%.*s%s%s;", what, key.n ? " " : "", STR_ARG(key), value ? " " : "",
               value ? json_text(a, value).p : "");
    if (!t->freed_after || strcmp(t->freed_after, what) != 0)
        return;
    if (t->freed)
        publication_free(TAKE(t->freed));
    else
        subscription_free(TAKE(t->subscription));
}

static void on_create(void *arg, struct str key, const struct json *value)
{
    note(arg, "create", key, value);
}

static void on_modify(void *arg, struct str key, const struct json *value, const struct json *old)
{
    struct trace *t = arg;
    ARENA_AUTO a = arena_new();
    buf_printf(&t->text, "(was %s)", json_text(a, old).p);
    note(t, "modify", key, value);
}

static void on_delete(void *arg, struct str key, const struct json *last)
{
    note(arg, "delete", key, last);
}

static void on_restarted(void *arg, int64_t counter)
{
    struct json v = json_int(counter);
    note(arg, "restarted", STR_NONE, &v);
}

static void on_synchronized(void *arg)
{
    note(arg, "synchronized", STR_NONE, NULL);
}

const struct subscription_handlers trace_handlers = {on_create, on_modify, on_delete, on_restarted,
                                                     on_synchronized};

void trace_subscribe(struct world *w, struct pubsub *ps, struct trace *t,
                     const struct pubsub_name *name)
{
    *t = (struct trace){.world = w};
    assert_int_equal(subscription_new(ps, name, &trace_handlers, t, &t->subscription), 0);
}

bool trace_has_ended(void *arg)
{
    struct trace *t = arg;
    return t->text.n && str_ends_with(buf_str(&t->text), str_of(t->until));
}

void trace_expect(struct trace *t, const char *all)
{
    t->until = all;
    for (int i = 0; i < 10000 && !trace_has_ended(t) && t->text.n < strlen(all); i++)
        world_run_turns(t->world, 1);
    struct str got = buf_str(&t->text);
    if (!str_is(got, all))
        fail_msg("got \"%.*s\", expected \"%s\"", STR_ARG(got), all);
    buf_reset(&t->text);
}

void trace_done(struct trace *t)
{
    subscription_free(t->subscription);
    buf_done(&t->text);
}
