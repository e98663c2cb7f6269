/* SPDX-License-Identifier: Apache-2.0 */
/* The process runtime for tests: runtime_tool PERSIST RUN CGROUP. One JSON object in a line asks
 * for something ({"do": "start", "id": ...}), one JSON object in a line tells what happens. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "runtime/process.h"
#include "json/json.h"

#define MAX_ITEMS 64

struct tool {
    struct loop *loop;
    struct runtime *runtime;
    struct loop_fd *input;
    struct buf text;
};

static void say(struct arena *a, const struct json *o)
{
    struct str text = json_text(a, o);
    (void) printf("%.*s\n", STR_ARG(text));
    (void) fflush(stdout);
}

static void set(struct arena *a, struct json *o, const char *key, struct json v)
{
    (void) json_set(a, o, str_of(key), v);
}

static void tell_status(void *arg, const struct runtime_status *s)
{
    static const char *const kinds[] = {"content", "volume", "instance"};
    ARENA_AUTO a = arena_new();
    struct json o = json_object();
    set(a, &o, "event", json_string(str_of(arg)));
    set(a, &o, "kind", json_string(str_of(kinds[s->kind])));
    set(a, &o, "id", json_string(s->id));
    set(a, &o, "state", json_string(str_of(runtime_state_name(s->state))));
    set(a, &o, "percent", json_int(s->progress_percent));
    set(a, &o, "error", s->error.p ? json_string(s->error) : json_null());
    set(a, &o, "exit", json_int(s->exit_code));
    set(a, &o, "adopted", json_bool(s->is_adopted));
    set(a, &o, "started", json_int(s->started_wall_us));
    say(a, &o);
}

static void on_change(void *arg, const struct runtime_status *s)
{
    (void) arg;
    tell_status((void *) (uintptr_t) "change", s);
}

static void on_log(void *arg, struct str instance, enum runtime_stream stream, struct str line,
                   int64_t wall_us)
{
    (void) arg;
    ARENA_AUTO a = arena_new();
    struct json o = json_object();
    set(a, &o, "event", json_string(STR("log")));
    set(a, &o, "id", json_string(instance));
    set(a, &o, "stream", json_string(stream == RUNTIME_STDOUT ? STR("out") : STR("err")));
    set(a, &o, "line", json_string(str_is_utf8(line) ? line : STR("(not UTF-8)")));
    set(a, &o, "bytes", json_int((int64_t) line.n));
    set(a, &o, "time", json_int(wall_us));
    say(a, &o);
}

/* ---- asking -------------------------------------------------------------------------------- */

static size_t read_list(const struct json *list, struct str items[MAX_ITEMS])
{
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, i) {
        if (n < MAX_ITEMS)
            items[n++] = json_str(i);
    }
    return n;
}

/* One, or a list of them. */
static size_t read_mounts(const struct json *o, struct runtime_mount mounts[MAX_ITEMS])
{
    bool is_list = json_is(o, JSON_ARRAY);
    size_t n = is_list ? MIN(json_count(o), MAX_ITEMS) : o != NULL;
    for (size_t i = 0; i < n; i++) {
        const struct json *m = is_list ? &o->items[i] : o;
        mounts[i] =
            (struct runtime_mount){json_get_str(m, STR("volume")), json_get_str(m, STR("target")),
                                   json_get_bool(m, STR("ro"), false)};
    }
    return n;
}

static enum runtime_format format_of(struct str name)
{
    static const char *const names[] = {
        [RUNTIME_QCOW2] = "qcow2", [RUNTIME_RAW] = "raw",   [RUNTIME_VMDK] = "vmdk",
        [RUNTIME_VHD] = "vhd",     [RUNTIME_VHDX] = "vhdx", [RUNTIME_ISO] = "iso",
    };
    for (size_t i = 1; i < N_ELEMENTS(names); i++)
        if (str_is(name, names[i]))
            return (enum runtime_format) i;
    return RUNTIME_OCI;
}

static int prepare(struct tool *t, const struct json *o)
{
    const struct runtime_content c = {
        .id = json_get_str(o, STR("id")),
        .format = format_of(json_get_str(o, STR("format"))),
        .url = json_get_str(o, STR("url")),
        .sha256 = json_get_str(o, STR("sha256")),
        .user = json_get_str(o, STR("user")),
        .password = json_get_str(o, STR("password")),
        .ca_pem = json_get_str(o, STR("ca")),
        .max_bytes = json_get_int(o, STR("max"), 0),
    };
    return runtime_prepare(t->runtime, &c);
}

static int start(struct tool *t, const struct json *o)
{
    struct str args[MAX_ITEMS], env[MAX_ITEMS];
    const struct json *mount = json_get(o, STR("mount")), *tap = json_get(o, STR("tap"));
    const struct runtime_interface interface = {json_get_str(tap, STR("name")),
                                                json_get_str(tap, STR("mac"))};
    struct runtime_mount mounts[MAX_ITEMS];
    struct runtime_instance i = {
        .id = json_get_str(o, STR("id")),
        .root_volume = json_get_str(o, STR("root")),
        .mounts = mounts,
        .n_mounts = read_mounts(mount, mounts),
        .args = args,
        .env = env,
        .memory_max_bytes = json_get_int(o, STR("memory"), 0),
        .cpu_millis = json_get_int(o, STR("cpu"), 0),
        .max_processes = json_get_int(o, STR("processes"), 0),
        .stop_ms = json_get_int(o, STR("stop"), 0),
        .is_root_read_only = json_get_bool(o, STR("ro"), false),
        .network_path = json_get_str(o, STR("netns")),
        .interfaces = &interface,
        .n_interfaces = tap != NULL,
        .user_data = json_get_str(o, STR("user_data")),
        .meta_data = json_get_str(o, STR("meta_data")),
    };
    i.network = i.network_path.p ? RUNTIME_NETWORK_JOIN : RUNTIME_NETWORK_NONE;
    i.n_args = read_list(json_get(o, STR("args")), args);
    i.n_env = read_list(json_get(o, STR("env")), env);
    return runtime_start(t->runtime, &i);
}

static int tell_metrics(struct tool *t, struct str id)
{
    ARENA_AUTO a = arena_new();
    struct runtime_metrics m;
    int e = runtime_metrics(t->runtime, id, &m);
    if (e < 0)
        return e;
    struct json o = json_object();
    set(a, &o, "event", json_string(STR("metrics")));
    set(a, &o, "cpu", json_int(m.cpu_ns));
    set(a, &o, "memory", json_int(m.memory_bytes));
    set(a, &o, "peak", json_int(m.memory_peak_bytes));
    set(a, &o, "max", json_int(m.memory_max_bytes));
    set(a, &o, "processes", json_int(m.n_processes));
    set(a, &o, "rx", json_int(m.rx_bytes));
    set(a, &o, "tx", json_int(m.tx_bytes));
    set(a, &o, "disk_read", json_int(m.disk_read_bytes));
    set(a, &o, "disk_written", json_int(m.disk_written_bytes));
    set(a, &o, "simulated", json_bool(m.is_simulated));
    set(a, &o, "whole", json_bool(m.is_whole));
    say(a, &o);
    return 0;
}

static enum runtime_kind kind_of(struct str name)
{
    return str_is(name, "content")  ? RUNTIME_CONTENT
           : str_is(name, "volume") ? RUNTIME_VOLUME
                                    : RUNTIME_INSTANCE;
}

static int obey(struct tool *t, const struct json *o)
{
    struct str what = json_get_str(o, STR("do")), id = json_get_str(o, STR("id"));
    if (str_is(what, "prepare"))
        return prepare(t, o);
    if (str_is(what, "create"))
        return runtime_create(t->runtime,
                              &(struct runtime_volume){id, json_get_str(o, STR("content")),
                                                       json_get_int(o, STR("size"), 0)});
    if (str_is(what, "start"))
        return start(t, o);
    if (str_is(what, "stop"))
        return runtime_stop(t->runtime, id, json_get_bool(o, STR("kill"), false));
    if (str_is(what, "purge"))
        return runtime_purge(t->runtime, kind_of(json_get_str(o, STR("kind"))), id);
    if (str_is(what, "metrics"))
        return tell_metrics(t, id);
    if (str_is(what, "each"))
        runtime_each(t->runtime, tell_status, (void *) (uintptr_t) "each");
    return 0;
}

static void answer(struct tool *t, struct str line)
{
    ARENA_AUTO a = arena_new();
    const struct json *o = json_parse_quick(a, line);
    struct json reply = json_object();
    int e = obey(t, o);
    set(a, &reply, "event", json_string(STR("answer")));
    set(a, &reply, "result", json_string(e < 0 ? str_of(log_errno_text(e)) : STR("ok")));
    say(a, &reply);
}

static void on_input(void *arg, unsigned ready)
{
    (void) ready;
    struct tool *t = arg;
    ssize_t n = read(0, buf_reserve(&t->text, 65536), 65536);
    if (n <= 0) {
        loop_fd_free(TAKE(t->input), NULL, NULL);
        runtime_free(TAKE(t->runtime));
        loop_stop(t->loop);
        return;
    }
    t->text.n += (size_t) n;
    ptrdiff_t end;
    while ((end = str_find(buf_str(&t->text), '\n')) >= 0) {
        answer(t, str_sub(buf_str(&t->text), 0, (size_t) end));
        buf_consume(&t->text, (size_t) end + 1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    (void) signal(SIGPIPE, SIG_IGN);
    struct tool t = {.loop = loop_new()};
    const struct runtime_process_options options = {
        .loop = t.loop,
        .clock = &clock_system,
        .persist_directory = argv[1],
        .run_directory = argv[2],
        .cgroup_parent = argv[3],
    };
    int e =
        runtime_process_new(&options, &(struct runtime_events){on_change, on_log, &t}, &t.runtime);
    if (e < 0) {
        log_error("cannot begin", LOG_ERRNO(e));
        return 1;
    }
    t.input = loop_fd_new(t.loop, 0, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    loop_run(t.loop);
    loop_free(t.loop);
    buf_done(&t.text);
    return 0;
}
