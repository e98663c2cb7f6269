/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/fetch.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "fetch/fetch_internal.h"

/* An idle handle holds one open connection. */
#define FETCH_MAX_IDLE 32
#define FETCH_IDLE_US ((int64_t) 90 * 1000 * 1000)
#define FETCH_MAX_HEADER_BYTES ((size_t) 64 * 1024)

/* A libcurl handle serves one peer with one set of credentials for its whole life, so that no
 * connection is ever used with others than it was made with. */
struct handle {
    struct list link;
    CURL *curl;
    struct buf identity;
    int64_t idle_since_us;
};

struct fetch_client {
    pthread_mutex_t lock;
    struct list idle; /* the latest used last */
    size_t n_idle;
    atomic_bool is_stopping;
};

struct fetch_client *fetch_client_new(void)
{
    struct fetch_client *c = NEW(struct fetch_client);
    pthread_mutex_init(&c->lock, NULL);
    list_init(&c->idle);
    return c;
}

/* ---- handles --------------------------------------------------------------------------------- */

static void handle_free(struct handle *h)
{
    libcurl.easy_cleanup(h->curl);
    buf_done(&h->identity);
    mem_free(h);
}

static void free_all(struct list *handles)
{
    struct list *item = NULL;
    while ((item = list_pop_first(handles)))
        handle_free(CONTAINER_OF(item, struct handle, link));
}

void fetch_client_free(struct fetch_client *c)
{
    if (!c)
        return;
    free_all(&c->idle);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

void fetch_client_stop(struct fetch_client *c)
{
    if (c)
        atomic_store(&c->is_stopping, true);
}

static void append_sized(struct buf *b, struct str s)
{
    buf_printf(b, "%zu:", s.n);
    buf_append_str(b, s);
}

static void describe_identity(struct buf *b, const struct fetch_request *r,
                              const struct fetch_target *t)
{
    append_sized(b, str_of(t->host));
    append_sized(b, str_of(t->port));
    append_sized(b, r->ca_pem);
    append_sized(b, r->cert_pem);
    append_sized(b, r->key_pem);
    append_sized(b, r->server_name);
}

/* Under the lock: those that nobody wants any more go to `old`, to be closed outside of it. */
static void collect_old(struct fetch_client *c, int64_t now_us, struct list *old)
{
    LIST_FOR_EACH (&c->idle, item) {
        struct handle *h = CONTAINER_OF(item, struct handle, link);
        if (now_us - h->idle_since_us < FETCH_IDLE_US && c->n_idle <= FETCH_MAX_IDLE)
            return;
        list_remove(item);
        list_append(old, item);
        c->n_idle--;
    }
}

static struct handle *take_idle(struct fetch_client *c, struct str identity)
{
    struct list old;
    struct handle *found = NULL;
    list_init(&old);
    pthread_mutex_lock(&c->lock);
    collect_old(c, clock_system.monotonic_us(&clock_system), &old);
    LIST_FOR_EACH (&c->idle, item) {
        struct handle *h = CONTAINER_OF(item, struct handle, link);
        if (!str_eq(buf_str(&h->identity), identity))
            continue;
        list_remove(item);
        c->n_idle--;
        found = h;
        break;
    }
    pthread_mutex_unlock(&c->lock);
    free_all(&old);
    return found;
}

static struct handle *take_handle(struct fetch_client *c, const struct fetch_request *r,
                                  const struct fetch_target *t)
{
    struct buf identity = {0};
    describe_identity(&identity, r, t);
    struct handle *h = take_idle(c, buf_str(&identity));
    if (h) {
        buf_done(&identity);
        return h;
    }
    CURL *curl = libcurl.easy_init();
    if (!curl) {
        buf_done(&identity);
        return NULL;
    }
    h = NEW(struct handle);
    list_init(&h->link);
    h->curl = curl;
    h->identity = identity;
    return h;
}

static void give_back(struct fetch_client *c, struct handle *h)
{
    struct list old;
    list_init(&old);
    libcurl.easy_reset(h->curl); /* of options and pointers; keeps connections and TLS sessions */
    h->idle_since_us = clock_system.monotonic_us(&clock_system);
    pthread_mutex_lock(&c->lock);
    list_append(&c->idle, &h->link);
    c->n_idle++;
    collect_old(c, h->idle_since_us, &old);
    pthread_mutex_unlock(&c->lock);
    free_all(&old);
}

/* ---- what comes ------------------------------------------------------------------------------ */

struct receiving {
    struct buf body, cache_control;
    size_t max_bytes, n_header_bytes;
    bool is_too_large;
    const struct fetch_client *client;
};

/* libcurl asks about once a second whether to go on, and whenever something moves. */
static int on_progress(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    const struct receiving *g = arg;
    (void) down_total, (void) down, (void) up_total, (void) up;
    return atomic_load(&g->client->is_stopping) ? 1 : 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct receiving *g = arg;
    n *= size;
    if (n > g->max_bytes - g->body.n) {
        g->is_too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    buf_append(&g->body, p, n);
    return n;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    static const struct str name = STR("cache-control:");
    struct receiving *g = arg;
    n *= size;
    g->n_header_bytes += n;
    if (g->n_header_bytes > FETCH_MAX_HEADER_BYTES) {
        g->is_too_large = true;
        return 0;
    }
    struct str line = str_range(p, n);
    if (str_starts_with(line, STR("HTTP/")))
        buf_reset(&g->cache_control); /* what an interim answer said */
    if (line.n > name.n && str_eq_nocase(str_sub(line, 0, name.n), name)) {
        if (g->cache_control.n > 0)
            buf_append_str(&g->cache_control, STR(", "));
        buf_append_str(&g->cache_control, str_trim(str_from(line, name.n)));
    }
    return n;
}

/* ---- what goes ------------------------------------------------------------------------------- */

static void set_blob(CURL *curl, CURLoption option, struct str s)
{
    struct curl_blob blob = {.data = (void *) s.p, .len = s.n, .flags = CURL_BLOB_COPY};
    libcurl.easy_setopt(curl, option, &blob);
}

static void set_trust(CURL *curl, const struct fetch_request *r)
{
    libcurl.easy_setopt(curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    libcurl.easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    libcurl.easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    if (r->ca_pem.p) {
        /* The blob alone replaces the machine's file of CAs but not its directory. */
        libcurl.easy_setopt(curl, CURLOPT_CAINFO, NULL);
        libcurl.easy_setopt(curl, CURLOPT_CAPATH, NULL);
        set_blob(curl, CURLOPT_CAINFO_BLOB, r->ca_pem);
    }
    if (r->cert_pem.p) {
        libcurl.easy_setopt(curl, CURLOPT_SSLCERTTYPE, "PEM");
        set_blob(curl, CURLOPT_SSLCERT_BLOB, r->cert_pem);
    }
    if (r->key_pem.p) {
        libcurl.easy_setopt(curl, CURLOPT_SSLKEYTYPE, "PEM");
        set_blob(curl, CURLOPT_SSLKEY_BLOB, r->key_pem);
    }
}

/* The name to verify is the URL's for libcurl: so the URL gets it, and the real peer goes beside
 * it. */
static void set_place(CURL *curl, const struct fetch_request *r, const struct fetch_target *t,
                      struct curl_slist **ret_connect_to)
{
    libcurl.easy_setopt(curl, CURLOPT_URL, t->url);
    libcurl.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, r->allows_http ? "http,https" : "https");
    if (t->connect_to) {
        *ret_connect_to = libcurl.slist_append(NULL, t->connect_to);
        libcurl.easy_setopt(curl, CURLOPT_CONNECT_TO, *ret_connect_to);
    }
    /* As Go does: the environment's proxy is for other machines. */
    if (fetch_target_is_local(t))
        libcurl.easy_setopt(curl, CURLOPT_PROXY, "");
}

static void set_method(CURL *curl, const struct fetch_request *r)
{
    if (strcmp(r->method, "GET") == 0) {
        libcurl.easy_setopt(curl, CURLOPT_HTTPGET, 1L);
        return;
    }
    libcurl.easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) r->body.n);
    libcurl.easy_setopt(curl, CURLOPT_POSTFIELDS, r->body.p ? r->body.p : "");
    libcurl.easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
}

static struct curl_slist *make_headers(struct arena *a, const struct fetch_request *r,
                                       const struct fetch_target *t)
{
    struct curl_slist *headers = libcurl.slist_append(NULL, "Expect:");
    if (t->connect_to)
        headers = libcurl.slist_append(headers, arena_printf(a, "Host: %s", t->authority).p);
    for (size_t i = 0; i < r->n_headers; i++)
        headers = libcurl.slist_append(headers, arena_strz(a, r->headers[i]));
    return headers;
}

static void set_common(CURL *curl, const struct fetch_request *r, struct receiving *g, char *words)
{
    libcurl.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    libcurl.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    libcurl.easy_setopt(curl, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    libcurl.easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
    libcurl.easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) MAX(r->timeout_ms, (int64_t) 1));
    libcurl.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long) MAX(r->timeout_ms, (int64_t) 1));
    libcurl.easy_setopt(curl, CURLOPT_USERAGENT, "seth/" SETH_VERSION);
    libcurl.easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    libcurl.easy_setopt(curl, CURLOPT_WRITEDATA, g);
    libcurl.easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    libcurl.easy_setopt(curl, CURLOPT_HEADERDATA, g);
    libcurl.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    libcurl.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    libcurl.easy_setopt(curl, CURLOPT_XFERINFODATA, g);
    libcurl.easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void fill_answer(struct arena *a, CURL *curl, const struct receiving *g,
                        struct fetch_answer *ret)
{
    long status = 0;
    const char *content_type = NULL;
    libcurl.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    libcurl.easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &content_type);
    *ret = (struct fetch_answer){
        .status = (int) status,
        .body = arena_str(a, buf_str(&g->body)),
        .content_type = content_type ? arena_str(a, str_of(content_type)) : STR_NONE,
        .cache_control =
            g->cache_control.n > 0 ? arena_str(a, buf_str(&g->cache_control)) : STR_NONE,
    };
}

static int perform(struct fetch_client *c, struct handle *h, struct arena *a,
                   const struct fetch_request *r, const struct fetch_target *t,
                   struct fetch_answer *ret, struct str *ret_error)
{
    char words[CURL_ERROR_SIZE] = "";
    struct receiving g = {.max_bytes = r->max_bytes, .client = c};
    struct curl_slist *connect_to = NULL;
    struct curl_slist *headers = make_headers(a, r, t);
    set_common(h->curl, r, &g, words);
    set_trust(h->curl, r);
    set_place(h->curl, r, t, &connect_to);
    set_method(h->curl, r);
    libcurl.easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode code = libcurl.easy_perform(h->curl);
    int result = 0;
    if (code == CURLE_OK)
        fill_answer(a, h->curl, &g, ret);
    else
        result = fetch_explain(a,
                               &(struct fetch_failure){.curl = h->curl,
                                                       .code = code,
                                                       .words = words,
                                                       .is_too_large = g.is_too_large,
                                                       .max_bytes = r->max_bytes},
                               r, t, ret_error);
    libcurl.slist_free_all(headers);
    libcurl.slist_free_all(connect_to);
    buf_done(&g.body);
    buf_done(&g.cache_control);
    return result;
}

static bool is_one_line(struct str s)
{
    return !memchr(s.p, '\r', s.n) && !memchr(s.p, '\n', s.n) && !memchr(s.p, '\0', s.n);
}

int fetch(struct fetch_client *c, struct arena *a, const struct fetch_request *r,
          struct fetch_answer *ret, struct str *ret_error)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (!is_one_line(r->headers[i])) {
            *ret_error = STR("net/http: invalid header field value");
            return -EINVAL;
        }
    }
    const char *why = NULL;
    if (!libcurl_load(&why)) {
        *ret_error = str_of(why);
        return -ENOSYS;
    }
    struct fetch_target t;
    int result = fetch_target_parse(a, r, &t, ret_error);
    if (result < 0)
        return result;
    struct handle *h = take_handle(c, r, &t);
    if (!h) {
        *ret_error = STR("libcurl has no memory");
        return -ENOMEM;
    }
    result = perform(c, h, a, r, &t, ret, ret_error);
    if (result < 0)
        handle_free(h); /* with whatever state the failure left */
    else
        give_back(c, h);
    return result;
}
