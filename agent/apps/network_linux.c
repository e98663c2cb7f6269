/* SPDX-License-Identifier: Apache-2.0 */
/* Networks on Linux: what is wanted is kept here, what must be run for it is planned
 * (network_plan.h) and run by one worker at a time in the order it was asked for. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/apps_internal.h"
#include "apps/network_links.h"
#include "apps/network_plan.h"
#include "base/alloc.h"
#include "base/log.h"
#include "runtime/child.h"

#define STEP_MS 20000
#define NAMESPACES "/run/netns"

struct held_instance {
    struct list link;
    struct arena *arena;
    struct network_instance wish;
    uint64_t order; /* of the last job about it */
};

struct held_app {
    struct list link;
    struct arena *arena;
    struct network_app wish;
    uint64_t order;
};

enum job_about { ABOUT_NOTHING, ABOUT_INSTANCE, ABOUT_APP };

struct net_job {
    struct list link;
    struct linux_network *network;
    struct arena *arena;
    struct plan plan;
    struct str rules; /* for nft; absent: they stay */
    bool forwards;    /* the machine must pass packets on */
    enum job_about about;
    struct str id;
    uint64_t order;
    struct str error;    /* absent: done */
    struct str no_rules; /* why nft has none of ours; absent: it has */
};

struct linux_network {
    struct apps_network base;
    struct node *node;
    char prefix[PLAN_PREFIX_BYTES]; /* "": not known before the device has its UUID */
    struct network_events events;
    bool has_events, is_freed, has_said_no_rules;
    struct list instances, apps, jobs;
    struct net_job *running;
    uint64_t order;
    struct hosts hosts;              /* that rules name */
    struct hosts_listener *listener; /* NULL: none do, or it cannot be had */
};

static struct linux_network *of(struct apps_network *w)
{
    return CONTAINER_OF(w, struct linux_network, base);
}

static const char *prefix(struct linux_network *n)
{
    if (!n->prefix[0]) {
        uint64_t h = apps_hash(APPS_HASH, str_range((const char *) n->node->device.bytes, 16));
        (void) snprintf(n->prefix, sizeof(n->prefix), "s%05x",
                        (unsigned) ((h ^ h >> 20 ^ h >> 40) & 0xfffff));
    }
    return n->prefix;
}

/* ---- on the worker ------------------------------------------------------------------------- */

/* Runs it with what it complains about in the arena, one line of it. */
static int run_child(struct net_job *j, const char *const *words, struct str input,
                     struct str *ret_complaint)
{
    BUF_AUTO output = {0};
    char text[512] = "";
    int complaints = memfd_create("complaints", MFD_CLOEXEC);
    struct child c = {
        .argv = words, .input = input, .out_fd = -1, .err_fd = complaints, .timeout_ms = STEP_MS};
    int r = child_run(&c, &output);
    if (complaints >= 0 && pread(complaints, text, sizeof(text) - 1, 0) < 0)
        text[0] = 0;
    if (complaints >= 0)
        (void) close(complaints);
    struct str rest = str_of(text), line = STR("");
    (void) str_split(&rest, '\n', &line);
    *ret_complaint = r < 0 ? str_of(log_errno_text(r)) : arena_str(j->arena, line);
    return r;
}

static int run_step(struct net_job *j, const struct plan_step *s)
{
    struct str complaint;
    int r = run_child(j, s->words, STR(""), &complaint);
    if (r == 0 || (r > 0 && s->may_fail))
        return 0;
    BUF_AUTO command = {0};
    for (size_t i = 0; s->words[i]; i++)
        buf_printf(&command, "%s%s", i ? " " : "", s->words[i]);
    j->error = arena_printf(j->arena, "'%s': %.*s", command.p, STR_ARG(complaint));
    return -EIO;
}

static void run_rules(struct net_job *j)
{
    static const char *const words[] = {"nft", "-f", "-", NULL};
    struct str complaint;
    int r = run_child(j, words, j->rules, &complaint);
    if (r != 0)
        j->no_rules = r == -ENOENT ? STR("there is no nft") : complaint;
}

/* Of this network namespace. */
static void forward(void)
{
    int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "1\n", 2) < 0)
        log_debug("packets cannot be passed on", LOG_ERRNO(-errno));
    (void) close(fd);
}

static void on_worker(void *arg)
{
    struct net_job *j = arg;
    for (size_t i = 0; i < j->plan.n_steps; i++)
        if (run_step(j, &j->plan.steps[i]) < 0)
            return;
    if (j->rules.p)
        run_rules(j);
    /* Without rules nothing would keep applications and others apart. */
    if (j->forwards && !j->no_rules.p)
        forward();
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void begin_next(struct linux_network *n);

static void job_free(struct net_job *j)
{
    list_remove(&j->link);
    arena_free(j->arena);
    mem_free(j);
}

static struct held_instance *find_instance(const struct linux_network *n, struct str id)
{
    LIST_FOR_EACH (&n->instances, item) {
        struct held_instance *h = CONTAINER_OF(item, struct held_instance, link);
        if (str_eq(h->wish.id, id))
            return h;
    }
    return NULL;
}

static struct held_app *find_app(const struct linux_network *n, struct str id)
{
    LIST_FOR_EACH (&n->apps, item) {
        struct held_app *h = CONTAINER_OF(item, struct held_app, link);
        if (str_eq(h->wish.id, id))
            return h;
    }
    return NULL;
}

/* Who has been asked for again since, or is no longer wanted, is not told. */
static void tell(struct linux_network *n, const struct net_job *j)
{
    const struct held_instance *i = find_instance(n, j->id);
    const struct held_app *p = find_app(n, j->id);
    if (!n->has_events)
        return;
    if (j->about == ABOUT_INSTANCE && i && i->order == j->order)
        n->events.on_instance(n->events.arg, j->id, j->error);
    if (j->about == ABOUT_APP && p && p->order == j->order)
        n->events.on_app(n->events.arg, j->id, j->error);
}

static void on_done(void *arg)
{
    struct net_job *j = arg;
    struct linux_network *n = j->network;
    n->running = NULL;
    if (n->is_freed) {
        job_free(j);
        mem_free(n);
        return;
    }
    if (j->no_rules.p && !n->has_said_no_rules)
        log_warning("no rules for packets, applications reach their own network instance alone",
                    LOG_STR("reason", j->no_rules));
    n->has_said_no_rules |= j->no_rules.p != NULL;
    tell(n, j);
    job_free(j);
    begin_next(n);
}

static void begin_next(struct linux_network *n)
{
    struct list *first = n->running ? NULL : list_pop_first(&n->jobs);
    if (!first)
        return;
    n->running = CONTAINER_OF(first, struct net_job, link);
    loop_work(n->node->loop, on_worker, on_done, n->running);
}

static struct net_job *job_new(struct linux_network *n, enum job_about about, struct str id)
{
    struct net_job *j = NEW(struct net_job);
    j->network = n;
    j->arena = arena_new();
    j->plan = (struct plan){.arena = j->arena, .prefix = prefix(n)};
    j->about = about;
    j->id = arena_str(j->arena, id);
    j->order = ++n->order;
    return j;
}

/* All rules as they are wanted now. */
static struct str write_rules(struct linux_network *n, struct arena *a)
{
    const struct network_instance **instances = NULL;
    const struct network_app **apps = NULL;
    size_t n_instances = 0, n_apps = 0;
    BUF_AUTO text = {0};
    LIST_FOR_EACH (&n->instances, item) {
        instances = arena_grow(a, instances, n_instances, sizeof(*instances));
        instances[n_instances++] = &CONTAINER_OF(item, struct held_instance, link)->wish;
    }
    LIST_FOR_EACH (&n->apps, item) {
        apps = arena_grow(a, apps, n_apps, sizeof(*apps));
        apps[n_apps++] = &CONTAINER_OF(item, struct held_app, link)->wish;
    }
    hosts_take(&n->hosts, apps, n_apps);
    const struct plan_wishes wishes = {instances, n_instances, apps, n_apps, &n->hosts};
    plan_rules(&text, prefix(n), &wishes);
    return arena_str(a, buf_str(&text));
}

/* ---- hosts that rules name ----------------------------------------------------------------- */

/* Out of the bridge of an instance, from a resolver of its applications: whoever may look up names
 * elsewhere decides nothing. */
static bool is_believed(struct linux_network *n, unsigned interface, uint32_t source)
{
    LIST_FOR_EACH (&n->instances, item) {
        const struct network_instance *i = &CONTAINER_OF(item, struct held_instance, link)->wish;
        char bridge[NETWORK_NAME_BYTES];
        plan_bridge_name(prefix(n), i->id, bridge);
        if (if_nametoindex(bridge) != interface)
            continue;
        for (size_t k = 0; k < i->n_resolvers; k++)
            if (i->resolvers[k] == source)
                return true;
    }
    return false;
}

static void on_answer(void *arg, unsigned interface, uint32_t source,
                      const struct hosts_answer *answer)
{
    struct linux_network *n = arg;
    BUF_AUTO text = {0};
    if (!is_believed(n, interface, source))
        return;
    for (size_t i = 0; i < n->hosts.n_items; i++)
        if (hosts_learn_all(&n->hosts.items[i], answer))
            plan_host(&text, prefix(n), &n->hosts.items[i]);
    if (!text.n)
        return;
    struct net_job *j = job_new(n, ABOUT_NOTHING, STR(""));
    j->rules = arena_str(j->arena, buf_str(&text));
    list_append(&n->jobs, &j->link);
    begin_next(n);
}

static void follow_hosts(struct linux_network *n)
{
    int r = 0;
    if (!n->hosts.n_items)
        hosts_listener_free(TAKE(n->listener));
    else if (!n->listener)
        r = hosts_listen(n->node->loop, on_answer, n, &n->listener);
    if (r < 0)
        log_warning("rules by host name match nothing", LOG_ERRNO(r));
}

static void enqueue(struct linux_network *n, struct net_job *j)
{
    j->rules = write_rules(n, j->arena);
    follow_hosts(n);
    LIST_FOR_EACH (&n->instances, item)
        j->forwards |= CONTAINER_OF(item, struct held_instance, link)->wish.n_ports > 0;
    list_append(&n->jobs, &j->link);
    begin_next(n);
}

/* ---- instances ----------------------------------------------------------------------------- */

static void instance_free(struct held_instance *h)
{
    list_remove(&h->link);
    arena_free(h->arena);
    mem_free(h);
}

static struct network_instance copy_instance(struct arena *a, const struct network_instance *i)
{
    struct network_instance c = *i;
    struct str *ports = ARENA_ARRAY(a, struct str, i->n_ports + 1);
    c.id = arena_str(a, i->id);
    for (size_t k = 0; k < i->n_ports; k++)
        ports[k] = arena_str(a, i->ports[k]);
    c.ports = ports;
    uint32_t *resolvers = ARENA_ARRAY(a, uint32_t, i->n_resolvers + 1);
    if (i->n_resolvers)
        memcpy(resolvers, i->resolvers, i->n_resolvers * sizeof(*resolvers));
    c.resolvers = resolvers;
    return c;
}

static void open_instance(struct apps_network *w, const struct network_instance *i)
{
    struct linux_network *n = of(w);
    struct held_instance *h = find_instance(n, i->id);
    if (h)
        instance_free(h);
    h = NEW(struct held_instance);
    h->arena = arena_new_with(512);
    h->wish = copy_instance(h->arena, i);
    list_append(&n->instances, &h->link);
    struct net_job *j = job_new(n, ABOUT_INSTANCE, i->id);
    h->order = j->order;
    plan_open_instance(&j->plan, &h->wish);
    enqueue(n, j);
}

static void close_instance(struct apps_network *w, struct str id)
{
    struct linux_network *n = of(w);
    struct held_instance *h = find_instance(n, id);
    struct net_job *j = job_new(n, ABOUT_NOTHING, id);
    plan_close_instance(&j->plan, j->id);
    if (h)
        instance_free(h);
    enqueue(n, j);
}

/* ---- applications -------------------------------------------------------------------------- */

static void app_free(struct held_app *h)
{
    list_remove(&h->link);
    arena_free(h->arena);
    mem_free(h);
}

static struct network_app copy_app(struct arena *a, const struct network_app *app)
{
    struct network_interface *interfaces =
        ARENA_ARRAY(a, struct network_interface, app->n_interfaces + 1);
    for (size_t i = 0; i < app->n_interfaces; i++) {
        const struct network_interface *from = &app->interfaces[i];
        struct network_rule *rules = ARENA_ARRAY(a, struct network_rule, from->n_rules + 1);
        for (size_t k = 0; k < from->n_rules; k++) {
            rules[k] = from->rules[k];
            if (rules[k].remote.p)
                rules[k].remote = arena_str(a, rules[k].remote);
            if (rules[k].protocol.p)
                rules[k].protocol = arena_str(a, rules[k].protocol);
            if (rules[k].host.p)
                rules[k].host = arena_str(a, rules[k].host);
        }
        interfaces[i] = *from;
        interfaces[i].network = arena_str(a, from->network);
        interfaces[i].rules = rules;
    }
    return (struct network_app){arena_str(a, app->id), app->is_machine, interfaces,
                                app->n_interfaces};
}

static void open_app(struct apps_network *w, const struct network_app *app)
{
    struct linux_network *n = of(w);
    struct held_app *h = find_app(n, app->id);
    if (h)
        app_free(h);
    h = NEW(struct held_app);
    h->arena = arena_new_with(512);
    h->wish = copy_app(h->arena, app);
    list_append(&n->apps, &h->link);
    struct net_job *j = job_new(n, ABOUT_APP, app->id);
    const struct network_instance **networks =
        ARENA_ARRAY(j->arena, const struct network_instance *, app->n_interfaces + 1);
    for (size_t i = 0; i < app->n_interfaces; i++) {
        const struct held_instance *of_it = find_instance(n, app->interfaces[i].network);
        networks[i] = of_it ? &of_it->wish : NULL;
    }
    h->order = j->order;
    plan_open_app(&j->plan, &h->wish, networks);
    enqueue(n, j);
}

static void close_app(struct apps_network *w, struct str id)
{
    struct linux_network *n = of(w);
    struct held_app *h = find_app(n, id);
    struct net_job *j = job_new(n, ABOUT_NOTHING, id);
    plan_close_app(&j->plan, j->id, h ? h->wish.n_interfaces : 1);
    if (h)
        app_free(h);
    enqueue(n, j);
}

/* ---- names and numbers --------------------------------------------------------------------- */

static struct str namespace_path(struct apps_network *w, struct arena *a, struct str app)
{
    return arena_printf(a, NAMESPACES "/%s", plan_namespace(a, prefix(of(w)), app).p);
}

static void bridge_name(struct apps_network *w, struct str instance, char out[NETWORK_NAME_BYTES])
{
    plan_bridge_name(prefix(of(w)), instance, out);
}

static void interface_name(struct apps_network *w, struct str app, unsigned index,
                           char out[NETWORK_NAME_BYTES])
{
    plan_interface_name(prefix(of(w)), app, index, out);
}

static int counters(struct apps_network *w, const char *interface, struct network_counters *ret)
{
    (void) w;
    return links_counters(interface, ret);
}

/* ---- sweeping ------------------------------------------------------------------------------ */

static bool is_wanted_link(const struct linux_network *n, const char *name)
{
    char known[NETWORK_NAME_BYTES];
    LIST_FOR_EACH (&n->instances, item) {
        plan_bridge_name(n->prefix, CONTAINER_OF(item, struct held_instance, link)->wish.id, known);
        if (strcmp(known, name) == 0)
            return true;
    }
    LIST_FOR_EACH (&n->apps, item) {
        const struct network_app *app = &CONTAINER_OF(item, struct held_app, link)->wish;
        for (unsigned i = 0; i < app->n_interfaces; i++) {
            plan_interface_name(n->prefix, app->id, i, known);
            if (strcmp(known, name) == 0)
                return true;
        }
    }
    return false;
}

static bool is_ours(const char *name, const char *our_prefix, const char *next)
{
    size_t n = strlen(our_prefix);
    return strncmp(name, our_prefix, n) == 0 && char_is_in(name[n], next);
}

struct broom {
    struct linux_network *network;
    struct plan *plan;
};

static void sweep_link(void *arg, const char *name, const struct network_counters *c)
{
    struct broom *b = arg;
    (void) c;
    if (is_ours(name, b->network->prefix, "bv") && !is_wanted_link(b->network, name))
        plan_remove_link(b->plan, arena_strz(b->plan->arena, str_of(name)));
}

static void sweep_namespaces(struct linux_network *n, struct plan *p)
{
    DIR *d = opendir(NAMESPACES);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (is_ours(e->d_name, n->prefix, "-") &&
            !find_app(n, str_of(e->d_name + strlen(n->prefix) + 1)))
            plan_remove_namespace(p, arena_strz(p->arena, str_of(e->d_name)));
    if (d)
        closedir(d);
}

static void sweep(struct apps_network *w)
{
    struct linux_network *n = of(w);
    struct net_job *j = job_new(n, ABOUT_NOTHING, STR(""));
    links_each(sweep_link, &(struct broom){n, &j->plan});
    sweep_namespaces(n, &j->plan);
    if (!j->plan.n_steps) {
        list_init(&j->link);
        job_free(j);
        return;
    }
    enqueue(n, j);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void listen_to(struct apps_network *w, const struct network_events *events)
{
    struct linux_network *n = of(w);
    n->has_events = events != NULL;
    if (events)
        n->events = *events;
}

static void network_free_all(struct apps_network *w)
{
    struct linux_network *n = of(w);
    LIST_FOR_EACH (&n->jobs, item)
        job_free(CONTAINER_OF(item, struct net_job, link));
    LIST_FOR_EACH (&n->instances, item)
        instance_free(CONTAINER_OF(item, struct held_instance, link));
    LIST_FOR_EACH (&n->apps, item)
        app_free(CONTAINER_OF(item, struct held_app, link));
    hosts_listener_free(n->listener);
    hosts_done(&n->hosts);
    n->is_freed = true;
    if (!n->running)
        mem_free(n);
}

static const struct apps_network_functions functions = {
    .name = "linux",
    .listen = listen_to,
    .open_instance = open_instance,
    .close_instance = close_instance,
    .open_app = open_app,
    .close_app = close_app,
    .namespace_path = namespace_path,
    .bridge_name = bridge_name,
    .interface_name = interface_name,
    .counters = counters,
    .sweep = sweep,
    .free = network_free_all,
};

int apps_network_linux_new(const struct apps_network_options *o, struct apps_network **ret)
{
    if (geteuid() != 0)
        return -EPERM;
    if (o->prefix && (!*o->prefix || strlen(o->prefix) >= PLAN_PREFIX_BYTES))
        return -EINVAL;
    struct linux_network *n = NEW(struct linux_network);
    n->base.functions = &functions;
    n->node = o->node;
    if (o->prefix)
        (void) snprintf(n->prefix, sizeof(n->prefix), "%s", o->prefix);
    list_init(&n->instances);
    list_init(&n->apps);
    list_init(&n->jobs);
    *ret = &n->base;
    return 0;
}

void apps_network_free(struct apps_network *w)
{
    if (w)
        w->functions->free(w);
}
