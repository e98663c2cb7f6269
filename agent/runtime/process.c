/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/child.h"
#include "runtime/content.h"
#include "runtime/process_internal.h"
#include "runtime/runtime_internal.h"
#include "runtime/spec.h"
#include "runtime/tree.h"

#define MAX_SLOW_THREADS 2
#define MAX_SLOW_WAITING 65536
#define MAX_BUNDLE_BYTES ((size_t) 4 << 20)

const char *process_path(struct arena *a, const char *directory, struct str id)
{
    return arena_printf(a, "%s/%.*s", directory, STR_ARG(id)).p;
}

const char *process_pipe(struct arena *a, const struct process *p, struct str id,
                         enum runtime_stream stream)
{
    return arena_printf(a, "%s/%.*s.%s", p->pipes, STR_ARG(id),
                        stream == RUNTIME_STDOUT ? "out" : "err")
        .p;
}

struct str process_cgroup(struct arena *a, const struct process *p, struct str id)
{
    if (!p->is_root || p->cgroup.mode == CGROUP_NONE)
        return STR_NONE;
    return arena_printf(a, "/%s/%.*s", p->cgroup_parent, STR_ARG(id));
}

int process_open_pipes(struct job *j, char **ret_error)
{
    for (int s = 0; s < 2; s++) {
        const char *path = process_pipe(j->arena, j->process, j->id, s);
        int e = output_make(path);
        /* For reading, too: a pipe without reader would kill who writes when the agent is gone. */
        j->pipes[s] = e < 0 ? e : open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (j->pipes[s] < 0)
            return error_set(ret_error, -EIO, "%s: cannot be made", path);
    }
    return 0;
}

static void process_unref(struct process *p)
{
    if (p->runtime || p->n_jobs)
        return;
    char *const texts[] = {p->contents,      p->volumes,  p->bundles, p->pipes,
                           p->state,         p->machines, p->crun,    p->curl,
                           p->cgroup_parent, p->qemu,     p->qemu_img};
    for (size_t i = 0; i < N_ELEMENTS(texts); i++)
        mem_free(texts[i]);
    mem_free(p);
}

/* ---- contents ------------------------------------------------------------------------------ */

static void note_content(void *arg, enum runtime_state state, int percent)
{
    job_note(arg, state, percent);
}

static void run_fetch(struct job *j)
{
    /* Nothing is fetched that could not be run. */
    if (j->content.format != RUNTIME_OCI && qemu_find(j->process, &j->error) < 0)
        return;
    const struct content_task t = {
        .directory = j->process->contents,
        .curl = j->process->curl,
        .asked = &j->content,
        .is_cancelled = &j->is_cancelled,
        .on_state = note_content,
        .arg = j,
    };
    if (content_fetch(&t, &j->error) < 0 && !j->error)
        j->error = mem_strdup("the content cannot be fetched");
}

static void step_done(struct job *j)
{
    runtime_step_done(j->object, j->error);
}

static void content_done(struct job *j)
{
    while (!j->error && j->object->state != RUNTIME_LOADING)
        runtime_move(j->object, runtime_content_next(j->object));
    step_done(j);
}

static void process_fetch(void *machine, struct runtime_object *content)
{
    job_begin(machine, content, run_fetch, content_done);
}

/* ---- volumes ------------------------------------------------------------------------------- */

static void run_create(struct job *j)
{
    const struct process *p = j->process;
    const struct content_volume v = {
        .directory = p->volumes,
        .id = arena_strz(j->arena, j->id),
        .content_path =
            j->volume.content.p ? process_path(j->arena, p->contents, j->volume.content) : NULL,
        .qemu_img = p->qemu_img,
        .size_bytes = j->volume.size_bytes,
        .keeps_owners = p->is_root,
        .is_cancelled = &j->is_cancelled,
    };
    if (content_make_volume(&v, &j->error) < 0 && !j->error)
        j->error = mem_strdup("the volume cannot be made");
}

static void process_create(void *machine, struct runtime_object *volume,
                           struct runtime_object *content)
{
    (void) content;
    job_begin(machine, volume, run_create, step_done);
}

/* ---- instances ----------------------------------------------------------------------------- */

static void say_limits(struct process *p, const struct runtime_instance *i)
{
    bool is_lost =
        (i->memory_max_bytes && !p->cgroup.has_memory) || (i->cpu_millis && !p->cgroup.has_cpu);
    if (!is_lost || p->has_said_limits)
        return;
    p->has_said_limits = true;
    log_warning("limits of instances cannot be kept here",
                LOG_TEXT("reason", !p->is_root ? "the agent is not root"
                                               : "the machine has no cgroups for them"));
}

static void booted(struct job *j)
{
    struct tenant *t = j->object->of_machine;
    if (!j->error) {
        int pidfd = j->pidfd;
        j->pidfd = -1;
        if (tenant_attach(t, j->pid, pidfd, j->stop_signal) < 0) {
            (void) child_signal(pidfd, SIGKILL);
            (void) close(pidfd);
            j->error = mem_strdup("the kernel cannot watch processes by pidfd");
        }
    }
    step_done(j);
}

static void process_boot(void *machine, struct runtime_object *instance)
{
    ARENA_AUTO a = arena_new_with(512);
    struct tenant *t = tenant_of(machine, instance);
    const char *disk = qemu_disk_path(a, machine, instance->instance.root_volume);
    t->launcher = disk ? &qemu_launcher : &crun_launcher;
    say_limits(machine, &instance->instance);
    job_begin(machine, instance, t->launcher->boot, booted);
}

static void process_halt(void *machine, struct runtime_object *instance, bool at_once)
{
    tenant_halt(tenant_of(machine, instance), at_once);
}

static struct str process_volume_path(void *machine, struct arena *a, struct str id)
{
    const struct process *p = machine;
    const char *disk = qemu_disk_path(a, p, id);
    return disk ? str_of(disk) : arena_printf(a, "%s/%.*s/" CONTENT_ROOT, p->volumes, STR_ARG(id));
}

static bool process_volume_is_disk(void *machine, struct str id)
{
    ARENA_AUTO a = arena_new_with(512);
    return qemu_disk_path(a, machine, id) != NULL;
}

static int process_metrics(void *machine, struct runtime_object *instance,
                           struct runtime_metrics *ret)
{
    struct process *p = machine;
    struct tenant *t = tenant_of(p, instance);
    ARENA_AUTO a = arena_new();
    struct runtime_metrics m = {0};
    if (t->pidfd < 0)
        return -ESRCH;
    struct str cgroup = process_cgroup(a, p, instance->id);
    if (!cgroup.p || cgroup_metrics(&p->cgroup, cgroup, &m) < 0) {
        int e = cgroup_process_metrics(t->pid, &m);
        if (e < 0)
            return -ESRCH;
    }
    if (p->cgroup.has_memory)
        m.memory_max_bytes = instance->instance.memory_max_bytes;
    t->launcher->metrics(t, &m);
    *ret = m;
    return 0;
}

/* ---- removing ------------------------------------------------------------------------------ */

static const struct launcher *const launchers[] = {&crun_launcher, &qemu_launcher};

/* Of an instance that somebody has left it is not known what it was. */
static void remove_state(struct job *j)
{
    for (size_t i = 0; i < N_ELEMENTS(launchers); i++)
        launchers[i]->remove(j);
}

static void run_remove(struct job *j)
{
    const struct process *p = j->process;
    const char *id = arena_strz(j->arena, j->id);
    if (j->kind == RUNTIME_INSTANCE) {
        remove_state(j);
        (void) unlink(process_pipe(j->arena, p, j->id, RUNTIME_STDOUT));
        (void) unlink(process_pipe(j->arena, p, j->id, RUNTIME_STDERR));
    }
    const char *const directories[] = {p->contents, p->volumes, p->bundles};
    int e = tree_discard(directories[j->kind], id);
    if (e < 0)
        (void) error_set(&j->error, e, "'%s' cannot be removed whole: %s", id, log_errno_text(e));
}

static void process_remove(void *machine, struct runtime_object *o)
{
    job_begin(machine, o, run_remove, step_done);
}

static void process_cancel(void *machine, struct runtime_object *o)
{
    struct tenant *t = tenant_of(machine, o);
    if (t->job)
        atomic_store(&t->job->is_cancelled, true);
}

static void process_forget(void *machine, struct runtime_object *o)
{
    (void) machine;
    struct tenant *t = o->of_machine;
    if (t && t->job) {
        atomic_store(&t->job->is_cancelled, true);
        t->job->object = NULL;
    }
    tenant_free(t);
}

static void process_free(void *machine)
{
    struct process *p = machine;
    p->runtime = NULL;
    /* All of it is cancelled by now. */
    workers_free(TAKE(p->slow));
    process_unref(p);
}

void process_job_over(struct process *p)
{
    p->n_jobs--;
    process_unref(p);
}

static const struct runtime_machine process_functions = {
    .name = "process",
    .fetch = process_fetch,
    .create = process_create,
    .boot = process_boot,
    .halt = process_halt,
    .cancel = process_cancel,
    .remove = process_remove,
    .metrics = process_metrics,
    .volume_path = process_volume_path,
    .volume_is_disk = process_volume_is_disk,
    .forget = process_forget,
    .free = process_free,
};

/* ---- what is there already ----------------------------------------------------------------- */

/* The volume that a path of a bundle lies in; STR_NONE: none of ours. */
static struct str volume_of(const struct process *p, struct str path)
{
    struct str parent = str_of(p->volumes), rest = str_from(path, parent.n + 1), id;
    bool is_below = str_starts_with(path, parent) && path.n > parent.n && path.p[parent.n] == '/';
    return is_below && str_split(&rest, '/', &id) ? id : STR_NONE;
}

/* Until its caller says again what it was asked to be, the bundle tells which volumes it uses. */
static void read_bundle(const struct process *p, struct runtime_object *o, int *ret_stop_signal)
{
    BUF_AUTO text = {0};
    const char *path =
        arena_printf(o->arena, "%s/config.json", process_path(o->arena, p->bundles, o->id)).p;
    const struct json *config = NULL;
    if (tree_read(AT_FDCWD, path, MAX_BUNDLE_BYTES, &text) == 0)
        config = json_parse_quick(o->arena, buf_str(&text));
    *ret_stop_signal = spec_stop_signal(config);
    o->instance.id = o->id;
    o->instance.root_volume = volume_of(p, json_str(json_at(config, "root", "path", NULL)));
    const struct json *list = json_get(config, STR("mounts"));
    struct runtime_mount *mounts =
        ARENA_ARRAY(o->arena, struct runtime_mount, json_count(list) + 1);
    JSON_FOR_EACH_ITEM (list, m) {
        struct str volume = volume_of(p, json_get_str(m, STR("source")));
        if (volume.p && o->instance.n_mounts < RUNTIME_MAX_ITEMS)
            mounts[o->instance.n_mounts++].volume = volume;
    }
    o->instance.mounts = mounts;
}

static void cleaned(struct job *j)
{
    j->object->is_busy = false;
    runtime_settle(j->object);
}

/* One that was made and never started, or has ended while nobody looked. */
static void clean_up(struct process *p, struct runtime_object *o)
{
    o->is_busy = true;
    job_begin(p, o, remove_state, cleaned);
}

static const struct launcher *find_launcher(const struct process *p, struct str id,
                                            struct launch_state *ret)
{
    for (size_t i = 0; i < N_ELEMENTS(launchers); i++) {
        *ret = (struct launch_state){0};
        if (launchers[i]->read_state(p, id, ret) != -ENOENT)
            return launchers[i];
    }
    return NULL;
}

static void adopt(struct process *p, struct str id)
{
    struct launch_state state;
    struct runtime_object *o = runtime_found(p->runtime, RUNTIME_INSTANCE, id, RUNTIME_HALTED);
    if (!o)
        return;
    int stop_signal;
    struct tenant *t = tenant_of(p, o);
    t->launcher = find_launcher(p, id, &state);
    read_bundle(p, o, &stop_signal);
    if (!t->launcher)
        return;
    int pidfd = !state.is_running ? -ESRCH : child_pidfd(state.pid);
    /* Once more: the number may have gone to another process just before we held it. */
    if (pidfd < 0 || t->launcher->read_state(p, id, &state) < 0 || !state.is_running ||
        tenant_attach(t, state.pid, pidfd, stop_signal) < 0) {
        if (pidfd >= 0)
            (void) close(pidfd);
        clean_up(p, o);
        return;
    }
    o->state = RUNTIME_RUNNING;
    o->wants_run = true;
    o->is_adopted = true;
    o->started_wall_us = state.created_wall_us;
    log_info("instance adopted", LOG_STR("instance", o->id), LOG_INT("pid", state.pid));
}

static void found_content(struct process *p, struct str id)
{
    (void) runtime_found(p->runtime, RUNTIME_CONTENT, id, RUNTIME_DELIVERED);
}

static void found_volume(struct process *p, struct str id)
{
    (void) runtime_found(p->runtime, RUNTIME_VOLUME, id, RUNTIME_CREATED_VOLUME);
}

static void look_into(struct process *p, const char *directory,
                      void (*found)(struct process *p, struct str id))
{
    tree_sweep(directory);
    DIR *d = opendir(directory);
    if (!d)
        return;
    const struct dirent *entry;
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.')
            found(p, str_of(entry->d_name));
    (void) closedir(d);
}

/* ---- making -------------------------------------------------------------------------------- */

static char *below(const char *directory, const char *name)
{
    struct buf b = {0};
    buf_printf(&b, "%s/%s", directory, name);
    return buf_take(&b);
}

static int make_directories(struct process *p)
{
    char *const paths[] = {p->contents, p->volumes, p->bundles, p->pipes, p->state, p->machines};
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        int e = tree_make(paths[i]);
        if (e < 0)
            return e;
    }
    return 0;
}

int runtime_process_new(const struct runtime_process_options *o,
                        const struct runtime_events *events, struct runtime **ret)
{
    struct process *p = NEW(struct process);
    *p = (struct process){
        .loop = o->loop,
        .clock = o->clock,
        .contents = below(o->persist_directory, "contents"),
        .volumes = below(o->persist_directory, "volumes"),
        .bundles = below(o->persist_directory, "instances"),
        .pipes = below(o->run_directory, "pipes"),
        .state = below(o->run_directory, "crun"),
        .machines = below(o->run_directory, "qemu"),
        .cgroup_parent = mem_strdup(o->cgroup_parent ? o->cgroup_parent : "seth-agent"),
        .crun = mem_strdup(o->crun ? o->crun : "crun"),
        .curl = mem_strdup(o->curl ? o->curl : "curl"),
        .qemu = o->qemu ? mem_strdup(o->qemu) : NULL,
        .qemu_img = mem_strdup(o->qemu_img ? o->qemu_img : "qemu-img"),
        .is_root = geteuid() == 0,
    };
    int e = make_directories(p);
    if (e < 0) {
        process_unref(p);
        return e;
    }
    p->slow = workers_new(MAX_SLOW_THREADS, MAX_SLOW_WAITING);
    cgroup_detect(&p->cgroup, p->is_root);
    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
    p->runtime = runtime_new(&process_functions, p, o->clock, events);
    look_into(p, p->contents, found_content);
    look_into(p, p->volumes, found_volume);
    look_into(p, p->bundles, adopt);
    *ret = p->runtime;
    return 0;
}
