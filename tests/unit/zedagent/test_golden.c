/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations and what each topic says of them. Those of tests/data/compose are what the
 * composer makes (the richest step of each case), those of
 * tests/data/agent/parse/<case>.config.json what no composer would; the outcome is
 * tests/data/agent/parse/<case>.json. With SETH_WRITE_GOLDEN set outcomes are written instead of
 * compared; read the difference before it is committed. */
#include "test.h"

#include <stdlib.h>

#include "pki/file.h"
#include "protobuf/protojson.h"
#include "zedagent/parse.h"

#define NOW_US 1767225600000000 /* 2026-01-01T00:00:00Z */

static struct json *read_json(struct arena *a, struct str path)
{
    BUF_AUTO text = {0};
    assert_int_equal(pki_file_read(arena_strz(a, path), &text), 0);
    struct json *v = json_parse_quick(a, buf_str(&text));
    assert_non_null(v);
    return v;
}

static struct json *outcome(struct arena *a, const struct json *config)
{
    struct str error = STR_NONE;
    struct json *all = json_new(a, json_object());
    const ProtobufCMessage *m = protojson_read(a, &eve__config__edge_dev_config__descriptor, config,
                                               PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    if (!m)
        fail_msg("%.*s", STR_ARG(error));
    struct parse p = {.arena = a,
                      .config = (const Eve__Config__EdgeDevConfig *) m,
                      .source = PARSE_CONTROLLER,
                      .now_us = NOW_US,
                      .received_us = NOW_US,
                      .cache_directory = "/persist/patchEnvelopesCache"};
    for (size_t i = 0; i < SECTIONS; i++) {
        const struct json *topic = parse_sections[i].parse(&p);
        if (topic)
            (void) json_set(a, all, str_of(parse_sections[i].topic), *topic);
    }
    for (const struct parse_file *f = p.files; f; f = f->next)
        (void) json_set(a, json_ensure_object(a, all, STR("files")), f->name,
                        json_string(f->content));
    return all;
}

static void compare(struct arena *a, const char *name, const struct json *config)
{
    const struct str path = arena_printf(a, "%s/agent/parse/%s.json", TEST_DATA, name);
    BUF_AUTO text = {0};
    BUF_AUTO expected = {0};
    json_write_pretty(&text, outcome(a, config));
    buf_append_char(&text, '\n');
    if (getenv("SETH_WRITE_GOLDEN")) {
        assert_int_equal(pki_file_write(path.p, buf_str(&text), 0644), 0);
        return;
    }
    assert_int_equal(pki_file_read(path.p, &expected), 0);
    if (!str_eq(buf_str(&text), buf_str(&expected)))
        fail_msg("%s: got %s", path.p, text.p);
}

static void run_composed(const char *name)
{
    ARENA_AUTO a = arena_new();
    const struct json *steps = read_json(a, arena_printf(a, "%s/compose/%s.json", TEST_DATA, name));
    const struct json *richest = NULL;
    size_t n_bytes = 0;
    JSON_FOR_EACH_ITEM (steps, step) {
        const struct json *config = json_get(step, STR("config"));
        const size_t n = json_text(a, config).n;
        richest = n > n_bytes ? config : richest;
        n_bytes = MAX(n, n_bytes);
    }
    assert_non_null(richest);
    compare(a, name, richest);
}

static void run_own(const char *name)
{
    ARENA_AUTO a = arena_new();
    compare(a, name,
            read_json(a, arena_printf(a, "%s/agent/parse/%s.config.json", TEST_DATA, name)));
}

#define COMPOSED(name) \
    TEST(composed_##name) \
    { \
        run_composed(#name); \
    }
#define OWN(name) \
    TEST(own_##name) \
    { \
        run_own(#name); \
    }

COMPOSED(nothing)
COMPOSED(container)
COMPOSED(virtual_machine)
COMPOSED(static_proxies)
COMPOSED(wifi)
COMPOSED(switch_passthrough)
COMPOSED(user_data)
COMPOSED(base_os)
COMPOSED(options)
OWN(layers)
OWN(port_errors)
OWN(instances)
OWN(applications)
OWN(cellular)
OWN(cluster)
OWN(envelopes)
OWN(scep)
