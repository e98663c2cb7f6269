/* SPDX-License-Identifier: Apache-2.0 */
/* The list call in process, before HTTP and TLS: lists a collection of a store that a server has
 * left behind, again and again, and gathers the answer into records of 16 KiB as a connection does.
 * Prints one line of JSON.
 *
 *     list FILE GROUP VERSION PLURAL [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/call.h"
#include "api/codec.h"
#include "base/alloc.h"

#define RECORD_BYTES ((size_t) 16 * 1024)

static void die(const char *what, const char *why)
{
    fprintf(stderr, "list: %s: %s\n", what, why ? why : "failed");
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void on_done(struct call *c)
{
    (void) c;
}

static size_t gather(const struct call_reply *r)
{
    static char record[RECORD_BYTES];
    size_t n_bytes = 0;
    for (size_t i = 0; i < r->n_slices; i++) {
        struct str rest = r->body[i].s;
        while (rest.n) {
            size_t at = n_bytes % RECORD_BYTES, n = MIN(rest.n, RECORD_BYTES - at);
            memcpy(record + at, rest.p, n);
            rest = str_from(rest, n);
            n_bytes += n;
        }
    }
    return n_bytes;
}

static size_t list_once(struct api *api, const struct request_path *path)
{
    static const struct str masters[] = {{"system:masters", 14}};
    ARENA_AUTO a = arena_new();
    struct call c = {.api = api,
                     .arena = a,
                     .on_done = on_done,
                     .in = {.user = {STR("bench"), masters, 1},
                            .path = *path,
                            .verb = VERB_LIST,
                            .accept = STR("application/json")}};
    call_run(&c);
    if (c.status.code)
        die("the call", "was refused");
    size_t n = gather(&c.reply);
    call_done(&c);
    return n;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        die("usage", "list FILE GROUP VERSION PLURAL [ROUNDS]");
    struct store *store = NULL;
    struct api *api = NULL;
    char *error = NULL;
    int64_t n_rounds = 20;
    if (argc > 5 && str_to_i64(str_of(argv[5]), &n_rounds) < 0)
        die(argv[5], "is no number");
    if (store_open(&(struct store_options){.path = argv[1],
                                           .parse_head = codec_parse_stored,
                                           .clock = &clock_system},
                   &store, &error) < 0 ||
        api_new(&(struct api_options){store, &clock_system}, &api, &error) < 0)
        die(argv[1], error);
    const struct request_path path = {.is_resource = true,
                                      .group = str_of(argv[2]),
                                      .version = str_of(argv[3]),
                                      .resource = str_of(argv[4])};
    size_t n_bytes = list_once(api, &path), total = 0;
    double start = cpu_s();
    for (int64_t i = 0; i < n_rounds; i++)
        total += list_once(api, &path);
    double seconds = cpu_s() - start;
    printf("{\"bytes\": %zu, \"cpu_seconds\": %.6f, \"bytes_per_cpu_second\": %.0f}\n", n_bytes,
           seconds, (double) total / seconds);
    api_free(api);
    store_close(store);
    return 0;
}
