/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns whom, as the events tell it: only objects that own, are owned or wait for their
 * dependents to go are in here. Functions may be called from any thread. It remembers; what to do
 * about it is gc.c's affair. */
#pragma once

#include "base/arena.h"

struct gc_graph;
struct kube_event;

#define GC_FINALIZER_FOREGROUND "foregroundDeletion"
#define GC_FINALIZER_ORPHAN "orphan"

/* wake(ctx, uid) is called, under the graph's lock, for every object that should be looked at. */
struct gc_graph *gc_graph_new(void (*wake)(void *ctx, struct str uid), void *ctx);
void gc_graph_free(struct gc_graph *g);

void gc_graph_apply(struct gc_graph *g, const struct kube_event *e);

/* Strings live in the arena they were asked with. */
struct gc_object {
    struct str uid, collection, namespace, name;
    bool is_deleting;
    bool is_collecting; /* deleting, and waiting for its dependents */
    bool blocks;        /* of a dependent: its owner waits for it */
};

/* False when no event has told of it, or one of its end. */
bool gc_graph_find(struct gc_graph *g, struct arena *a, struct str uid, struct gc_object *ret);
/* Those that name it as an owner; the array is in the arena. */
size_t gc_graph_dependents(struct gc_graph *g, struct arena *a, struct str uid,
                           struct gc_object **ret);

/* Whether the first waits for the second to go, be it through others that wait in turn. */
bool gc_graph_waits_for(struct gc_graph *g, struct str uid, struct str other);

enum gc_presence {
    GC_UNKNOWN, /* ask */
    GC_PRESENT,
    GC_COLLECTING, /* present, and waiting for its dependents to go */
    GC_GONE,       /* for good: uids never return */
};
/* Of the owner with that uid; somewhere else than there it does not count as present. */
enum gc_presence gc_graph_presence(struct gc_graph *g, const struct gc_object *owner);

/* Findings by asking the API, which events may not have brought yet. */
void gc_graph_saw(struct gc_graph *g, const struct gc_object *owner);
void gc_graph_gone(struct gc_graph *g, struct str uid);
