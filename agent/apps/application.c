/* SPDX-License-Identifier: Apache-2.0 */
/* An application's life, as zedmanager and domainmgr lead it.
 *
 *     volumes there -> network there -> start -> runs -> stop, or it ends by itself and waits
 *                                         ^                                  |
 *                                         +----------------------------------+
 *     restart:  BRING_DOWN -> BRING_UP
 *     purge:    DOWNLOAD_AND_VERIFY -> BRING_DOWN -> RECREATE_VOLUMES -> BRING_UP
 *
 * A command is recorded as done when the instance is down and before it comes up again: an agent
 * that dies on the way does it once more. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/log.h"

bool application_lives(const struct application *p)
{
    return p->state == RUNTIME_BOOTING || p->state == RUNTIME_RUNNING ||
           p->state == RUNTIME_HALTING;
}

bool application_is_machine(const struct application *p)
{
    const struct volume *v = p->n_volumes ? volume_find(p->apps, str_of(p->volumes[0].key)) : NULL;
    return v && runtime_volume_is_disk(p->apps->runtime, str_of(v->id));
}

/* ---- what happens to it -------------------------------------------------------------------- */

/* It has ended, and nobody had asked for that. */
static void take_failure(struct apps *a, struct application *p, const struct runtime_status *s)
{
    ARENA_AUTO arena = arena_new_with(256);
    int64_t lived_us = p->started_us ? apps_wall_us(a) - p->started_us : 0;
    if (lived_us > (int64_t) APPS_STABLE_S * 1000000)
        p->trouble.n_times = 0;
    struct str text = s->error;
    if (!text.p)
        text = s->exit_code == RUNTIME_EXIT_UNKNOWN
                   ? STR("it has ended by itself")
                   : arena_printf(arena, "it has ended by itself: exit code %d", s->exit_code);
    trouble_set(&p->trouble, a, text);
    trouble_retry(&p->trouble, a, items_int(a->node->items, "timer.boot.retry"));
    log_info("application ended by itself, starting it again",
             LOG_INT("seconds", (p->trouble.retry_us - apps_now_us(a)) / 1000000),
             LOG_TEXT("app", p->id), LOG_STR("error", text));
}

static void take_end(struct apps *a, struct application *p, const struct runtime_status *s)
{
    if (p->is_stopping)
        trouble_set(&p->trouble, a, STR_NONE);
    else
        take_failure(a, p, s);
    p->is_stopping = false;
}

void application_changed(struct apps *a, const struct runtime_status *s)
{
    struct application *p = application_find(a, s->id);
    if (!p)
        p = application_new(a, s->id);
    bool lived = application_lives(p);
    p->state = s->state;
    p->exit_code = s->exit_code;
    p->started_us = s->started_wall_us;
    p->is_adopted = s->is_adopted;
    if (lived && !application_lives(p))
        take_end(a, p, s);
    if (s->state == RUNTIME_RUNNING) {
        trouble_set(&p->trouble, a, STR_NONE);
        metrics_hurry(a);
    }
}

/* ---- what it needs ------------------------------------------------------------------------- */

static bool has_volumes(const struct application *p)
{
    for (size_t i = 0; i < p->n_volumes; i++) {
        const struct volume *v = volume_find(p->apps, str_of(p->volumes[i].key));
        if (!v || v->state != RUNTIME_CREATED_VOLUME)
            return false;
    }
    return true;
}

static bool has_networks(const struct application *p)
{
    for (size_t i = 0; i < p->n_adapters; i++) {
        const struct network *n = network_find(p->apps, str_of(p->adapters[i].network));
        if (!network_is_ready(p->apps, n))
            return false;
    }
    return true;
}

static bool is_delayed(const struct application *p)
{
    int64_t start_us = p->apps->delay_base_us + p->delay_s * 1000000;
    if (!p->delay_s || start_us <= apps_now_us(p->apps))
        return false;
    apps_wake_at(p->apps, start_us);
    return true;
}

/* ---- up and down --------------------------------------------------------------------------- */

static void stop(struct application *p)
{
    if (!p->is_stopping)
        (void) runtime_stop(p->apps->runtime, str_of(p->id), /* at_once= */ false);
    p->is_stopping = true;
}

/* True: it is down, and so are its interfaces. */
static bool bring_down(struct application *p)
{
    if (application_lives(p)) {
        stop(p);
        return false;
    }
    application_close_network(p);
    return p->network == CLOSED;
}

static void take_version(struct application *p)
{
    mem_free(p->taken_version);
    p->taken_version = mem_strdup(p->version);
}

static void record_start(struct application *p)
{
    bool is_same = p->was_started && p->started_volumes == p->volumes_hash &&
                   p->started_resources == p->resources_hash &&
                   strcmp(p->taken_version, p->version) == 0;
    if (is_same)
        return;
    p->was_started = true;
    p->started_volumes = p->volumes_hash;
    p->started_resources = p->resources_hash;
    take_version(p);
    record_save(p);
}

static void start(struct application *p)
{
    struct apps *a = p->apps;
    ARENA_AUTO arena = arena_new();
    struct runtime_instance wish;
    struct str error = STR_NONE;
    int r = instance_build(arena, p, &wish, &error);
    if (r >= 0) {
        record_start(p);
        p->is_stopping = false;
        r = runtime_start(a->runtime, &wish);
    }
    if (r >= 0 || r == -EBUSY)
        return;
    if (r == -ESTALE) {
        (void) runtime_purge(a->runtime, RUNTIME_INSTANCE, str_of(p->id));
        return;
    }
    trouble_set(&p->trouble, a, error.p ? error : str_of(log_errno_text(r)));
    trouble_retry(&p->trouble, a, items_int(a->node->items, "timer.boot.retry"));
}

/* The runtime knows of an instance that it has found nothing but its id. */
static void introduce(struct application *p)
{
    ARENA_AUTO arena = arena_new();
    struct runtime_instance wish;
    struct str error = STR_NONE;
    if (!p->is_adopted || p->is_introduced || p->state != RUNTIME_RUNNING ||
        p->started_volumes != p->volumes_hash || !has_volumes(p))
        return;
    if (instance_build(arena, p, &wish, &error) < 0)
        return;
    p->is_introduced = true;
    (void) runtime_start(p->apps->runtime, &wish);
}

/* What the configuration wants and only a command may bring. */
static void note_staged(struct application *p)
{
    struct str text = STR_NONE;
    if (p->started_volumes && p->started_volumes != p->volumes_hash)
        text = STR("Need purge due to changed volumes, but no purge command");
    else if (p->started_resources && p->started_resources != p->resources_hash)
        text = STR("Need restart due to changed resources, but no restart command");
    trouble_set(&p->staged, p->apps, text);
    if (!text.p && p->taken_version && strcmp(p->taken_version, p->version) != 0) {
        take_version(p);
        record_save(p);
    }
}

static void lead_living(struct application *p)
{
    if (!p->wants_active) {
        stop(p);
        return;
    }
    note_staged(p);
    if (p->state != RUNTIME_RUNNING)
        return;
    if (p->network == CLOSED ? trouble_is_due(&p->network_trouble, p->apps)
                             : p->network_asked != p->network_opened)
        application_open_network(p);
    if (p->network == OPEN)
        introduce(p);
}

static void lead_down(struct application *p)
{
    if (!p->wants_active || p->has_config_errors) {
        application_close_network(p);
        p->trouble.n_times = 0, p->trouble.retry_us = 0;
        if (!p->has_config_errors)
            trouble_set(&p->trouble, p->apps, STR_NONE);
        return;
    }
    if (!has_volumes(p) || !has_networks(p))
        return;
    if (p->network != OPEN && trouble_is_due(&p->network_trouble, p->apps))
        application_open_network(p);
    if (p->network == OPEN && !is_delayed(p) && trouble_is_due(&p->trouble, p->apps))
        start(p);
}

static void lead(struct application *p)
{
    if (application_lives(p))
        lead_living(p);
    else
        lead_down(p);
}

/* ---- commands ------------------------------------------------------------------------------ */

static int free_number(const struct apps *a)
{
    for (int number = 1;; number++) {
        bool is_taken = false;
        LIST_FOR_EACH (&a->applications, item)
            is_taken |= CONTAINER_OF(item, struct application, link)->number == number;
        if (!is_taken)
            return number;
    }
}

static void begin_record(struct application *p)
{
    p->done_restart = p->restart;
    p->done_purge = p->purge;
    p->number = free_number(p->apps);
    take_version(p);
    record_save(p);
}

static void begin_commands(struct application *p)
{
    if (!p->has_record)
        begin_record(p);
    if (p->purge != p->done_purge && !p->purging) {
        p->purging = DOWNLOAD_AND_VERIFY;
        p->purge_us = apps_wall_us(p->apps);
        p->restarting = NOT_IN_PROGRESS;
    }
    if (p->restart == p->done_restart || p->restarting || p->purging)
        return;
    if (p->wants_active) {
        p->restarting = BRING_DOWN;
        p->restart_us = apps_wall_us(p->apps);
    } else { /* not carried out later either */
        p->done_restart = p->restart;
        record_save(p);
    }
}

/* The instance is down and all is done but bringing it up. */
static void end_command(struct application *p)
{
    p->done_restart = p->restart;
    p->done_purge = p->purging ? p->purge : p->done_purge;
    p->trouble.n_times = 0, p->trouble.retry_us = 0;
    trouble_set(&p->trouble, p->apps, STR_NONE);
    trouble_set(&p->staged, p->apps, STR_NONE);
    take_version(p);
    record_save(p);
}

/* Both return true when the instance has just come down and only bringing it up is left. */
static bool advance_purge(struct application *p)
{
    if (p->purging == DOWNLOAD_AND_VERIFY) {
        if (!has_volumes(p)) {
            /* It goes on with what it has, but no longer than it should. */
            if (application_lives(p) && !p->wants_active)
                stop(p);
            return false;
        }
        p->purging = BRING_DOWN;
    }
    if (p->purging == BRING_DOWN && bring_down(p))
        p->purging = RECREATE_VOLUMES;
    if (p->purging != RECREATE_VOLUMES)
        return false;
    if (p->state != RUNTIME_INVALID) {
        (void) runtime_purge(p->apps->runtime, RUNTIME_INSTANCE, str_of(p->id));
        return false;
    }
    p->was_started = false;
    p->started_volumes = p->started_resources = 0;
    end_command(p);
    p->purging = BRING_UP;
    return true;
}

static bool advance_restart(struct application *p)
{
    if (p->restarting != BRING_DOWN || !bring_down(p))
        return false;
    end_command(p);
    p->restarting = BRING_UP;
    return true;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void forget(struct application *p)
{
    if (application_lives(p)) {
        stop(p);
    } else if (p->state != RUNTIME_INVALID) {
        (void) runtime_purge(p->apps->runtime, RUNTIME_INSTANCE, str_of(p->id));
    } else if (bring_down(p)) {
        apps_reconcile_soon(p->apps); /* its volumes and networks may go, too */
        status_unpublish_app(p);
        record_remove(p);
        application_free(p);
        return;
    }
    if (p->version)
        status_publish_app(p);
}

void application_reconcile(struct apps *a, struct application *p)
{
    if (!p->is_configured) {
        /* One that was only found waits for the sweep: its configuration may come yet. */
        if (p->version || a->is_swept)
            forget(p);
        return;
    }
    begin_commands(p);
    bool is_down = advance_purge(p) || advance_restart(p);
    bool is_changing = (p->purging && p->purging != BRING_UP) || p->restarting == BRING_DOWN;
    if (!is_down && !is_changing)
        lead(p);
    bool is_over = p->state == RUNTIME_RUNNING || !p->wants_active;
    if (is_over && p->purging == BRING_UP)
        p->purging = NOT_IN_PROGRESS;
    if (is_over && p->restarting == BRING_UP)
        p->restarting = NOT_IN_PROGRESS;
    status_publish_app(p);
    if (is_down) /* which is told before it comes up again */
        apps_reconcile_soon(a);
}

const struct trouble *application_trouble(const struct application *p)
{
    const struct trouble *own[] = {&p->trouble, &p->network_trouble, &p->staged};
    for (size_t i = 0; i < N_ELEMENTS(own); i++)
        if (own[i]->text)
            return own[i];
    for (size_t i = 0; !application_lives(p) && i < p->n_volumes; i++) {
        const struct volume *v = volume_find(p->apps, str_of(p->volumes[i].key));
        const struct trouble *t = v ? volume_trouble(p->apps, v) : NULL;
        if (t)
            return t;
    }
    return NULL;
}

/* The lowest of its volumes until all are there. */
static enum sw_state prepared(const struct application *p)
{
    enum sw_state lowest = SW_CREATED_VOLUME;
    for (size_t i = 0; i < p->n_volumes; i++) {
        const struct volume *v = volume_find(p->apps, str_of(p->volumes[i].key));
        enum sw_state s = v ? volume_sw_state(p->apps, v) : SW_INITIAL;
        lowest = MIN(lowest, s);
    }
    return lowest;
}

enum sw_state application_sw_state(const struct application *p)
{
    if (application_lives(p) || p->state == RUNTIME_HALTED)
        return sw_state_of(p->state);
    if (p->has_config_errors)
        return SW_INITIAL;
    if (!has_volumes(p))
        return prepared(p);
    if (p->wants_active && !has_networks(p))
        return SW_AWAIT_NETWORK_INSTANCE;
    if (p->wants_active && p->delay_s && is_delayed(p))
        return SW_START_DELAYED;
    return SW_INSTALLED;
}
