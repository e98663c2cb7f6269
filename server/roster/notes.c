/* SPDX-License-Identifier: Apache-2.0 */
/* What is known beside the Device itself: its configuration, and its state, perhaps before it. */
#include "base/alloc.h"
#include "roster/roster_internal.h"
#include "roster/state.h"

static void free_note(struct note *n)
{
    mem_free((char *) n->key.p);
    mem_free((char *) n->token.p);
    mem_free((char *) n->owner.p);
    mem_free(n);
}

void roster_free_notes(struct roster *r)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->notes, &i, &e);)
        free_note(e.value);
    map_done(&r->notes);
}

static struct note *note_of(struct roster *r, struct str namespace, struct str name)
{
    BUF_AUTO key = {0};
    buf_append_str(&key, namespace);
    buf_append_char(&key, '/');
    buf_append_str(&key, name);
    struct note *n = map_get(&r->notes, buf_str(&key));
    if (n)
        return n;
    n = NEW(struct note);
    n->key = str_range(mem_dup(key.p, key.n), key.n);
    (void) map_put(&r->notes, n->key, n);
    return n;
}

static void drop_if_empty(struct roster *r, struct note *n)
{
    if (n->token.n || n->has_tpm)
        return;
    (void) map_remove(&r->notes, n->key);
    free_note(n);
}

/* ---- configurations -------------------------------------------------------------------------- */

int64_t roster_config_version(const struct json *version)
{
    int64_t n = 0;
    return str_to_i64(json_str(version), &n) == 0 && n > 0 && n <= CONFIG_MAX_VERSION ? n : 0;
}

int64_t roster_config_time(const struct json *rendered_at)
{
    int64_t us = 0;
    return clock_parse(json_str(rendered_at), &us) == 0 && us > 0 ? us / 1000000 : 0;
}

struct config_mark roster_config_mark(const struct json *device_config)
{
    const struct json *status = json_get(device_config, STR("status"));
    return (struct config_mark){
        .generation = json_get_int(json_get(device_config, STR("metadata")), STR("generation"), 1),
        .version = roster_config_version(json_get(status, STR("version"))),
        .rendered_s = roster_config_time(json_get(status, STR("renderedAt")))};
}

/* What was made from it, or from a later one, is as good as ever: most events are of its other
 * statuses, and one is of the write that gave it the version it was made with. */
static bool is_older(const struct config_mark *mark, const struct config_mark *than)
{
    return mark->generation <= than->generation && mark->version <= than->version &&
           mark->rendered_s <= than->rendered_s;
}

void roster_on_config(struct roster *r, const struct kube_event *e)
{
    CLEANUP(device_unrefp) struct device *d = roster_by_name(r, e->namespace, e->name);
    if (!d)
        return;
    ARENA_AUTO a = arena_new();
    struct config_mark mark = {0};
    if (e->type != KUBE_DELETED)
        mark = roster_config_mark(kube_event_object(e, a));
    (void) pthread_mutex_lock(&d->lock);
    const bool is_other = e->type == KUBE_DELETED || !is_older(&mark, &d->config_mark);
    if (is_other)
        d->config_mark = mark;
    (void) pthread_mutex_unlock(&d->lock);
    if (is_other)
        device_forget_config(d);
}

/* ---- state ----------------------------------------------------------------------------------- */

static void replace(struct str *to, struct str by)
{
    mem_free((char *) to->p);
    *to = str_range(mem_dup(by.p ? by.p : "", by.n), by.n);
}

static struct str owner_of(struct arena *a, struct str text)
{
    const struct json *owners =
        json_at(json_parse_quick(a, text), "metadata", "ownerReferences", NULL);
    return json_count(owners) ? json_get_str(&owners->items[0], STR("uid")) : STR("");
}

/* Of a namesake that is gone it says nothing about the device of today. */
void roster_on_state(struct roster *r, const struct kube_event *e, struct str device_name)
{
    ARENA_AUTO a = arena_new();
    struct device_state state = {0};
    if (e->type != KUBE_DELETED && device_state_parse(a, e->text, &state) < 0)
        return;
    struct str owner = owner_of(a, e->text);
    (void) pthread_rwlock_wrlock(&r->lock);
    struct note *n = note_of(r, e->namespace, device_name);
    replace(&n->token, state.integrity_token);
    replace(&n->owner, owner);
    n->has_tpm = state.has_tpm;
    drop_if_empty(r, n);
    (void) pthread_rwlock_unlock(&r->lock);
    CLEANUP(device_unrefp) struct device *d = roster_by_name(r, e->namespace, device_name);
    if (d && str_eq(d->uid, owner))
        device_set_token(d, state.integrity_token, state.has_tpm);
}
