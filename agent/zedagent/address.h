/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and subnets of a configuration: text to bytes, and the little arithmetic that defaults
 * of a network instance need. */
#pragma once

#include "base/arena.h"

#define ADDRESS_MAX_BYTES 16

struct address {
    unsigned char bytes[ADDRESS_MAX_BYTES];
    unsigned n; /* 4 or 16; 0: none */
};
struct subnet {
    struct address base;
    unsigned bits;
};

/* As Go's net.ParseIP: an IPv4 address in IPv6 clothes is an IPv4 address. False: it is none, and
 * *ret is empty. */
bool address_parse(struct str text, struct address *ret);
/* An empty address gives "<nil>", as Go prints it. */
struct str address_text(struct arena *a, const struct address *address);
/* By bytes; of different families IPv4 comes first. */
int address_cmp(const struct address *a, const struct address *b);
/* Wraps around. */
struct address address_add(const struct address *address, int64_t delta);
/* end - start of IPv4 addresses; 0 for others, UINT32_MAX at most. */
uint32_t address_distance(const struct address *start, const struct address *end);

/* "10.1.2.3/24": the address and the subnet it is in; either output may be NULL. */
bool subnet_parse(struct str text, struct address *ret_address, struct subnet *ret_subnet);
struct str subnet_text(struct arena *a, const struct subnet *s);
bool subnet_contains(const struct subnet *s, const struct address *address);
/* With network and broadcast address; UINT32_MAX at most; 0 for a prefix of no bits. */
uint64_t subnet_count(const struct subnet *s);
