/* SPDX-License-Identifier: Apache-2.0 */
/* What gzip files may take on disk. What was sent goes first, then what the controller refused;
 * what is yet to be sent stays, and new lines are refused instead. */
#include <sys/statvfs.h>

#include "base/log.h"
#include "loguploader/collector_internal.h"

#define LOOK_AGAIN_US ((int64_t) 10 * 1000000)
/* So much more goes at a time, so that not every file costs a look at the disk. */
#define SPARE_PART 64

/* As asked for, and never more than a tenth of the disk. */
static uint64_t max_bytes(const struct collector *c)
{
    uint64_t max =
        (uint64_t) items_int(c->node->items, "newlog.gzipfiles.ondisk.maxmegabytes") * 1000000;
    struct statvfs disk;
    if (!c->node->is_simulated && statvfs(c->root, &disk) == 0)
        max = MIN(max, (uint64_t) disk.f_blocks * disk.f_frsize / 10);
    return max;
}

static size_t max_files(const struct collector *c)
{
    return (size_t) (max_bytes(c) / LOGFILES_TARGET_BYTES);
}

void collector_quota_measure(struct collector *c)
{
    struct logfiles_usage usage = {0}, kept = {0};
    logfiles_measure(c->root, LOG_KEEP_SENT, &kept);
    usage = kept;
    logfiles_measure(c->root, LOG_DEV_UPLOAD, &usage);
    logfiles_measure(c->root, LOG_APP_UPLOAD, &usage);
    logfiles_measure(c->root, LOG_FAILED, &usage);
    c->counts.disk_bytes = usage.n_bytes;
    c->counts.oldest_ms = kept.oldest_ms;
    c->disk_files = usage.n_files;
    /* The clock may have been set back: no name is given twice. */
    c->last_ms = MAX(c->last_ms, usage.newest_ms);
}

static bool is_over(const struct collector *c)
{
    return c->counts.disk_bytes > max_bytes(c) || c->disk_files > max_files(c);
}

static void remove_from(struct collector *c, enum log_directory d)
{
    uint64_t keep_bytes = max_bytes(c) - max_bytes(c) / SPARE_PART;
    size_t keep_files = max_files(c) - max_files(c) / SPARE_PART;
    uint64_t n_bytes = c->counts.disk_bytes > keep_bytes ? c->counts.disk_bytes - keep_bytes : 0;
    size_t n_files = c->disk_files > keep_files ? c->disk_files - keep_files : 0;
    struct logfiles_usage gone = logfiles_remove_oldest(c->root, d, n_bytes, n_files);
    c->counts.disk_bytes -= MIN(gone.n_bytes, c->counts.disk_bytes);
    c->disk_files -= MIN(gone.n_files, c->disk_files);
    if (d != LOG_KEEP_SENT)
        c->counts.n_removed += gone.n_files;
    else if (gone.n_files)
        c->counts.oldest_ms = gone.newest_ms;
}

static void make_room(struct collector *c)
{
    collector_quota_measure(c);
    if (is_over(c))
        remove_from(c, LOG_KEEP_SENT);
    if (is_over(c))
        remove_from(c, LOG_FAILED);
    bool was_full = c->is_full;
    c->is_full = is_over(c);
    c->looked_us = c->node->clock->monotonic_us(c->node->clock);
    if (c->is_full && !was_full)
        log_warning("log files that wait to be sent fill their quota; refusing further lines",
                    LOG_TEXT("directory", c->root),
                    LOG_INT("bytes", (int64_t) c->counts.disk_bytes));
    else if (was_full && !c->is_full)
        log_info("there is room for log lines again", LOG_TEXT("directory", c->root));
}

void collector_quota_check(struct collector *c, uint64_t n_bytes, size_t n_files)
{
    c->counts.disk_bytes += n_bytes;
    c->disk_files += n_files;
    /* What the uploader has removed since is not known here: look before anything goes. */
    if (is_over(c))
        make_room(c);
}

bool collector_quota_has_room(struct collector *c)
{
    int64_t now = c->node->clock->monotonic_us(c->node->clock);
    if (c->is_full && now - c->looked_us >= LOOK_AGAIN_US)
        make_room(c);
    return !c->is_full;
}
