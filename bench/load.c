/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a server and prints what it measured as one line of JSON.
 *
 *     load --port P --cert FILE --key FILE --path /x --requests N [--connections C] [--streams S]
 * [--http1] load ... --file PREPARED           requests as prepared: "METHOD PATH CONTENT-TYPE
 * BYTES\nBODY\n" each; --answers FILE keeps what was answered, "BYTES\nBODY\n" each, in the order
 * of the requests; --reconnect makes a connection for each request, --resume resumes the session
 *     load ... --file PREPARED --watchers W --watch-path /x?watch=true --rate
 * UPDATES-PER-SECOND
 */
#include "load.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

/* ---- options ------------------------------------------------------------------------------ */

struct option_line {
    const char *name;
    const char **text;
    size_t *count;
    int *number;
};

static void set_option(const struct option_line *o, const char *value)
{
    int64_t n = 0;
    if (o->text) {
        *o->text = value;
        return;
    }
    if (str_to_i64(str_of(value), &n) < 0 || n < 0 || n > INT32_MAX)
        load_die(o->name, "is no number");
    if (o->count)
        *o->count = (size_t) n;
    else
        *o->number = (int) n;
}

static bool set_flag(struct load_options *o, struct str flag)
{
    if (str_is(flag, "--http1"))
        o->is_http1 = true;
    else if (str_is(flag, "--reconnect"))
        o->is_http1 = o->is_reconnecting = true;
    else if (str_is(flag, "--resume"))
        o->is_http1 = o->is_reconnecting = o->is_resuming = true;
    else
        return false;
    return true;
}

static void parse_options(struct load_options *o, const char **ret_path, const char **ret_file,
                          int argc, char **argv)
{
    const struct option_line lines[] = {
        {"--address", &o->address, NULL, NULL},
        {"--port", NULL, NULL, &o->port},
        {"--cert", &o->certificate, NULL, NULL},
        {"--key", &o->key, NULL, NULL},
        {"--authorization", &o->authorization, NULL, NULL},
        {"--path", ret_path, NULL, NULL},
        {"--file", ret_file, NULL, NULL},
        {"--connections", NULL, &o->n_connections, NULL},
        {"--streams", NULL, &o->n_streams, NULL},
        {"--requests", NULL, &o->n_requests, NULL},
        {"--warm-up", NULL, &o->n_warm_up, NULL},
        {"--server-pid", NULL, NULL, &o->server_pid},
        {"--watchers", NULL, &o->n_watchers, NULL},
        {"--watch-path", &o->watch_path, NULL, NULL},
        {"--answers", &o->answers, NULL, NULL},
        {"--rate", NULL, &o->updates_per_second, NULL},
    };
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (set_flag(o, str_of(argv[i])))
            continue;
        while (k < N_ELEMENTS(lines) && !str_is(str_of(argv[i]), lines[k].name))
            k++;
        if (k == N_ELEMENTS(lines) || i + 1 == argc)
            load_die(argv[i], "is no option, or lacks its value");
        set_option(&lines[k], argv[++i]);
    }
}

static SSL_CTX *make_tls(const struct load_options *o)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(tls, 1);
    /* The same for every server, so that none wins by its choice. */
    (void) SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256");
    (void) SSL_CTX_set1_groups_list(tls, "X25519");
    SSL_CTX_set_default_read_buffer_len(tls, (size_t) 64 * 1024);
    if (o->certificate && SSL_CTX_use_certificate_chain_file(tls, o->certificate) != 1)
        load_die(o->certificate, "is no certificate");
    if (o->key && SSL_CTX_use_PrivateKey_file(tls, o->key, SSL_FILETYPE_PEM) != 1)
        load_die(o->key, "is no key");
    return tls;
}

/* ---- prepared requests -------------------------------------------------------------------- */

static struct str map_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        load_die(path, "cannot be read");
    void *p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        load_die(path, "cannot be mapped");
    (void) close(fd);
    return str_range(p, (size_t) st.st_size);
}

static bool parse_head(struct str line, struct request *r, size_t *ret_n_body)
{
    struct str length;
    int64_t n = 0;
    if (!str_split(&line, ' ', &r->method) || !str_split(&line, ' ', &r->path) ||
        !str_split(&line, ' ', &r->content_type) || !str_split(&line, ' ', &length) ||
        str_to_i64(length, &n) < 0)
        return false;
    *ret_n_body = (size_t) n;
    return true;
}

static void read_requests(struct load *l, const char *path)
{
    struct str rest = map_file(path), line;
    while (str_split(&rest, '\n', &line)) {
        struct request r;
        size_t n_body = 0;
        if (!parse_head(line, &r, &n_body) || n_body >= rest.n)
            load_die(path, "is no list of prepared requests");
        r.body = str_sub(rest, 0, n_body);
        rest = str_from(rest, n_body + 1);
        l->requests = mem_realloc_array(l->requests, l->n_requests_given + 1, sizeof(r));
        l->requests[l->n_requests_given++] = r;
    }
    if (!l->options.n_requests)
        l->options.n_requests = l->n_requests_given;
}

static void one_request(struct load *l, const char *path)
{
    l->requests = NEW(struct request);
    l->requests[0] = (struct request){.method = STR("GET"), .path = str_of(path)};
    l->n_requests_given = 1;
}

/* ---- the report --------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *) a, right = *(const uint32_t *) b;
    return left < right ? -1 : left > right;
}

static void print_latencies(const char *name, uint32_t *us, size_t n)
{
    qsort(us, n, sizeof(*us), compare);
    printf(", \"%s_us\": {\"p50\": %u, \"p99\": %u, \"max\": %u}", name, us[n / 2],
           us[n * 99 / 100], us[n - 1]);
}

static double own_cpu_s(void)
{
    struct rusage u;
    (void) getrusage(RUSAGE_SELF, &u);
    return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void report(struct load *l)
{
    printf("{\"requests\": %zu, \"failed\": %zu, \"seconds\": %.6f, \"bytes\": %llu, "
           "\"server_cpu_seconds\": %.6f, "
           "\"own_cpu_seconds\": %.6f",
           l->n_done, l->n_failed, l->seconds, (unsigned long long) l->n_bytes, l->cpu_s,
           own_cpu_s());
    print_latencies("answer", l->latency_us, l->n_done);
    if (l->n_events) {
        printf(", \"events\": %zu", l->n_events);
        print_latencies("event", l->event_us, l->n_events);
    }
    printf("}\n");
}

static void write_answers(const struct load *l)
{
    FILE *f = fopen(l->options.answers, "we");
    if (!f)
        load_die(l->options.answers, "cannot be written");
    for (size_t i = 0; i < l->n_done; i++) {
        fprintf(f, "%zu\n", l->answers[i].n);
        (void) fwrite(l->answers[i].p, 1, l->answers[i].n, f);
        (void) fputc('\n', f);
    }
    if (fclose(f) != 0)
        load_die(l->options.answers, "cannot be written");
}

int main(int argc, char **argv)
{
    const char *path = NULL, *file = NULL;
    struct load l = {
        .options = {
            .address = "127.0.0.1", .n_connections = 1, .n_streams = 1, .updates_per_second = 50}};
    (void) signal(SIGPIPE, SIG_IGN);
    parse_options(&l.options, &path, &file, argc, argv);
    if (file)
        read_requests(&l, file);
    else if (path)
        one_request(&l, path);
    if (!l.n_requests_given || !l.options.n_requests || !l.options.n_connections ||
        !l.options.n_streams || !l.options.updates_per_second ||
        (l.options.n_watchers && (!l.options.watch_path || l.options.is_http1)))
        load_die("usage", "see the head of load.c");
    l.tls = make_tls(&l.options);
    if (l.options.is_reconnecting)
        load_reconnect(&l);
    else
        load_run(&l);
    report(&l);
    if (l.answers)
        write_answers(&l);
    load_done(&l);
    mem_free(l.requests);
    return l.n_failed ? 2 : 0;
}
