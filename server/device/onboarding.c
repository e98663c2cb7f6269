/* SPDX-License-Identifier: Apache-2.0 */
#include "device/onboarding.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/onboarding_internal.h"
#include "settings/settings.h"
#include "json/json.h"

/* Registrations that wait for others of the same device; one is what happens by mischance. */
#define MAX_WAITING 16
/* Objects may change between the look into the index and that at them. */
#define MAX_ATTEMPTS 8
#define RETRY_AFTER_S 5
#define CATCH_UP_NS 200000000L
#define WARN_AGAIN_US ((int64_t) 10 * 1000000)

/* ---- one at a time --------------------------------------------------------------------------- */

static bool shares_serial(const struct index_query *a, const struct index_query *b)
{
    if (str_eq(a->serial, b->serial) ||
        (a->soft_serial.n && str_eq(a->soft_serial, b->soft_serial)))
        return true;
    return str_eq(a->serial, b->soft_serial) || str_eq(a->soft_serial, b->serial);
}

static bool is_same(const struct registration *a, const struct registration *b)
{
    const struct index_query *p = &a->query, *q = &b->query;
    if (memcmp(p->certificate_hash, q->certificate_hash, SHA256_BYTES) == 0)
        return true;
    return memcmp(p->onboard_hash, q->onboard_hash, SHA256_BYTES) == 0 && shares_serial(p, q);
}

/* With the lock held. */
static bool must_wait(const struct registration *r)
{
    LIST_FOR_EACH (&r->onboarding->under_way, item)
        if (is_same(CONTAINER_OF(item, struct registration, link), r))
            return true;
    return false;
}

int registration_begin(struct registration *r)
{
    struct onboarding *o = r->onboarding;
    int result = 0;
    list_init(&r->link);
    (void) pthread_mutex_lock(&o->lock);
    if (must_wait(r) && o->n_waiting >= MAX_WAITING) {
        result = -EAGAIN;
    } else {
        o->n_waiting++;
        while (must_wait(r))
            (void) pthread_cond_wait(&o->freed, &o->lock);
        o->n_waiting--;
        list_append(&o->under_way, &r->link);
    }
    (void) pthread_mutex_unlock(&o->lock);
    return result;
}

void registration_end(struct registration *r)
{
    struct onboarding *o = r->onboarding;
    (void) pthread_mutex_lock(&o->lock);
    list_remove(&r->link);
    (void) pthread_cond_broadcast(&o->freed);
    (void) pthread_mutex_unlock(&o->lock);
}

void registration_done(struct registration *r)
{
    pki_cert_free(r->certificate);
    pki_cert_free(r->onboard);
}

/* ---- outcomes -------------------------------------------------------------------------------- */

int registration_settle(struct registration *r, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    r->status = status;
    r->reason = arena_vprintf(r->arena, format, args);
    va_end(args);
    return 0;
}

bool registration_may_warn(struct registration *r)
{
    struct onboarding *o = r->onboarding;
    const int64_t now_us = o->options.clock->monotonic_us(o->options.clock);
    (void) pthread_mutex_lock(&o->lock);
    const bool may = !o->warned_us || now_us - o->warned_us >= WARN_AGAIN_US;
    if (may)
        o->warned_us = MAX(now_us, (int64_t) 1);
    (void) pthread_mutex_unlock(&o->lock);
    return may;
}

int registration_put_off(struct registration *r, const struct status *st)
{
    r->retry_after_s = RETRY_AFTER_S;
    return registration_settle(r, 503, "%.*s", STR_ARG(st->message));
}

/* ---- the policy ------------------------------------------------------------------------------ */

static struct sponsor open_registration(const struct registration *r, struct str uid,
                                        struct str namespace)
{
    const struct index_query *q = &r->query;
    return (struct sponsor){.api_version = STR("v1"),
                            .kind = STR("ConfigMap"),
                            .namespace = STR(SETTINGS_GLOBAL_NAMESPACE),
                            .name = STR(SETTINGS_GLOBAL_NAME),
                            .uid = uid,
                            .into = namespace,
                            .serial = q->serial.n ? q->serial : q->soft_serial};
}

static int make_by(struct registration *r, const struct index_found *f)
{
    const int result = registration_check(r, f);
    if (result < 0)
        return result;
    const struct sponsor s = sponsor_of(r, f);
    return registration_make(r, &s, NULL);
}

/* The revision that the server is at; 0: it cannot be told. */
static int64_t current_revision(struct registration *r)
{
    struct status st;
    struct json *list = NULL;
    int64_t revision = 0;
    struct kube_request request = onboarding_request(VERB_LIST, INDEX_ONBOARD, STR_NONE, STR_NONE);
    request.query = STR("limit=1");
    status_init(&st, r->arena);
    if (kube_request(r->onboarding->options.client, r->arena, &request, &list, &st) == 0)
        (void) str_to_i64(json_str(json_at(list, "metadata", "resourceVersion", NULL)), &revision);
    return revision;
}

/* Waits until the events of all that is written have come. True: some had not. */
static bool catch_up(struct registration *r)
{
    struct onboarding *o = r->onboarding;
    struct timespec deadline;
    if (r->has_caught_up)
        return false;
    r->has_caught_up = true;
    const int64_t revision = current_revision(r);
    (void) clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += CATCH_UP_NS;
    deadline.tv_sec += deadline.tv_nsec / 1000000000;
    deadline.tv_nsec %= 1000000000;
    (void) pthread_mutex_lock(&o->lock);
    const bool is_behind = o->seen_revision < revision;
    while (o->seen_revision < revision &&
           pthread_cond_timedwait(&o->freed, &o->lock, &deadline) == 0)
        ;
    /* A revision without an event, before we began: no need to wait for it again. */
    o->seen_revision = MAX(o->seen_revision, revision);
    (void) pthread_mutex_unlock(&o->lock);
    return is_behind;
}

/* The seven cases, in order. -EAGAIN: what decided is not so any more. */
static int decide(struct registration *r)
{
    struct onboarding_index *x = &r->onboarding->index;
    const struct index_query *q = &r->query;
    struct index_found f;
    struct str uid, namespace;
    if (onboarding_index_by_certificate(x, r->arena, q, &f) ||
        onboarding_index_by_identity(x, r->arena, q, &f))
        return registration_meet(r, &f);
    if (onboarding_index_authority(x, r->arena, INDEX_DEVICE_CA, q, &f) ||
        onboarding_index_onboard(x, r->arena, q, &f) ||
        onboarding_index_authority(x, r->arena, INDEX_ONBOARD_CA, q, &f))
        return make_by(r, &f);
    if (onboarding_index_is_open(x, r->arena, &uid, &namespace)) {
        const struct sponsor s = open_registration(r, uid, namespace);
        return registration_make(r, &s, NULL);
    }
    /* Nothing lets it in, as far as we have heard: what was made a moment ago counts. */
    return catch_up(r) ? -EAGAIN : registration_enroll(r);
}

static void register_device(struct registration *r)
{
    if (registration_begin(r) < 0) {
        r->retry_after_s = RETRY_AFTER_S;
        (void) registration_settle(r, 503, "too many registrations of this device at once");
        return;
    }
    for (int i = 0; i < MAX_ATTEMPTS && !r->status; i++)
        (void) decide(r);
    registration_end(r);
    if (!r->status) {
        r->retry_after_s = RETRY_AFTER_S;
        (void) registration_settle(r, 503, "the objects that decide keep changing");
    }
}

int device_register(struct device_call *c)
{
    struct onboarding *o = c->api->onboarding;
    CLEANUP(registration_done)
    struct registration r = {.onboarding = o, .arena = c->arena, .source = c->source};
    if (!registration_read(c, &r))
        return 0;
    if (!onboarding_index_is_synced(&o->index)) {
        c->retry_after_s = RETRY_AFTER_S;
        return device_refuse(c, 503, "the server has just begun");
    }
    r.query.now_s = o->options.clock->wall_us(o->options.clock) / 1000000;
    register_device(&r);
    if (r.status >= 300) {
        c->retry_after_s = r.retry_after_s;
        return device_refuse(c, r.status, "%.*s", STR_ARG(r.reason));
    }
    registration_clear_enrollment(&r);
    c->status = r.status;
    c->body = STR("");
    c->reason = r.reason;
    return 0;
}

/* ---- approvals ------------------------------------------------------------------------------- */

struct approval {
    struct onboarding *onboarding;
    char *namespace, *name;
};

static void approve(void *arg)
{
    struct approval *job = arg;
    onboarding_approve(job->onboarding, str_of(job->namespace), str_of(job->name));
    mem_free(job->namespace);
    mem_free(job->name);
    mem_free(job);
}

static void schedule(void *ctx, struct str namespace, struct str name)
{
    struct onboarding *o = ctx;
    ARENA_AUTO a = arena_new();
    struct approval *job = NEW(struct approval);
    job->onboarding = o;
    job->namespace = mem_strdup(arena_strz(a, namespace));
    job->name = mem_strdup(arena_strz(a, name));
    if (workers_run(o->options.workers, approve, job) == 0)
        return;
    /* The device asks again by itself, and is let in then. */
    log_warning("an approved request waits for its device to ask again",
                LOG_STR("namespace", namespace), LOG_STR("name", name));
    mem_free(job->namespace);
    mem_free(job->name);
    mem_free(job);
}

/* Stored texts have it in their head. */
static int64_t revision_of(const struct kube_event *e)
{
    static const struct str name = STR("\"resourceVersion\":\"");
    int64_t revision = 0;
    const ptrdiff_t at = str_find_str(e->text, name);
    if (at < 0)
        return 0;
    const struct str rest = str_from(e->text, (size_t) at + name.n);
    const ptrdiff_t end = str_find(rest, '"');
    (void) str_to_i64(str_sub(rest, 0, end < 0 ? 0 : (size_t) end), &revision);
    return revision;
}

static void see(struct onboarding *o, int64_t revision)
{
    (void) pthread_mutex_lock(&o->lock);
    o->seen_revision = MAX(o->seen_revision, revision);
    (void) pthread_cond_broadcast(&o->freed);
    (void) pthread_mutex_unlock(&o->lock);
}

void onboarding_on_event(void *onboarding, const struct kube_event *e)
{
    struct onboarding *o = onboarding;
    if (onboarding_index_event(&o->index, e))
        schedule(o, e->namespace, e->name);
    if (e->type == KUBE_SYNCED)
        onboarding_index_each_approved(&o->index, schedule, o);
    else
        see(o, revision_of(e));
}

/* ---- life ------------------------------------------------------------------------------------ */

struct onboarding *onboarding_new(const struct onboarding_options *options)
{
    struct onboarding *o = NEW(struct onboarding);
    o->options = *options;
    onboarding_index_init(&o->index);
    (void) pthread_mutex_init(&o->lock, NULL);
    (void) pthread_cond_init(&o->freed, NULL);
    list_init(&o->under_way);
    return o;
}

void onboarding_free(struct onboarding *o)
{
    if (!o)
        return;
    onboarding_index_done(&o->index);
    (void) pthread_mutex_destroy(&o->lock);
    (void) pthread_cond_destroy(&o->freed);
    mem_free(o);
}
