/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_internal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "machine/machine.h"
#include "node/items.h"

#define GLOBAL STR("global")
#define LED_KEY STR("ledconfig")
#define SERVER STR("server")
#define SOFT_SERIAL STR("soft_serial")
#define ROOT STR("root-certificate.pem")
#define MAX_LINE_BYTES 4096 /* of files of one line */

static struct str keep(struct str s)
{
    return str_range(s.n ? mem_dup(s.p, s.n) : mem_strdup(""), s.n);
}

static void drop(struct str *s)
{
    mem_free((char *) s->p);
    *s = STR_NONE;
}

/* True when it was another. */
static bool replace(struct str *at, struct str by)
{
    if (at->p && str_eq(*at, by))
        return false;
    const struct str copy = keep(by);
    drop(at);
    *at = copy;
    return true;
}

/* ---- who waits ----------------------------------------------------------------------------- */

static unsigned present(const struct node *n)
{
    return (n->has_items ? NODE_ITEMS : 0) | (n->ports ? NODE_NETWORK : 0) |
           (uuid_is_zero(&n->device) ? 0 : NODE_ONBOARDED) |
           (node_has_controller_certs(n) ? NODE_CONTROLLER : 0);
}

static void on_deferred(struct loop_deferred *d)
{
    struct node_internal *in = CONTAINER_OF(d, struct node_internal, deferred);
    struct node *n = in->node;
    const unsigned pending = in->pending;
    in->pending = 0;
    struct list *item;
    /* A watch may take itself and others away. */
    while ((item = list_pop_first(&n->watches)))
        list_append(&in->dispatching, item);
    while ((item = list_pop_first(&in->dispatching))) {
        struct node_watch *w = CONTAINER_OF(item, struct node_watch, link);
        const unsigned changes = w->is_new ? pending | present(n) : pending;
        w->is_new = false;
        list_append(&n->watches, item);
        if (changes)
            w->on_change(w, changes);
    }
}

void node_changed(struct node *n, unsigned changes)
{
    n->internal->pending |= changes;
    loop_defer(n->loop, &n->internal->deferred);
}

void node_watch(struct node *n, struct node_watch *w)
{
    w->is_new = true;
    list_append(&n->watches, &w->link);
    loop_defer(n->loop, &n->internal->deferred);
}

void node_unwatch(struct node_watch *w)
{
    if (w->link.next)
        list_remove(&w->link);
}

/* ---- topics -------------------------------------------------------------------------------- */

static void on_items(void *arg, struct str key, const struct json *value)
{
    struct node *n = arg;
    if (!str_eq(key, GLOBAL) || items_read(n->items, value) < 0)
        return;
    n->has_items = true;
    node_changed(n, NODE_ITEMS);
}

static void on_items_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    (void) old;
    on_items(arg, key, value);
}

static void on_network(void *arg, struct str key, const struct json *value)
{
    struct node *n = arg;
    struct uplink_ports *ports = NULL;
    if (!str_eq(key, GLOBAL) || uplink_ports_parse(value, &ports) < 0)
        return;
    uplink_ports_unref(n->ports);
    n->ports = ports;
    node_take_proxy_certs(n, value);
    n->network_state = (enum node_network_state) json_get_int(value, STR("State"), 0);
    node_changed(n, NODE_NETWORK);
}

static void on_network_again(void *arg, struct str key, const struct json *value,
                             const struct json *old)
{
    (void) old;
    on_network(arg, key, value);
}

static void on_onboarding(void *arg, struct str key, const struct json *value)
{
    struct node *n = arg;
    struct uuid device;
    if (!str_eq(key, GLOBAL) || uuid_parse(json_get_str(value, STR("DeviceUUID")), &device) < 0)
        return;
    const bool is_same = uuid_eq(&device, &n->device);
    n->device = device;
    if (replace(&n->hardware_model, json_get_str(value, STR("HardwareModel"))) || !is_same)
        node_changed(n, NODE_ONBOARDED);
}

static void on_onboarding_again(void *arg, struct str key, const struct json *value,
                                const struct json *old)
{
    (void) old;
    on_onboarding(arg, key, value);
}

static int subscribe(struct node *n)
{
    static const struct subscription_handlers items = {.on_create = on_items,
                                                       .on_modify = on_items_again};
    static const struct subscription_handlers network = {.on_create = on_network,
                                                         .on_modify = on_network_again};
    static const struct subscription_handlers onboarding = {.on_create = on_onboarding,
                                                            .on_modify = on_onboarding_again};
    struct node_internal *in = n->internal;
    const struct pubsub_name items_name = {.agent = STR("zedagent"),
                                           .topic = STR("ConfigItemValueMap")};
    const struct pubsub_name network_name = {.agent = STR("nim"),
                                             .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name onboarding_name = {
        .agent = STR("zedclient"), .topic = STR("OnboardingStatus"), .is_persistent = true};
    const struct pubsub_name led_name = {.agent = STR(""), .topic = STR("LedBlinkCounter")};
    int r = subscription_new(n->pubsub, &items_name, &items, n, &in->items);
    if (r == 0)
        r = subscription_new(n->pubsub, &network_name, &network, n, &in->network);
    if (r == 0)
        r = subscription_new(n->pubsub, &onboarding_name, &onboarding, n, &in->onboarding);
    return r < 0 ? r : publication_new(n->pubsub, &led_name, &in->leds);
}

void node_set_led(struct node *n, enum node_led led)
{
    ARENA_AUTO a = arena_new();
    struct json *value = json_new(a, json_object());
    json_append_member(a, value, STR("BlinkCounter"), json_int(led));
    n->internal->led = led;
    const int r = publication_publish(n->internal->leds, LED_KEY, value);
    if (r < 0)
        log_warning("the LED's state is not published, ignoring", LOG_ERRNO(r));
}

enum node_led node_led(const struct node *n)
{
    return n->internal->led;
}

/* ---- the config directory ------------------------------------------------------------------ */

/* The first line of a file, without blanks around it. */
static int read_line(const struct node *n, struct str name, struct str *at, bool *ret_changed)
{
    BUF_AUTO text = {0};
    const int r = node_file_read(n, NODE_CONFIG, name, &text);
    if (r < 0)
        return r;
    struct str rest = str_trim(buf_str(&text)), line = STR("");
    (void) str_split(&rest, '\n', &line);
    line = str_trim(line);
    if (line.n == 0)
        return -ENOENT;
    if (line.n > MAX_LINE_BYTES)
        return -EFBIG;
    *ret_changed = replace(at, line);
    return 0;
}

int node_reread_server(struct node *n)
{
    bool is_other = false;
    const int r = read_line(n, SERVER, &n->server, &is_other);
    if (r == 0 && is_other)
        node_changed(n, NODE_SERVER);
    return r;
}

static int load_trust(struct node *n, const struct node_options *o)
{
    BUF_AUTO pem = {0};
    size_t which = 0;
    const int r = node_file_read(n, NODE_CONFIG, ROOT, &pem);
    if (r < 0)
        return r;
    if (o->trust) {
        n->trust = uplink_trust_ref(o->trust);
        return 0;
    }
    const struct str root = buf_str(&pem);
    const struct uplink_trust_options trust = {.with_system = true, .pem = &root, .n_pem = 1};
    return uplink_trust_new(&trust, &n->trust, &which);
}

static int load_config(struct node *n, const struct node_options *o, const char **ret_what)
{
    bool ignored;
    *ret_what = "server";
    int r = read_line(n, SERVER, &n->server, &ignored);
    if (r < 0)
        return r;
    *ret_what = "soft_serial";
    r = read_line(n, SOFT_SERIAL, &n->soft_serial, &ignored);
    if (r < 0 && r != -ENOENT)
        return r;
    *ret_what = "root-certificate.pem";
    r = load_trust(n, o);
    return r < 0 ? r : node_identities_load(n, ret_what);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int wrap(void *arg, bool is_registration, struct str payload, struct buf *to)
{
    return node_seal_envelope(arg, is_registration, payload, to);
}

static int open_reply(void *arg, struct str body, struct buf *to, enum uplink_status *ret)
{
    return node_open_envelope(arg, body, to, ret);
}

static struct node *allocate(const struct node_options *o)
{
    struct node *n = NEW(struct node);
    struct node_internal *in = n->internal = NEW(struct node_internal);
    n->loop = o->loop;
    n->clock = o->clock;
    n->wire = o->wire;
    n->machine = o->machine;
    n->is_simulated = o->is_simulated;
    n->items = items_new();
    n->server = keep(STR(""));
    n->serial = keep(STR(""));
    n->soft_serial = keep(STR(""));
    n->hardware_model = keep(STR(""));
    n->user_agent = keep(o->user_agent.n ? o->user_agent : STR("seth-agent/" SETH_VERSION));
    list_init(&n->watches);
    list_init(&in->dispatching);
    in->node = n;
    in->deferred.fn = on_deferred;
    in->envelope = (struct uplink_envelope){.wrap = wrap, .open = open_reply, .arg = n};
    for (size_t i = 0; i < NODE_DIRECTORIES; i++)
        in->directories[i] = mem_strdup(o->directories[i]);
    return n;
}

static void ask_machine(struct node *n)
{
    ARENA_AUTO a = arena_new();
    struct machine_identity identity = {0};
    const int r = n->machine->functions->identity(n->machine, a, &identity);
    if (r < 0)
        log_warning("the machine does not say what it is, ignoring", LOG_ERRNO(r));
    else
        (void) replace(&n->serial, str_trim(identity.serial));
}

static int start(struct node *n, const struct node_options *o, const char **ret_what)
{
    static const enum node_directory made[] = {NODE_PERSIST, NODE_RUN};
    for (size_t i = 0; i < N_ELEMENTS(made); i++) {
        *ret_what = n->internal->directories[made[i]];
        const int r = node_make_directory(*ret_what);
        if (r < 0)
            return r;
    }
    int r = load_config(n, o, ret_what);
    if (r < 0)
        return r;
    ask_machine(n);
    *ret_what = "topics";
    n->pubsub = pubsub_new(&(struct pubsub_options){
        .loop = n->loop,
        .clock = n->clock,
        .run_directory = n->internal->directories[NODE_RUN],
        .persist_directory = n->internal->directories[NODE_PERSIST],
        .skips_sync = n->is_simulated,
        .is_private = n->is_simulated,
    });
    r = subscribe(n);
    if (r == 0)
        (void) node_load_controller_certs(n);
    return r;
}

int node_new(const struct node_options *o, struct node **ret, char **ret_error)
{
    struct node *n = allocate(o);
    const char *what = "";
    const int r = start(n, o, &what);
    if (r < 0) {
        BUF_AUTO words = {0};
        buf_printf(&words, "%s: %s (of %s)", what, log_errno_text(r),
                   n->internal->directories[NODE_CONFIG]);
        *ret_error = buf_take(&words);
        node_free(n);
        return r;
    }
    *ret = n;
    return 0;
}

void node_free(struct node *n)
{
    if (!n)
        return;
    struct node_internal *in = n->internal;
    loop_undefer(n->loop, &in->deferred);
    subscription_free(in->items);
    subscription_free(in->network);
    subscription_free(in->onboarding);
    publication_free(in->leds);
    pubsub_free(n->pubsub);
    node_certs_free(in->certs);
    node_identity_done(&n->identity);
    node_identity_done(&n->onboarding);
    uplink_trust_unref(n->trust);
    uplink_ports_unref(n->ports);
    items_free(n->items);
    drop(&n->server);
    drop(&n->serial);
    drop(&n->soft_serial);
    drop(&n->user_agent);
    drop(&n->hardware_model);
    for (size_t i = 0; i < NODE_DIRECTORIES; i++)
        mem_free(in->directories[i]);
    mem_free(in);
    mem_free(n);
}
