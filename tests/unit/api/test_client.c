/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in this process hands over values and takes values: they are what a reader of the text
 * has. */
#include "api/client.h"

#include "../audit/directory.h"
#include <pthread.h>

#include "api/api.h"
#include "api/auth/rbac.h"
#include "api/codec.h"
#include "test.h"

struct fixture {
    struct directory directory;
    struct arena *arena;
    struct store *store;
    struct rbac *rbac;
    struct api *api;
    struct kube_client *client;
};

static void open_fixture(struct fixture *f)
{
    char *error = NULL;
    *f = (struct fixture){.directory = directory_make(), .arena = arena_new()};
    const struct store_options store = {.path = directory_file(&f->directory, f->arena, "db"),
                                        .parse_head = codec_parse_stored,
                                        .clock = &clock_system};
    assert_int_equal(store_open(&store, &f->store, &error), 0);
    f->rbac = rbac_new(f->store);
    const struct api_options api = {.store = f->store, .clock = &clock_system, .rbac = f->rbac};
    assert_int_equal(api_new(&api, &f->api, &error), 0);
    f->client = kube_client_local(f->api, "test");
}

static void close_fixture(struct fixture *f)
{
    kube_client_free(f->client);
    api_free(f->api);
    rbac_free(f->rbac);
    store_close(f->store);
    arena_free(f->arena);
    directory_remove(&f->directory);
}

static struct json *ask(struct fixture *f, const struct kube_request *r)
{
    struct json *object = NULL;
    struct status st;
    status_init(&st, f->arena);
    if (kube_request(f->client, f->arena, r, &object, &st) < 0)
        fail_msg("%.*s", STR_ARG(st.message));
    return object;
}

static struct kube_request about(enum verb verb, const char *plural, const char *name)
{
    const bool is_core =
        str_is(str_of(plural), "configmaps") || str_is(str_of(plural), "namespaces");
    return (struct kube_request){.verb = verb,
                                 .group = is_core ? STR("") : STR("eve.lfedge.org"),
                                 .version = is_core ? STR("v1") : STR("v1beta1"),
                                 .resource = str_of(plural),
                                 .namespace =
                                     str_is(str_of(plural), "namespaces") ? STR("") : STR("n"),
                                 .name = str_of(name)};
}

/* What a write gave is what was stored, whatever its members' order. */
static void assert_stored(struct fixture *f, const char *plural, const char *name,
                          const struct json *given)
{
    const struct kube_request r = about(VERB_GET, plural, name);
    const struct json *read = ask(f, &r);
    if (!json_equal(read, given))
        fail_msg("%.*s\nis not\n%.*s", STR_ARG(json_text(f->arena, given)),
                 STR_ARG(json_text(f->arena, read)));
    assert_true(json_get_str(json_get(given, STR("metadata")), STR("resourceVersion")).n > 0);
}

static struct json *write_object(struct fixture *f, enum verb verb, const char *plural,
                                 const char *name, const char *body)
{
    struct kube_request r = about(verb, plural, verb == VERB_CREATE ? "" : name);
    r.body = json_parse_quick(f->arena, str_of(body));
    assert_non_null(r.body);
    if (verb == VERB_PATCH) {
        r.content_type = STR("application/apply-patch+yaml");
        r.query = STR("fieldManager=test&force=true");
    }
    struct json *given = ask(f, &r);
    assert_stored(f, plural, name, given);
    return given;
}

#define NETWORK(ntp) \
    "{\"apiVersion\":\"eve.lfedge.org/v1beta1\",\"kind\":\"NetworkConfig\"," \
    "\"metadata\":{\"name\":\"x\",\"namespace\":\"n\",\"creationTimestamp\":null}," \
    "\"spec\":{\"ip\":\"dhcp\",\"ntp\":[\"" ntp "\"]}}"

TEST(a_write_gives_what_was_stored)
{
    struct fixture f;
    open_fixture(&f);
    (void) write_object(&f, VERB_CREATE, "namespaces", "n", "{\"metadata\":{\"name\":\"n\"}}");
    (void) write_object(
        &f, VERB_CREATE, "configmaps", "c",
        "{\"metadata\":{\"name\":\"c\",\"selfLink\":\"/x\"},\"data\":{\"k\":\"v\"}}");
    (void) write_object(&f, VERB_PATCH, "networkconfigs", "x", NETWORK("a.example"));
    (void) write_object(&f, VERB_PATCH, "networkconfigs", "x", NETWORK("b.example"));
    (void) write_object(&f, VERB_PATCH, "networkconfigs", "x",
                        NETWORK("b.example")); /* nothing new */
    close_fixture(&f);
}

TEST(what_a_write_gave_is_the_callers_to_change)
{
    struct fixture f;
    open_fixture(&f);
    (void) write_object(&f, VERB_CREATE, "namespaces", "n", "{\"metadata\":{\"name\":\"n\"}}");
    struct kube_request r = about(VERB_PATCH, "networkconfigs", "x");
    struct json *body = json_parse_quick(f.arena, STR(NETWORK("a.example")));
    r.body = body;
    r.content_type = STR("application/apply-patch+yaml");
    r.query = STR("fieldManager=test");
    struct json *given = ask(&f, &r);
    struct json *spec = json_get(given, STR("spec"));
    (void) json_set(f.arena, spec, STR("ip"), json_string(STR("static")));
    (void) json_push(f.arena, json_get(spec, STR("ntp")), json_string(STR("more")));
    assert_true(json_equal(body, json_parse_quick(f.arena, STR(NETWORK("a.example")))));
    const struct kube_request get = about(VERB_GET, "networkconfigs", "x");
    assert_str(json_str(json_at(ask(&f, &get), "spec", "ip", NULL)), "dhcp");
    close_fixture(&f);
}

struct hearing {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_synced, is_shared;
};

/* As the text has it, without managedFields. */
static bool is_heard(const struct json *object, struct arena *a, struct str text)
{
    struct json *whole = json_parse_quick(a, text);
    return json_at(whole, "metadata", "managedFields", NULL) &&
           json_remove(json_get(whole, STR("metadata")), STR("managedFields")) &&
           json_equal(object, whole);
}

static void on_event(void *ctx, const struct kube_event *e)
{
    struct hearing *h = ctx;
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&h->lock);
    if (e->type == KUBE_SYNCED)
        h->is_synced = true;
    else if (str_is(e->collection, "namespaces"))
        h->is_shared = kube_event_object(e, a) == kube_event_object(e, a) &&
                       is_heard(kube_event_object(e, a), a, e->text);
    (void) pthread_cond_signal(&h->wake);
    (void) pthread_mutex_unlock(&h->lock);
}

TEST(an_event_is_parsed_once)
{
    struct fixture f;
    struct hearing h = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
    open_fixture(&f);
    (void) write_object(&f, VERB_CREATE, "namespaces", "n", "{\"metadata\":{\"name\":\"n\"}}");
    kube_watch(f.client, on_event, &h);
    (void) pthread_mutex_lock(&h.lock);
    while (!h.is_synced)
        (void) pthread_cond_wait(&h.wake, &h.lock);
    (void) pthread_mutex_unlock(&h.lock);
    assert_true(h.is_shared);
    close_fixture(&f);
}
