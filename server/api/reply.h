/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in the form a client asked for: plain, Table, PartialObjectMetadata; JSON or YAML; one, a
 * list, or a watch event. */
#pragma once

#include "api/call.h"
#include "api/table.h"

struct reply_form {
    const struct kind *kind;
    struct media_choice media;
    enum table_include include; /* of tables */
    int64_t now_us;
    const struct table_live *live;
};

/* includeObject of the query. Fails with 400. */
int reply_form_of(struct call *c, struct reply_form *ret_form);
/* One object as text. with_columns: a table begins with its column definitions (a watch sends them
 * once). */
void reply_write(struct buf *b, const struct reply_form *f, const struct json *object,
                 bool with_columns);

struct reply_list_meta {
    int64_t revision;
    struct str continue_token; /* STR_NONE: the last page */
    int64_t n_remaining;       /* -1: not said */
};
void call_reply_list(struct call *c, const struct reply_form *f, struct object **objects, size_t n,
                     const struct reply_list_meta *meta);
