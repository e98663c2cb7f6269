/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the kernel's rtnetlink: the kernel answers within the call that asks. */
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/str.h"

#define NETLINK_MAX_REQUEST_BYTES 512
/* Of one attribute type; those beyond are not looked at. */
#define NETLINK_MAX_ATTRIBUTES 64

/* A request that is being built. */
struct netlink_request {
    union {
        struct nlmsghdr header;
        char room[NETLINK_MAX_REQUEST_BYTES];
    };
};

/* body (a struct ifinfomsg, ifaddrmsg, rtmsg) is copied. */
void netlink_begin(struct netlink_request *r, unsigned type, unsigned flags, const void *body,
                   size_t body_bytes);
void netlink_add(struct netlink_request *r, unsigned attribute, const void *p, size_t n);
void netlink_add_u32(struct netlink_request *r, unsigned attribute, uint32_t value);
/* What is added until its end is within this one. */
size_t netlink_nest(struct netlink_request *r, unsigned attribute);
void netlink_nest_end(struct netlink_request *r, size_t nest);
/* Asks and waits for the kernel's word: 0 or its negative errno. */
int netlink_ask(struct netlink_request *r);
/* Calls on_message for each answer to a dump; family AF_UNSPEC: all. */
int netlink_dump(unsigned type, unsigned family,
                 void (*on_message)(void *arg, const struct nlmsghdr *message), void *arg);

/* The attributes behind the body, by type; NULL: absent. */
struct netlink_attributes {
    const struct rtattr *of[NETLINK_MAX_ATTRIBUTES];
};
void netlink_attributes(const struct nlmsghdr *message, size_t body_bytes,
                        struct netlink_attributes *ret);
/* Those within one. */
void netlink_nested(const struct rtattr *within, struct netlink_attributes *ret);
uint32_t netlink_u32(const struct rtattr *attribute, uint32_t or_else);
