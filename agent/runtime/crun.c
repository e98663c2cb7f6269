/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle of an instance and the commands of crun. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "pki/file.h"
#include "runtime/child.h"
#include "runtime/content.h"
#include "runtime/process_internal.h"
#include "runtime/spec.h"
#include "runtime/tree.h"

#define CRUN_MS 60000
#define MAX_STATE_BYTES ((size_t) 64 * 1024)
#define MAX_USERS_BYTES ((size_t) 1024 * 1024)
#define MAX_ARGS 16

/* ---- the command --------------------------------------------------------------------------- */

struct command {
    const char *words[MAX_ARGS]; /* behind crun's own options, NULL at the end */
    int out_fd, err_fd;
};

/* crun tells what went wrong in its log: its error output belongs to the container. */
static int run_crun(struct job *j, const struct command *c, char **ret_error)
{
    const struct process *p = j->process;
    if (!p->is_root && p->cgroup.mode == CGROUP_HYBRID)
        return error_set(ret_error, -ENOTSUP,
                         "crun cannot run without root on a machine with hybrid cgroups");
    const char *log = arena_printf(j->arena, "%s.log", process_path(j->arena, p->pipes, j->id)).p;
    const char *argv[MAX_ARGS + 8] = {p->crun,
                                      "--root",
                                      p->state,
                                      "--log",
                                      log,
                                      p->is_root && p->cgroup.mode != CGROUP_NONE
                                          ? "--cgroup-manager=cgroupfs"
                                          : "--cgroup-manager=disabled"};
    size_t n = 6;
    for (size_t i = 0; i < MAX_ARGS && c->words[i]; i++)
        argv[n++] = c->words[i];
    const struct child child = {
        .argv = argv,
        .input = STR(""),
        .out_fd = c->out_fd,
        .err_fd = c->err_fd,
        .timeout_ms = CRUN_MS,
        .hides_unified = p->cgroup.mode == CGROUP_HYBRID,
    };
    (void) unlink(log);
    int code = child_run(&child, NULL);
    BUF_AUTO text = {0};
    (void) tree_read(AT_FDCWD, log, MAX_STATE_BYTES, &text);
    (void) unlink(log);
    if (code == 0)
        return 0;
    if (code < 0)
        return error_set(ret_error, code, "crun: %s",
                         code == -ENOENT ? "not found, or not allowed to run"
                                         : log_errno_text(code));
    return error_set(ret_error, -EIO, "crun %s: %.*s", c->words[0],
                     STR_ARG(str_trim(buf_str(&text))));
}

/* ---- what crun remembers ------------------------------------------------------------------- */

static int crun_read_state(const struct process *p, struct str id, struct launch_state *ret)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    const char *directory = process_path(a, p->state, id);
    int e = tree_read(AT_FDCWD, arena_printf(a, "%s/status", directory).p, MAX_STATE_BYTES, &text);
    if (e < 0)
        return e == -ENOENT && access(directory, F_OK) == 0 ? -EBADMSG : e;
    const struct json *status = json_parse_quick(a, buf_str(&text));
    int64_t pid = json_get_int(status, STR("pid"), 0);
    int64_t start = json_get_int(status, STR("process-start-time"), -1);
    *ret = (struct launch_state){.pid = (int) pid};
    (void) clock_parse(json_get_str(status, STR("created")), &ret->created_wall_us);
    /* One that was made but never started still waits at this pipe. */
    bool waits = access(arena_printf(a, "%s/exec.fifo", directory).p, F_OK) == 0;
    ret->is_running = pid > 0 && start > 0 && !waits && cgroup_process_start((int) pid) == start;
    return 0;
}

/* ---- the bundle ---------------------------------------------------------------------------- */

static const char *volume_root(struct job *j, struct str volume)
{
    return arena_printf(j->arena, "%s/%.*s/" CONTENT_ROOT, j->process->volumes, STR_ARG(volume)).p;
}

static int read_image(struct job *j, struct image_config *ret, char **ret_error)
{
    BUF_AUTO text = {0};
    const char *path = arena_printf(j->arena, "%s/%.*s/" CONTENT_IMAGE, j->process->volumes,
                                    STR_ARG(j->instance.root_volume))
                           .p;
    int e = tree_read(AT_FDCWD, path, IMAGE_MAX_CONFIG_BYTES, &text);
    const struct json *config = NULL;
    if (!e && !(config = json_parse_quick(j->arena, arena_str(j->arena, buf_str(&text)))))
        return error_set(ret_error, -EBADMSG, "image config: not JSON");
    return image_read_config(j->arena, config, ret, ret_error);
}

static int find_user(struct job *j, struct str user, struct image_user *ret, char **ret_error)
{
    BUF_AUTO passwd = {0};
    BUF_AUTO group = {0};
    int fd = open(volume_root(j, j->instance.root_volume), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(ret_error, -errno, "root volume: %s", log_errno_text(-errno));
    (void) tree_read(fd, "etc/passwd", MAX_USERS_BYTES, &passwd);
    (void) tree_read(fd, "etc/group", MAX_USERS_BYTES, &group);
    (void) close(fd);
    if (image_find_user(user, buf_str(&passwd), buf_str(&group), ret) < 0)
        return error_set(ret_error, -ENOENT,
                         "the image wants user '%.*s' and has none of that name", STR_ARG(user));
    return 0;
}

static const char *resolv_conf_path(struct job *j)
{
    return arena_printf(j->arena, "%s/resolv.conf",
                        process_path(j->arena, j->process->bundles, j->id))
        .p;
}

/* Its volumes, and the file that names its resolvers. */
static int build_mounts(struct job *j, struct spec_input *in, char **ret_error)
{
    const struct runtime_instance *i = &j->instance;
    struct spec_mount *mounts = ARENA_ARRAY(j->arena, struct spec_mount, i->n_mounts + 1);
    for (size_t k = 0; k < i->n_mounts; k++) {
        if (!i->mounts[k].target.p)
            return error_set(ret_error, -EINVAL, "volume '%.*s' has no directory to be mounted at",
                             STR_ARG(i->mounts[k].volume));
        mounts[in->n_mounts++] =
            (struct spec_mount){str_of(volume_root(j, i->mounts[k].volume)), i->mounts[k].target,
                                i->mounts[k].is_read_only};
    }
    if (i->resolv_conf.p)
        mounts[in->n_mounts++] = (struct spec_mount){
            str_of(resolv_conf_path(j)), STR("/etc/resolv.conf"), /* is_read_only= */ true};
    in->mounts = mounts;
    return 0;
}

static int build_config(struct job *j, struct json *ret, char **ret_error)
{
    const struct process *p = j->process;
    struct image_config image;
    struct spec_input in = {
        .instance = &j->instance,
        .image = &image,
        .root_path = str_of(volume_root(j, j->instance.root_volume)),
        .machine =
            {
                .is_root = p->is_root,
                .limits_memory = p->cgroup.has_memory,
                .limits_cpu = p->cgroup.has_cpu,
                .limits_processes = p->cgroup.has_processes,
                .cgroup_path = process_cgroup(j->arena, p, j->id),
                .uid = geteuid(),
                .gid = getegid(),
            },
    };
    int e = read_image(j, &image, ret_error);
    if (!e)
        e = find_user(j, image.user, &in.user, ret_error);
    if (!e)
        e = build_mounts(j, &in, ret_error);
    if (e < 0)
        return e;
    j->stop_signal = image.stop_signal;
    return spec_build(j->arena, &in, ret, ret_error);
}

static int write_bundle(struct job *j, char **ret_error)
{
    struct json config;
    int e = build_config(j, &config, ret_error);
    if (e < 0)
        return e;
    const char *bundle = process_path(j->arena, j->process->bundles, j->id);
    e = tree_make(bundle);
    if (!e)
        e = pki_file_write(arena_printf(j->arena, "%s/config.json", bundle).p,
                           json_text(j->arena, &config), 0600);
    if (!e && j->instance.resolv_conf.p)
        e = pki_file_write(resolv_conf_path(j), j->instance.resolv_conf, 0644);
    return e < 0 ? error_set(ret_error, e, "bundle: %s", log_errno_text(e)) : 0;
}

/* ---- starting ------------------------------------------------------------------------------ */

static int read_pid(const char *path)
{
    BUF_AUTO text = {0};
    int64_t pid;
    int e = tree_read(AT_FDCWD, path, 32, &text);
    if (e < 0)
        return e;
    return str_to_i64(str_trim(buf_str(&text)), &pid) < 0 || pid <= 0 ? -EBADMSG : (int) pid;
}

/* Made but not started it waits for us: so the pidfd is that of no other process. */
static int create_and_start(struct job *j, char **ret_error)
{
    const struct process *p = j->process;
    const char *id = arena_strz(j->arena, j->id);
    const char *pid_path =
        arena_printf(j->arena, "%s.pid", process_path(j->arena, p->pipes, j->id)).p;
    const struct command create = {{"create", "--bundle", process_path(j->arena, p->bundles, j->id),
                                    "--pid-file", pid_path, id},
                                   j->pipes[0],
                                   j->pipes[1]};
    int e = run_crun(j, &create, ret_error);
    if (e < 0)
        return e;
    j->pid = read_pid(pid_path);
    (void) unlink(pid_path);
    j->pidfd = j->pid < 0 ? j->pid : child_pidfd(j->pid);
    if (j->pidfd < 0)
        return error_set(ret_error, -ESRCH, "crun made a container and no process");
    return run_crun(j, &(struct command){{"start", id}, -1, -1}, ret_error);
}

static void delete_state(struct job *j)
{
    const struct process *p = j->process;
    char *unused = NULL;
    if (access(process_path(j->arena, p->state, j->id), F_OK) == 0)
        (void) run_crun(
            j, &(struct command){{"delete", "--force", arena_strz(j->arena, j->id)}, -1, -1},
            &unused);
    /* What crun itself left half made it does not delete. */
    (void) tree_remove(AT_FDCWD, process_path(j->arena, p->state, j->id));
    mem_free(unused);
}

static void crun_boot(struct job *j)
{
    delete_state(j);
    int e = write_bundle(j, &j->error);
    if (!e)
        e = process_open_pipes(j, &j->error);
    if (!e)
        e = create_and_start(j, &j->error);
    if (e == 0)
        return;
    if (j->pidfd >= 0) {
        (void) child_signal(j->pidfd, SIGKILL);
        (void) close(j->pidfd);
        j->pidfd = -1;
    }
    delete_state(j);
}

static void crun_metrics(struct tenant *t, struct runtime_metrics *ret)
{
    if (t->object->instance.network != RUNTIME_NETWORK_HOST)
        cgroup_network_metrics(t->pid, ret);
}

const struct launcher crun_launcher = {
    .name = "crun",
    .boot = crun_boot,
    .remove = delete_state,
    .read_state = crun_read_state,
    .metrics = crun_metrics,
};
