/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections each address has. IPv6 addresses count by their /64, which is one machine's
 * to choose from. As large as there are addresses connected; used by every loop. */
#pragma once

#include <sys/socket.h>

#include "base/str.h"

struct address_counts;

/* By a keyed hash, so that nobody can look for another address of the same key. */
uint64_t address_key(const struct sockaddr_storage *a);

struct address_counts *address_counts_new(void);
void address_counts_free(struct address_counts *c);
/* One more, unless there are `limit` already. */
bool address_counts_add(struct address_counts *c, uint64_t key, size_t limit);
/* One less; it was added. */
void address_counts_remove(struct address_counts *c, uint64_t key);
