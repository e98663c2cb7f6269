/* SPDX-License-Identifier: Apache-2.0 */
/* From rows of the log to the index: what a start does, and what shows that a copy is whole.
 * Believes nothing it reads. */
#pragma once

#include "store/row.h"
#include "store/sweep.h"

struct reseal;

struct replay {
    struct index *ix; /* empty, with its floor at 1 */
    struct sweep *sweep;
    const char *path; /* for complaints */
    int64_t floor;    /* as the file has it */
    int64_t time_us;  /* when history read from the file counts as made */
    /* As in struct store_options; NULL leaves the heads empty. */
    int (*parse_head)(void *ctx, struct str key, struct str text, struct object_head *ret_head);
    void *ctx;
    const struct store_cipher *cipher; /* NULL: a sealed row is refused */
    bool leaves_sealed;                /* sealed rows stay closed, and count as good */
    struct reseal *reseal;             /* gets the rows to seal again; NULL: nobody asks */
    struct buf room;                   /* the replay's */
};

/* Rows come in revision order. -EBADMSG and *ret_error when the log cannot be right; the index
 * is then good for nothing. */
int replay_row(struct replay *rp, const struct row *row, char **ret_error);
/* After the last row. */
void replay_finish(struct replay *rp);
/* In any case. */
void replay_done(struct replay *rp);
