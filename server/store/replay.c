/* SPDX-License-Identifier: Apache-2.0 */
#include "store/replay.h"

#include <errno.h>
#include <inttypes.h>

#include "store/disk.h"

/* Up to the floor rows may be missing, since those nobody needs are deleted; after it each one
 * counts. */
static const char *order_fault(const struct replay *rp, const struct row *row)
{
    int64_t last = rp->ix->revision;
    if (row->revision <= last)
        return "is out of order";
    if (row->revision > rp->floor && row->revision != MAX(last, rp->floor) + 1)
        return "follows a gap";
    return NULL;
}

/* Below the floor what a row changed may have been deleted already: superseded rows go first. */
static const char *sequence_fault(const struct replay *rp, const struct store_event *event)
{
    if (event->type == STORE_ADDED && event->previous)
        return "creates what exists";
    if (event->type != STORE_ADDED && !event->previous && event->revision > rp->floor)
        return "changes what does not exist";
    return NULL;
}

static int fault(const struct replay *rp, const struct row *row, const char *what, char **ret_error)
{
    *ret_error =
        disk_damage(rp->path, "the file is damaged (revision %" PRId64 " %s)", row->revision, what);
    return -EBADMSG;
}

static int parse(const struct replay *rp, const struct row *row, struct object **ret_object,
                 char **ret_error)
{
    struct object_head head = {0};
    if (rp->parse_head && rp->parse_head(rp->ctx, row->key, row->text, &head) < 0)
        return fault(rp, row, "holds no readable object", ret_error);
    head.revision_at = (uint32_t) row->revision_at;
    *ret_object = object_new(row->text, &head);
    object_set_revision(*ret_object, row->revision);
    return 0;
}

int replay_row(struct replay *rp, const struct row *row, char **ret_error)
{
    const char *what = row_fault(row);
    if (!what)
        what = order_fault(rp, row);
    if (what)
        return fault(rp, row, what, ret_error);

    struct change change = {.type = (enum store_event_type) row->type, .key = row->key};
    int r = parse(rp, row, &change.object, ret_error);
    if (r < 0)
        return r;
    struct store_event *event = NULL;
    index_apply(rp->ix, &change, 1, rp->time_us, &event);
    what = sequence_fault(rp, event);
    if (what)
        return fault(rp, row, what, ret_error);
    if (row->revision <= rp->floor)
        sweep_events(rp->sweep, index_trim(rp->ix, rp->floor, SIZE_MAX));
    return 0;
}

void replay_finish(struct replay *rp)
{
    rp->ix->revision = MAX(rp->ix->revision, rp->floor);
    sweep_events(rp->sweep, index_trim(rp->ix, rp->floor, SIZE_MAX));
}
