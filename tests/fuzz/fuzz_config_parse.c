/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes that are a configuration, alone or in a response, give values that can be published:
 * objects of valid text that read back as they were written, and the same again from the same
 * bytes. */
#include <stdlib.h>

#include "protobuf/message.h"
#include "zedagent/parse.h"

#define NOW_US 1767225600000000
/* Of one topic; a small configuration must not become a large one. */
#define MAX_VALUES ((size_t) 4 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct str parse_section(struct arena *a, const Eve__Config__EdgeDevConfig *config,
                                size_t id, enum parse_source source)
{
    struct parse p = {.arena = a,
                      .config = config,
                      .source = source,
                      .now_us = NOW_US,
                      .received_us = NOW_US,
                      .cache_directory = "/cache"};
    const struct json *all = parse_sections[id].parse(&p);
    for (const struct parse_file *f = p.files; f; f = f->next)
        require(f->name.n && str_find(f->name, '/') < 0 && f->name.p[0] != '.');
    if (!all)
        return STR("");
    require(json_is(all, JSON_OBJECT) && json_fits(all, MAX_VALUES));
    JSON_FOR_EACH_MEMBER (all, m)
        require(json_is(&m->value, JSON_OBJECT));
    return json_text(a, all);
}

static void check(const Eve__Config__EdgeDevConfig *config)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        ARENA_AUTO a = arena_new();
        struct json_parse_result parsed;
        unsigned char hash[SHA256_BYTES], again[SHA256_BYTES];
        const struct str text = parse_section(a, config, i, PARSE_CONTROLLER);
        require(str_eq(text, parse_section(a, config, i, PARSE_CONTROLLER)));
        (void) parse_section(a, config, i, PARSE_BOOTSTRAP);
        if (text.n)
            require(json_parse(a, text, &parsed) == 0);
        /* A key may come twice: the last one counts. */
        if (text.n && !parsed.duplicates)
            require(str_eq(json_text(a, parsed.value), text));
        parse_hash(&parse_sections[i], config, hash);
        parse_hash(&parse_sections[i], config, again);
        require(memcmp(hash, again, sizeof(hash)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str bytes = str_range((const char *) data, size);
    ARENA_AUTO a = arena_new();
    const Eve__Config__ConfigResponse *response = PB_UNPACK(a, eve__config__config_response, bytes);
    const Eve__Config__EdgeDevConfig *config = PB_UNPACK(a, eve__config__edge_dev_config, bytes);
    if (response && response->config)
        check(response->config);
    if (config)
        check(config);
    return 0;
}
