/* SPDX-License-Identifier: Apache-2.0 */
/* Devices come, change and go, as events and registrations say. */
#include "base/alloc.h"
#include "base/log.h"
#include "roster/roster_internal.h"
#include "roster/state.h"
#include "settings/settings.h"

/* The identity of a Device; its certificate may be missing. */
struct description {
    struct str namespace, name, uid, uuid;
    struct str certificate_text;
    unsigned char text_hash[SHA256_BYTES];
    struct pki_cert *certificate; /* NULL: none, none that can be read, or not looked at */
    int64_t revision;
    bool is_active;
    struct str annotations;         /* those of ours, JSON */
    int64_t given_version, given_s; /* status.config: what it was given last */
};

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

static struct str put(char **at, struct str s)
{
    struct str copy = str_range(*at, s.n);
    memcpy(*at, s.p ? s.p : "", s.n);
    *at += s.n;
    return copy;
}

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

/* ---- Devices come and go; the roster is locked for writing ----------------------------------- */

static void leave(struct roster *r, struct device *d, bool is_deleted)
{
    struct str uuid = str_range((const char *) d->uuid.bytes, sizeof(d->uuid.bytes));
    struct str hash = str_range((const char *) d->certificate_hash, KEY_BYTES);
    atomic_store(&d->is_gone, true);
    atomic_store(&d->is_deleted, is_deleted);
    (void) map_remove(&r->by_name, roster_key(d));
    if (map_get(&r->by_uuid, uuid) == d)
        (void) map_remove(&r->by_uuid, uuid);
    if (d->has_certificate && map_get(&r->by_certificate, hash) == d)
        (void) map_remove(&r->by_certificate, hash);
    roster_changed(r, d);
    device_unref(d);
}

/* Admission keeps certificates and UUIDs apart; should two Devices yet share one, the first stays.
 */
static void join(struct roster *r, struct device *d)
{
    struct str uuid = str_range((const char *) d->uuid.bytes, sizeof(d->uuid.bytes));
    struct str hash = str_range((const char *) d->certificate_hash, KEY_BYTES);
    (void) map_put(&r->by_name, roster_key(d), device_ref(d));
    if (!map_get(&r->by_uuid, uuid))
        (void) map_put(&r->by_uuid, uuid, d);
    if (d->key && !map_get(&r->by_certificate, hash))
        (void) map_put(&r->by_certificate, hash, d);
    const struct note *note = map_get(&r->notes, roster_key(d));
    if (note && str_eq(note->owner, d->uid))
        device_set_token(d, note->token, note->has_tpm);
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
    device_raise_floor(d, is->given_version, is->given_s);
    if (set_annotations(d, is->annotations))
        roster_read_options(r, d);
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
        .annotations = our_annotations(a, annotations),
        .given_version =
            roster_config_version(json_at(device, "status", "config", "version", NULL)),
        .given_s = roster_config_time(json_at(device, "status", "config", "renderedAt", NULL))};
    pki_sha256(ret->certificate_text.p ? ret->certificate_text : STR(""), ret->text_hash);
}

/* A stranger's is read before anything is locked for it. */
static void read_if_new(struct roster *r, struct description *is)
{
    CLEANUP(device_unrefp) struct device *d = roster_by_name(r, is->namespace, is->name);
    if (!d)
        read_certificate(is);
}

static struct device *take_object(struct roster *r, struct arena *a, const struct json *object)
{
    struct description is;
    struct uuid uuid;
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

struct device *roster_take(struct roster *r, struct str device_text)
{
    ARENA_AUTO a = arena_new();
    return take_object(r, a, json_parse_quick(a, device_text));
}

static void on_device(struct roster *r, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    device_unref(take_object(r, a, kube_event_object(e, a)));
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

void roster_on_event(void *roster, const struct kube_event *e)
{
    struct roster *r = roster;
    if (e->type == KUBE_SYNCED)
        return;
    if (str_is(e->collection, "devices.eve.lfedge.org")) {
        if (e->type == KUBE_DELETED)
            on_device_deleted(r, e);
        else
            on_device(r, e);
    } else if (str_is(e->collection, "configmaps") && settings_is_options(e->namespace, e->name)) {
        roster_on_options(r, e);
    } else if (str_is(e->collection, "deviceconfigs.eve.lfedge.org")) {
        roster_on_config(r, e);
    } else if (str_is(e->collection, "secrets") &&
               str_ends_with(e->name, STR(DEVICE_STATE_SUFFIX))) {
        roster_on_state(r, e, str_sub(e->name, 0, e->name.n - strlen(DEVICE_STATE_SUFFIX)));
    }
}
