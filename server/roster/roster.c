/* SPDX-License-Identifier: Apache-2.0 */
#include "roster/roster.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "roster/state.h"
#include "settings/settings.h"
#include "json/json.h"

/* The part of a certificate's hash that the map goes by: what a device may send at least. */
#define KEY_BYTES 16

/* What is known beside the Device itself, perhaps before it: by "namespace/name". */
struct note {
    struct str key;   /* owned */
    struct str token; /* owned */
    struct str owner; /* owned: uid of the Device that the token is of */
    bool has_tpm;
    int64_t config_revision; /* generation of the DeviceConfig; 0: none */
};

/* A ConfigMap of options. */
struct options_map {
    struct arena *arena;
    struct str key;
    const struct json *data;
};

struct roster {
    struct roster_options options;
    pthread_rwlock_t lock;
    struct map by_certificate, by_uuid, by_name;
    struct map notes;
    struct map option_maps; /* by namespace; GLOBAL_KEY: all devices' */
};

/* ---- devices ------------------------------------------------------------------------------- */

static void config_free(struct bytes *b)
{
    mem_free(CONTAINER_OF(b, struct device_config, bytes));
}

struct device_config *device_config_new(struct str envelope)
{
    struct device_config *c = mem_alloc(sizeof(*c) + envelope.n);
    *c = (struct device_config){.bytes = {.free = config_free},
                                .envelope = str_range((char *) (c + 1), envelope.n)};
    atomic_init(&c->bytes.refs, 1);
    memcpy(c + 1, envelope.p, envelope.n);
    return c;
}

static void free_device(struct bytes *b)
{
    struct device *d = CONTAINER_OF(b, struct device, bytes);
    if (d->config)
        bytes_unref(&d->config->bytes);
    pki_public_free(d->key);
    mem_free((char *) d->integrity_token.p);
    mem_free((char *) d->annotations.p);
    (void) pthread_mutex_destroy(&d->attest_lock);
    (void) pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

struct device *device_ref(struct device *d)
{
    (void) bytes_ref(&d->bytes);
    return d;
}

void device_unref(struct device *d)
{
    if (d)
        bytes_unref(&d->bytes);
}

static struct str put(char **at, struct str s)
{
    struct str copy = str_range(*at, s.n);
    memcpy(*at, s.p ? s.p : "", s.n);
    *at += s.n;
    return copy;
}

/* "namespace/name" stands in one piece, so that it is the key of the map. */
static struct str key_of(const struct device *d)
{
    return str_range(d->namespace.p, d->namespace.n + 1 + d->name.n);
}

/* The identity of a Device; its certificate may be missing. */
struct description {
    struct str namespace, name, uid, uuid;
    struct str certificate_text;
    unsigned char text_hash[SHA256_BYTES];
    struct pki_cert *certificate; /* NULL: none, none that can be read, or not looked at */
    int64_t revision;
    bool is_active;
    struct str annotations; /* those of ours, JSON */
};

static struct device *device_new(const struct description *is, const struct uuid *uuid)
{
    struct device *d = mem_zalloc(sizeof(*d) + is->namespace.n + 1 + is->name.n + is->uid.n);
    char *at = (char *) (d + 1);
    d->bytes.free = free_device;
    atomic_init(&d->bytes.refs, 1);
    d->uuid = *uuid;
    uuid_text(uuid, d->uuid_text);
    d->namespace = put(&at, is->namespace);
    (void) put(&at, STR("/"));
    d->name = put(&at, is->name);
    d->uid = put(&at, is->uid);
    (void) pthread_mutex_init(&d->attest_lock, NULL);
    (void) pthread_mutex_init(&d->lock, NULL);
    if (is->certificate) {
        d->has_certificate = true;
        pki_cert_fingerprint(is->certificate, d->certificate_hash);
        d->key = pki_cert_public(is->certificate);
    }
    return d;
}

static void forget_config(struct device *d)
{
    (void) pthread_mutex_lock(&d->lock);
    d->config_generation++;
    d->is_config_known = d->is_config_confirmed = false;
    if (d->config)
        bytes_unref(&TAKE(d->config)->bytes);
    (void) pthread_mutex_unlock(&d->lock);
}

static void set_token(struct device *d, struct str token, bool has_tpm)
{
    (void) pthread_mutex_lock(&d->lock);
    mem_free((char *) d->integrity_token.p);
    d->integrity_token = str_range(mem_dup(token.p ? token.p : "", token.n), token.n);
    d->has_tpm = has_tpm;
    (void) pthread_mutex_unlock(&d->lock);
}

/* ---- the roster ---------------------------------------------------------------------------- */

struct roster *roster_new(const struct roster_options *o)
{
    struct roster *r = NEW(struct roster);
    r->options = *o;
    (void) pthread_rwlock_init(&r->lock, NULL);
    return r;
}

static void free_note(struct note *n)
{
    mem_free((char *) n->key.p);
    mem_free((char *) n->token.p);
    mem_free((char *) n->owner.p);
    mem_free(n);
}

static void free_notes(struct roster *r)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->notes, &i, &e);)
        free_note(e.value);
    map_done(&r->notes);
}

static void free_option_map(struct options_map *m)
{
    arena_free(m->arena); /* it lies in its own arena */
}

static void free_option_maps(struct roster *r)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->option_maps, &i, &e);)
        free_option_map(e.value);
    map_done(&r->option_maps);
}

void roster_free(struct roster *r)
{
    if (!r)
        return;
    struct map_entry e;
    for (size_t i = 0; map_next(&r->by_name, &i, &e);)
        device_unref(e.value);
    map_done(&r->by_name);
    map_done(&r->by_uuid);
    map_done(&r->by_certificate);
    free_notes(r);
    free_option_maps(r);
    (void) pthread_rwlock_destroy(&r->lock);
    mem_free(r);
}

static struct device *find(struct roster *r, const struct map *m, struct str key)
{
    (void) pthread_rwlock_rdlock(&r->lock);
    struct device *d = map_get(m, key);
    if (d)
        (void) device_ref(d);
    (void) pthread_rwlock_unlock(&r->lock);
    return d;
}

struct device *roster_by_certificate(struct roster *r, struct str hash)
{
    if (hash.n != SHA256_BYTES && hash.n != KEY_BYTES)
        return NULL;
    struct device *d = find(r, &r->by_certificate, str_range(hash.p, KEY_BYTES));
    if (!d || memcmp(d->certificate_hash, hash.p, hash.n) == 0)
        return d;
    device_unref(d);
    return NULL;
}

struct device *roster_by_uuid(struct roster *r, const struct uuid *u)
{
    return find(r, &r->by_uuid, str_range((const char *) u->bytes, sizeof(u->bytes)));
}

struct device *roster_by_name(struct roster *r, struct str namespace, struct str name)
{
    BUF_AUTO key = {0};
    buf_append_str(&key, namespace);
    buf_append_char(&key, '/');
    buf_append_str(&key, name);
    return find(r, &r->by_name, buf_str(&key));
}

size_t roster_count(struct roster *r)
{
    (void) pthread_rwlock_rdlock(&r->lock);
    size_t n = r->by_name.n_items;
    (void) pthread_rwlock_unlock(&r->lock);
    return n;
}

void roster_each(struct roster *r, void (*fn)(void *ctx, struct device *d), void *ctx)
{
    struct map_entry e;
    (void) pthread_rwlock_rdlock(&r->lock);
    for (size_t i = 0; map_next(&r->by_name, &i, &e);)
        fn(ctx, e.value);
    (void) pthread_rwlock_unlock(&r->lock);
}

static void forget_config_of(void *ctx, struct device *d)
{
    (void) ctx;
    forget_config(d);
}

void roster_forget_configs(struct roster *r)
{
    roster_each(r, forget_config_of, NULL);
}

/* ---- options; the roster is locked ----------------------------------------------------------- */

/* A key that is no namespace: eve-system may hold devices, too. */
#define GLOBAL_KEY STR("*")

static const struct json *options_data(const struct roster *r, struct str key)
{
    const struct options_map *m = map_get(&r->option_maps, key);
    return m ? m->data : NULL;
}

static void changed(struct roster *r, struct device *d)
{
    if (r->options.on_change)
        r->options.on_change(r->options.ctx, d);
}

static void read_options(struct roster *r, struct device *d)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&d->lock);
    const struct json *annotations = d->annotations.n ? json_parse_quick(a, d->annotations) : NULL;
    (void) pthread_mutex_unlock(&d->lock);
    struct settings_sources from = {.annotations = annotations,
                                    .namespace = options_data(r, d->namespace),
                                    .global = options_data(r, GLOBAL_KEY)};
    atomic_store(&d->attestation, (unsigned) settings_attestation(&from));
    atomic_store(&d->poll_s, settings_poll_interval_s(&from));
    atomic_store(&d->retention_s, settings_retention_s(&from, 0));
    changed(r, d);
}

/* Of one namespace, or all. */
static void read_options_again(struct roster *r, struct str namespace, bool is_global)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->by_name, &i, &e);) {
        struct device *d = e.value;
        if (is_global || str_eq(d->namespace, namespace))
            read_options(r, d);
    }
}

static struct options_map *options_map_new(struct str key, struct str text)
{
    struct arena *a = arena_new();
    struct options_map *m = ARENA_NEW(a, struct options_map);
    const struct json *object = json_parse_quick(a, arena_str(a, text));
    m->arena = a;
    m->key = arena_str(a, key);
    m->data = json_get(object, STR("data"));
    return m;
}

static void on_options(struct roster *r, const struct kube_event *e)
{
    bool is_global = str_is(e->name, SETTINGS_GLOBAL_NAME);
    struct str key = is_global ? GLOBAL_KEY : e->namespace;
    (void) pthread_rwlock_wrlock(&r->lock);
    struct options_map *old = map_remove(&r->option_maps, key);
    if (e->type != KUBE_DELETED) {
        struct options_map *m = options_map_new(key, e->text);
        (void) map_put(&r->option_maps, m->key, m);
    }
    if (old)
        free_option_map(old);
    read_options_again(r, e->namespace, is_global);
    (void) pthread_rwlock_unlock(&r->lock);
}

/* ---- Devices come and go; the roster is locked for writing ----------------------------------- */

static void leave(struct roster *r, struct device *d, bool is_deleted)
{
    struct str uuid = str_range((const char *) d->uuid.bytes, sizeof(d->uuid.bytes));
    struct str hash = str_range((const char *) d->certificate_hash, KEY_BYTES);
    atomic_store(&d->is_gone, true);
    atomic_store(&d->is_deleted, is_deleted);
    (void) map_remove(&r->by_name, key_of(d));
    if (map_get(&r->by_uuid, uuid) == d)
        (void) map_remove(&r->by_uuid, uuid);
    if (d->has_certificate && map_get(&r->by_certificate, hash) == d)
        (void) map_remove(&r->by_certificate, hash);
    changed(r, d);
    device_unref(d);
}

/* Admission keeps certificates and UUIDs apart; should two Devices yet share one, the first stays.
 */
static void join(struct roster *r, struct device *d)
{
    struct str uuid = str_range((const char *) d->uuid.bytes, sizeof(d->uuid.bytes));
    struct str hash = str_range((const char *) d->certificate_hash, KEY_BYTES);
    (void) map_put(&r->by_name, key_of(d), device_ref(d));
    if (!map_get(&r->by_uuid, uuid))
        (void) map_put(&r->by_uuid, uuid, d);
    if (d->key && !map_get(&r->by_certificate, hash))
        (void) map_put(&r->by_certificate, hash, d);
    const struct note *note = map_get(&r->notes, key_of(d));
    if (note && str_eq(note->owner, d->uid))
        set_token(d, note->token, note->has_tpm);
}

static void read_certificate(struct description *is)
{
    const char *reason = NULL;
    struct str text = is->certificate_text;
    is->certificate_text = STR_NONE; /* once */
    if (text.n && pki_cert_decode(text, &is->certificate, &reason) < 0)
        log_warning("a Device has a certificate that cannot be read",
                    LOG_STR("namespace", is->namespace), LOG_STR("name", is->name),
                    LOG_TEXT("reason", reason));
}

/* A certificate is read only when its text is another: the status of a Device changes often. */
static bool is_same(const struct device *d, struct description *is, const struct uuid *uuid)
{
    bool is_same_object = uuid_eq(&d->uuid, uuid) && str_eq(d->uid, is->uid);
    if (memcmp(d->text_hash, is->text_hash, SHA256_BYTES) == 0)
        return is_same_object;
    read_certificate(is);
    unsigned char hash[SHA256_BYTES] = {0};
    if (is->certificate)
        pki_cert_fingerprint(is->certificate, hash);
    return is_same_object && d->has_certificate == (is->certificate != NULL) &&
           memcmp(d->certificate_hash, hash, sizeof(hash)) == 0;
}

/* Whether they are others than before; of a new device also when there are none. */
static bool set_annotations(struct device *d, struct str annotations)
{
    (void) pthread_mutex_lock(&d->lock);
    bool is_other = !d->annotations.p || !str_eq(d->annotations, annotations);
    if (is_other) {
        mem_free((char *) d->annotations.p);
        d->annotations = str_range(mem_dup(annotations.p, annotations.n), annotations.n);
    }
    (void) pthread_mutex_unlock(&d->lock);
    return is_other;
}

/* With a reference. What a device has sent and been told stays with it while it is the same. */
static struct device *take(struct roster *r, struct description *is, const struct uuid *uuid)
{
    BUF_AUTO key = {0};
    buf_append_str(&key, is->namespace);
    buf_append_char(&key, '/');
    buf_append_str(&key, is->name);
    (void) pthread_rwlock_wrlock(&r->lock);
    struct device *d = map_get(&r->by_name, buf_str(&key));
    /* A registration takes what it wrote before the events up to it have come. */
    if (d && is->revision < atomic_load(&d->revision)) {
        (void) device_ref(d);
        (void) pthread_rwlock_unlock(&r->lock);
        return d;
    }
    if (d && is_same(d, is, uuid)) {
        (void) device_ref(d);
    } else {
        if (d)
            leave(r, d, /* is_deleted= */ !uuid_eq(&d->uuid, uuid));
        read_certificate(is);
        d = device_new(is, uuid);
        join(r, d);
    }
    memcpy(d->text_hash, is->text_hash, SHA256_BYTES);
    atomic_store(&d->revision, is->revision);
    atomic_store(&d->is_active, is->is_active);
    if (set_annotations(d, is->annotations))
        read_options(r, d);
    (void) pthread_rwlock_unlock(&r->lock);
    return d;
}

/* Those of other domains are nobody's business here, and may be large. */
static struct str our_annotations(struct arena *a, const struct json *annotations)
{
    struct json *ours = json_new(a, json_object());
    JSON_FOR_EACH_MEMBER (annotations, m) {
        if (str_starts_with(json_str(&m->key), STR(SETTINGS_PREFIX)))
            (void) json_set(a, ours, json_str(&m->key), m->value);
    }
    return json_text(a, ours);
}

static void describe(struct arena *a, const struct json *device, struct description *ret)
{
    const struct json *metadata = json_get(device, STR("metadata"));
    const struct json *annotations = json_get(metadata, STR("annotations"));
    int64_t revision = 0;
    (void) str_to_i64(json_get_str(metadata, STR("resourceVersion")), &revision);
    *ret = (struct description){
        .namespace = json_get_str(metadata, STR("namespace")),
        .name = json_get_str(metadata, STR("name")),
        .uid = json_get_str(metadata, STR("uid")),
        .revision = revision,
        .uuid = json_str(json_at(device, "status", "uuid", NULL)),
        .is_active = !str_is(json_get_str(annotations, STR(SETTINGS_ACTIVATE)), "false"),
        .certificate_text = json_str(json_at(device, "spec", "certificate", NULL)),
        .annotations = our_annotations(a, annotations)};
    pki_sha256(ret->certificate_text.p ? ret->certificate_text : STR(""), ret->text_hash);
}

/* A stranger's is read before anything is locked for it. */
static void read_if_new(struct roster *r, struct description *is)
{
    CLEANUP(device_unrefp) struct device *d = roster_by_name(r, is->namespace, is->name);
    if (!d)
        read_certificate(is);
}

struct device *roster_take(struct roster *r, struct str device_text)
{
    ARENA_AUTO a = arena_new();
    struct description is;
    struct uuid uuid;
    const struct json *object = json_parse_quick(a, device_text);
    if (!object)
        return NULL;
    describe(a, object, &is);
    if (uuid_parse(is.uuid, &uuid) < 0)
        return NULL;
    read_if_new(r, &is);
    struct device *d = take(r, &is, &uuid);
    pki_cert_free(is.certificate);
    return d;
}

static void on_device_deleted(struct roster *r, const struct kube_event *e)
{
    CLEANUP(device_unrefp) struct device *d = roster_by_name(r, e->namespace, e->name);
    if (!d || !str_eq(d->uid, e->uid))
        return;
    (void) pthread_rwlock_wrlock(&r->lock);
    if (!atomic_load(&d->is_gone))
        leave(r, d, /* is_deleted= */ true);
    (void) pthread_rwlock_unlock(&r->lock);
}

/* ---- what is known beside ------------------------------------------------------------------ */

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
static void on_config(struct roster *r, const struct kube_event *e)
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
        forget_config(d);
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
static void on_state(struct roster *r, const struct kube_event *e, struct str device_name)
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
        set_token(d, state.integrity_token, state.has_tpm);
}

void roster_on_event(void *roster, const struct kube_event *e)
{
    struct roster *r = roster;
    if (e->type == KUBE_SYNCED)
        return;
    if (str_is(e->collection, "devices.eve.lfedge.org")) {
        if (e->type == KUBE_DELETED)
            on_device_deleted(r, e);
        else
            device_unref(roster_take(r, e->text));
    } else if (str_is(e->collection, "configmaps") && settings_is_options(e->namespace, e->name)) {
        on_options(r, e);
    } else if (str_is(e->collection, "deviceconfigs.eve.lfedge.org")) {
        on_config(r, e);
    } else if (str_is(e->collection, "secrets") &&
               str_ends_with(e->name, STR(DEVICE_STATE_SUFFIX))) {
        on_state(r, e, str_sub(e->name, 0, e->name.n - strlen(DEVICE_STATE_SUFFIX)));
    }
}
