/* SPDX-License-Identifier: Apache-2.0 */
#include "site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "runtime/runtime_machine.h"

static const char *const topics[N_IN] = {
    [IN_APP] = "AppInstanceConfig",         [IN_VOLUME] = "VolumeConfig",
    [IN_CONTENT] = "ContentTreeConfig",     [IN_DATASTORE] = "DatastoreConfig",
    [IN_NETWORK] = "NetworkInstanceConfig", [IN_AGENT] = "ZedAgentStatus",
};

/* ---- configuration ------------------------------------------------------------------------- */

static void publish(struct site *s, enum apps_in which, bool is_there, const char *key,
                    struct str text)
{
    if (!is_there) {
        (void) publication_unpublish(s->in[which], str_of(key));
        return;
    }
    struct json *value = json_parse_quick(s->device.arena, text);
    if (!value)
        fail_msg("bad JSON in a test: %.*s", STR_ARG(text));
    assert_int_equal(publication_publish(s->in[which], str_of(key), value), 0);
}

static void configure_app(struct site *s, const char *id, const char *volume, bool is_there)
{
    const struct site_config *c = &s->config;
    struct arena *a = s->device.arena;
    struct str data =
        c->user_data ? base64_encode(a, str_of(c->user_data), BASE64_STANDARD) : STR("");
    publish(
        s, IN_APP, is_there, id,
        arena_printf(
            a,
            "{\"UUIDandVersion\":{\"UUID\":\"%s\",\"Version\":\"%s\"},\"DisplayName\":\"%.3s\","
            "\"Activate\":%s,\"FixedResources\":{\"Memory\":%d,\"VCpus\":1},"
            "\"RestartCmd\":{\"Counter\":%d},\"PurgeCmd\":{\"Counter\":%d},\"ProfileList\":%s,"
            "\"VolumeRefConfigList\":[{\"VolumeID\":\"%s\",\"GenerationCounter\":%d,"
            "\"MountDir\":\"/\"}],\"AppNetAdapterList\":[{\"Name\":\"net\",\"Network\":\"" NETWORK
            "\"}],\"pubsub-large-CloudInitUserData\":\"%.*s\"}",
            id, c->version ? c->version : "1", id, c->is_active ? "true" : "false",
            c->memory ? c->memory : 65536, c->restart, c->purge, c->profiles ? c->profiles : "null",
            volume, c->generation, STR_ARG(data)));
}

static void configure_volume(struct site *s, const char *id, bool is_there)
{
    struct arena *a = s->device.arena;
    for (int generation = 0; generation < 3; generation++)
        publish(s, IN_VOLUME, is_there && generation == s->config.generation,
                arena_printf(a, "%s#%d", id, generation).p,
                arena_printf(a,
                             "{\"VolumeID\":\"%s\",\"ContentID\":\"" CONTENT
                             "\",\"VolumeContentOriginType\":2,\"GenerationCounter\":%d,"
                             "\"DisplayName\":\"disk\",\"MaxVolSize\":1000}",
                             id, generation));
}

void site_configure(struct site *s)
{
    const struct site_config *c = &s->config;
    struct arena *a = s->device.arena;
    /* The wrong way round: nothing may depend on the order. */
    configure_app(s, WEB, VOLUME, c->has_app);
    configure_app(s, DB, DISK, c->has_app && c->is_second);
    configure_volume(s, VOLUME, c->has_volume);
    configure_volume(s, DISK, c->has_volume && c->is_second);
    publish(s, IN_CONTENT, c->has_content, CONTENT,
            arena_printf(a,
                         "{\"ContentID\":\"" CONTENT "\",\"DatastoreIDList\":[\"" STORE
                         "\"],\"RelativeURL\":\"team/app:1\",\"Format\":%d,\"ContentSha256\":\"\","
                         "\"MaxDownloadSize\":1000,\"DisplayName\":\"app\"}",
                         c->format ? c->format : FORMAT_CONTAINER));
    publish(s, IN_DATASTORE, c->has_store, STORE,
            arena_printf(a,
                         "{\"UUID\":\"" STORE "\",\"DsType\":\"%s\","
                         "\"Fqdn\":\"docker://registry.example\",\"Dpath\":\"\",\"ApiKey\":\"\","
                         "\"Password\":\"\"}",
                         c->store_type ? c->store_type : "DsContainerRegistry"));
    publish(s, IN_NETWORK, c->has_network, NETWORK,
            STR("{\"UUID\":\"" NETWORK "\",\"Version\":\"1\",\"DisplayName\":\"local\",\"Type\":2,"
                "\"Activate\":true,\"PortLabel\":\"uplink\",\"IpType\":1,"
                "\"Subnet\":{\"IP\":\"10.1.0.0\",\"Mask\":\"////AA==\"},\"Gateway\":\"10.1.0.1\","
                "\"DhcpRange\":{\"Start\":\"10.1.0.2\",\"End\":\"10.1.0.3\"}}"));
    publish(s, IN_AGENT, true, "zedagent",
            c->has_no_config ? STR("{\"ConfigGetStatus\":2}") : STR("{\"ConfigGetStatus\":1}"));
}

/* ---- what is told -------------------------------------------------------------------------- */

static void on_status(void *arg, struct str key, const struct json *value)
{
    struct site *s = arg;
    int64_t state = json_get_int(value, STR("State"), 0);
    if (!str_is(key, WEB))
        return;
    s->errors += json_get_str(value, STR("Error")).n > 0;
    if (state == s->last_state)
        return;
    s->last_state = state;
    buf_printf(&s->story, "%s%d", s->story.n ? " " : "", (int) state);
}

static void on_status_again(void *arg, struct str key, const struct json *value,
                            const struct json *old)
{
    (void) old;
    on_status(arg, key, value);
}

static void on_status_gone(void *arg, struct str key, const struct json *last)
{
    struct site *s = arg;
    (void) last;
    if (str_is(key, WEB))
        buf_append_str(&s->story, STR(" gone"));
}

/* ---- life ---------------------------------------------------------------------------------- */

static int make_runtime(void *arg, const struct runtime_events *events, struct runtime **ret)
{
    struct site *s = arg;
    s->runtime = runtime_sim_new(NULL, &s->device.clock.clock, &s->sim, events);
    for (size_t i = 0; i < s->n_found; i++) {
        struct runtime_object *o =
            runtime_found(s->runtime, s->found[i].kind, str_of(s->found[i].id), s->found[i].state);
        assert_non_null(o);
        o->is_adopted = s->found[i].state == RUNTIME_RUNNING;
        o->started_wall_us = o->is_adopted ? s->device.clock.now_us : 0;
    }
    *ret = s->runtime;
    return 0;
}

void site_start(struct site *s)
{
    char *error = NULL;
    struct device *d = &s->device;
    const struct node_options o = {
        .loop = d->loop,
        .clock = &d->clock.clock,
        .machine = s->machine,
        .directories = {device_path(d, "config"), device_path(d, "persist"), device_path(d, "run")},
        .is_simulated = true,
    };
    if (node_new(&o, &s->node, &error) < 0)
        fail_msg("%s", error);
    for (int i = 0; i < N_IN; i++) {
        struct pubsub_name name = {.agent = STR("zedagent"), .topic = str_of(topics[i])};
        if (topics[i])
            assert_int_equal(publication_new(s->node->pubsub, &name, &s->in[i]), 0);
    }
    static const struct subscription_handlers handlers = {
        .on_create = on_status, .on_modify = on_status_again, .on_delete = on_status_gone};
    struct pubsub_name name = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    assert_int_equal(subscription_new(s->node->pubsub, &name, &handlers, s, &s->told), 0);
    struct apps_options options = {.make_runtime = make_runtime, .make_arg = s};
    assert_int_equal(apps_new(s->node, &options, &s->apps), 0);
    site_configure(s);
    loop_settle(d->loop);
}

/* What a machine would have: nothing of what was under way. */
static void keep(void *arg, const struct runtime_status *st)
{
    struct site *s = arg;
    enum runtime_state state =
        st->state == RUNTIME_HALTING || st->state == RUNTIME_BOOTING ? RUNTIME_RUNNING : st->state;
    if (state != RUNTIME_DELIVERED && state != RUNTIME_CREATED_VOLUME && state != RUNTIME_RUNNING &&
        state != RUNTIME_HALTED)
        return;
    assert_true(s->n_found < N_ELEMENTS(s->found));
    struct found *f = &s->found[s->n_found++];
    f->kind = st->kind;
    f->state = state;
    (void) snprintf(f->id, sizeof(f->id), "%.*s", STR_ARG(st->id));
}

void site_kill(struct site *s)
{
    s->n_found = 0;
    runtime_each(s->runtime, keep, s);
    apps_free(TAKE(s->apps));
    subscription_free(TAKE(s->told));
    for (int i = 0; i < N_IN; i++)
        publication_free(TAKE(s->in[i]));
    node_free(TAKE(s->node));
    loop_settle(s->device.loop);
}

void site_init(struct site *s)
{
    *s = (struct site){.sim = runtime_sim_defaults};
    device_init(&s->device);
    struct machine_sim_options m = {
        .loop = s->device.loop, .clock = &s->device.clock.clock, .seed = 7};
    s->machine = machine_sim_new(&m);
    s->config = (struct site_config){
        .has_app = true,
        .has_volume = true,
        .has_content = true,
        .has_store = true,
        .has_network = true,
        .is_active = true,
    };
}

void site_done(struct site *s)
{
    if (s->apps)
        site_kill(s);
    machine_free(s->machine);
    buf_done(&s->story);
    device_done(&s->device);
}

/* ---- time ---------------------------------------------------------------------------------- */

/* Everything that follows without the clock; returns what comes next. */
static int64_t settle(struct site *s)
{
    int64_t next = -1;
    for (int i = 0; i < 8; i++) {
        loop_settle(s->device.loop);
        int64_t of_runtime = runtime_sim_turn(s->runtime), of_apps = s->apps->wake_us;
        /* Only when it has asked for that: who forgets to wake it shall be found out. */
        if (of_apps >= 0 && of_apps <= s->device.clock.now_us)
            of_apps = apps_turn(s->apps);
        next = of_apps < 0 || (of_runtime >= 0 && of_runtime < of_apps) ? of_runtime : of_apps;
    }
    return next;
}

bool site_step(struct site *s)
{
    int64_t next = settle(s);
    if (next < 0)
        return false;
    s->device.clock.now_us = MAX(s->device.clock.now_us, next);
    (void) settle(s);
    return true;
}

void site_run(struct site *s, int64_t seconds)
{
    int64_t end = s->device.clock.now_us + seconds * 1000000;
    for (int64_t next = settle(s); next >= 0 && next <= end; next = settle(s))
        s->device.clock.now_us = MAX(s->device.clock.now_us, next);
    s->device.clock.now_us = end;
    (void) settle(s);
}

/* ---- looking ------------------------------------------------------------------------------- */

const struct json *site_told(struct site *s, enum apps_out which, const char *key)
{
    struct publication *p = s->apps->out[which];
    return p ? publication_get(s->device.arena, p, str_of(key)) : NULL;
}

int64_t site_state(struct site *s, const char *app)
{
    return json_get_int(site_told(s, OUT_APP, app), STR("State"), 0);
}

size_t site_count(struct site *s, enum apps_out which)
{
    struct publication *p = s->apps->out[which];
    return p ? publication_count(p).n_keys : 0;
}

static void count(void *arg, const struct runtime_status *s)
{
    (void) s;
    ++*(size_t *) arg;
}

size_t site_objects(struct site *s)
{
    size_t n = 0;
    runtime_each(s->runtime, count, &n);
    return n;
}

enum runtime_state site_runtime_state(struct site *s, enum runtime_kind kind, const char *id)
{
    struct runtime_status st;
    return runtime_status(s->runtime, kind, str_of(id), &st) < 0 ? RUNTIME_INVALID : st.state;
}

static void write_object(void *arg, const struct runtime_status *s)
{
    struct buf *lines = arg;
    buf_printf(lines, "%d %.*s %s\n", s->kind, STR_ARG(s->id), runtime_state_name(s->state));
}

static int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

struct str site_end_state(struct site *s, bool is_exact)
{
    struct arena *a = s->device.arena;
    BUF_AUTO lines = {0}, all = {0};
    struct str sorted[64], rest, line;
    size_t n = 0;
    runtime_each(s->runtime, write_object, &lines);
    LIST_FOR_EACH (&s->apps->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        buf_printf(&lines, "%s: state %d restart %u purge %u version %s", p->id,
                   application_sw_state(p), p->done_restart, p->done_purge, p->taken_version);
        if (is_exact)
            buf_printf(&lines, " address %x number %d", p->n_adapters ? p->adapters[0].address : 0,
                       p->number);
        buf_append_char(&lines, '\n');
    }
    rest = buf_str(&lines);
    while (str_split(&rest, '\n', &line) && n < N_ELEMENTS(sorted))
        sorted[n++] = line;
    qsort(sorted, n, sizeof(*sorted), compare_lines);
    for (size_t i = 0; i < n; i++)
        buf_printf(&all, "%.*s\n", STR_ARG(sorted[i]));
    return arena_str(a, buf_str(&all));
}
