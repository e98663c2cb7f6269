/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "world.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/auth/rbac.h"
#include "api/codec.h"
#include "base/alloc.h"
#include "base/log.h"
#include "protobuf/message.h"

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "world: %s failed\n", what);
    abort();
}

static int64_t clock_now(const struct clock *c)
{
    return atomic_load(&CONTAINER_OF(c, struct world_clock, clock)->now_us);
}

/* ---- a client with faults ---------------------------------------------------------------------
 */

static int faulty_request(struct kube_client *c, struct arena *a, const struct kube_request *r,
                          struct json **ret_object, struct status *st)
{
    struct faulty_client *f = CONTAINER_OF(c, struct faulty_client, client);
    bool is_write = r->verb != VERB_GET && r->verb != VERB_LIST;
    if (is_write && f->n_to_fail) {
        f->n_to_fail--;
        return -EIO;
    }
    int result = kube_request(f->real, a, r, ret_object, st);
    f->n_writes += is_write && result == 0 && str_is(r->subresource, "status");
    if (is_write && f->n_to_lose) {
        f->n_to_lose--;
        return -EIO;
    }
    return result;
}

static const struct kube_client_ops faulty_ops = {.request = faulty_request};

/* ---- objects ----------------------------------------------------------------------------------
 */

static struct json *parse(struct world *w, const char *text)
{
    char *quoted = arena_strz(w->arena, str_of(text));
    for (char *p = quoted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    struct json *v = json_parse_quick(w->arena, str_of(quoted));
    must(v != NULL, text);
    return v;
}

static int ask(struct world *w, enum verb verb, const char *plural, const char *namespace,
               const char *name, struct kube_request r, struct json **ret)
{
    struct status st;
    static const char *const core[] = {"namespaces", "configmaps", "secrets", "events"};
    bool is_core = false;
    for (size_t i = 0; i < N_ELEMENTS(core); i++)
        is_core = is_core || str_is(str_of(plural), core[i]);
    status_init(&st, w->arena);
    r.verb = verb;
    const bool is_storage = str_is(str_of(plural), "storageclasses");
    r.group = is_core ? STR("") : is_storage ? STR("storage.k8s.io") : STR("eve.lfedge.org");
    r.version = is_core || is_storage ? STR("v1") : STR("v1beta1");
    r.resource = str_of(plural);
    r.namespace = str_of(namespace);
    r.name = str_of(name);
    int result = kube_request(w->user, w->arena, &r, ret, &st);
    if (result < 0 && result != -ENOENT)
        fprintf(stderr, "%s/%s: %.*s\n", plural, name ? name : "", STR_ARG(st.message));
    return result;
}

void world_create(struct world *w, const char *plural, const char *namespace, const char *text)
{
    struct kube_request r = {.body = parse(w, text)};
    must(ask(w, VERB_CREATE, plural, namespace, NULL, r, NULL) == 0, text);
}

void world_patch(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *subresource, const char *text)
{
    struct kube_request r = {.body = parse(w, text),
                             .subresource = str_of(subresource),
                             .content_type = STR("application/merge-patch+json")};
    must(ask(w, VERB_PATCH, plural, namespace, name, r, NULL) == 0, text);
}

void world_delete(struct world *w, const char *plural, const char *namespace, const char *name)
{
    must(ask(w, VERB_DELETE, plural, namespace, name, (struct kube_request){0}, NULL) == 0, name);
}

const struct json *world_get(struct world *w, const char *plural, const char *namespace,
                             const char *name)
{
    struct json *object = NULL;
    int r = ask(w, VERB_GET, plural, namespace, name, (struct kube_request){0}, &object);
    return r == 0 ? object : NULL;
}

struct str world_condition(struct world *w, const char *plural, const char *namespace,
                           const char *name, const char *type, const char *key)
{
    const struct json *object = world_get(w, plural, namespace, name);
    return derive_condition_text(json_get(object, STR("status")), type, key);
}

int64_t world_events(struct world *w, const char *namespace, const char *name, const char *reason)
{
    struct json *list = NULL;
    int64_t n = 0;
    must(ask(w, VERB_LIST, "events", namespace, NULL, (struct kube_request){0}, &list) == 0,
         "list");
    JSON_FOR_EACH_ITEM (json_get(list, STR("items")), e)
        if (str_is(json_str(json_at(e, "involvedObject", "name", NULL)), name) &&
            str_is(json_get_str(e, STR("reason")), reason))
            n += json_get_int(e, STR("count"), 0);
    return n;
}

const char *world_uuid(struct world *w, const char *alias)
{
    for (size_t i = w->n_aliases; i > 0; i--)
        if (strcmp(w->aliases[i - 1].alias, alias) == 0)
            return w->aliases[i - 1].uuid;
    return alias;
}

void world_alias(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *alias)
{
    const struct json *object = world_get(w, plural, namespace, name);
    must(w->n_aliases < WORLD_MAX_ALIASES, "alias");
    w->aliases[w->n_aliases++] = (struct alias){
        alias, arena_strz(w->arena, json_str(json_at(object, "status", "uuid", NULL)))};
}

void world_application(struct world *w, const char *namespace, const char *name, const char *uuid,
                       const char *device)
{
    world_create(w, "applications", namespace,
                 arena_printf(w->arena,
                              "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Application',"
                              "'metadata':{'name':'%s'},"
                              "'spec':{'containers':[{'name':'c','image':'boot'}]}}",
                              name)
                     .p);
    world_patch(w, "applications", namespace, name, "status",
                arena_printf(w->arena, "{'status':{'device':'%s'}}", device).p);
    world_alias(w, "applications", namespace, name, uuid);
}

/* ---- time and events ---------------------------------------------------------------------------
 */

static void on_event(void *ctx, const struct kube_event *e)
{
    struct world *w = ctx;
    int64_t mark = 0;
    roster_on_event(w->roster, e);
    reports_on_event(w->reports, e);
    if (str_is(e->collection, "configmaps") && str_is(e->name, "mark")) {
        ARENA_AUTO a = arena_new();
        const struct json *object = json_parse_quick(a, e->text);
        (void) str_to_i64(json_str(json_at(object, "data", "n", NULL)), &mark);
    }
    (void) pthread_mutex_lock(&w->lock);
    w->n_seen = MAX(w->n_seen, mark);
    w->is_synced = w->is_synced || e->type == KUBE_SYNCED;
    (void) pthread_cond_broadcast(&w->seen);
    (void) pthread_mutex_unlock(&w->lock);
}

/* The mark alone does not tell: a watch begins with all there is, in no order. */
static void wait_for(struct world *w, int64_t mark)
{
    (void) pthread_mutex_lock(&w->lock);
    while (!w->is_synced || w->n_seen < mark)
        (void) pthread_cond_wait(&w->seen, &w->lock);
    (void) pthread_mutex_unlock(&w->lock);
}

void world_settle(struct world *w)
{
    w->n_marks++;
    world_patch(w, "configmaps", "site", "mark", NULL,
                arena_printf(w->arena, "{'data':{'n':'%d'}}", (int) w->n_marks).p);
    wait_for(w, w->n_marks);
}

void world_pass(struct world *w, int64_t ms)
{
    int64_t end_us = w->clock.now_us + ms * 1000;
    for (;;) {
        world_settle(w);
        int64_t idle_us = reports_step(w->reports);
        if (idle_us == 0)
            continue;
        world_settle(w);
        if (w->clock.now_us >= end_us)
            return;
        w->clock.now_us = MIN(end_us, (int64_t) w->clock.now_us + idle_us);
    }
}

void world_poll(struct world *w, const char *uuid_of)
{
    struct uuid uuid;
    world_settle(w);
    must(uuid_parse(str_of(uuid_of), &uuid) == 0, uuid_of);
    struct device *d = roster_by_uuid(w->roster, &uuid);
    must(d != NULL, "device");
    atomic_store(&d->last_seen_us, w->clock.now_us);
    device_unref(d);
}

/* ---- what devices send --------------------------------------------------------------------------
 */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int64_t result;
};

static void on_stored(void *arg, int64_t result)
{
    struct waiting *wait = arg;
    (void) pthread_mutex_lock(&wait->lock);
    wait->result = result;
    (void) pthread_cond_signal(&wait->done);
    (void) pthread_mutex_unlock(&wait->lock);
}

uint64_t world_send(struct world *w, const char *device, enum telemetry_stream stream,
                    struct str bytes)
{
    struct waiting wait = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    struct telemetry_record record = {.stream = stream, .form = TELEMETRY_PROTO, .bytes = bytes};
    must(uuid_parse(str_of(device), &record.device) == 0, device);
    telemetry_append(w->telemetry, &record, NULL, on_stored, &wait);
    (void) pthread_mutex_lock(&wait.lock);
    while (!wait.result)
        (void) pthread_cond_wait(&wait.done, &wait.lock);
    (void) pthread_mutex_unlock(&wait.lock);
    must(wait.result > 0, "append");
    record.id = (uint64_t) wait.result;
    world_settle(w);
    if (!w->is_not_told)
        reports_take(w->reports, &record);
    return record.id;
}

uint64_t world_send_info(struct world *w, const char *device, Eve__Info__ZInfoMsg *m)
{
    if (!m->devid || !*m->devid)
        m->devid = (char *) device;
    return world_send(w, device, TELEMETRY_INFO, pb_pack(w->arena, &m->base));
}

uint64_t world_send_app(struct world *w, const char *device, const char *app, int state,
                        int64_t at_s)
{
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoApp info;
    Google__Protobuf__Timestamp at;
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_app__init(&info);
    google__protobuf__timestamp__init(&at);
    at.seconds = WORLD_NOW_US / SECOND_US + at_s;
    info.appid = (char *) world_uuid(w, app);
    info.appname = (char *) "app";
    info.state = (Eve__Info__ZSwState) state;
    m.ztype = EVE__INFO__ZINFO_TYPES__ZiApp;
    m.attimestamp = &at;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO;
    m.ainfo = &info;
    return world_send_info(w, device, &m);
}

struct reports_stats world_stats(struct world *w)
{
    struct reports_stats s;
    reports_stats(w->reports, &s);
    return s;
}

/* ---- life
 * ---------------------------------------------------------------------------------------- */

static const char *path(struct world *w, const char *name)
{
    return arena_printf(w->arena, "%s/%s", w->directory, name).p;
}

static void open_reports(struct world *w)
{
    char *error = NULL;
    w->roster = roster_new(&(struct roster_options){.clock = &w->clock.clock});
    must(reports_create(&(struct reports_options){.client = &w->client.client,
                                                  .roster = w->roster,
                                                  .telemetry = w->telemetry,
                                                  .clock = &w->clock.clock,
                                                  .checkpoint_path = path(w, "reports")},
                        &w->reports, &error) == 0,
         "reports");
    w->is_synced = false; /* nobody watches now */
    w->watcher = kube_client_local(w->api, "test-watch");
    kube_watch(w->watcher, on_event, w);
}

static void close_reports(struct world *w, bool is_crash)
{
    kube_client_free(w->watcher);
    if (is_crash)
        reports_abandon(w->reports);
    else
        reports_free(w->reports);
    roster_free(w->roster);
}

void world_restart(struct world *w, bool is_crash)
{
    close_reports(w, is_crash);
    open_reports(w);
    world_settle(w);
}

static void open_stores(struct world *w)
{
    char *error = NULL;
    const struct store_options store = {
        .path = path(w, "objects.db"), .parse_head = codec_parse_stored, .clock = &clock_system};
    const struct telemetry_options telemetry = {
        .directory = path(w, "telemetry"), .clock = &w->clock.clock, .max_queued_bytes = 64 << 20};
    must(store_open(&store, &w->store, &error) == 0, "store");
    must(telemetry_open(&telemetry, &w->telemetry, &error) == 0, "telemetry");
    w->rbac = rbac_new(w->store);
    const struct api_options api = {.store = w->store, .clock = &w->clock.clock, .rbac = w->rbac};
    must(api_new(&api, &w->api, &error) == 0, "api");
    w->user = kube_client_local(w->api, "test");
    w->client = (struct faulty_client){{&faulty_ops}, kube_client_local(w->api, "seth-reports")};
}

static void make_objects(struct world *w)
{
    static const char *const namespaces[] = {"eve-system", "site", "other"};
    static const struct {
        const char *namespace, *name, *uuid;
    } devices[] = {
        {"site", "edge-1", DEVICE_1}, {"site", "edge-2", DEVICE_2}, {"other", "edge-3", DEVICE_3}};
    for (size_t i = 0; i < N_ELEMENTS(namespaces); i++)
        world_create(w, "namespaces", NULL,
                     arena_printf(w->arena, "{'metadata':{'name':'%s'}}", namespaces[i]).p);
    world_create(w, "storageclasses", NULL,
                 "{'metadata':{'name':'eve-docker'},'provisioner':'eve','parameters':{'type':"
                 "'container','URL':'https://index.docker.io'}}");
    for (size_t i = 0; i < N_ELEMENTS(namespaces); i++)
        world_create(w, "images", namespaces[i],
                     "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Image','metadata':{'name':"
                     "'boot'},'spec':{'ref':'nginx:1','storageClass':'eve-docker'}}");
    for (size_t i = 0; i < N_ELEMENTS(devices); i++)
        world_create(w, "devices", devices[i].namespace,
                     arena_printf(w->arena,
                                  "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Device',"
                                  "'metadata':{'name':'%s','annotations':{'eve.lfedge.org/uuid':"
                                  "'%s'}},'spec':{'serial':'%s'}}",
                                  devices[i].name, devices[i].uuid, devices[i].name)
                         .p);
    world_create(w, "configmaps", "site", "{'metadata':{'name':'mark'},'data':{'n':'0'}}");
}

void world_open(struct world *w)
{
    *w = (struct world){.directory = "/tmp/seth-reports-XXXXXX", .arena = arena_new()};
    log_set_level(LOG_ERROR);
    w->clock.clock = (struct clock){clock_now, clock_now};
    atomic_store(&w->clock.now_us, WORLD_NOW_US);
    must(mkdtemp(w->directory) != NULL, "mkdtemp");
    (void) pthread_mutex_init(&w->lock, NULL);
    (void) pthread_cond_init(&w->seen, NULL);
    open_stores(w);
    make_objects(w);
    open_reports(w);
    world_settle(w);
}

static int remove_entry(const char *name, const struct stat *st, int type, struct FTW *at)
{
    (void) st;
    (void) type;
    (void) at;
    return remove(name);
}

void world_close(struct world *w)
{
    close_reports(w, /* is_crash= */ false);
    kube_client_free(w->client.real);
    kube_client_free(w->user);
    api_free(w->api);
    rbac_free(w->rbac);
    telemetry_free(w->telemetry);
    store_close(w->store);
    must(nftw(w->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0, "remove");
    (void) pthread_mutex_destroy(&w->lock);
    (void) pthread_cond_destroy(&w->seen);
    arena_free(w->arena);
}
