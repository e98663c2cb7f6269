/* SPDX-License-Identifier: Apache-2.0 */
#include "store/object.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "store/cells.h"

/* AddressSanitizer sees what happens on the heap. */
#if defined(__SANITIZE_ADDRESS__)
#define USES_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define USES_HEAP 1
#endif
#endif
#ifndef USES_HEAP
#define USES_HEAP 0
#endif

static void object_free(struct bytes *b)
{
    struct object *o = CONTAINER_OF(b, struct object, bytes);
    mem_free(o->head.labels);
    if (USES_HEAP)
        mem_free(o);
    else
        cell_free(o, o->n_allocated);
}

struct object *object_new(struct str text, const struct object_head *head)
{
    assert(text.n <= UINT32_MAX - OBJECT_REVISION_ROOM - sizeof(struct object));
    assert(head->revision_at >= 1 && head->revision_at < text.n);
    assert(text.p[head->revision_at - 1] == '"' && text.p[head->revision_at] == '"');

    size_t n_allocated = sizeof(struct object) + text.n + OBJECT_REVISION_ROOM;
    struct object *o = USES_HEAP ? mem_alloc(n_allocated) : cell_alloc(n_allocated);
    atomic_init(&o->bytes.refs, 1);
    o->bytes.free = object_free;
    o->revision = 0;
    o->head = *head;
    o->n = (uint32_t) text.n;
    o->n_allocated = (uint32_t) n_allocated;
    memcpy(o->text, text.p, text.n);
    return o;
}

struct object *object_ref(struct object *o)
{
    if (o)
        (void) bytes_ref(&o->bytes);
    return o;
}

void object_unref(struct object *o)
{
    if (o)
        bytes_unref(&o->bytes);
}

static void shift(struct span *s, uint32_t from, uint32_t by)
{
    if (s->length && s->offset >= from)
        s->offset += by;
}

void object_set_revision(struct object *o, int64_t revision)
{
    assert(o->revision == 0 && revision > 0);
    char digits[OBJECT_REVISION_ROOM + 1];
    uint32_t n = (uint32_t) snprintf(digits, sizeof(digits), "%" PRId64, revision);
    struct object_head *h = &o->head;
    char *at = o->text + h->revision_at;

    memmove(at + n, at, o->n - h->revision_at);
    memcpy(at, digits, n);
    o->n += n;
    o->revision = revision;
    shift(&h->name, h->revision_at, n);
    shift(&h->namespace, h->revision_at, n);
    shift(&h->uid, h->revision_at, n);
    if (h->body_at > h->revision_at)
        h->body_at += n;
    for (uint16_t i = 0; i < h->n_labels; i++) {
        shift(&h->labels[i].key, h->revision_at, n);
        shift(&h->labels[i].value, h->revision_at, n);
    }
}
