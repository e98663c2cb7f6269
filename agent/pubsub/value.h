/* SPDX-License-Identifier: Apache-2.0 */
/* A value's form on the wire, as EVE's services give it: members sorted, empty arrays null, `<`,
 * `>` and `&` escaped, large fields in files of their own. */
#pragma once

#include "pubsub/pubsub.h"
#include "json/json.h"

/* The files that hold the large fields of one packet. */
struct pubsub_large {
    const char *directory;
    bool is_measured_only; /* nothing is written: for the size of the packet */
    struct buf names;      /* each with its NUL */
};

/* Appends the text for the wire. -EFBIG when a large field is too large. On failure no file is left
 * behind. */
int pubsub_value_to_wire(struct buf *b, const struct json *value, struct pubsub_large *large);
/* Removes the files of a packet that is not sent after all. */
void pubsub_large_remove(struct pubsub_large *large);
/* Removes files that no subscriber has come for in an hour. */
void pubsub_large_sweep(const char *directory, const struct clock *clock);

/* The value in a text from the wire or from a file: an object, normal, with its large fields put
 * back. Files are read from that directory alone, whatever the text says, and are gone then. A
 * field whose file is missing is absent. -EBADMSG for what is no such text. */
int pubsub_value_parse(struct arena *a, struct str text, const char *large_directory,
                       struct json **ret);
/* The normal text: equal values, equal bytes. */
void pubsub_value_text(struct buf *b, const struct json *normal);
