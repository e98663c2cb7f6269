/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

#include "api/metrics_internal.h"
#include "base/alloc.h"

/* Kinds of users may be many; beyond this they count as "other". */
#define MAX_REQUEST_SERIES 4000
#define MAX_HISTOGRAM_SERIES 1500
#define MAX_LABELS 9
/* Series that a thread finds without looking; a power of two. */
#define METER_ENTRIES 512

/* ---- families ------------------------------------------------------------------------------- */

static const double duration_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                         1,     1.25,  1.5,  2,   3,   4,   5,   6,
                                         8,     10,    15,   20,  30,  45,  60};
static const double sli_bounds[] = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2, 3,
                                    4,    5,   6,   8,   10,  15,  20, 30,   45,  60};
static const double response_bounds[] = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
static const double watch_bounds[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

/* The labels of series begin alike; which of them a family has follows from their number. */
static const char *const request_labels[] = {"verb",        "group", "version",   "resource",
                                             "subresource", "scope", "component", "dry_run",
                                             "code",        NULL};
static const char *const duration_labels[] = {
    "verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run", NULL};
static const char *const plain_labels[] = {"verb",        "group", "version",   "resource",
                                           "subresource", "scope", "component", NULL};
static const char *const termination_labels[] = {
    "verb", "group", "version", "resource", "subresource", "scope", "component", "code", NULL};
static const char *const watch_labels[] = {"group", "version", "resource", NULL};
static const char *const login_labels[] = {"result", NULL};
static const char *const user_labels[] = {"username", NULL};

#define BOUNDS(b) .bounds = (b), .n_bounds = N_ELEMENTS(b), .max_series = MAX_HISTOGRAM_SERIES

static const struct metric_family families[] = {
    [FAMILY_REQUESTS] = {"apiserver_request_total",
                         "Counter of apiserver requests broken out for each verb, dry run value, "
                         "group, version, resource, scope, component, and HTTP response code.",
                         METRIC_COUNTER, request_labels, .max_series = MAX_REQUEST_SERIES},
    [FAMILY_DURATIONS] = {"apiserver_request_duration_seconds",
                          "Response latency distribution in seconds for each verb, dry run value, "
                          "group, version, resource, subresource, scope and component.",
                          METRIC_HISTOGRAM, duration_labels, BOUNDS(duration_bounds)},
    [FAMILY_SLI_DURATIONS] = {"apiserver_request_sli_duration_seconds",
                              "Response latency distribution (not counting webhook duration and "
                              "priority & fairness queue wait times) in seconds for each verb, "
                              "group, version, resource, subresource, scope and component.",
                              METRIC_HISTOGRAM, plain_labels, BOUNDS(sli_bounds)},
    [FAMILY_RESPONSE_SIZES] = {"apiserver_response_sizes",
                               "Response size distribution in bytes for each group, version, verb, "
                               "resource, subresource, scope and component.",
                               METRIC_HISTOGRAM, plain_labels, BOUNDS(response_bounds)},
    [FAMILY_LONG_RUNNING] = {"apiserver_longrunning_requests",
                             "Gauge of all active long-running apiserver requests broken out by "
                             "verb, group, version, resource, scope and component. Not all "
                             "requests are tracked this way.",
                             METRIC_GAUGE, plain_labels, .max_series = MAX_HISTOGRAM_SERIES},
    [FAMILY_TERMINATIONS] = {"apiserver_request_terminations_total",
                             "Number of requests which apiserver terminated in self-defense.",
                             METRIC_COUNTER, termination_labels,
                             .max_series = MAX_HISTOGRAM_SERIES},
    [FAMILY_WATCH_EVENTS] = {"apiserver_watch_events_total",
                             "Number of events sent in watch clients", METRIC_COUNTER,
                             watch_labels},
    [FAMILY_WATCH_SIZES] = {"apiserver_watch_events_sizes",
                            "Watch event size distribution in bytes", METRIC_HISTOGRAM,
                            watch_labels, BOUNDS(watch_bounds)},
    [FAMILY_LOGINS] = {"authentication_attempts", "Counter of authenticated attempts.",
                       METRIC_COUNTER, login_labels},
    [FAMILY_LOGIN_USERS] = {"authenticated_user_requests",
                            "Counter of authenticated requests broken out by username.",
                            METRIC_COUNTER, user_labels},
};

/* Names are many: as kube-apiserver, only its own few show. */
static const struct str user_names[METER_USERS] = {
    STR("other"),
    STR("email_id"),
    STR("admin"),
    STR("client"),
    STR("kube_proxy"),
    STR("kubelet"),
    STR("system:serviceaccount:kube-system:default"),
};

struct api_metrics *api_metrics_new(const struct api_metrics_options *o)
{
    static const struct str results[] = {STR("success"), STR("failure"), STR("error")};
    struct api_metrics *m = NEW(struct api_metrics);
    m->options = *o;
    m->metrics = metrics_new();
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        m->families[i] = metric_register(m->metrics, &families[i]);
    for (size_t i = 0; i < N_ELEMENTS(results); i++)
        m->logins[i] = metric_series(m->families[FAMILY_LOGINS], &results[i]);
    for (size_t i = 0; i < N_ELEMENTS(user_names); i++)
        m->users[i] = metric_series(m->families[FAMILY_LOGIN_USERS], &user_names[i]);
    metrics_on_collect(m->metrics, metrics_collect, m);
    return m;
}

void api_metrics_free(struct api_metrics *m)
{
    if (!m)
        return;
    metrics_free(m->metrics);
    mem_free(m);
}

struct metrics *api_metrics_registry(struct api_metrics *m)
{
    return m->metrics;
}

void api_metrics_set_listener(struct api_metrics *m, const struct listener *l)
{
    m->listener = l;
}

void api_metrics_set_queues(struct api_metrics *m,
                            size_t (*get)(void *ctx, struct queue_figures *to, size_t max),
                            void *ctx)
{
    m->get_queues = get;
    m->queues_ctx = ctx;
}

void api_metrics_text(struct api_metrics *m, struct buf *b)
{
    metrics_text(m->metrics, b);
}

/* ---- labels --------------------------------------------------------------------------------- */

enum meter_verb {
    METER_GET,
    METER_LIST,
    METER_WATCH,
    METER_POST,
    METER_PUT,
    METER_PATCH,
    METER_DELETE,
    METER_DELETECOLLECTION,
    METER_APPLY,
    METER_OTHER,
};

static const struct str verb_labels[] = {
    STR("GET"),   STR("LIST"),  STR("WATCH"),  STR("POST"),
    STR("PUT"),   STR("PATCH"), STR("DELETE"), STR("DELETECOLLECTION"),
    STR("APPLY"), STR("other"),
};

static enum meter_verb verb_of(const struct request_measure *r)
{
    static const enum meter_verb by_verb[VERB_COUNT] = {
        [VERB_GET] = METER_GET,       [VERB_LIST] = METER_LIST,
        [VERB_WATCH] = METER_WATCH,   [VERB_CREATE] = METER_POST,
        [VERB_UPDATE] = METER_PUT,    [VERB_PATCH] = METER_PATCH,
        [VERB_DELETE] = METER_DELETE, [VERB_DELETE_COLLECTION] = METER_DELETECOLLECTION,
    };
    if (r->is_apply)
        return METER_APPLY;
    if (r->is_resource)
        return r->has_verb ? by_verb[r->verb] : METER_OTHER;
    for (enum meter_verb v = METER_GET; v < METER_OTHER; v++)
        if (str_eq(r->method, verb_labels[v]))
            return v;
    return METER_OTHER;
}

/* Paths that show as subresource, as kube-apiserver has it, the longest first; all others have
 * none. */
static const struct str path_labels[] = {
    STR(""),         STR("/healthz"),     STR("/livez"),      STR("/readyz"),
    STR("/metrics"), STR("/version"),     STR("/openapi/v2"), STR("/openapi/v3"),
    STR("/openid"),  STR("/.well-known"), STR("/apis"),       STR("/api"),
};

static size_t path_of(const struct request_measure *r)
{
    if (r->is_resource)
        return 0;
    for (size_t i = 1; i < N_ELEMENTS(path_labels); i++) {
        struct str rest = str_from(r->path, path_labels[i].n);
        if (str_starts_with(r->path, path_labels[i]) && (!rest.n || rest.p[0] == '/'))
            return i;
    }
    return 0;
}

enum scope { SCOPE_NONE, SCOPE_CLUSTER, SCOPE_NAMESPACE, SCOPE_RESOURCE };

static const struct str scope_labels[] = {STR(""), STR("cluster"), STR("namespace"),
                                          STR("resource")};

static enum scope scope_of(const struct request_measure *r)
{
    if (!r->is_resource)
        return SCOPE_NONE;
    if (r->has_name || (r->has_verb && r->verb == VERB_CREATE))
        return SCOPE_RESOURCE;
    return r->has_namespace ? SCOPE_NAMESPACE : SCOPE_CLUSTER;
}

/* ---- the series of a request ---------------------------------------------------------------- */

/* All that tells series apart. */
struct meter_key {
    uint64_t generation; /* of the registry: a kind's address may be used again */
    const struct kind *kind;
    const struct kind_subresource *subresource;
    uint64_t rest; /* verb, scope, path, dry run, code */
};

struct meter_entry {
    struct meter_key key;
    struct metric_series *requests, *durations; /* requests NULL: a free entry */
    struct metric_series *sli, *sizes;          /* NULL: not for such requests */
};

struct request_meter {
    struct api_metrics *metrics;
    struct meter_entry entries[METER_ENTRIES];
};

struct request_meter *request_meter_new(struct api_metrics *m)
{
    struct request_meter *meter = NEW(struct request_meter);
    meter->metrics = m;
    return meter;
}

void request_meter_free(struct request_meter *meter)
{
    mem_free(meter);
}

static struct meter_key key_of(const struct request_measure *r)
{
    uint64_t code = (uint64_t) (r->code > 0 && r->code < 1000 ? r->code : 0);
    return (struct meter_key){
        .generation = r->kind && r->registry ? r->registry->generation : 0,
        .kind = r->kind,
        .subresource = r->kind ? r->subresource : NULL,
        .rest = (uint64_t) verb_of(r) | (uint64_t) scope_of(r) << 8 | (uint64_t) path_of(r) << 16 |
                (uint64_t) r->is_dry_run << 24 | (uint64_t) r->is_long_running << 25 | code << 32,
    };
}

/* The labels that all families of requests begin with; returns how many. */
static size_t begin_labels(const struct request_measure *r, struct str *to)
{
    const struct kind *k = r->kind;
    size_t n = 0;
    to[n++] = verb_labels[verb_of(r)];
    to[n++] = k ? k->group : STR("");
    to[n++] = k ? k->version : STR("");
    to[n++] = k ? k->plural : STR("");
    to[n++] = k ? (r->subresource ? r->subresource->name : STR("")) : path_labels[path_of(r)];
    to[n++] = scope_labels[scope_of(r)];
    to[n++] = STR("apiserver");
    return n;
}

static struct str code_label(int code, char digits[3])
{
    if (code < 100 || code > 999)
        return STR("0");
    for (size_t i = 3; i-- > 0; code /= 10)
        digits[i] = (char) ('0' + code % 10);
    return str_range(digits, 3);
}

static void find_series(struct api_metrics *m, const struct request_measure *r,
                        struct meter_entry *e)
{
    struct str labels[MAX_LABELS];
    char digits[3];
    const enum meter_verb verb = verb_of(r);
    size_t n = begin_labels(r, labels);
    e->sli = r->is_long_running ? NULL : metric_series(m->families[FAMILY_SLI_DURATIONS], labels);
    e->sizes = verb == METER_GET || verb == METER_LIST
                   ? metric_series(m->families[FAMILY_RESPONSE_SIZES], labels)
                   : NULL;
    labels[n++] = r->is_dry_run ? STR("All") : STR("");
    e->durations = metric_series(m->families[FAMILY_DURATIONS], labels);
    labels[n++] = code_label(r->code, digits);
    e->requests = metric_series(m->families[FAMILY_REQUESTS], labels);
}

static bool is_same(const struct meter_key *a, const struct meter_key *b)
{
    return a->kind == b->kind && a->rest == b->rest && a->subresource == b->subresource &&
           a->generation == b->generation;
}

static size_t place_of(const struct meter_key *k)
{
    uint64_t hash = (uint64_t) (uintptr_t) k->kind ^ (uint64_t) (uintptr_t) k->subresource << 7 ^
                    k->rest * 0x9e3779b97f4a7c15u ^ k->generation << 40;
    hash *= 0xff51afd7ed558ccdu;
    return (size_t) (hash >> 40) % METER_ENTRIES;
}

static const struct meter_entry *find_entry(struct request_meter *meter,
                                            const struct request_measure *r)
{
    struct meter_key key = key_of(r);
    struct meter_entry *e = &meter->entries[place_of(&key)];
    if (!e->requests || !is_same(&e->key, &key)) {
        find_series(meter->metrics, r, e);
        e->key = key;
    }
    return e;
}

static void count_shed(struct api_metrics *m, const struct request_measure *r)
{
    struct str labels[MAX_LABELS];
    char digits[3];
    size_t n = begin_labels(r, labels);
    labels[n++] = code_label(r->code, digits);
    metric_add(metric_series(m->families[FAMILY_TERMINATIONS], labels), 1);
}

void request_meter_count(struct request_meter *meter, const struct request_measure *r)
{
    const struct meter_entry *e = find_entry(meter, r);
    const double seconds = (double) r->duration_us / 1e6;
    metric_add(e->requests, 1);
    metric_observe(e->durations, seconds);
    if (e->sli)
        metric_observe(e->sli, seconds);
    if (e->sizes)
        metric_observe(e->sizes, (double) r->response_bytes);
    if (r->is_shed)
        count_shed(meter->metrics, r);
}

void request_meter_long_running(struct request_meter *meter, const struct request_measure *r,
                                int by)
{
    struct str labels[MAX_LABELS];
    (void) begin_labels(r, labels);
    metric_add(metric_series(meter->metrics->families[FAMILY_LONG_RUNNING], labels), by);
}

/* ---- watches and logins --------------------------------------------------------------------- */

struct watch_meter api_metrics_watch(struct api_metrics *m, const struct kind *k)
{
    const struct str labels[] = {k->group, k->version, k->plural};
    return (struct watch_meter){metric_series(m->families[FAMILY_WATCH_EVENTS], labels),
                                metric_series(m->families[FAMILY_WATCH_SIZES], labels)};
}

static size_t user_of(struct str name)
{
    for (size_t i = 2; i < N_ELEMENTS(user_names); i++)
        if (str_eq(name, user_names[i]))
            return i;
    return str_find(name, '@') >= 0 ? 1 : 0;
}

void api_metrics_login(struct api_metrics *m, enum login_result result, struct str user)
{
    metric_add(m->logins[result], 1);
    if (result == LOGIN_SUCCESS)
        metric_add(m->users[user_of(user)], 1);
}
