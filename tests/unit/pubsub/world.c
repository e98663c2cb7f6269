/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pubsub/files.h"

#define MAX_TURNS 60000 /* of a millisecond and more */

/* ---- the loop ------------------------------------------------------------------------------- */

static void on_turn(void *arg)
{
    struct world *w = arg;
    w->n_turns++;
    if (w->is_so(w->arg) || w->n_turns > MAX_TURNS)
        loop_stop(w->loop);
}

void world_run_until(struct world *w, bool (*is_so)(void *arg), void *arg)
{
    w->is_so = is_so;
    w->arg = arg;
    w->n_turns = 0;
    loop_timer_start(w->timer, 1, 1);
    loop_run(w->loop);
    loop_timer_stop(w->timer);
    if (w->n_turns > MAX_TURNS)
        fail_msg("what was waited for has not come");
}

struct turns {
    struct world *world;
    int n;
};

static bool are_over(void *arg)
{
    struct turns *t = arg;
    return t->world->n_turns >= t->n;
}

void world_run_turns(struct world *w, int n)
{
    struct turns t = {w, n};
    world_run_until(w, are_over, &t);
}

/* ---- life ----------------------------------------------------------------------------------- */

void world_init(struct world *w)
{
    *w = (struct world){0};
    /* In memory, as /run is on a device. */
    bool has_memory = access("/dev/shm", W_OK) == 0;
    (void) snprintf(w->root, sizeof(w->root), "%s/pubsub-XXXXXX", has_memory ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(w->root));
    w->loop = loop_new();
    w->arena = arena_new();
    w->timer = loop_timer_new(w->loop, on_turn, w);
    w->pubsub = world_device(w, "", 0);
}

static struct pubsub *open_device(struct world *w, const char *below, struct pubsub_options options)
{
    const char *root = below[0] ? world_path(w, below) : w->root;
    options.loop = w->loop;
    options.clock = &clock_system;
    options.run_directory = arena_printf(w->arena, "%s/run", root).p;
    options.persist_directory = arena_printf(w->arena, "%s/persist", root).p;
    options.retry_ms = RETRY_MS;
    return pubsub_new(&options);
}

struct pubsub *world_device(struct world *w, const char *below, int64_t request_timeout_ms)
{
    struct pubsub_options options = {.request_timeout_ms = request_timeout_ms};
    return open_device(w, below, options);
}

struct pubsub *world_private_device(struct world *w, const char *below)
{
    struct pubsub_options options = {.is_private = true, .skips_sync = true};
    return open_device(w, below, options);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void) st;
    (void) type;
    (void) at;
    return remove(path);
}

void world_done(struct world *w)
{
    pubsub_free(w->pubsub);
    loop_timer_free(w->timer);
    loop_settle(w->loop);
    loop_free(w->loop);
    (void) nftw(w->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_free(w->arena);
}

/* ---- files ---------------------------------------------------------------------------------- */

const char *world_path(struct world *w, const char *below)
{
    return arena_printf(w->arena, "%s/%s", w->root, below).p;
}

void world_write(struct world *w, const char *below, const char *content)
{
    char *path = arena_strz(w->arena, str_of(world_path(w, below)));
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(pubsub_directory_make(path), 0);
    *slash = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

const char *world_read(struct world *w, const char *below)
{
    BUF_AUTO text = {0};
    int r = pubsub_file_read(world_path(w, below), (size_t) 1 << 24, &text);
    return r < 0 ? NULL : arena_strz(w->arena, buf_str(&text));
}

bool world_exists(struct world *w, const char *below)
{
    return access(world_path(w, below), F_OK) == 0;
}

size_t world_count_files(struct world *w, const char *below)
{
    DIR *d = opendir(world_path(w, below));
    size_t n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        (void) closedir(d);
    return n;
}

struct json *world_json(struct world *w, const char *text)
{
    struct json *v = json_parse_quick(w->arena, str_of(text));
    assert_non_null(v);
    return v;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int address_of(struct world *w, const char *below, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", world_path(w, below));
    assert_true(n > 0 && (size_t) n < sizeof(ret->sun_path));
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int world_connect(struct world *w, const char *below)
{
    struct sockaddr_un address;
    int fd = address_of(w, below, &address);
    assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof(address)), 0);
    return fd;
}

int world_listen(struct world *w, const char *below)
{
    struct sockaddr_un address;
    int fd = address_of(w, below, &address);
    char *slash = strrchr(address.sun_path, '/');
    *slash = '\0';
    assert_int_equal(pubsub_directory_make(address.sun_path), 0);
    *slash = '/';
    assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

void world_send(int fd, const char *packet)
{
    assert_int_equal(send(fd, packet, strlen(packet), MSG_NOSIGNAL), strlen(packet));
}

static bool is_readable(void *arg)
{
    struct pollfd p = {.fd = *(const int *) arg, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

const char *world_receive(struct world *w, int fd)
{
    static char packet[PUBSUB_MAX_PACKET_BYTES + 2];
    if (!is_readable(&fd))
        world_run_until(w, is_readable, &fd);
    ssize_t n = recv(fd, packet, sizeof(packet) - 1, 0);
    assert_true(n >= 0 || errno == ECONNRESET);
    if (n <= 0)
        return "(closed)";
    packet[n] = '\0';
    return packet;
}

/* ---- publications --------------------------------------------------------------------------- */

int world_publish(struct world *w, struct publication *p, const char *key, const char *json)
{
    return publication_publish(p, str_of(key), world_json(w, json));
}

struct publication *world_publication(struct world *w, const char *agent, const char *topic,
                                      bool is_persistent)
{
    struct publication *p = NULL;
    struct pubsub_name name = {
        .agent = str_of(agent), .topic = str_of(topic), .is_persistent = is_persistent};
    assert_int_equal(publication_new(w->pubsub, &name, &p), 0);
    return p;
}
