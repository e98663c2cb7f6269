/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/zedagent.h"

#include "base/alloc.h"
#include "machine/machine.h"
#include "zedagent/zedagent_internal.h"

#define NAMES_BYTES 256 /* mostly enough for those of one device */

/* ---- who listens ------------------------------------------------------------------------------
 */

void zedagent_listen(struct zedagent *z, struct zedagent_listener *l)
{
    list_append(&z->listeners, &l->link);
}

void zedagent_unlisten(struct zedagent_listener *l)
{
    if (l->link.next)
        list_remove(&l->link);
}

void zedagent_emit(struct zedagent *z, enum zedagent_event e)
{
    LIST_FOR_EACH (&z->listeners, item) {
        struct zedagent_listener *l = CONTAINER_OF(item, struct zedagent_listener, link);
        l->on_event(l, e);
    }
}

/* ---- what others ask --------------------------------------------------------------------------
 */

const struct zedagent_facts *zedagent_facts(const struct zedagent *z)
{
    return &z->facts;
}

const struct items *zedagent_items(const struct zedagent *z)
{
    return z->items;
}

struct node_link *zedagent_link(struct zedagent *z)
{
    return z->link;
}

void zedagent_hurry(struct zedagent *z)
{
    cycle_hurry(z);
}

bool zedagent_keep(struct str *at, struct str by)
{
    if (at->p && str_eq(*at, by))
        return false;
    const struct str copy = str_range(by.n ? mem_dup(by.p, by.n) : mem_strdup(""), by.n);
    mem_free((char *) at->p);
    *at = copy;
    return true;
}

void zedagent_set_attest(struct zedagent *z, int attest_state, struct str error)
{
    z->attest_state = attest_state;
    (void) zedagent_keep(&z->attest_error, error);
    status_update(z);
}

void zedagent_set_certs_refused(struct zedagent *z, bool are_refused)
{
    z->are_certs_refused = are_refused;
    status_update(z);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static bool is_usable(enum node_network_state s)
{
    return s == NODE_NETWORK_SUCCESS || s == NODE_NETWORK_REMOTE_WAIT;
}

static void follow_network(struct zedagent *z)
{
    const bool is_better = is_usable(z->node->network_state) && !is_usable(z->network_state);
    const bool is_first = !z->has_network;
    z->network_state = z->node->network_state;
    z->has_network = true;
    if ((is_better || is_first) && !z->cycle.is_working)
        cycle_hurry(z);
    if (is_better || is_first)
        certs_follow_network(z);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct zedagent *z = CONTAINER_OF(w, struct zedagent, watch);
    const bool is_first = !z->cycle.is_started;
    if (changes & NODE_NETWORK)
        follow_network(z);
    if ((changes & NODE_ONBOARDED) && !uuid_is_zero(&z->node->device)) {
        (void) publication_signal_restarted(z->topics.sections[SECTION_APPS]);
        cycle_start(z);
        if (is_first)
            certs_start(z);
    }
    if (changes & NODE_CONTROLLER)
        certs_publish(z);
}

static void look_at_machine(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    struct machine_identity id = {0};
    struct machine *m = z->node->machine;
    if (m && m->functions->identity && m->functions->identity(m, a, &id) == 0)
        z->is_kube = str_is(id.hypervisor, "k") || str_is(id.hypervisor, "kubevirt");
}

static int open_all(struct zedagent *z)
{
    const struct node_link_options link = {.agent = STR("zedagent")};
    int r = node_link_new(z->node, &link, &z->link);
    if (r == 0)
        r = topics_open(z);
    if (r == 0)
        r = cycle_open(z);
    if (r == 0)
        r = certs_open(z);
    return r == 0 ? neighbours_open(z) : r;
}

int zedagent_new(struct node *n, const struct zedagent_options *o, struct zedagent **ret)
{
    struct zedagent *z = NEW(struct zedagent);
    z->node = n;
    z->o = o ? *o : (struct zedagent_options){0};
    z->items = items_new();
    z->names = arena_new_with(512);
    z->facts.config_status = ZEDAGENT_CONFIG_FAIL;
    list_init(&z->listeners);
    const int r = open_all(z);
    if (r < 0) {
        zedagent_free(z);
        return r;
    }
    look_at_machine(z);
    command_load(z);
    local_load(z);
    start_items(z);
    start_bootstrap(z);
    status_update(z);
    z->watch.on_change = on_change;
    node_watch(n, &z->watch);
    *ret = z;
    return 0;
}

void zedagent_free(struct zedagent *z)
{
    if (!z)
        return;
    node_unwatch(&z->watch);
    cycle_close(z);
    certs_close(z);
    neighbours_close(z);
    local_done(z);
    topics_close(z);
    node_link_free(z->link);
    items_free(z->items);
    arena_free(z->names);
    mem_free((char *) z->attest_error.p);
    mem_free((char *) z->loc_url.p);
    mem_free((char *) z->certs_config_hash.p);
    mem_free(z);
}
