/* SPDX-License-Identifier: Apache-2.0 */
/* What is known beside the Device itself, perhaps before it: its configuration's generation and its
 * state. */
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
    if (n->config_revision || n->token.n || n->has_tpm)
        return;
    (void) map_remove(&r->notes, n->key);
    free_note(n);
}

/* The object's spec has another generation than before: its status alone changes no configuration.
 */
void roster_on_config(struct roster *r, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = json_parse_quick(a, e->text);
    int64_t revision = e->type == KUBE_DELETED
                           ? 0
                           : json_get_int(json_get(object, STR("metadata")), STR("generation"), 1);
    (void) pthread_rwlock_wrlock(&r->lock);
    struct note *n = note_of(r, e->namespace, e->name);
    bool is_other = n->config_revision != revision;
    n->config_revision = revision;
    drop_if_empty(r, n);
    (void) pthread_rwlock_unlock(&r->lock);
    CLEANUP(device_unrefp)
    struct device *d = is_other ? roster_by_name(r, e->namespace, e->name) : NULL;
    if (d)
        device_forget_config(d);
}

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
