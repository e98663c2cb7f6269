/* SPDX-License-Identifier: Apache-2.0 */
/* Adam's Redis: a hash for each part, by UUID or by common name. */
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "adam/resp.h"
#include "adam/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"

#define TIMEOUT_S 10
#define CHUNK_BYTES ((size_t) 64 * 1024)

static const char *const part_hashes[ADAM_PARTS] = {
    [ADAM_CERT] = "DEVICE_CERTS",         [ADAM_ONBOARD] = "DEVICE_ONBOARD_CERTS",
    [ADAM_SERIAL] = "DEVICE_SERIALS",     [ADAM_CONFIG] = "DEVICE_CONFIGS",
    [ADAM_CERTS] = "DEVICE_ATTEST_CERTS", [ADAM_STORAGE_KEYS] = "DEVICE_STORAGE_KEYS",
    [ADAM_OPTIONS] = "DEVICE_OPTIONS",
};

struct redis {
    struct adam_store *store;
    struct arena *arena;
    int socket;
    struct resp_reader reader;
    struct map by_uuid; /* number of the device + 1 */
    char *error;
};

/* ---- the connection -------------------------------------------------------------------------- */

struct address {
    struct str password, host, port, database;
};

static struct address parse_url(struct str url)
{
    struct address a = {.password = STR(""), .port = STR("6379"), .database = STR("0")};
    struct str rest = str_from(url, sizeof("redis://") - 1);
    const ptrdiff_t slash = str_find(rest, '/');
    if (slash >= 0) {
        if ((size_t) slash + 1 < rest.n)
            a.database = str_from(rest, (size_t) slash + 1);
        rest = str_sub(rest, 0, (size_t) slash);
    }
    const ptrdiff_t at = str_find_last(rest, '@');
    if (at >= 0) {
        a.password = str_sub(rest, 0, (size_t) at);
        rest = str_from(rest, (size_t) at + 1);
    }
    /* Of user:password the password; Adam takes a user alone for one. */
    const ptrdiff_t user = str_find(a.password, ':');
    if (user >= 0)
        a.password = str_from(a.password, (size_t) user + 1);
    const ptrdiff_t colon = str_find_last(rest, ':');
    if (colon >= 0 && !str_ends_with(rest, STR("]"))) {
        a.port = str_from(rest, (size_t) colon + 1);
        rest = str_sub(rest, 0, (size_t) colon);
    }
    if (str_starts_with(rest, STR("[")) && str_ends_with(rest, STR("]")))
        rest = str_sub(rest, 1, rest.n - 1);
    a.host = rest.n ? rest : STR("localhost");
    return a;
}

static int connect_one(const struct addrinfo *a)
{
    const struct timeval limit = {.tv_sec = TIMEOUT_S};
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0)
        return -errno;
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    const int error = -errno;
    (void) close(fd);
    return error;
}

static int open_socket(struct redis *r, const struct address *at)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *host = arena_strz(r->arena, at->host), *port = arena_strz(r->arena, at->port);
    const int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0)
        return error_set(&r->error, -EHOSTUNREACH, "%s:%s: %s", host, port, gai_strerror(error));
    int fd = -EHOSTUNREACH;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = connect_one(a);
    freeaddrinfo(found);
    if (fd < 0)
        return error_set(&r->error, fd, "cannot connect to Redis at %s:%s: %s", host, port,
                         log_errno_text(fd));
    r->socket = fd;
    return 0;
}

static int receive(void *ctx, struct buf *to)
{
    const struct redis *r = ctx;
    char *room = buf_reserve(to, CHUNK_BYTES);
    ssize_t n = 0;
    do
        n = recv(r->socket, room, CHUNK_BYTES, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n == 0 ? -EPIPE : errno == EAGAIN ? -ETIMEDOUT : -errno;
    to->n += (size_t) n;
    return 0;
}

static int send_all(const struct redis *r, struct str bytes)
{
    while (bytes.n) {
        const ssize_t n = send(r->socket, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        bytes = str_from(bytes, (size_t) n);
    }
    return 0;
}

/* The password is in no message. */
static int command(struct redis *r, struct str name, struct str argument, struct resp *ret)
{
    BUF_AUTO text = {0};
    const struct str words[] = {name, argument};
    resp_write_command(&text, words, N_ELEMENTS(words));
    int result = send_all(r, buf_str(&text));
    if (result == 0)
        result = resp_read(&r->reader, r->arena, ret);
    if (result < 0)
        return error_set(&r->error, result, "Redis does not answer %.*s as it should: %s",
                         STR_ARG(name), log_errno_text(result));
    if (ret->type == RESP_ERROR)
        return error_set(&r->error, -EPERM, "Redis refuses %.*s: %.*s", STR_ARG(name),
                         STR_ARG(ret->text));
    return 0;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static int read_hash(struct redis *r, const char *hash,
                     int (*take)(struct redis *r, struct str key, struct str value, int part),
                     int part)
{
    struct resp reply;
    int result = command(r, STR("HGETALL"), str_of(hash), &reply);
    if (result < 0)
        return result;
    if (reply.type != RESP_LIST || reply.n_items % 2)
        return error_set(&r->error, -EBADMSG, "Redis: %s is no hash", hash);
    for (size_t i = 0; result == 0 && i < reply.n_items; i += 2)
        result = take(r, reply.items[i].text, reply.items[i + 1].text, part);
    return result;
}

static struct adam_stored_device *device_of(struct redis *r, struct str uuid)
{
    struct adam_store *s = r->store;
    const size_t number = (size_t) (uintptr_t) map_get(&r->by_uuid, uuid);
    if (number)
        return &s->devices[number - 1];
    struct adam_stored_device *d = adam_store_add_device(s, uuid);
    d->where = arena_printf(s->arena, "device %.*s", STR_ARG(uuid));
    (void) map_put(&r->by_uuid, uuid, (void *) (uintptr_t) s->n_devices);
    return d;
}

static int take_part(struct redis *r, struct str key, struct str value, int part)
{
    if (r->store->n_devices >= ADAM_STORE_MAX_ENTRIES)
        return error_set(&r->error, -E2BIG, "Redis holds more than %zu devices",
                         ADAM_STORE_MAX_ENTRIES);
    device_of(r, key)->parts[part] = value;
    return 0;
}

static int take_onboard(struct redis *r, struct str key, struct str value, int part)
{
    (void) part;
    struct adam_stored_onboard *o = adam_store_add_onboard(r->store);
    o->where = arena_printf(r->arena, "onboard %.*s", STR_ARG(key));
    o->cert = value;
    return 0;
}

static int take_serials(struct redis *r, struct str key, struct str value, int part)
{
    (void) part;
    const struct str where = arena_printf(r->arena, "onboard %.*s", STR_ARG(key));
    for (size_t i = 0; i < r->store->n_onboards; i++) {
        struct adam_stored_onboard *o = &r->store->onboards[i];
        if (str_eq(o->where, where) && adam_store_unpack_serials(r->arena, value, &o->serials) < 0)
            o->problem = STR("its serial numbers cannot be read");
    }
    return 0;
}

static int take_options(struct redis *r, struct str key, struct str value, int part)
{
    (void) key, (void) part;
    r->store->global_options = value;
    return 0;
}

static int read_all(struct redis *r)
{
    int result = 0;
    for (int part = 0; result == 0 && part < ADAM_PARTS; part++)
        result = read_hash(r, part_hashes[part], take_part, part);
    if (result == 0)
        result = read_hash(r, "ONBOARD_CERTS", take_onboard, 0);
    if (result == 0)
        result = read_hash(r, "ONBOARD_SERIALS", take_serials, 0);
    if (result == 0)
        result = read_hash(r, "GLOBAL_OPTIONS", take_options, 0);
    return result;
}

int adam_store_read_redis(struct arena *a, const char *url, struct adam_store *ret,
                          char **ret_error)
{
    struct redis r = {.store = ret, .arena = a, .socket = -1};
    const struct address at = parse_url(str_of(url));
    struct resp reply;
    *ret = (struct adam_store){.arena = a};
    r.reader = (struct resp_reader){.more = receive, .ctx = &r};
    int result = open_socket(&r, &at);
    if (result == 0 && at.password.n)
        result = command(&r, STR("AUTH"), at.password, &reply);
    if (result == 0)
        result = command(&r, STR("SELECT"), at.database, &reply);
    if (result == 0)
        result = read_all(&r);
    if (r.socket >= 0)
        (void) close(r.socket);
    resp_reader_done(&r.reader);
    map_done(&r.by_uuid);
    if (result < 0)
        *ret_error = r.error;
    return result;
}
