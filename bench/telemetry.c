/* SPDX-License-Identifier: Apache-2.0 */
/* How near stored log uploads come to what the disk takes. Raw: one thread writes and syncs uploads
 * to a file, one by one and in groups. Ours: the same uploads appended with as many under way; the
 * grouping is the writer's own. They take turns, so that a disk that is slow for a while is slow
 * for both.
 *
 *     telemetry [directory] [seconds] [bytes]
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/random.h"
#include "telemetry/telemetry.h"

#define GROUP 64
#define ROUNDS 4
#define MAX_BYTES ((size_t) 1024 * 1024)

struct rate {
    double seconds, bytes, n;
};

static double now(void)
{
    return (double) clock_system.monotonic_us(&clock_system) / 1e6;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_raw(const char *directory, struct str upload, int n_group, double seconds,
                      struct rate *total)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/raw", directory);
    int fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        die(path.p);
    struct iovec pieces[GROUP];
    for (size_t i = 0; i < GROUP; i++)
        pieces[i] = (struct iovec){(void *) (uintptr_t) upload.p, upload.n};
    double start = now(), n = 0;
    while (now() - start < seconds) {
        if (writev(fd, pieces, n_group) != (ssize_t) ((size_t) n_group * upload.n) ||
            fdatasync(fd) < 0)
            die("write");
        n += n_group;
    }
    total->seconds += now() - start;
    total->n += n;
    total->bytes += n * (double) upload.n;
    (void) close(fd);
    (void) unlink(path.p);
}

static void on_stored(void *arg, int64_t result)
{
    if (result < 0)
        exit(1);
    (void) sem_post(arg);
}

/* Twice a group under way: one is written while the next gathers. */
static void append(struct telemetry *t, struct str upload, double seconds, struct rate *total)
{
    sem_t room;
    (void) sem_init(&room, 0, 2 * GROUP);
    double start = now(), n = 0;
    for (; now() - start < seconds; n++) {
        struct telemetry_record r = {
            .stream = TELEMETRY_LOG, .form = TELEMETRY_GZIP, .bytes = upload};
        r.device.bytes[0] = (unsigned char) n;
        (void) sem_wait(&room);
        telemetry_append(t, &r, NULL, on_stored, &room);
    }
    for (int i = 0; i < 2 * GROUP; i++)
        (void) sem_wait(&room);
    total->seconds += now() - start;
    total->n += n;
    total->bytes += n * (double) upload.n;
    (void) sem_destroy(&room);
}

static void print(const char *what, const struct rate *r)
{
    printf("%-28s %10.0f uploads/s %8.1f MB/s\n", what, r->n / r->seconds,
           r->bytes / r->seconds / 1e6);
}

static void clean(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            (void) unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void) closedir(d);
    (void) rmdir(directory);
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    size_t n = argc > 3 ? strtoul(argv[3], NULL, 10) : 20 * 1024;
    char *bytes = mem_alloc(MIN(n, MAX_BYTES));
    struct str upload = str_range(bytes, MIN(n, MAX_BYTES));
    random_bytes(bytes, upload.n);
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/telemetry-bench-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(path.p))
        die(path.p);
    struct telemetry_options o = {
        .directory = path.p, .clock = &clock_system, .max_bytes = (int64_t) 1 << 30};
    struct telemetry *t = NULL;
    char *error = NULL;
    if (telemetry_open(&o, &t, &error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    struct rate single = {0}, raw = {0}, ours = {0};
    for (int i = 0; i < ROUNDS; i++) {
        write_raw(path.p, upload, 1, seconds / ROUNDS, &single);
        write_raw(path.p, upload, GROUP, seconds / ROUNDS, &raw);
        append(t, upload, seconds / ROUNDS, &ours);
    }
    struct telemetry_stats stats;
    telemetry_stats(t, &stats);
    telemetry_free(t);
    clean(path.p);
    mem_free(bytes);
    print("the disk, one by one:", &single);
    print("the disk, groups of 64:", &raw);
    print("telemetry:", &ours);
    printf("uploads in a sync: %.0f\n", ours.n / (double) stats.n_syncs);
    printf("ratio: %.2f\n", ours.bytes / ours.seconds / (raw.bytes / raw.seconds));
    return 0;
}
