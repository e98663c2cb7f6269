/* SPDX-License-Identifier: Apache-2.0 */
/* Between JSON values and stored objects. A stored text always begins
 * `{"apiVersion":"..","kind":"..","metadata":{`, with metadata in a fixed order, so that its head
 * can be read and its version rewritten without parsing the rest. */
#pragma once

#include "api/kind.h"
#include "store/object.h"

/* kind is the storage version. metadata.resourceVersion of the value is ignored: the store writes
 * it. -E2BIG: larger than OBJECT_MAX_BYTES. */
int codec_encode(const struct kind *kind, const struct json *object, struct object **ret_object);
/* Reads the head of a text whose resourceVersion the store has yet to write. -EINVAL when it is not
 * one of ours. */
int codec_parse_head(struct str text, struct object_head *ret_head);
/* For store_options.parse_head. */
int codec_parse_stored(void *ctx, struct str key, struct str text, struct object_head *ret_head);
/* The last state of an object that is going away, ready to be given the revision of its removal. */
struct object *codec_farewell(const struct object *o);

/* The object in the given kind's version and form, its parts shared with the text where they can
 * be. */
/* The text of an object without its managedFields: in the arena, or the text itself. */
struct str codec_without_managed(struct arena *a, struct str text);
/* What codec_decode() gives of an object that was encoded from this value and stored as this
 * revision, without reading its text. NULL: only the text tells. The value is a copy. */
struct json *codec_stored_value(struct arena *a, const struct kind *kind, const struct json *object,
                                int64_t revision);
struct json *codec_decode(struct arena *a, const struct object *o, const struct kind *kind);

/* At most this many slices make one object. */
#define CODEC_MAX_SLICES 2
/* Appends the text of the object in the kind's version; as_item leaves apiVersion and kind out as
 * lists of native kinds do. Returns how many slices were written; each carries a reference. */
size_t codec_slices(struct object *o, const struct kind *kind, bool as_item,
                    struct slice *ret_slices);
