/* SPDX-License-Identifier: Apache-2.0 */
/* Archives for later diagnosis: what happened to a request, and the state of the network at that
 * time. `<directory>/<topic>-<YYYY-MM-DDThh-mm-ss>.tgz`, of each topic one in an interval and only
 * so many in all. Which files are in it is the caller's affair. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"

/* Of one file; the rest is cut off. */
#define UPLINK_NETDUMP_MAX_FILE_BYTES ((size_t) 1024 * 1024)
#define UPLINK_NETDUMP_MAX_NAME_BYTES 99 /* within the archive */

struct uplink_netdump {
    const char *directory; /* made when it is not there */
    int64_t interval_s;
    size_t max_count; /* of a topic; the oldest go */
};
struct uplink_netdump_file {
    const char *name; /* "eve/dns.json" */
    struct str content;
};

/* The names of files tell when the last was made, also by an earlier life. */
bool uplink_netdump_is_due(const struct uplink_netdump *d, const char *topic, int64_t wall_us);
/* Whole or not at all, readable by all; all files are below a directory of the archive's name.
 * Negative errno; -ENAMETOOLONG. */
int uplink_netdump_write(const struct uplink_netdump *d, const char *topic, int64_t wall_us,
                         const struct uplink_netdump_file *files, size_t n_files);
