/* SPDX-License-Identifier: Apache-2.0 */
/* What gzip files may take on disk. What was sent goes first, then what the controller refused,
 * then the oldest of what is yet to be sent: that of applications, and the device's last. */
#include <sys/statvfs.h>

#include "base/log.h"
#include "loguploader/collector_internal.h"

/* That files go unsent is said so often. */
#define SAY_AGAIN_US ((int64_t) 3600 * 1000000)
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

static size_t remove_from(struct collector *c, enum log_directory d)
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
    return gone.n_files;
}

static void say_lost(struct collector *c, size_t n_files)
{
    const int64_t now_us = c->node->clock->monotonic_us(c->node->clock);
    if (c->lost_us && now_us - c->lost_us < SAY_AGAIN_US)
        return;
    c->lost_us = now_us;
    log_warning("log files that were not sent are removed to keep the quota",
                LOG_TEXT("directory", c->root), LOG_INT("n", (int64_t) n_files),
                LOG_INT("n_total", (int64_t) c->counts.n_removed));
}

static void make_room(struct collector *c)
{
    size_t n_lost = 0;
    collector_quota_measure(c);
    if (is_over(c))
        (void) remove_from(c, LOG_KEEP_SENT);
    if (is_over(c))
        (void) remove_from(c, LOG_FAILED);
    if (is_over(c))
        n_lost += remove_from(c, LOG_APP_UPLOAD);
    if (is_over(c))
        n_lost += remove_from(c, LOG_DEV_UPLOAD);
    if (n_lost)
        say_lost(c, n_lost);
    collector_metrics_changed(c);
}

void collector_quota_check(struct collector *c, uint64_t n_bytes, size_t n_files)
{
    c->counts.disk_bytes += n_bytes;
    c->disk_files += n_files;
    /* What the uploader has removed since is not known here: look before anything goes. */
    if (is_over(c))
        make_room(c);
}
