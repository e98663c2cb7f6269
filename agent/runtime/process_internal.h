/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the process runtime share. */
#pragma once

#include <stdatomic.h>

#include "loop/loop.h"
#include "loop/workers.h"
#include "runtime/cgroup.h"
#include "runtime/output.h"
#include "runtime/process.h"
#include "runtime/runtime_machine.h"

struct process {
    struct runtime *runtime; /* NULL: freed, only work under way is left */
    struct loop *loop;
    const struct clock *clock;
    char *contents, *volumes, *bundles; /* persist directory */
    char *pipes, *state, *machines;     /* run directory; state is crun's, machines qemu's */
    char *cgroup_parent, *crun, *curl, *qemu, *qemu_img; /* qemu NULL: that of the architecture */
    struct cgroup cgroup;
    bool is_root;
    bool has_said_limits;     /* that they cannot be kept here */
    atomic_bool is_emulating; /* virtual machines: the kernel cannot run them; said in the log */
    struct workers *slow;     /* for downloads and unpacking */
    size_t n_jobs;
};

struct qmp;
struct tenant;

/* One step of one object on a worker thread. */
struct job {
    struct process *process;
    struct runtime_object *object; /* NULL: forgotten meanwhile; loop thread only */
    struct arena *arena;           /* copies of what was asked for */
    struct str id;
    enum runtime_kind kind;
    void (*run)(struct job *j);  /* on the worker */
    void (*done)(struct job *j); /* on the loop, with the object; not called when it is gone */
    union {
        struct runtime_content content;
        struct runtime_volume volume;
        struct runtime_instance instance;
    };
    atomic_bool is_cancelled;
    atomic_uint refs;
    char *error; /* heap */
    /* Of an instance: */
    int pid, pidfd, stop_signal;
    int pipes[2]; /* held until somebody reads: what a pipe holds goes with its last user */
};

struct launch_state {
    int pid;
    int64_t created_wall_us;
    bool is_running; /* the very process that was started, past its start */
};

/* By what an instance is run: containers by crun, virtual machines by qemu. */
struct launcher {
    const char *name;
    /* On the worker: starts it; fills pid, pidfd and stop_signal. */
    void (*boot)(struct job *j);
    /* On the worker: kills what is left of it and removes its state; nothing there is fine. */
    void (*remove)(struct job *j);
    /* What is remembered of it. -ENOENT */
    int (*read_state)(const struct process *p, struct str id, struct launch_state *ret);
    /* On the loop: adds to its numbers those of its network and its disks. */
    void (*metrics)(struct tenant *t, struct runtime_metrics *ret);
    /* On the loop, each may be NULL: it is watched from now on, is watched no more; asks it to end
     * instead of the signal. */
    void (*attach)(struct tenant *t);
    void (*detach)(struct tenant *t);
    int (*ask_to_end)(struct tenant *t);
};
extern const struct launcher crun_launcher, qemu_launcher;

/* What this runtime has of an instance. */
struct tenant {
    struct process *process;
    struct runtime_object *object;
    const struct launcher *launcher; /* NULL: it was never run */
    struct qmp *qmp;                 /* of a virtual machine */
    struct job *job;                 /* the step under way, of any object */
    int pid, pidfd, stop_signal;
    struct loop_fd *watch;
    struct loop_timer *killer;
    struct output outputs[2];
    int exit_code;
};

struct tenant *tenant_of(struct process *p, struct runtime_object *o);
/* Begins to watch a process that runs. pidfd becomes the tenant's. */
int tenant_attach(struct tenant *t, int pid, int pidfd, int stop_signal);
void tenant_halt(struct tenant *t, bool at_once);
void tenant_free(struct tenant *t);

/* Copies what the object asks for and runs the job. */
void job_begin(struct process *p, struct runtime_object *o, void (*run)(struct job *j),
               void (*done)(struct job *j));
/* From the worker: the content has got so far. */
void job_note(struct job *j, enum runtime_state state, int percent);

/* Frees what is left once the runtime is gone. */
void process_job_over(struct process *p);

const char *process_path(struct arena *a, const char *directory, struct str id);
const char *process_pipe(struct arena *a, const struct process *p, struct str id,
                         enum runtime_stream stream);

/* Where its cgroup is, below the mount points; STR_NONE: it has none. */
struct str process_cgroup(struct arena *a, const struct process *p, struct str id);
/* On the worker: the pipes for what it writes, into the job. */
int process_open_pipes(struct job *j, char **ret_error);

/* ---- virtual machines ------------------------------------------------------------------------ */

/* On the worker: whether qemu and qemu-img are there. -ENOTSUP with what to install. */
int qemu_find(const struct process *p, char **ret_error);
/* The disk of a volume, in the arena; NULL: it has none. */
const char *qemu_disk_path(struct arena *a, const struct process *p, struct str volume);
