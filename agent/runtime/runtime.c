/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a runtime and what callers do with them. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "runtime/runtime_internal.h"

/* Most objects ask for a few short strings. */
#define OBJECT_ARENA_BYTES 512

struct runtime *runtime_new(const struct runtime_machine *functions, void *machine,
                            const struct clock *clock, const struct runtime_events *events)
{
    struct runtime *r = NEW(struct runtime);
    r->functions = functions;
    r->machine = machine;
    r->clock = clock;
    r->events = *events;
    return r;
}

const char *runtime_name(const struct runtime *r)
{
    return r->functions->name;
}

/* An id becomes the name of a directory, of a cgroup and of a container. */
bool runtime_id_is_valid(struct str id)
{
    if (!id.n || id.n > RUNTIME_MAX_ID_BYTES || id.p[0] == '-' || id.p[0] == '.')
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_'))
            return false;
    }
    return true;
}

struct runtime_object *runtime_find(const struct runtime *r, enum runtime_kind kind, struct str id)
{
    return map_get(&r->objects[kind], id);
}

static void object_free(struct runtime_object *o)
{
    o->runtime->functions->forget(o->runtime->machine, o);
    mem_free(o->error);
    arena_free(o->arena);
    mem_free(o);
}

/* ---- asking -------------------------------------------------------------------------------- */

static struct runtime_object *object_new(struct runtime *r, enum runtime_kind kind, struct str id)
{
    struct runtime_object *o = NEW(struct runtime_object);
    *o = (struct runtime_object){
        .runtime = r,
        .kind = kind,
        .state = RUNTIME_INITIAL,
        .exit_code = RUNTIME_EXIT_UNKNOWN,
        .arena = arena_new_with(OBJECT_ARENA_BYTES),
    };
    o->id = arena_str(o->arena, id);
    return o;
}

struct runtime_object *runtime_found(struct runtime *r, enum runtime_kind kind, struct str id,
                                     enum runtime_state state)
{
    if (!runtime_id_is_valid(id) || runtime_find(r, kind, id))
        return NULL;
    struct runtime_object *o = object_new(r, kind, id);
    o->state = state;
    (void) map_put(&r->objects[kind], o->id, o);
    return o;
}

/* What an object asks for, in memory of its own until it is taken over. */
struct asked {
    struct arena *arena;
    enum runtime_kind kind;
    uint64_t hash;
    union {
        struct runtime_content content;
        struct runtime_volume volume;
        struct runtime_instance instance;
    };
};

static struct str asked_id(const struct asked *asked)
{
    switch (asked->kind) {
    case RUNTIME_CONTENT:
        return asked->content.id;
    case RUNTIME_VOLUME:
        return asked->volume.id;
    default:
        return asked->instance.id;
    }
}

static int copy_asked(struct asked *asked)
{
    switch (asked->kind) {
    case RUNTIME_CONTENT:
        return runtime_copy_content(asked->arena, &asked->content, &asked->hash);
    case RUNTIME_VOLUME:
        return runtime_copy_volume(asked->arena, &asked->volume, &asked->hash);
    default:
        return runtime_copy_instance(asked->arena, &asked->instance, &asked->hash);
    }
}

static void take_over(struct runtime_object *o, struct asked *asked)
{
    struct arena *old = o->arena;
    o->arena = asked->arena;
    o->asked_hash = asked->hash;
    o->id = asked_id(asked);
    if (o->kind == RUNTIME_CONTENT)
        o->content = asked->content;
    else if (o->kind == RUNTIME_VOLUME)
        o->volume = asked->volume;
    else
        o->instance = asked->instance;
    /* The map's key moves with the object's memory. */
    (void) map_put(&o->runtime->objects[o->kind], o->id, o);
    arena_free(old);
}

static bool may_change(const struct runtime_object *o)
{
    if (o->is_busy)
        return false;
    return o->state == RUNTIME_INITIAL || o->state == RUNTIME_INSTALLED ||
           o->state == RUNTIME_HALTED || o->error;
}

/* Finds or makes the object; what failed or has ended may be asked for anew. */
static int ask(struct runtime *r, struct asked *asked, struct runtime_object **ret)
{
    struct runtime_object *o = runtime_find(r, asked->kind, asked_id(asked));
    bool is_new = !o;
    if (o && o->wants_purge)
        return -EBUSY;
    /* One that was found when the runtime began learns only now what it was asked to be. */
    bool is_same = o && o->asked_hash == asked->hash;
    if (o && !is_same && o->asked_hash && !may_change(o))
        return -ESTALE;
    if (is_new)
        o = object_new(r, asked->kind, asked_id(asked));
    if (!is_same) {
        take_over(o, asked);
        asked->arena = NULL;
    }
    if (is_new)
        runtime_report(o);
    *ret = o;
    return 0;
}

static void retry(struct runtime_object *o)
{
    if (o->is_busy || !o->error)
        return;
    mem_free(TAKE(o->error));
    if (o->kind != RUNTIME_INSTANCE && o->state != RUNTIME_INITIAL)
        runtime_move(o, RUNTIME_INITIAL);
}

/* What all three kinds have in common: a copy of the caller's wish, taken over unless it is the one
 * that is known. */
static int request(struct runtime *r, struct asked asked, struct runtime_object **ret)
{
    if (!runtime_id_is_valid(asked_id(&asked)))
        return -EINVAL;
    ARENA_AUTO unused = NULL;
    asked.arena = arena_new_with(OBJECT_ARENA_BYTES);
    int e = copy_asked(&asked);
    if (!e)
        e = ask(r, &asked, ret);
    unused = asked.arena;
    return e;
}

int runtime_prepare(struct runtime *r, const struct runtime_content *c)
{
    struct runtime_object *o = NULL;
    int e = request(r, (struct asked){.kind = RUNTIME_CONTENT, .content = *c}, &o);
    if (e < 0)
        return e;
    retry(o);
    runtime_settle(o);
    return 0;
}

int runtime_create(struct runtime *r, const struct runtime_volume *v)
{
    struct runtime_object *o = NULL;
    int e = request(r, (struct asked){.kind = RUNTIME_VOLUME, .volume = *v}, &o);
    if (e < 0)
        return e;
    retry(o);
    runtime_settle(o);
    return 0;
}

int runtime_start(struct runtime *r, const struct runtime_instance *i)
{
    struct runtime_object *o = NULL;
    int e = request(r, (struct asked){.kind = RUNTIME_INSTANCE, .instance = *i}, &o);
    if (e < 0)
        return e;
    o->wants_run = true;
    if (o->state != RUNTIME_HALTING)
        o->wants_stop = o->wants_kill = false;
    retry(o);
    runtime_settle(o);
    return 0;
}

int runtime_stop(struct runtime *r, struct str id, bool at_once)
{
    struct runtime_object *o = runtime_find(r, RUNTIME_INSTANCE, id);
    if (!o)
        return -ENOENT;
    bool was_killed = o->wants_kill;
    o->wants_run = false;
    o->wants_stop = true;
    o->wants_kill |= at_once;
    if (o->state == RUNTIME_HALTING && o->wants_kill && !was_killed && !o->is_busy)
        r->functions->halt(r->machine, o, /* at_once= */ true);
    runtime_settle(o);
    return 0;
}

/* ---- purging ------------------------------------------------------------------------------- */

static bool instance_lives(const struct runtime_object *i)
{
    return i->state == RUNTIME_BOOTING || i->state == RUNTIME_RUNNING ||
           i->state == RUNTIME_HALTING;
}

static bool instance_uses(const struct runtime_object *i, struct str volume)
{
    if (str_eq(i->instance.root_volume, volume))
        return true;
    for (size_t k = 0; k < i->instance.n_mounts; k++)
        if (str_eq(i->instance.mounts[k].volume, volume))
            return true;
    return false;
}

static bool is_used(const struct runtime_object *o)
{
    const struct runtime *r = o->runtime;
    struct map_entry e;
    size_t at = 0;
    while (o->kind == RUNTIME_VOLUME && map_next(&r->objects[RUNTIME_INSTANCE], &at, &e))
        if (instance_lives(e.value) && instance_uses(e.value, o->id))
            return true;
    while (o->kind == RUNTIME_CONTENT && map_next(&r->objects[RUNTIME_VOLUME], &at, &e)) {
        const struct runtime_object *v = e.value;
        if (v->is_busy && str_eq(v->volume.content, o->id))
            return true;
    }
    return false;
}

int runtime_purge(struct runtime *r, enum runtime_kind kind, struct str id)
{
    struct runtime_object *o = runtime_find(r, kind, id);
    if (!o)
        return -ENOENT;
    if (is_used(o))
        return -EBUSY;
    o->wants_purge = true;
    o->wants_run = false;
    o->wants_stop = o->wants_kill = true;
    if (o->state == RUNTIME_HALTING && !o->is_busy)
        r->functions->halt(r->machine, o, /* at_once= */ true);
    if (o->is_busy && o->state != RUNTIME_INVALID && r->functions->cancel)
        r->functions->cancel(r->machine, o);
    runtime_settle(o);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void status_of(const struct runtime_object *o, struct runtime_status *ret)
{
    *ret = (struct runtime_status){
        .kind = o->kind,
        .id = o->id,
        .state = o->state,
        .progress_percent = o->progress_percent,
        .error = str_of(o->error),
        .exit_code = o->exit_code,
        .started_wall_us = o->started_wall_us,
        .is_adopted = o->is_adopted,
    };
}

int runtime_status(const struct runtime *r, enum runtime_kind kind, struct str id,
                   struct runtime_status *ret)
{
    const struct runtime_object *o = runtime_find(r, kind, id);
    if (!o)
        return -ENOENT;
    status_of(o, ret);
    return 0;
}

void runtime_each(const struct runtime *r, void (*fn)(void *arg, const struct runtime_status *s),
                  void *arg)
{
    for (int kind = 0; kind < RUNTIME_KINDS; kind++) {
        struct map_entry e;
        for (size_t at = 0; map_next(&r->objects[kind], &at, &e);) {
            struct runtime_status s;
            status_of(e.value, &s);
            fn(arg, &s);
        }
    }
}

int runtime_metrics(struct runtime *r, struct str id, struct runtime_metrics *ret)
{
    struct runtime_object *o = runtime_find(r, RUNTIME_INSTANCE, id);
    if (!o)
        return -ENOENT;
    if (o->state != RUNTIME_RUNNING && o->state != RUNTIME_HALTING)
        return -ESRCH;
    return r->functions->metrics(r->machine, o, ret);
}

struct str runtime_volume_path(const struct runtime *r, struct arena *a, struct str id)
{
    return r->functions->volume_path ? r->functions->volume_path(r->machine, a, id) : STR_NONE;
}

bool runtime_volume_is_disk(const struct runtime *r, struct str id)
{
    if (r->functions->volume_is_disk)
        return r->functions->volume_is_disk(r->machine, id);
    const struct runtime_object *v = runtime_find(r, RUNTIME_VOLUME, id);
    const struct runtime_object *c =
        v && v->volume.content.p ? runtime_find(r, RUNTIME_CONTENT, v->volume.content) : NULL;
    return c && c->content.format != RUNTIME_OCI;
}

void runtime_report(struct runtime_object *o)
{
    struct runtime_status s;
    status_of(o, &s);
    if (o->runtime->events.on_change)
        o->runtime->events.on_change(o->runtime->events.arg, &s);
}

void runtime_log(struct runtime_object *o, enum runtime_stream stream, struct str line)
{
    const struct runtime *r = o->runtime;
    if (r->events.on_log)
        r->events.on_log(r->events.arg, o->id, stream, line, r->clock->wall_us(r->clock));
}

void runtime_forget(struct runtime_object *o)
{
    (void) map_remove(&o->runtime->objects[o->kind], o->id);
    object_free(o);
}

void runtime_free(struct runtime *r)
{
    if (!r)
        return;
    for (int kind = 0; kind < RUNTIME_KINDS; kind++) {
        struct map_entry e;
        for (size_t at = 0; map_next(&r->objects[kind], &at, &e);)
            object_free(e.value);
        map_done(&r->objects[kind]);
    }
    r->functions->free(r->machine);
    mem_free(r);
}
