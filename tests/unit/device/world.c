/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/auth/rbac.h"
#include "api/codec.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "eve/register.pb-c.h"

static void must(bool is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "%s failed\n", what);
    abort();
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_core(const char *plural)
{
    static const char *const core[] = {"secrets", "events", "configmaps", "namespaces"};
    for (size_t i = 0; i < N_ELEMENTS(core); i++)
        if (strcmp(plural, core[i]) == 0)
            return true;
    return false;
}

static struct kube_request request_of(enum verb verb, const char *plural, const char *namespace,
                                      const char *name)
{
    return (struct kube_request){.verb = verb,
                                 .group = is_core(plural) ? STR("") : STR("eve.lfedge.org"),
                                 .version = is_core(plural) ? STR("v1") : STR("v1beta1"),
                                 .resource = str_of(plural),
                                 .namespace = str_of(namespace),
                                 .name = str_of(name)};
}

static int ask(struct world *w, const struct kube_request *r, struct json **ret)
{
    struct status st;
    status_init(&st, w->arena);
    const int result = kube_request(w->user, w->arena, r, ret, &st);
    if (result < 0 && result != -ENOENT)
        fprintf(stderr, "# %.*s\n", STR_ARG(st.message));
    return result;
}

static struct json *parse(struct world *w, const char *text)
{
    char *copy = arena_strz(w->arena, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(w->arena, str_of(copy));
    must(v != NULL, text);
    return v;
}

/* A certificate inside a JSON text. */
static struct str escape(struct world *w, struct str pem)
{
    BUF_AUTO b = {0};
    json_write_str(&b, pem);
    return arena_str(w->arena, str_sub(buf_str(&b), 1, b.n - 1));
}

static const char *kind_of(const char *plural)
{
    static const char *const kinds[][2] = {
        {"configmaps", "ConfigMap"},
        {"devicecertificateauthorities", "DeviceCertificateAuthority"},
        {"deviceconfigs", "DeviceConfig"},
        {"devices", "Device"},
        {"namespaces", "Namespace"},
        {"onboardcertificateauthorities", "OnboardCertificateAuthority"},
        {"onboardcertificates", "OnboardCertificate"},
    };
    for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
        if (strcmp(plural, kinds[i][0]) == 0)
            return kinds[i][1];
    return "";
}

static void write_object(struct world *w, const char *plural, const char *namespace,
                         const char *name, const char *rest, va_list args)
{
    BUF_AUTO text = {0};
    buf_printf(&text, "{'apiVersion':'%s','kind':'%s','metadata':{'name':'%s'",
               is_core(plural) ? "v1" : "eve.lfedge.org/v1beta1", kind_of(plural), name);
    if (strncmp(rest, "'annotations'", 13) != 0)
        buf_append_str(&text, STR("},"));
    else
        buf_append_char(&text, ',');
    for (const char *p = rest; *p; p++) {
        if (p[0] == '%' && p[1] == 's') {
            buf_append_str(&text, escape(w, str_of(va_arg(args, const char *))));
            p++;
        } else {
            buf_append_char(&text, *p);
        }
    }
    buf_append_char(&text, '}');
    struct kube_request r = request_of(VERB_CREATE, plural, namespace, NULL);
    r.body = parse(w, text.p);
    must(ask(w, &r, NULL) == 0, name);
}

void world_create(struct world *w, const char *plural, const char *namespace, const char *name,
                  const char *rest, ...)
{
    va_list args;
    va_start(args, rest);
    write_object(w, plural, namespace, name, rest, args);
    va_end(args);
    world_settle(w);
}

void world_write(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *rest, ...)
{
    va_list args;
    va_start(args, rest);
    write_object(w, plural, namespace, name, rest, args);
    va_end(args);
}

void world_patch(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *subresource, const char *patch)
{
    struct kube_request r = request_of(VERB_PATCH, plural, namespace, name);
    r.content_type = STR("application/merge-patch+json");
    r.subresource = str_of(subresource);
    r.body = parse(w, patch);
    must(ask(w, &r, NULL) == 0, patch);
    world_settle(w);
}

void world_remove(struct world *w, const char *plural, const char *namespace, const char *name)
{
    const struct kube_request r = request_of(VERB_DELETE, plural, namespace, name);
    must(ask(w, &r, NULL) == 0, name);
}

void world_delete(struct world *w, const char *plural, const char *namespace, const char *name)
{
    world_remove(w, plural, namespace, name);
    world_settle(w);
}

struct json *world_get(struct world *w, const char *plural, const char *namespace, const char *name)
{
    const struct kube_request r = request_of(VERB_GET, plural, namespace, name);
    struct json *object = NULL;
    const int result = ask(w, &r, &object);
    must(result == 0 || result == -ENOENT, "get");
    return result == 0 ? object : NULL;
}

static struct json *list(struct world *w, const char *plural, const char *namespace)
{
    const struct kube_request r = request_of(VERB_LIST, plural, namespace, NULL);
    struct json *object = NULL;
    must(ask(w, &r, &object) == 0, plural);
    return json_get(object, STR("items"));
}

size_t world_count(struct world *w, const char *plural, const char *namespace)
{
    return json_count(list(w, plural, namespace));
}

struct json *world_event(struct world *w, const char *namespace, const char *name,
                         const char *reason)
{
    struct json *events = list(w, "events", namespace);
    JSON_FOR_EACH_ITEM (events, e)
        if (str_is(json_str(json_at(e, "involvedObject", "name", NULL)), name) &&
            str_is(json_get_str(e, STR("reason")), reason))
            return e;
    return NULL;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static int faulty_request(struct kube_client *c, struct arena *a, const struct kube_request *r,
                          struct json **ret_object, struct status *st)
{
    struct faulty_client *f = CONTAINER_OF(c, struct faulty_client, client);
    if (f->failing && r->verb != VERB_GET && str_is(r->resource, f->failing)) {
        st->arena = a;
        (void) status_fail(st, 507, "InsufficientStorage", "the disk is full");
        return -ENOSPC;
    }
    return kube_request(f->real, a, r, ret_object, st);
}

static const struct kube_client_ops faulty_ops = {.request = faulty_request};

/* ---- events ---------------------------------------------------------------------------------- */

static void on_event(void *ctx, const struct kube_event *e)
{
    struct world *w = ctx;
    int64_t mark = 0;
    roster_on_event(w->api.roster, e);
    onboarding_on_event(w->api.onboarding, e);
    const bool is_mark = str_is(e->collection, "configmaps") && str_is(e->name, "mark");
    if (is_mark) {
        ARENA_AUTO a = arena_new();
        const struct json *object = json_parse_quick(a, e->text);
        (void) str_to_i64(json_str(json_at(object, "data", "n", NULL)), &mark);
    }
    (void) pthread_mutex_lock(&w->lock);
    w->n_seen = MAX(w->n_seen, mark);
    if (e->type == KUBE_SYNCED)
        w->n_seen = MAX(w->n_seen, (int64_t) 1);
    (void) pthread_cond_broadcast(&w->seen);
    (void) pthread_mutex_unlock(&w->lock);
}

static void wait_for(struct world *w, int64_t mark)
{
    (void) pthread_mutex_lock(&w->lock);
    while (w->n_seen < mark)
        (void) pthread_cond_wait(&w->seen, &w->lock);
    (void) pthread_mutex_unlock(&w->lock);
}

void world_settle(struct world *w)
{
    const bool is_new = w->n_marks++ == 1;
    char text[80];
    (void) snprintf(text, sizeof(text),
                    is_new ? "{'metadata':{'name':'mark'},'data':{'n':'%d'}}"
                           : "{'data':{'n':'%d'}}",
                    (int) w->n_marks);
    struct kube_request r =
        request_of(is_new ? VERB_CREATE : VERB_PATCH, "configmaps", "site", is_new ? NULL : "mark");
    r.content_type = is_new ? STR_NONE : STR("application/merge-patch+json");
    r.body = parse(w, text);
    must(ask(w, &r, NULL) == 0, "mark");
    wait_for(w, w->n_marks);
    workers_settle(w->api.workers);
}

/* ---- life ------------------------------------------------------------------------------------ */

static const char *path(struct world *w, const char *name)
{
    return arena_printf(w->arena, "%s/%s", w->directory, name).p;
}

static void open_server(struct world *w)
{
    char *error = NULL;
    const struct store_options store = {
        .path = path(w, "objects.db"), .parse_head = codec_parse_stored, .clock = &clock_system};
    must(store_open(&store, &w->store, &error) == 0, "store");
    w->rbac = rbac_new(w->store);
    const struct api_options api = {.store = w->store, .clock = &w->clock.clock, .rbac = w->rbac};
    must(api_new(&api, &w->server, &error) == 0, "api");
}

static void open_certs(struct world *w)
{
    char *error = NULL;
    const struct pki_cert_options root = {
        .common_name = STR("root"), .is_ca = true, .valid_days = 3650, .backdate_s = 200000};
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&root, key, NULL, NULL);
    must(mkdir(path(w, "pki"), 0700) == 0, "mkdir");
    must(pki_key_save(key, path(w, "pki/root-key.pem")) == 0, "root key");
    must(pki_cert_save(cert, path(w, "pki/root-certificate.pem")) == 0, "root");
    const struct controller_certs_options o = {.data_dir = w->directory,
                                               .clock = &w->clock.clock,
                                               .signing_cert_file = "",
                                               .signing_key_file = "",
                                               .ecdh_cert_file = "",
                                               .ecdh_key_file = "",
                                               .lifetime_s = (int64_t) 3000 * 86400};
    if (controller_certs_open(&o, &w->api.certs, &error) < 0)
        must(false, error);
}

static void open_device_api(struct world *w)
{
    w->faulty =
        (struct faulty_client){{&faulty_ops}, kube_client_local(w->server, "seth-device"), NULL};
    w->api = (struct device_api){.client = &w->faulty.client,
                                 .clock = &w->clock.clock,
                                 .roster =
                                     roster_new(&(struct roster_options){.clock = &w->clock.clock}),
                                 .workers = workers_new(4, 64)};
    w->api.onboarding = onboarding_new(&(struct onboarding_options){.client = w->api.client,
                                                                    .clock = w->api.clock,
                                                                    .roster = w->api.roster,
                                                                    .workers = w->api.workers});
    open_certs(w);
}

void world_open(struct world *w)
{
    static const char *const namespaces[] = {"default", "eve-system", "factory", "site"};
    *w = (struct world){.directory = "/tmp/seth-device-XXXXXX", .arena = arena_new()};
    log_set_level(LOG_ERROR);
    clock_virtual_init(&w->clock, WORLD_NOW_US);
    must(mkdtemp(w->directory) != NULL, "mkdtemp");
    (void) pthread_mutex_init(&w->lock, NULL);
    (void) pthread_cond_init(&w->seen, NULL);
    open_server(w);
    open_device_api(w);
    w->user = kube_client_local(w->server, "test");
    w->watcher = kube_client_local(w->server, "test-watch");
    for (size_t i = 0; i < N_ELEMENTS(namespaces); i++) {
        struct kube_request r = request_of(VERB_CREATE, "namespaces", NULL, NULL);
        r.body = parse(w, arena_printf(w->arena, "{'metadata':{'name':'%s'}}", namespaces[i]).p);
        must(ask(w, &r, NULL) == 0, namespaces[i]);
    }
    kube_watch(w->watcher, on_event, w);
    w->n_marks = 1;
    wait_for(w, 1);
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
    kube_client_free(w->watcher);
    workers_free(w->api.workers);
    onboarding_free(w->api.onboarding);
    controller_certs_free(w->api.certs);
    roster_free(w->api.roster);
    kube_client_free(w->faulty.real);
    kube_client_free(w->user);
    api_free(w->server);
    rbac_free(w->rbac);
    store_close(w->store);
    must(nftw(w->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0, "remove");
    (void) pthread_mutex_destroy(&w->lock);
    (void) pthread_cond_destroy(&w->seen);
    arena_free(w->arena);
}

/* ---- devices --------------------------------------------------------------------------------- */

void identity_init(struct world *w, struct identity *i, const char *name,
                   const struct identity *issuer, int64_t valid_days)
{
    const struct pki_cert_options o = {
        .common_name = str_of(name), .is_ca = true, .valid_days = valid_days};
    i->key = pki_key_new();
    i->cert = pki_cert_new(&o, i->key, issuer ? issuer->cert : NULL, issuer ? issuer->key : NULL);
    must(i->cert != NULL, name);
    i->pem = pki_cert_pem(w->arena, i->cert);
    pki_cert_fingerprint(i->cert, i->hash);
}

void identity_done(struct identity *i)
{
    pki_cert_free(i->cert);
    pki_key_free(i->key);
}

static _Thread_local char last_reason[512];

struct str world_last_reason(void)
{
    return str_of(last_reason);
}

int world_register(struct world *w, const struct registering *r)
{
    ARENA_AUTO a = arena_new();
    Eve__Register__ZRegisterMsg m;
    unsigned char signature[PKI_RAW_SIGNATURE_BYTES];
    eve__register__zregister_msg__init(&m);
    m.pemcert = pb_data(base64_encode(a, r->device->pem, BASE64_STANDARD));
    m.serial = (char *) (r->serial ? r->serial : "");
    m.softserial = (char *) (r->soft_serial ? r->soft_serial : "");
    const struct str payload = pb_pack(a, &m.base);
    must(pki_sign_raw(r->onboard->key, payload, signature) == 0, "sign");
    struct device_call c = {
        .api = &w->api,
        .arena = a,
        .envelope = {.payload = payload,
                     .sender_hash = str_range((const char *) r->onboard->hash, SHA256_BYTES),
                     .signature = str_range((const char *) signature, sizeof(signature)),
                     .sender_cert = base64_encode(a, r->onboard->pem, BASE64_STANDARD),
                     .algorithm = 2},
        .source = STR("192.0.2.7")};
    (void) device_register(&c);
    (void) snprintf(last_reason, sizeof(last_reason), "%.*s", STR_ARG(c.reason));
    return c.status;
}

struct device *world_device(struct world *w, const struct identity *i)
{
    return roster_by_certificate(w->api.roster, str_range((const char *) i->hash, SHA256_BYTES));
}
