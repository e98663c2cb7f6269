/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/network_links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEVICES "/proc/self/net/dev"

void links_each(void (*fn)(void *arg, const char *name, const struct network_counters *c),
                void *arg)
{
    FILE *f = fopen(DEVICES, "re");
    char line[512], name[64];
    while (f && fgets(line, sizeof(line), f)) {
        struct network_counters c;
        if (sscanf(line,
                   " %63[^:]: %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                   name, &c.rx_bytes, &c.rx_packets, &c.rx_errors, &c.rx_drops, &c.tx_bytes,
                   &c.tx_packets, &c.tx_errors, &c.tx_drops) == 9)
            fn(arg, name, &c);
    }
    if (f)
        (void) fclose(f);
}

struct search {
    const char *name;
    struct network_counters *found;
    bool is_found;
};

static void compare(void *arg, const char *name, const struct network_counters *c)
{
    struct search *s = arg;
    if (strcmp(s->name, name) != 0)
        return;
    *s->found = *c;
    s->is_found = true;
}

int links_counters(const char *interface, struct network_counters *ret)
{
    struct search s = {interface, ret, false};
    links_each(compare, &s);
    return s.is_found ? 0 : -ENOENT;
}
