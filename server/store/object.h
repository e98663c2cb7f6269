/* SPDX-License-Identifier: Apache-2.0 */
/* A stored object at one revision: its JSON text, immutable once committed, reference counted, with
 * the few facts that lists, watches and owners need without parsing. The store makes and keeps
 * these; what the text means is the API's affair (it fills the head). */
#pragma once

#include "base/bytes.h"

/* A place inside the text. length 0: absent. */
struct span {
    uint32_t offset;
    uint32_t length;
};

struct object_label {
    struct span key; /* raw JSON string contents; names and labels never need escapes */
    struct span value;
};

struct object_head {
    struct span name;
    struct span namespace;
    struct span uid;
    uint32_t body_at;     /* first byte behind `"apiVersion":"..","kind":"..",` */
    uint32_t revision_at; /* where the digits of metadata.resourceVersion go */
    bool is_deleting;     /* metadata.deletionTimestamp is set */
    bool has_owners;      /* metadata.ownerReferences is not empty */
    bool has_finalizers;
    uint16_t n_labels;
    struct object_label *labels; /* heap, freed with the object */
};

struct object {
    struct bytes bytes; /* the reference count; first member */
    int64_t revision;   /* 0 until committed */
    struct object_head head;
    uint32_t n;
    uint32_t n_allocated; /* bytes, this head included */
    char text[];          /* n bytes; room for OBJECT_REVISION_ROOM more until committed */
};

#define OBJECT_REVISION_ROOM 20
#define OBJECT_MAX_BYTES (1536 * 1024)

/* Copies text, in which metadata.resourceVersion is `""` with revision_at between the quotes.
 * head's spans refer to that text; head.labels is taken over (heap). One reference. */
struct object *object_new(struct str text, const struct object_head *head);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL allowed */
DEFINE_CLEANUP(struct object *, object_unref)

/* Writes the revision into the text and moves the head's spans along. Once, before anybody else
 * sees it. */
void object_set_revision(struct object *o, int64_t revision);

static inline struct str object_text(const struct object *o)
{
    return str_range(o->text, o->n);
}
static inline struct str object_span(const struct object *o, struct span s)
{
    return s.length ? str_range(o->text + s.offset, s.length) : STR_NONE;
}
/* A slice of the text that keeps the object alive. */
static inline struct slice object_slice(struct object *o, size_t from)
{
    return (struct slice){str_from(object_text(o), from), bytes_ref(&o->bytes)};
}
