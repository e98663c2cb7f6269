/* SPDX-License-Identifier: Apache-2.0 */
/* What may be found in the directories of logs: names, raw files of an earlier life, lines of
 * syslog and of the kernel. The input is a name, a newline, and what the file holds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eve/newlog.h"
#include "loguploader/loginput.h"
#include "loguploader/pack.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_names(struct str name)
{
    ARENA_AUTO a = arena_new();
    struct logfile f, again;
    if (logfile_parse(name, &f) == 0) {
        require(logfile_parse(logfile_name(a, &f), &again) == 0);
        require(again.time_ms == f.time_ms && uuid_eq(&again.app, &f.app));
    }
    if (logfile_parse_raw(name, &f) == 0 && f.time_ms > 0) {
        require(logfile_parse_raw(logfile_raw_name(a, &f), &again) == 0);
        require(again.time_ms == f.time_ms && again.is_skipped == f.is_skipped);
    }
}

static void check_inputs(struct str text)
{
    struct loginput in = loginput_syslog(text);
    require(in.level < 8 && in.content.n <= text.n && in.source.n <= MAX(text.n, 6));
    if (loginput_kernel(text, &in) == 0)
        require(in.level < 8 && in.content.n < text.n && in.boot_us >= 0);
}

static char root_path[64];

static void remove_root(void)
{
    ARENA_AUTO a = arena_new();
    for (int d = 0; d < LOG_DIRECTORIES; d++)
        (void) rmdir(logfiles_path(a, root_path, (enum log_directory) d, STR_NONE));
    (void) rmdir(root_path);
}

static const char *root(void)
{
    if (!root_path[0]) {
        (void) snprintf(root_path, sizeof(root_path), "/tmp/fuzz-logfiles-%ld", (long) getpid());
        require(logfiles_make(root_path) == 0 && atexit(remove_root) == 0);
    }
    return root_path;
}

static size_t count_lines(const char *directory)
{
    ARENA_AUTO a = arena_new();
    size_t n_lines = 0;
    for (int64_t k = 0;; k++) {
        struct logfile f = {.time_ms = 1000 + k};
        const char *path = logfiles_path(a, directory, LOG_DEV_UPLOAD, logfile_name(a, &f));
        BUF_AUTO gzip = {0}, text = {0};
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            return n_lines;
        ssize_t n = read(fd, buf_reserve(&gzip, LOGFILES_MAX_UPLOAD_BYTES * 32),
                         LOGFILES_MAX_UPLOAD_BYTES * 32);
        gzip.n = n < 0 ? 0 : (size_t) n;
        (void) close(fd);
        (void) unlink(path);
        require(newlog_inflate(&text, buf_str(&gzip)) == 0);
        for (size_t i = 0; i < text.n; i++)
            n_lines += text.p[i] == '\n';
    }
}

/* Whatever a raw file holds, each good line comes out once, and nothing is left behind. */
static void check_packing(struct str content)
{
    ARENA_AUTO a = arena_new();
    struct logfile f = {.time_ms = 1000};
    const char *path = logfiles_path(a, root(), LOG_COLLECT, logfile_raw_name(a, &f));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && write(fd, content.p, content.n) == (ssize_t) content.n);
    (void) close(fd);
    struct pack p = {.root = root(), .created_s = 1};
    struct pack_result packed = {0};
    require(pack_recover(&p) == 0);
    require(pack_file(&p, &f, /* is_checked= */ true, &packed) == 0);
    require(access(path, F_OK) < 0);
    require(count_lines(root()) == packed.n_lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str all = str_range((const char *) data, size);
    ptrdiff_t end = str_find(all, '\n');
    struct str name = end < 0 ? all : str_sub(all, 0, (size_t) end);
    struct str content = end < 0 ? STR("") : str_from(all, (size_t) end + 1);
    check_names(name);
    check_inputs(content);
    check_packing(content);
    return 0;
}
