/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads the gzip files that newlogd, or the collector, puts into <persist>/newlog. */
#pragma once

#include "node/node.h"

struct loguploader;
int loguploader_new(struct node *n, struct loguploader **ret);
/* NULL allowed. */
void loguploader_free(struct loguploader *u);

struct loguploader_counts {
    uint64_t files_sent, bytes_sent, failures;
    size_t files_waiting;
};
struct loguploader_counts loguploader_counts(const struct loguploader *u);
