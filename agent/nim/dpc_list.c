/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/dpc_list.h"

#include "base/alloc.h"

void dpc_list_init(struct dpc_list *l)
{
    *l = (struct dpc_list){.current = -1};
}

void dpc_list_done(struct dpc_list *l)
{
    for (size_t i = 0; i < l->n_items; i++)
        dpc_free(l->items[i]);
    mem_free(l->items);
    dpc_list_init(l);
}

static struct dpc *take_out(struct dpc_list *l, size_t at)
{
    struct dpc *d = l->items[at];
    memmove(l->items + at, l->items + at + 1, sizeof(l->items[0]) * (l->n_items - at - 1));
    l->n_items--;
    return d;
}

static void put_in(struct dpc_list *l, size_t at, struct dpc *d)
{
    l->items = mem_realloc_array(l->items, l->n_items + 1, sizeof(l->items[0]));
    memmove(l->items + at + 1, l->items + at, sizeof(l->items[0]) * (l->n_items - at));
    l->items[at] = d;
    l->n_items++;
}

struct dpc *dpc_list_current(const struct dpc_list *l)
{
    return l->current >= 0 && (size_t) l->current < l->n_items ? l->items[l->current] : NULL;
}

static int index_of(const struct dpc_list *l, const struct dpc *d)
{
    for (size_t i = 0; i < l->n_items; i++)
        if (l->items[i] == d)
            return (int) i;
    return -1;
}

/* ---- priorities ---------------------------------------------------------------------------- */

/* Whether a new one goes before one that is there. */
static bool is_before(const struct dpc *d, const struct dpc *there)
{
    if (dpc_is_manual(d))
        return true;
    if (dpc_is_from_controller(d) != dpc_is_from_controller(there) && dpc_is_from_controller(d))
        return true;
    return !dpc_is_manual(there) && d->priority_us > there->priority_us;
}

static void insert(struct dpc_list *l, struct dpc *d)
{
    size_t at = 0;
    while (at < l->n_items && !is_before(d, l->items[at]))
        at++;
    put_in(l, at, d);
}

static int find(const struct dpc_list *l, const struct dpc *d)
{
    for (size_t i = 0; i < l->n_items; i++) {
        const struct dpc *there = l->items[i];
        if (there->version == d->version && strcmp(there->key, d->key) == 0 &&
            (there->priority_us == d->priority_us || dpc_is_manual(d)))
            return (int) i;
    }
    for (size_t i = 0; i < l->n_items; i++)
        if (dpc_has_same_content(l->items[i], d))
            return (int) i;
    return -1;
}

/* The one in use may have moved: it stays in use if it worked. NULL: it is gone. */
static void follow_current(struct dpc_list *l, const struct dpc *current)
{
    if (l->current < 0)
        return;
    const int at = current ? index_of(l, current) : -1;
    if (at < 0)
        l->current = l->n_items > 0 && dpc_was_working(l->items[0]) ? 0 : -1;
    else if (at != l->current)
        l->current = dpc_was_working(l->items[at]) ? at : -1;
}

static void limit(struct dpc_list *l)
{
    while (l->n_items > DPC_LIST_MAX) {
        const size_t last = l->n_items - 1;
        const size_t at = l->current == (int) last ? last - 1 : last;
        dpc_free(take_out(l, at));
        if (l->current > (int) at)
            l->current--;
    }
}

bool dpc_list_put(struct dpc_list *l, struct dpc *d)
{
    const struct dpc *current = dpc_list_current(l);
    const int at = find(l, d);
    if (at >= 0) {
        struct dpc *old = l->items[at];
        const bool is_same = dpc_has_same_content(old, d);
        if (is_same && old == current && l->current == 0) {
            dpc_free(d);
            return false;
        }
        if (is_same)
            dpc_take_results(d, old);
        current = old == current ? d : current;
        dpc_free(take_out(l, (size_t) at));
    }
    insert(l, d);
    follow_current(l, current);
    limit(l);
    return true;
}

bool dpc_list_remove(struct dpc_list *l, const struct dpc *like)
{
    const struct dpc *current = dpc_list_current(l);
    const int at = find(l, like);
    if (at < 0)
        return false;
    struct dpc *old = take_out(l, (size_t) at);
    follow_current(l, old == current ? NULL : current);
    dpc_free(old);
    return true;
}

/* ---- what to test -------------------------------------------------------------------------- */

static int find_manual(const struct dpc_list *l)
{
    for (size_t i = 0; i < l->n_items; i++)
        if (dpc_is_manual(l->items[i]) && dpc_is_usable(l->items[i]))
            return (int) i;
    return -1;
}

int dpc_list_next_testable(const struct dpc_list *l, size_t from, int64_t wall_us)
{
    const int manual = find_manual(l);
    const size_t n = manual >= 0 ? (size_t) manual + 1 : l->n_items;
    for (size_t i = 0; i < n; i++) {
        const size_t at = (from + i) % n;
        if (dpc_is_testable(l->items[at], wall_us))
            return (int) at;
    }
    return -1;
}

int dpc_list_parking(const struct dpc_list *l)
{
    const int manual = find_manual(l);
    if (manual >= 0 || l->n_items == 0)
        return manual;
    for (size_t i = 0; i < l->n_items; i++)
        if (dpc_is_usable(l->items[i]))
            return (int) i;
    return 0;
}

/* ---- what to keep -------------------------------------------------------------------------- */

static bool is_newest_of_key(const struct dpc_list *l, size_t at)
{
    for (size_t i = 0; i < l->n_items; i++)
        if (i != at && strcmp(l->items[i]->key, l->items[at]->key) == 0 &&
            (l->items[i]->priority_us > l->items[at]->priority_us ||
             (l->items[i]->priority_us == l->items[at]->priority_us && i < at)))
            return false;
    return true;
}

static bool has_controller_worked(const struct dpc_list *l)
{
    for (size_t i = 0; i < l->n_items; i++)
        if (dpc_is_from_controller(l->items[i]) && l->items[i]->results.succeeded_us != 0)
            return true;
    return false;
}

static size_t first_working(const struct dpc_list *l)
{
    size_t i = 0;
    while (i < l->n_items && !dpc_was_working(l->items[i]))
        i++;
    return i;
}

static bool is_kept(const struct dpc_list *l, size_t at, bool keeps_last_resort)
{
    const struct dpc *d = l->items[at];
    const size_t working = first_working(l);
    if (at == 0 || (int) at == l->current || at == working)
        return true;
    if (dpc_is_last_resort(d) && keeps_last_resort)
        return true;
    if (dpc_is_manual(d))
        return working > at;
    if (!is_newest_of_key(l, at))
        return false;
    return dpc_is_from_controller(d) || !has_controller_worked(l);
}

void dpc_list_compress(struct dpc_list *l, bool keeps_last_resort)
{
    bool keeps[DPC_LIST_MAX + 1] = {false};
    for (size_t i = 0; i < l->n_items; i++)
        keeps[i] = is_kept(l, i, keeps_last_resort);
    const struct dpc *current = dpc_list_current(l);
    size_t n = 0;
    for (size_t i = 0; i < l->n_items; i++) {
        if (keeps[i])
            l->items[n++] = l->items[i];
        else
            dpc_free(l->items[i]);
    }
    l->n_items = n;
    if (current)
        l->current = index_of(l, current);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void dpc_list_read(struct dpc_list *l, const struct json *v)
{
    const struct dpc_defaults none = {0};
    JSON_FOR_EACH_ITEM (json_get(v, STR("PortConfigList")), item) {
        struct dpc *d = NULL;
        if (l->n_items == DPC_LIST_MAX || dpc_read(item, &none, &d) < 0)
            continue;
        if (!dpc_is_usable(d)) {
            dpc_free(d);
            continue;
        }
        for (size_t i = 0; i < d->n_ports; i++)
            if (!d->ports[i].has_invalid_config)
                dpc_results_clear(&d->ports[i].results);
        put_in(l, l->n_items, d);
    }
    l->current = -1;
}

struct json *dpc_list_write(struct arena *a, const struct dpc_list *l)
{
    struct json *to = json_new(a, json_object());
    struct json items = json_array();
    for (size_t i = 0; i < l->n_items; i++)
        json_push(a, &items, *dpc_write(a, l->items[i]));
    json_set(a, to, STR("CurrentIndex"), json_int(l->current));
    json_set(a, to, STR("PortConfigList"), items);
    return to;
}
