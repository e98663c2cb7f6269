/* SPDX-License-Identifier: Apache-2.0 */
/* What one composition costs: compose <objects.yaml> <rounds>. The objects are a
 * list, parsed already, as a controller has them; the result is packed, as it is to be delivered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "world.h"
#include "json/yaml.h"

static const char report[] = "{\"ports\":[{\"label\":\"eth0\",\"type\":1,\"group\":\"eth0\"},"
                             "{\"label\":\"wlan0\",\"type\":5,\"group\":\"wlan0\"}]}";

static struct str read_file(struct arena *a, const char *path)
{
    BUF_AUTO text = {0};
    FILE *f = fopen(path, "re");
    if (!f) {
        fprintf(stderr, "compose: %s cannot be read\n", path);
        exit(1);
    }
    for (size_t n = 1; n > 0; text.n += n)
        n = fread(buf_reserve(&text, 65536), 1, 65536, f);
    (void) fclose(f);
    return arena_str(a, buf_str(&text));
}

static double cpu_s(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    ARENA_AUTO a = arena_new();
    ARENA_AUTO once = arena_new();
    struct world w = {.arena = a, .is_sealable = true};
    struct json_parse_result parsed = {0};
    int64_t n_rounds = 0;
    if (argc != 3 || str_to_i64(str_of(argv[2]), &n_rounds) < 0 || n_rounds < 1 ||
        yaml_parse(a, read_file(a, argv[1]), &parsed) < 0) {
        fprintf(stderr, "usage: compose <objects.yaml> <rounds>\n");
        return 1;
    }
    JSON_FOR_EACH_ITEM (parsed.value, object)
        world_apply(&w, object);
    w.report = json_parse_quick(a, str_of(report));
    struct compose_result r = {0};
    world_compose(&w, once, &r); /* what it derives is there from now on, as it usually is */
    const size_t n_problems = r.n_problems, n_apps = r.config->n_apps;
    for (size_t i = 0; i < n_problems; i++)
        fprintf(stderr, "compose: %.*s\n", STR_ARG(r.problems[i].message));
    const size_t n_bytes = world_bytes(once, &r).n;
    const double begin = cpu_s();
    for (int64_t i = 0; i < n_rounds; i++) {
        arena_reset(once);
        world_compose_once(&w, once, &r);
        (void) world_bytes(once, &r);
    }
    const double us = (cpu_s() - begin) * 1e6 / (double) n_rounds;
    printf("{\"us_per_composition\": %.2f, \"applications\": %zu, \"problems\": %zu, \"bytes\": "
           "%zu}\n",
           us, n_apps, n_problems, n_bytes);
    return n_problems ? 2 : 0;
}
