/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an object's life, the same for every machine.
 *
 *     content   INITIAL [-> RESOLVING_TAG -> RESOLVED_TAG] -> DOWNLOAD_STARTED -> DOWNLOADED
 *               -> VERIFYING -> VERIFIED -> LOADING -> DELIVERED
 *     volume    INITIAL -> CREATING_VOLUME -> CREATED_VOLUME         (waits for its content)
 *     instance  INITIAL -> INSTALLED -> BOOTING -> RUNNING -> HALTING -> HALTED   (for its volumes)
 *                                          ^ start             crash or stop |
 *                                          +---------------------------------+
 *
 * Any of them may go back to INITIAL when it is tried again, and to INVALID when it is purged. */
#include <assert.h>

#include "base/alloc.h"
#include "runtime/runtime_internal.h"

static const struct move {
    enum runtime_kind kind;
    enum runtime_state from, to;
} moves[] = {
    {RUNTIME_CONTENT, RUNTIME_INITIAL, RUNTIME_RESOLVING_TAG},
    {RUNTIME_CONTENT, RUNTIME_RESOLVING_TAG, RUNTIME_RESOLVED_TAG},
    {RUNTIME_CONTENT, RUNTIME_RESOLVED_TAG, RUNTIME_DOWNLOAD_STARTED},
    {RUNTIME_CONTENT, RUNTIME_INITIAL, RUNTIME_DOWNLOAD_STARTED},
    {RUNTIME_CONTENT, RUNTIME_DOWNLOAD_STARTED, RUNTIME_DOWNLOADED},
    {RUNTIME_CONTENT, RUNTIME_DOWNLOADED, RUNTIME_VERIFYING},
    {RUNTIME_CONTENT, RUNTIME_VERIFYING, RUNTIME_VERIFIED},
    {RUNTIME_CONTENT, RUNTIME_VERIFIED, RUNTIME_LOADING},
    {RUNTIME_CONTENT, RUNTIME_LOADING, RUNTIME_DELIVERED},
    {RUNTIME_VOLUME, RUNTIME_INITIAL, RUNTIME_CREATING_VOLUME},
    {RUNTIME_VOLUME, RUNTIME_CREATING_VOLUME, RUNTIME_CREATED_VOLUME},
    {RUNTIME_INSTANCE, RUNTIME_INITIAL, RUNTIME_INSTALLED},
    {RUNTIME_INSTANCE, RUNTIME_INSTALLED, RUNTIME_BOOTING},
    {RUNTIME_INSTANCE, RUNTIME_BOOTING, RUNTIME_RUNNING},
    {RUNTIME_INSTANCE, RUNTIME_BOOTING, RUNTIME_HALTING},
    {RUNTIME_INSTANCE, RUNTIME_RUNNING, RUNTIME_HALTING},
    {RUNTIME_INSTANCE, RUNTIME_HALTING, RUNTIME_HALTED},
    {RUNTIME_INSTANCE, RUNTIME_HALTED, RUNTIME_BOOTING},
};

static bool can_move(const struct runtime_object *o, enum runtime_state to)
{
    if (to == RUNTIME_INVALID || to == RUNTIME_INITIAL)
        return true;
    for (size_t i = 0; i < N_ELEMENTS(moves); i++)
        if (moves[i].kind == o->kind && moves[i].from == o->state && moves[i].to == to)
            return true;
    return false;
}

static bool has_tag(struct str url)
{
    return str_starts_with(url, STR("docker://")) && str_find(url, '@') < 0;
}

enum runtime_state runtime_content_next(const struct runtime_object *o)
{
    switch (o->state) {
    case RUNTIME_INITIAL:
        return has_tag(o->content.url) ? RUNTIME_RESOLVING_TAG : RUNTIME_DOWNLOAD_STARTED;
    case RUNTIME_RESOLVING_TAG:
        return RUNTIME_RESOLVED_TAG;
    case RUNTIME_RESOLVED_TAG:
        return RUNTIME_DOWNLOAD_STARTED;
    case RUNTIME_DOWNLOAD_STARTED:
        return RUNTIME_DOWNLOADED;
    case RUNTIME_DOWNLOADED:
        return RUNTIME_VERIFYING;
    case RUNTIME_VERIFYING:
        return RUNTIME_VERIFIED;
    default:
        return RUNTIME_LOADING;
    }
}

const char *runtime_state_name(enum runtime_state s)
{
    static const char *const names[] = {
        [RUNTIME_INVALID] = "INVALID",
        [RUNTIME_INITIAL] = "INITIAL",
        [RUNTIME_DOWNLOAD_STARTED] = "DOWNLOAD_STARTED",
        [RUNTIME_DOWNLOADED] = "DOWNLOADED",
        [RUNTIME_DELIVERED] = "DELIVERED",
        [RUNTIME_INSTALLED] = "INSTALLED",
        [RUNTIME_BOOTING] = "BOOTING",
        [RUNTIME_RUNNING] = "RUNNING",
        [RUNTIME_HALTING] = "HALTING",
        [RUNTIME_HALTED] = "HALTED",
        [RUNTIME_RESOLVING_TAG] = "RESOLVING_TAG",
        [RUNTIME_RESOLVED_TAG] = "RESOLVED_TAG",
        [RUNTIME_CREATING_VOLUME] = "CREATING_VOLUME",
        [RUNTIME_CREATED_VOLUME] = "CREATED_VOLUME",
        [RUNTIME_VERIFYING] = "VERIFYING",
        [RUNTIME_VERIFIED] = "VERIFIED",
        [RUNTIME_LOADING] = "LOADING",
    };
    return (size_t) s < N_ELEMENTS(names) && names[s] ? names[s] : "UNKNOWN";
}

void runtime_move(struct runtime_object *o, enum runtime_state to)
{
    assert(can_move(o, to));
    o->state = to;
    if (to == RUNTIME_INITIAL)
        o->progress_percent = 0;
    runtime_report(o);
}

void runtime_progress(struct runtime_object *o, int percent)
{
    if (percent == o->progress_percent)
        return;
    o->progress_percent = percent;
    runtime_report(o);
}

/* ---- what comes next ----------------------------------------------------------------------- */

static bool volume_is_there(const struct runtime *r, struct str id)
{
    const struct runtime_object *v = runtime_find(r, RUNTIME_VOLUME, id);
    return v && v->state == RUNTIME_CREATED_VOLUME && !v->wants_purge;
}

static bool volumes_are_there(const struct runtime_object *i)
{
    if (!volume_is_there(i->runtime, i->instance.root_volume))
        return false;
    for (size_t k = 0; k < i->instance.n_mounts; k++)
        if (!volume_is_there(i->runtime, i->instance.mounts[k].volume))
            return false;
    return true;
}

static void settle_content(struct runtime_object *o)
{
    if (o->state != RUNTIME_INITIAL || o->error)
        return;
    o->is_busy = true;
    o->runtime->functions->fetch(o->runtime->machine, o);
}

static void settle_volume(struct runtime_object *o)
{
    if (o->state != RUNTIME_INITIAL || o->error)
        return;
    struct runtime_object *content = NULL;
    if (o->volume.content.p) {
        content = runtime_find(o->runtime, RUNTIME_CONTENT, o->volume.content);
        if (!content || content->state != RUNTIME_DELIVERED || content->wants_purge)
            return;
    }
    o->is_busy = true;
    runtime_move(o, RUNTIME_CREATING_VOLUME);
    o->runtime->functions->create(o->runtime->machine, o, content);
}

static void settle_instance(struct runtime_object *o)
{
    struct runtime *r = o->runtime;
    if (o->state == RUNTIME_RUNNING && o->wants_stop) {
        runtime_move(o, RUNTIME_HALTING);
        r->functions->halt(r->machine, o, o->wants_kill);
        return;
    }
    bool is_down =
        o->state == RUNTIME_INITIAL || o->state == RUNTIME_INSTALLED || o->state == RUNTIME_HALTED;
    if (!is_down || !o->wants_run || o->error)
        return;
    o->is_busy = true;
    bool is_ready = volumes_are_there(o);
    if (!is_ready && o->state != RUNTIME_INITIAL)
        runtime_move(o, RUNTIME_INITIAL);
    if (is_ready && o->state == RUNTIME_INITIAL)
        runtime_move(o, RUNTIME_INSTALLED);
    if (!is_ready || !o->wants_run) {
        o->is_busy = false;
        return;
    }
    o->exit_code = RUNTIME_EXIT_UNKNOWN;
    o->is_adopted = false;
    o->wants_stop = o->wants_kill = false;
    runtime_move(o, RUNTIME_BOOTING);
    r->functions->boot(r->machine, o);
}

void runtime_settle(struct runtime_object *o)
{
    if (o->is_busy)
        return;
    bool lives = o->state == RUNTIME_RUNNING || o->state == RUNTIME_HALTING;
    if (o->wants_purge && !lives) {
        o->is_busy = true;
        o->state = RUNTIME_INVALID;
        o->runtime->functions->remove(o->runtime->machine, o);
        return;
    }
    if (o->kind == RUNTIME_CONTENT)
        settle_content(o);
    else if (o->kind == RUNTIME_VOLUME)
        settle_volume(o);
    else
        settle_instance(o);
}

/* ---- a machine's answers ------------------------------------------------------------------- */

/* Whoever waits for something of the next kind; callbacks may add objects meanwhile. */
static void settle_all(struct runtime *r, enum runtime_kind kind)
{
    struct runtime_object **waiting = mem_alloc((r->objects[kind].n_items + 1) * sizeof(*waiting));
    size_t n = 0;
    struct map_entry e;
    for (size_t at = 0; map_next(&r->objects[kind], &at, &e);) {
        struct runtime_object *o = e.value;
        if (o->state == RUNTIME_INITIAL && !o->is_busy)
            waiting[n++] = o;
    }
    for (size_t i = 0; i < n; i++)
        runtime_settle(waiting[i]);
    mem_free(waiting);
}

static void set_error(struct runtime_object *o, const char *error)
{
    mem_free(o->error);
    o->error = error ? mem_strdup(error) : NULL;
}

/* Nobody starts it again between its last moves; from the last one on the caller may. */
static void end_instance(struct runtime_object *o, const char *error)
{
    set_error(o, error);
    o->is_busy = true;
    if (o->state != RUNTIME_HALTING) {
        o->wants_run = false;
        runtime_move(o, RUNTIME_HALTING);
    }
    o->is_busy = false;
    o->wants_stop = o->wants_kill = false;
    runtime_move(o, RUNTIME_HALTED);
}

static void boot_done(struct runtime_object *o, const char *error)
{
    if (!error) {
        o->started_wall_us = o->runtime->clock->wall_us(o->runtime->clock);
        runtime_move(o, RUNTIME_RUNNING);
        return;
    }
    end_instance(o, error);
}

void runtime_step_done(struct runtime_object *o, const char *error)
{
    assert(o->is_busy);
    struct runtime *r = o->runtime;
    o->is_busy = false;
    if (o->state == RUNTIME_INVALID) {
        set_error(o, error);
        runtime_report(o);
        runtime_forget(o);
        return;
    }
    if (o->state == RUNTIME_BOOTING) {
        boot_done(o, error);
    } else if (error) {
        set_error(o, error);
        runtime_report(o);
    } else {
        runtime_move(o, o->kind == RUNTIME_CONTENT ? RUNTIME_DELIVERED : RUNTIME_CREATED_VOLUME);
        settle_all(r, o->kind == RUNTIME_CONTENT ? RUNTIME_VOLUME : RUNTIME_INSTANCE);
    }
    runtime_settle(o);
}

void runtime_exited(struct runtime_object *o, int exit_code, const char *error)
{
    o->exit_code = exit_code;
    end_instance(o, error);
    runtime_settle(o);
}
