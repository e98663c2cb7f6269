/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/network_hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define HEADER_BYTES 12
#define MAX_LABEL 63
#define MAX_RECORDS 128
#define TYPE_A 1
#define CLASS_IN 1
#define PACKET_BYTES 65536
#define MAX_AT_ONCE 64 /* packets, before others of the loop have their turn */

/* ---- names ---------------------------------------------------------------------------------- */

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool hosts_normal(struct str name, char ret[HOSTS_NAME_BYTES])
{
    size_t label = 0;
    if (name.n && name.p[name.n - 1] == '.')
        name.n--;
    if (name.n == 0 || name.n >= HOSTS_NAME_BYTES)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        const char c = small(name.p[i]);
        if (c == '.' ? label == 0 : !is_of_name(c) || label == MAX_LABEL)
            return false;
        label = c == '.' ? 0 : label + 1;
        ret[i] = c;
    }
    ret[name.n] = 0;
    return label > 0;
}

bool hosts_is_of(const char *name, const char *host)
{
    const size_t n = strlen(name), m = strlen(host);
    return n >= m && strcmp(name + n - m, host) == 0 && (n == m || name[n - m - 1] == '.');
}

static bool learn(struct hosts_host *h, uint32_t address)
{
    for (size_t i = 0; i < h->n_addresses; i++)
        if (h->addresses[i] == address)
            return false;
    if (h->n_addresses == HOSTS_MAX_ADDRESSES) {
        memmove(h->addresses, h->addresses + 1, sizeof(h->addresses) - sizeof(h->addresses[0]));
        h->n_addresses--;
    }
    h->addresses[h->n_addresses++] = address;
    return true;
}

bool hosts_learn_all(struct hosts_host *h, const struct hosts_answer *answer)
{
    bool is_new = false;
    if (!hosts_is_of(answer->name, h->name))
        return false;
    for (size_t i = 0; i < answer->n_addresses; i++)
        is_new |= learn(h, answer->addresses[i]);
    return is_new;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void name(struct hosts *h, struct str host)
{
    struct hosts_host *found = NULL;
    for (size_t i = 0; i < h->n_items; i++)
        if (str_is(host, h->items[i].name))
            found = &h->items[i];
    if (!found && h->n_items < HOSTS_MAX && host.n < HOSTS_NAME_BYTES) {
        h->items = mem_realloc_array(h->items, h->n_items + 1, sizeof(h->items[0]));
        found = &h->items[h->n_items++];
        *found = (struct hosts_host){0};
        memcpy(found->name, host.p, host.n);
    }
    if (found)
        found->is_named = true;
}

void hosts_take(struct hosts *h, const struct network_app *const *apps, size_t n_apps)
{
    for (size_t i = 0; i < h->n_items; i++)
        h->items[i].is_named = false;
    for (size_t a = 0; a < n_apps; a++)
        for (size_t i = 0; i < apps[a]->n_interfaces; i++)
            for (size_t k = 0; k < apps[a]->interfaces[i].n_rules; k++)
                if (apps[a]->interfaces[i].rules[k].host.n)
                    name(h, apps[a]->interfaces[i].rules[k].host);
    for (size_t i = h->n_items; i-- > 0;)
        if (!h->items[i].is_named)
            h->items[i] = h->items[--h->n_items];
}

void hosts_done(struct hosts *h)
{
    mem_free(h->items);
    *h = (struct hosts){0};
}

/* ---- answers (RFC 1035 4.1) ----------------------------------------------------------------- */

struct cursor {
    const unsigned char *p;
    size_t n;
    bool is_bad;
};

static const unsigned char *take(struct cursor *c, size_t n)
{
    static const unsigned char nothing[16] = {0};
    if (c->is_bad || n > c->n) {
        c->is_bad = true;
        return nothing;
    }
    const unsigned char *p = c->p;
    c->p += n;
    c->n -= n;
    return p;
}

static unsigned take_short(struct cursor *c)
{
    const unsigned char *p = take(c, 2);
    return (unsigned) p[0] << 8 | p[1];
}

/* That of the question: it is first, so nothing is there to point to. */
static void take_question(struct cursor *c, char ret[HOSTS_NAME_BYTES])
{
    size_t n = 0;
    for (;;) {
        const size_t label = *take(c, 1);
        if (c->is_bad || label > MAX_LABEL || n + label + 1 >= HOSTS_NAME_BYTES) {
            c->is_bad = true;
            return;
        }
        if (label == 0)
            break;
        const unsigned char *p = label <= c->n ? take(c, label) : (c->is_bad = true, NULL);
        for (size_t i = 0; p && i < label; i++) {
            ret[n++] = small((char) p[i]);
            c->is_bad = c->is_bad || !is_of_name(ret[n - 1]);
        }
        ret[n++] = '.';
    }
    c->is_bad = c->is_bad || n == 0;
    ret[n ? n - 1 : 0] = 0;
}

static void skip_name(struct cursor *c)
{
    while (!c->is_bad) {
        const unsigned label = *take(c, 1);
        if (label >= 0xc0) {
            (void) take(c, 1);
            return;
        }
        if (label == 0)
            return;
        if (label > MAX_LABEL || label > c->n)
            c->is_bad = true;
        else
            (void) take(c, label);
    }
}

static void take_record(struct cursor *c, struct hosts_answer *to)
{
    skip_name(c);
    const unsigned type = take_short(c), class = take_short(c);
    (void) take(c, 4); /* how long it may be kept */
    const size_t n = take_short(c);
    if (n > c->n) {
        c->is_bad = true;
        return;
    }
    const unsigned char *p = c->p;
    c->p += n;
    c->n -= n;
    if (!c->is_bad && type == TYPE_A && class == CLASS_IN && n == 4 &&
        to->n_addresses < HOSTS_MAX_ADDRESSES)
        to->addresses[to->n_addresses++] =
            (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

bool hosts_read_answer(struct str message, struct hosts_answer *ret)
{
    struct cursor c = {.p = (const unsigned char *) message.p, .n = message.n};
    ret->n_addresses = 0;
    const unsigned char *head = take(&c, HEADER_BYTES);
    const bool is_answer = head[2] & 0x80;
    const unsigned code = head[3] & 0x0f, n_questions = (unsigned) head[4] << 8 | head[5];
    const unsigned n_answers = (unsigned) head[6] << 8 | head[7];
    if (c.is_bad || !is_answer || code != 0 || n_questions != 1)
        return false;
    take_question(&c, ret->name);
    (void) take(&c, 4); /* its type and class */
    for (unsigned i = 0; i < MIN(n_answers, MAX_RECORDS) && !c.is_bad; i++)
        take_record(&c, ret);
    return !c.is_bad && ret->n_addresses > 0;
}

/* ---- listening ------------------------------------------------------------------------------ */

struct hosts_listener {
    int fd;
    struct loop_fd *watch;
    hosts_on_answer *on_answer;
    void *arg;
};

/* One packet; false: there is none. */
static bool hear(struct hosts_listener *l, char *room)
{
    struct sockaddr_ll from;
    socklen_t from_bytes = sizeof(from);
    const ssize_t got =
        recvfrom(l->fd, room, PACKET_BYTES, 0, (struct sockaddr *) &from, &from_bytes);
    if (got < 0)
        return false;
    struct iphdr ip;
    struct hosts_answer answer;
    /* What an application has sent itself says nothing. */
    if (from.sll_pkttype != PACKET_OUTGOING || (size_t) got < sizeof(ip))
        return true;
    memcpy(&ip, room, sizeof(ip));
    const size_t head = (size_t) ip.ihl * 4 + sizeof(struct udphdr);
    if ((size_t) got > head &&
        hosts_read_answer(str_range(room + head, (size_t) got - head), &answer))
        l->on_answer(l->arg, (unsigned) from.sll_ifindex, ntohl(ip.saddr), &answer);
    return true;
}

static void on_ready(void *arg, unsigned ready)
{
    struct hosts_listener *l = arg;
    char *room = mem_alloc(PACKET_BYTES);
    (void) ready;
    for (int i = 0; i < MAX_AT_ONCE && hear(l, room); i++)
        ;
    mem_free(room);
}

/* IPv4, UDP, not a later fragment, from port 53. */
static int set_filter(int fd)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x40, 0, 7),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 5),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 3, 0),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 53, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES),
    };
    const struct sock_fprog program = {N_ELEMENTS(code), code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno : 0;
}

int hosts_listen(struct loop *loop, hosts_on_answer *on_answer, void *arg,
                 struct hosts_listener **ret)
{
    /* Without a protocol it hears nothing before its filter is there. */
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    if (fd < 0)
        return -errno;
    int r = set_filter(fd);
    if (r == 0 && bind(fd, (const struct sockaddr *) &all, sizeof(all)) < 0)
        r = -errno;
    if (r < 0) {
        (void) close(fd);
        return r;
    }
    struct hosts_listener *l = NEW(struct hosts_listener);
    *l = (struct hosts_listener){.fd = fd, .on_answer = on_answer, .arg = arg};
    l->watch = loop_fd_new(loop, fd, on_ready, l);
    loop_fd_watch(l->watch, LOOP_READABLE);
    *ret = l;
    return 0;
}

static void on_closed(void *arg)
{
    struct hosts_listener *l = arg;
    (void) close(l->fd);
    mem_free(l);
}

void hosts_listener_free(struct hosts_listener *l)
{
    if (l)
        loop_fd_free(l->watch, on_closed, l);
}
