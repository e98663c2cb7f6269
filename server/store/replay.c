/* SPDX-License-Identifier: Apache-2.0 */
#include "store/replay.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/disk.h"
#include "store/reseal.h"
#include "store/seal.h"

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

/* Not damage: the file is as it was written. */
static int closed(const struct replay *rp, const struct row *row, int r, char *why,
                  char **ret_error)
{
    struct buf b = {0};
    buf_printf(&b, "%s: cannot read %.*s (revision %" PRId64 "): %s", rp->path, STR_ARG(row->key),
               row->revision, why ? why : log_errno_text(r));
    mem_free(why);
    *ret_error = buf_take(&b);
    return r;
}

static int reveal(struct replay *rp, const struct row *row, struct row *ret_plain, char **ret_error)
{
    /* Stands for an object that nobody will look at. */
    static const struct str hidden = {"\"\"", 2};
    char *why = NULL;
    if (!row_is_sealed(row) || rp->leaves_sealed) {
        *ret_plain = *row;
        if (row_is_sealed(row))
            ret_plain->text = hidden, ret_plain->revision_at = 1;
        return 0;
    }
    if (!rp->cipher)
        return closed(rp, row, -ENOKEY, mem_strdup("it is sealed, and nothing is given to open it"),
                      ret_error);
    int r = open_row(rp->cipher, row, &rp->room, ret_plain, &why);
    if (r < 0)
        return closed(rp, row, r, why, ret_error);
    const char *what = row_text_fault(ret_plain);
    return what ? fault(rp, row, what, ret_error) : 0;
}

int replay_row(struct replay *rp, const struct row *row, char **ret_error)
{
    const char *what = row_fault(row);
    if (!what)
        what = order_fault(rp, row);
    if (what)
        return fault(rp, row, what, ret_error);

    struct row plain = {0};
    struct change change = {.type = (enum store_event_type) row->type, .key = row->key};
    int r = reveal(rp, row, &plain, ret_error);
    if (r == 0)
        r = parse(rp, &plain, &change.object, ret_error);
    if (r < 0)
        return r;
    if (rp->reseal)
        reseal_note(rp->reseal, row);
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

void replay_done(struct replay *rp)
{
    buf_done(&rp->room);
}
