/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions behind a runtime. The front (runtime.c) keeps the objects, their order and
 * their states; a machine does one step of one object at a time and says when it is over. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "runtime/runtime.h"

struct runtime_object {
    struct runtime *runtime;
    enum runtime_kind kind;
    enum runtime_state state;
    struct str id;
    struct arena *arena; /* holds what was asked for */
    union {
        struct runtime_content content;
        struct runtime_volume volume;
        struct runtime_instance instance;
    };
    uint64_t asked_hash; /* of what was asked for, to tell a repetition */
    int progress_percent;
    char *error; /* heap */
    int exit_code;
    int64_t started_wall_us;
    bool is_adopted;
    bool is_busy; /* a step of the machine is under way */
    bool wants_run, wants_stop, wants_kill, wants_purge;
    void *of_machine; /* the machine's own, freed by its forget() */
};

/* Each step is asked for while none is under way on that object and ends with runtime_step_done(),
 * from the loop and not before the function has returned. */
struct runtime_machine {
    const char *name;
    /* INITIAL to DELIVERED. */
    void (*fetch)(void *machine, struct runtime_object *content);
    /* CREATING_VOLUME to CREATED_VOLUME; content is NULL for an empty one. */
    void (*create)(void *machine, struct runtime_object *volume, struct runtime_object *content);
    /* BOOTING to RUNNING. From then on runtime_exited() may come. */
    void (*boot)(void *machine, struct runtime_object *instance);
    /* No step: the end comes by runtime_exited(). Called again with at_once when patience ends. */
    void (*halt)(void *machine, struct runtime_object *instance, bool at_once);
    /* The step under way is no longer wanted and may fail early; NULL: it runs to its end. */
    void (*cancel)(void *machine, struct runtime_object *o);
    /* Removes all there is of it. */
    void (*remove)(void *machine, struct runtime_object *o);
    int (*metrics)(void *machine, struct runtime_object *instance, struct runtime_metrics *ret);
    /* Where the tree of a volume is, in the arena; NULL: nothing is on disk. */
    struct str (*volume_path)(void *machine, struct arena *a, struct str id);
    /* NULL: by the format of its content. */
    bool (*volume_is_disk)(void *machine, struct str id);
    /* The object's memory goes: so does of_machine. */
    void (*forget)(void *machine, struct runtime_object *o);
    void (*free)(void *machine);
};

struct runtime *runtime_new(const struct runtime_machine *functions, void *machine,
                            const struct clock *clock, const struct runtime_events *events);

/* Asserts that the move is one a device makes, and reports it. */
void runtime_move(struct runtime_object *o, enum runtime_state to);
void runtime_progress(struct runtime_object *o, int percent);
/* error NULL: the step succeeded. May free the object. */
void runtime_step_done(struct runtime_object *o, const char *error);
/* Of an instance that was RUNNING or HALTING. error NULL: as it was asked. May free the object. */
void runtime_exited(struct runtime_object *o, int exit_code, const char *error);
void runtime_log(struct runtime_object *o, enum runtime_stream stream, struct str line);
/* An object that exists already, as a machine finds it when it begins: no event is sent. NULL: the
 * id is none or known. */
struct runtime_object *runtime_found(struct runtime *r, enum runtime_kind kind, struct str id,
                                     enum runtime_state state);
struct runtime_object *runtime_find(const struct runtime *r, enum runtime_kind kind, struct str id);
bool runtime_id_is_valid(struct str id);
/* The state of a content that follows its own; LOADING is the last before DELIVERED. */
enum runtime_state runtime_content_next(const struct runtime_object *content);
