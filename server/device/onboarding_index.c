/* SPDX-License-Identifier: Apache-2.0 */
#include "device/onboarding_index.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "device/onboarding_index_internal.h"
#include "settings/settings.h"

static const struct {
    const char *name, *plural, *collection;
} kinds[INDEX_KINDS] = {
    [INDEX_DEVICE] = {"Device", "devices", "devices.eve.lfedge.org"},
    [INDEX_DEVICE_CA] = {"DeviceCertificateAuthority", "devicecertificateauthorities",
                         "devicecertificateauthorities.eve.lfedge.org"},
    [INDEX_ONBOARD] = {"OnboardCertificate", "onboardcertificates",
                       "onboardcertificates.eve.lfedge.org"},
    [INDEX_ONBOARD_CA] = {"OnboardCertificateAuthority", "onboardcertificateauthorities",
                          "onboardcertificateauthorities.eve.lfedge.org"},
    [INDEX_ENROLLMENT] = {"EnrollmentRequest", "enrollmentrequests",
                          "enrollmentrequests.eve.lfedge.org"},
};

const char *index_kind_name(enum index_kind k)
{
    return kinds[k].name;
}

const char *index_kind_plural(enum index_kind k)
{
    return kinds[k].plural;
}

/* ---- entries ------------------------------------------------------------------------------ */

static struct str copy(struct str s)
{
    return str_range(mem_dup(s.p ? s.p : "", s.n), s.n);
}

static void drop(struct str *s)
{
    mem_free((char *) (uintptr_t) s->p);
    *s = STR_NONE;
}

static void free_entry(struct index_entry *e)
{
    pki_cert_free(e->authority);
    drop(&e->key);
    drop(&e->uid);
    drop(&e->identity);
    for (size_t i = 0; i < e->n_serials; i++)
        drop(&e->serials[i]);
    mem_free(e->serials);
    mem_free(e);
}

static struct str key_of(struct arena *a, enum index_kind kind, struct str namespace,
                         struct str name)
{
    return arena_printf(a, "%d/%.*s/%.*s", (int) kind, STR_ARG(namespace), STR_ARG(name));
}

/* Places in the key, which the entry owns. */
static void set_place(struct index_entry *e, struct str key, struct str namespace, struct str name)
{
    e->key = copy(key);
    e->name = str_from(e->key, key.n - name.n);
    e->namespace = str_sub(e->key, key.n - name.n - 1 - namespace.n, key.n - name.n - 1);
}

static bool is_older(const struct index_entry *a, const struct index_entry *b)
{
    if (a->created_us != b->created_us)
        return a->created_us < b->created_us;
    return str_cmp(a->key, b->key) < 0;
}

/* ---- chains: entries of one key, linked through `link` ------------------------------------- */

static struct index_entry **link_of(struct index_entry *e, enum index_link link)
{
    return &e->next[link];
}

static struct index_entry *chain_insert(struct index_entry *head, struct index_entry *e,
                                        enum index_link link)
{
    struct index_entry **at = &head;
    while (*at && is_older(*at, e))
        at = link_of(*at, link);
    *link_of(e, link) = *at;
    *at = e;
    return head;
}

static struct index_entry *chain_remove(struct index_entry *head, struct index_entry *e,
                                        enum index_link link)
{
    struct index_entry **at = &head;
    while (*at && *at != e)
        at = link_of(*at, link);
    if (*at)
        *at = *link_of(e, link);
    return head;
}

/* The map's key lives in the chain's first entry. */
static void map_insert(struct map *m, struct index_entry *e, enum index_link link)
{
    struct index_entry *head = chain_insert(map_get(m, e->at[link]), e, link);
    (void) map_put(m, head->at[link], head);
}

static void map_take_out(struct map *m, struct index_entry *e, enum index_link link)
{
    struct index_entry *head = chain_remove(map_get(m, e->at[link]), e, link);
    if (head)
        (void) map_put(m, head->at[link], head);
    else
        (void) map_remove(m, e->at[link]);
}

static struct map *map_of(struct onboarding_index *x, enum index_link link)
{
    struct map *const maps[] = {[INDEX_BY_CERTIFICATE] = &x->by_certificate,
                                [INDEX_BY_IDENTITY] = &x->by_identity,
                                [INDEX_BY_ONBOARD] = &x->by_onboard,
                                [INDEX_BY_ENROLLMENT] = &x->enrollments};
    return maps[link];
}

static void insert(struct onboarding_index *x, struct index_entry *e)
{
    (void) map_put(&x->objects, e->key, e);
    for (int link = 0; link < INDEX_MAP_LINKS; link++)
        if (e->at[link].p)
            map_insert(map_of(x, (enum index_link) link), e, (enum index_link) link);
    if (e->authority)
        x->authorities[e->kind] = chain_insert(x->authorities[e->kind], e, INDEX_BY_AUTHORITY);
}

static void take_out(struct onboarding_index *x, struct index_entry *e)
{
    (void) map_remove(&x->objects, e->key);
    for (int link = 0; link < INDEX_MAP_LINKS; link++)
        if (e->at[link].p)
            map_take_out(map_of(x, (enum index_link) link), e, (enum index_link) link);
    if (e->authority)
        x->authorities[e->kind] = chain_remove(x->authorities[e->kind], e, INDEX_BY_AUTHORITY);
}

/* ---- reading objects ----------------------------------------------------------------------- */

static struct str hash_str(const unsigned char hash[SHA256_BYTES])
{
    return str_range((const char *) hash, SHA256_BYTES);
}

static bool decode(const struct index_entry *e, struct str text, struct pki_cert **ret)
{
    const char *reason = NULL;
    if (!text.n)
        return false;
    if (pki_cert_decode(text, ret, &reason) == 0)
        return true;
    log_warning("ignoring a certificate that cannot be read", LOG_TEXT("kind", kinds[e->kind].name),
                LOG_STR("namespace", e->namespace), LOG_STR("name", e->name),
                LOG_TEXT("reason", reason));
    return false;
}

static bool fingerprint(const struct index_entry *e, struct str text,
                        unsigned char hash[SHA256_BYTES])
{
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL;
    if (!decode(e, text, &c))
        return false;
    pki_cert_fingerprint(c, hash);
    return true;
}

static bool onboard_fingerprint(struct onboarding_index *x, const struct index_entry *e,
                                struct str text, unsigned char hash[SHA256_BYTES])
{
    unsigned char text_hash[SHA256_BYTES];
    pki_sha256(text, text_hash);
    if (text.n && memcmp(text_hash, x->last_text, sizeof(text_hash)) == 0) {
        memcpy(hash, x->last_hash, SHA256_BYTES);
        return true;
    }
    if (!fingerprint(e, text, hash))
        return false;
    memcpy(x->last_text, text_hash, sizeof(text_hash));
    memcpy(x->last_hash, hash, SHA256_BYTES);
    return true;
}

struct str onboarding_identity(struct arena *a, enum index_identity form,
                               const unsigned char onboard[SHA256_BYTES], struct str serial)
{
    const struct str parts[] = {str_range(&"EOS"[form], 1),
                                form == INDEX_SERIAL_ONLY ? STR("") : hash_str(onboard),
                                form == INDEX_ONBOARD_ONLY ? STR("") : serial};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

/* A Device that was made for a device has exactly its identity, also when that has no serial
 * number; one that a user wrote leaves open what is absent. */
static void read_identity(struct onboarding_index *x, struct index_entry *e,
                          const struct json *object)
{
    ARENA_AUTO a = arena_new();
    unsigned char onboard[SHA256_BYTES];
    const struct json *spec = json_get(object, STR("spec"));
    const struct str serial = json_get_str(spec, STR("serial"));
    const bool is_made = json_get(json_at(object, "metadata", "annotations", NULL),
                                  STR(SETTINGS_ONBOARDED_BY)) != NULL;
    const bool has_onboard = onboard_fingerprint(x, e, json_get_str(spec, STR("onboard")), onboard);
    if (!has_onboard && !serial.n)
        return;
    const enum index_identity form = !has_onboard          ? INDEX_SERIAL_ONLY
                                     : serial.n || is_made ? INDEX_EXACT
                                                           : INDEX_ONBOARD_ONLY;
    e->identity = copy(onboarding_identity(a, form, onboard, serial));
    e->at[INDEX_BY_IDENTITY] = e->identity;
}

static void read_device(struct onboarding_index *x, struct index_entry *e,
                        const struct json *object)
{
    if (fingerprint(e, json_str(json_at(object, "spec", "certificate", NULL)), e->hash))
        e->at[INDEX_BY_CERTIFICATE] = hash_str(e->hash);
    read_identity(x, e, object);
}

static void read_onboard(struct onboarding_index *x, struct index_entry *e,
                         const struct json *object)
{
    (void) x;
    const struct json *serials = json_at(object, "spec", "serials", NULL);
    if (!fingerprint(e, json_str(json_at(object, "spec", "certificate", NULL)), e->hash))
        return;
    e->at[INDEX_BY_ONBOARD] = hash_str(e->hash);
    e->allows_any = json_count(serials) == 0;
    e->serials = mem_realloc_array(NULL, json_count(serials) + 1, sizeof(struct str));
    JSON_FOR_EACH_ITEM (serials, serial) {
        e->allows_any |= str_is(json_str(serial), "*");
        e->serials[e->n_serials++] = copy(json_str(serial));
    }
}

static void read_authority(struct onboarding_index *x, struct index_entry *e,
                           const struct json *object)
{
    (void) x;
    (void) decode(e, json_str(json_at(object, "spec", "certificate", NULL)), &e->authority);
}

static bool has_condition(const struct json *object, const char *type)
{
    JSON_FOR_EACH_ITEM (json_at(object, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return str_is(json_get_str(c, STR("status")), "True");
    return false;
}

static void read_enrollment(struct onboarding_index *x, struct index_entry *e,
                            const struct json *object)
{
    (void) x;
    if (!fingerprint(e, json_str(json_at(object, "spec", "certificate", NULL)), e->hash))
        return;
    e->at[INDEX_BY_ENROLLMENT] = hash_str(e->hash);
    e->is_denied = has_condition(object, "Denied");
    e->is_approved = has_condition(object, "Approved") && !e->is_denied;
    e->is_spent = json_str(json_at(object, "status", "device", NULL)).n > 0;
    e->has_failed = has_condition(object, "Failed");
}

static struct index_entry *read_entry(struct onboarding_index *x, enum index_kind kind,
                                      struct str key, const struct json *object)
{
    static void (*const readers[])(struct onboarding_index *, struct index_entry *,
                                   const struct json *) = {
        [INDEX_DEVICE] = read_device,         [INDEX_DEVICE_CA] = read_authority,
        [INDEX_ONBOARD] = read_onboard,       [INDEX_ONBOARD_CA] = read_authority,
        [INDEX_ENROLLMENT] = read_enrollment,
    };
    const struct json *meta = json_get(object, STR("metadata"));
    struct index_entry *e = NEW(struct index_entry);
    e->kind = kind;
    set_place(e, key, json_get_str(meta, STR("namespace")), json_get_str(meta, STR("name")));
    e->uid = copy(json_get_str(meta, STR("uid")));
    (void) str_to_i64(json_get_str(meta, STR("resourceVersion")), &e->revision);
    (void) clock_parse(json_get_str(meta, STR("creationTimestamp")), &e->created_us);
    readers[kind](x, e, object);
    return e;
}

/* ---- changes ------------------------------------------------------------------------------- */

/* What entries are made of: while it stays the same, only the revision moves. */
static void digest(const struct json *object, unsigned char hash[SHA256_BYTES])
{
    ARENA_AUTO a = arena_new();
    const struct json *spec = json_get(object, STR("spec"));
    struct json parts = json_array();
    const struct json *const used[] = {
        json_get(spec, STR("certificate")),
        json_get(spec, STR("onboard")),
        json_get(spec, STR("serial")),
        json_get(spec, STR("serials")),
        json_at(object, "metadata", "uid", NULL),
        json_get(json_at(object, "metadata", "annotations", NULL), STR(SETTINGS_ONBOARDED_BY)),
        json_at(object, "status", "device", NULL),
    };
    for (size_t i = 0; i < N_ELEMENTS(used); i++)
        (void) json_push(a, &parts, used[i] ? *used[i] : json_null());
    (void) json_push(a, &parts, json_bool(has_condition(object, "Approved")));
    (void) json_push(a, &parts, json_bool(has_condition(object, "Denied")));
    (void) json_push(a, &parts, json_bool(has_condition(object, "Failed")));
    pki_sha256(json_text(a, &parts), hash);
}

static bool is_newer(const struct index_entry *old, const struct json *object)
{
    int64_t revision = 0;
    (void) str_to_i64(json_str(json_at(object, "metadata", "resourceVersion", NULL)), &revision);
    return revision > old->revision;
}

/* With the index locked for writing. */
static struct index_entry *take(struct onboarding_index *x, enum index_kind kind,
                                const struct json *object, bool *ret_is_new)
{
    ARENA_AUTO a = arena_new();
    unsigned char hash[SHA256_BYTES];
    const struct str key = key_of(a, kind, json_str(json_at(object, "metadata", "namespace", NULL)),
                                  json_str(json_at(object, "metadata", "name", NULL)));
    struct index_entry *old = map_get(&x->objects, key);
    *ret_is_new = false;
    if (old && !is_newer(old, object))
        return old;
    digest(object, hash);
    if (old && memcmp(old->digest, hash, sizeof(hash)) == 0) {
        (void) str_to_i64(json_str(json_at(object, "metadata", "resourceVersion", NULL)),
                          &old->revision);
        return old;
    }
    struct index_entry *e = read_entry(x, kind, key, object);
    memcpy(e->digest, hash, sizeof(hash));
    if (old) {
        memcpy(e->told_us, old->told_us, sizeof(e->told_us));
        memcpy(e->n_untold, old->n_untold, sizeof(e->n_untold));
        take_out(x, old);
        free_entry(old);
    }
    insert(x, e);
    *ret_is_new = true;
    return e;
}

bool onboarding_index_take(struct onboarding_index *x, enum index_kind kind,
                           const struct json *object)
{
    bool is_new = false;
    (void) pthread_rwlock_wrlock(&x->lock);
    (void) take(x, kind, object, &is_new);
    (void) pthread_rwlock_unlock(&x->lock);
    return is_new;
}

void onboarding_index_forget(struct onboarding_index *x, enum index_kind kind, struct str namespace,
                             struct str name)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_rwlock_wrlock(&x->lock);
    struct index_entry *e = map_get(&x->objects, key_of(a, kind, namespace, name));
    if (e) {
        take_out(x, e);
        free_entry(e);
    }
    (void) pthread_rwlock_unlock(&x->lock);
}

static void forget_deleted(struct onboarding_index *x, enum index_kind kind,
                           const struct kube_event *event)
{
    ARENA_AUTO a = arena_new();
    struct index_entry *e = map_get(&x->objects, key_of(a, kind, event->namespace, event->name));
    if (e && str_eq(e->uid, event->uid)) {
        take_out(x, e);
        free_entry(e);
    }
}

static void take_options(struct onboarding_index *x, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = e->type == KUBE_DELETED ? NULL : kube_event_object(e, a);
    const struct json *data = json_get(object, STR("data"));
    const struct settings_registration is = settings_registration(data);
    drop(&x->options.namespace);
    drop(&x->options.uid);
    x->options.is_open = is.is_open;
    x->options.namespace = copy(is.namespace);
    x->options.uid = copy(e->uid);
}

/* With the index locked for writing. */
static bool take_event(struct onboarding_index *x, const struct kube_event *event)
{
    for (int kind = 0; kind < INDEX_KINDS; kind++) {
        if (!str_is(event->collection, kinds[kind].collection))
            continue;
        ARENA_AUTO a = arena_new();
        const struct json *object =
            event->type == KUBE_DELETED ? NULL : kube_event_object(event, a);
        if (!object) {
            forget_deleted(x, (enum index_kind) kind, event);
            return false;
        }
        bool ignored = false;
        const struct index_entry *e = take(x, (enum index_kind) kind, object, &ignored);
        return x->is_synced && onboarding_wants_device(e);
    }
    if (str_is(event->collection, "configmaps") &&
        str_is(event->namespace, SETTINGS_GLOBAL_NAMESPACE) &&
        str_is(event->name, SETTINGS_GLOBAL_NAME))
        take_options(x, event);
    return false;
}

bool onboarding_index_event(struct onboarding_index *x, const struct kube_event *e)
{
    bool wants_device = false;
    (void) pthread_rwlock_wrlock(&x->lock);
    if (e->type == KUBE_SYNCED)
        x->is_synced = true;
    else
        wants_device = take_event(x, e);
    (void) pthread_rwlock_unlock(&x->lock);
    return wants_device;
}

/* ---- life ---------------------------------------------------------------------------------- */

void onboarding_index_init(struct onboarding_index *x)
{
    *x = (struct onboarding_index){0};
    (void) pthread_rwlock_init(&x->lock, NULL);
}

void onboarding_index_done(struct onboarding_index *x)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&x->objects, &i, &e);)
        free_entry(e.value);
    map_done(&x->objects);
    for (int link = 0; link < INDEX_MAP_LINKS; link++)
        map_done(map_of(x, (enum index_link) link));
    drop(&x->options.namespace);
    drop(&x->options.uid);
    (void) pthread_rwlock_destroy(&x->lock);
}
