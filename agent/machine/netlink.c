/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/netlink.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define ANSWER_BYTES ((size_t) 64 * 1024)

static const struct sockaddr_nl KERNEL = {.nl_family = AF_NETLINK};

static int open_socket(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    return fd < 0 ? -errno : fd;
}

void netlink_begin(struct netlink_request *r, unsigned type, unsigned flags, const void *body,
                   size_t body_bytes)
{
    memset(r, 0, sizeof(*r));
    r->header.nlmsg_type = (uint16_t) type;
    r->header.nlmsg_flags = (uint16_t) (NLM_F_REQUEST | flags);
    r->header.nlmsg_len = (uint32_t) NLMSG_LENGTH(body_bytes);
    r->header.nlmsg_seq = 1;
    memcpy(NLMSG_DATA(&r->header), body, body_bytes);
}

void netlink_add(struct netlink_request *r, unsigned attribute, const void *p, size_t n)
{
    size_t at = NLMSG_ALIGN(r->header.nlmsg_len);
    assert(at + RTA_SPACE(n) <= sizeof(r->room));
    struct rtattr head = {.rta_len = (uint16_t) RTA_LENGTH(n), .rta_type = (uint16_t) attribute};
    memcpy(r->room + at, &head, sizeof(head));
    memcpy(r->room + at + RTA_LENGTH(0), p, n);
    r->header.nlmsg_len = (uint32_t) (at + RTA_SPACE(n));
}

void netlink_add_u32(struct netlink_request *r, unsigned attribute, uint32_t value)
{
    netlink_add(r, attribute, &value, sizeof(value));
}

size_t netlink_nest(struct netlink_request *r, unsigned attribute)
{
    const size_t at = NLMSG_ALIGN(r->header.nlmsg_len);
    netlink_add(r, attribute, "", 0);
    return at;
}

void netlink_nest_end(struct netlink_request *r, size_t nest)
{
    struct rtattr head;
    memcpy(&head, r->room + nest, sizeof(head));
    head.rta_len = (uint16_t) (NLMSG_ALIGN(r->header.nlmsg_len) - nest);
    memcpy(r->room + nest, &head, sizeof(head));
}

static int send_request(int fd, const struct nlmsghdr *header)
{
    ssize_t n =
        sendto(fd, header, header->nlmsg_len, 0, (const struct sockaddr *) &KERNEL, sizeof(KERNEL));
    return n < 0 ? -errno : 0;
}

static int error_of(const struct nlmsghdr *message)
{
    struct nlmsgerr error = {0};
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(error)))
        return -EBADMSG;
    memcpy(&error, NLMSG_DATA(message), sizeof(error));
    return error.error;
}

int netlink_ask(struct netlink_request *r)
{
    int fd = open_socket();
    if (fd < 0)
        return fd;
    r->header.nlmsg_flags |= NLM_F_ACK;
    int result = send_request(fd, &r->header);
    union {
        struct nlmsghdr header;
        char room[4096];
    } answer;
    if (result == 0) {
        ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
        if (n < (ssize_t) sizeof(answer.header))
            result = n < 0 ? -errno : -EBADMSG;
        else
            result = answer.header.nlmsg_type == NLMSG_ERROR ? error_of(&answer.header) : -EBADMSG;
    }
    (void) close(fd);
    return result;
}

/* 1: there is more; 0: done; negative errno. */
static int take_answers(const char *p, size_t n,
                        void (*on_message)(void *arg, const struct nlmsghdr *message), void *arg)
{
    const struct nlmsghdr *message = (const struct nlmsghdr *) (const void *) p;
    for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
        if (message->nlmsg_type == NLMSG_DONE)
            return 0;
        if (message->nlmsg_type == NLMSG_ERROR)
            return error_of(message);
        on_message(arg, message);
    }
    return 1;
}

int netlink_dump(unsigned type, unsigned family,
                 void (*on_message)(void *arg, const struct nlmsghdr *message), void *arg)
{
    int fd = open_socket();
    if (fd < 0)
        return fd;
    struct netlink_request r;
    /* Each of the three bodies begins with its family. */
    union {
        struct ifinfomsg link;
        struct rtmsg route;
    } body = {.link.ifi_family = (unsigned char) family};
    netlink_begin(&r, type, NLM_F_DUMP, &body, sizeof(body));
    int result = send_request(fd, &r.header);
    char *answer = mem_alloc(ANSWER_BYTES);
    if (result == 0)
        do {
            ssize_t n = recv(fd, answer, ANSWER_BYTES, 0);
            result = n < 0 ? (errno == EINTR ? 1 : -errno)
                           : take_answers(answer, (size_t) n, on_message, arg);
        } while (result > 0);
    mem_free(answer);
    (void) close(fd);
    return result;
}

static void collect(const struct rtattr *at, size_t n, struct netlink_attributes *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (; RTA_OK(at, n); at = RTA_NEXT(at, n)) {
        unsigned type = at->rta_type & NLA_TYPE_MASK;
        if (type < NETLINK_MAX_ATTRIBUTES)
            ret->of[type] = at;
    }
}

void netlink_attributes(const struct nlmsghdr *message, size_t body_bytes,
                        struct netlink_attributes *ret)
{
    size_t begin = NLMSG_SPACE(body_bytes);
    const char *p = (const char *) message;
    size_t n = message->nlmsg_len > begin ? message->nlmsg_len - begin : 0;
    collect((const struct rtattr *) (const void *) (p + begin), n, ret);
}

void netlink_nested(const struct rtattr *within, struct netlink_attributes *ret)
{
    if (within)
        collect(RTA_DATA(within), RTA_PAYLOAD(within), ret);
    else
        memset(ret, 0, sizeof(*ret));
}

uint32_t netlink_u32(const struct rtattr *attribute, uint32_t or_else)
{
    uint32_t value = or_else;
    if (attribute && RTA_PAYLOAD(attribute) >= sizeof(value))
        memcpy(&value, RTA_DATA(attribute), sizeof(value));
    return value;
}
