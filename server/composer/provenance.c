/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a configuration while it is made: each with its place in a list and with the
 * objects it comes from. Lists are sorted at the end, so that the order in which objects came in
 * says nothing. */
#include <stdarg.h>
#include <stdlib.h>

#include "composer/composer_internal.h"

static const struct {
    const char *name; /* as protobuf's JSON has it */
    size_t n_offset, items_offset;
} lists[SECTIONS] = {
#define LIST(name, field) \
    { \
        name, offsetof(Eve__Config__EdgeDevConfig, n_##field), \
            offsetof(Eve__Config__EdgeDevConfig, field) \
    }
    [SECTION_APPS] = LIST("apps", apps),
    [SECTION_NETWORKS] = LIST("networks", networks),
    [SECTION_DATASTORES] = LIST("datastores", datastores),
    [SECTION_ITEMS] = LIST("configItems", configitems),
    [SECTION_ADAPTERS] = LIST("systemAdapterList", systemadapterlist),
    [SECTION_PORTS] = LIST("deviceIoList", deviceiolist),
    [SECTION_INSTANCES] = LIST("networkInstances", networkinstances),
    [SECTION_CONTEXTS] = LIST("cipherContexts", ciphercontexts),
    [SECTION_TREES] = LIST("contentInfo", contentinfo),
    [SECTION_VOLUMES] = LIST("volumes", volumes),
#undef LIST
};

struct part *part_find(struct composition *c, enum section section, struct str key)
{
    const struct parts *parts = &c->sections[section];
    for (size_t i = 0; i < parts->n; i++)
        if (str_eq(parts->items[i].key, key))
            return &parts->items[i];
    return NULL;
}

struct part *part_add(struct composition *c, enum section section, struct str key,
                      ProtobufCMessage *message)
{
    struct parts *parts = &c->sections[section];
    const struct part part = {.key = key, .message = message};
    REPEATED_ADD(c->arena, parts->items, parts->n, part);
    return &parts->items[parts->n - 1];
}

void part_source(struct composition *c, struct part *p, const char *below,
                 const struct json *object, struct str field)
{
    if (!object)
        return;
    struct part_source *s = ARENA_NEW(c->arena, struct part_source);
    *s = (struct part_source){below, object, field, p->sources};
    p->sources = s;
}

void source_add(struct composition *c, struct str path, const struct json *object, struct str field)
{
    const struct compose_source source = {path, object, field};
    REPEATED_ADD(c->arena, c->result->sources, c->result->n_sources, source);
}

void problem_add(struct composition *c, const struct json *object, struct str field,
                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const struct str message = arena_vprintf(c->arena, format, args);
    va_end(args);
    const struct compose_problem problem = {object, field, message};
    REPEATED_ADD(c->arena, c->result->problems, c->result->n_problems, problem);
}

static int by_key(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return str_cmp(x->key, y->key);
}

static int compare_objects(const struct json *a, const struct json *b)
{
    const int order = str_cmp(json_get_str(a, STR("kind")), json_get_str(b, STR("kind")));
    return order ? order : str_cmp(object_name(a), object_name(b));
}

static int by_object(const void *a, const void *b)
{
    const struct compose_problem *x = a, *y = b;
    int order = compare_objects(x->object, y->object);
    if (!order)
        order = str_cmp(x->field, y->field);
    return order ? order : str_cmp(x->message, y->message);
}

/* Within a path the field decides; paths of one list are told in the list's own order. */
static int by_field(const void *a, const void *b)
{
    const struct compose_source *x = a, *y = b;
    int order = str_cmp(x->path, y->path);
    if (!order)
        order = compare_objects(x->object, y->object);
    return order ? order : str_cmp(x->field, y->field);
}

static void finish_part(struct composition *c, enum section section, size_t at)
{
    const size_t first = c->result->n_sources;
    for (const struct part_source *s = c->sections[section].items[at].sources; s; s = s->next)
        source_add(c,
                   arena_printf(c->arena, "%s[%zu]%s%s", lists[section].name, at,
                                *s->below ? "." : "", s->below),
                   s->object, s->field);
    const size_t n = c->result->n_sources - first;
    if (n)
        qsort(c->result->sources + first, n, sizeof(*c->result->sources), by_field);
}

static void finish_section(struct composition *c, enum section section)
{
    struct parts *parts = &c->sections[section];
    if (parts->n == 0)
        return;
    qsort(parts->items, parts->n, sizeof(*parts->items), by_key);
    ProtobufCMessage **messages = ARENA_ARRAY(c->arena, ProtobufCMessage *, parts->n);
    for (size_t i = 0; i < parts->n; i++) {
        messages[i] = parts->items[i].message;
        finish_part(c, section, i);
    }
    char *config = (char *) c->config;
    memcpy(config + lists[section].n_offset, &parts->n, sizeof(parts->n));
    memcpy(config + lists[section].items_offset, &messages, sizeof(messages));
}

void parts_finish(struct composition *c)
{
    for (int section = 0; section < SECTIONS; section++)
        finish_section(c, (enum section) section);
    if (c->result->n_problems)
        qsort(c->result->problems, c->result->n_problems, sizeof(*c->result->problems), by_object);
}

struct json *compose_sources_json(struct arena *a, const struct compose_result *r, bool is_full)
{
    struct json *list = json_new(a, json_array());
    for (size_t i = 0; i < r->n_sources; i++) {
        const struct compose_source *s = &r->sources[i];
        const struct json *meta = json_get(s->object, STR("metadata"));
        struct json *entry = json_push(a, list, json_object());
        const struct {
            const char *key;
            struct str value;
        } members[] = {
            {"path", s->path},
            {"apiVersion", is_full ? json_get_str(s->object, STR("apiVersion")) : STR_NONE},
            {"kind", json_get_str(s->object, STR("kind"))},
            {"namespace", is_full ? json_get_str(meta, STR("namespace")) : STR_NONE},
            {"name", json_get_str(meta, STR("name"))},
            {"field", s->field},
        };
        for (size_t m = 0; m < N_ELEMENTS(members); m++)
            if (members[m].value.n)
                (void) json_append_member(a, entry, str_of(members[m].key),
                                          json_string(members[m].value));
        /* A status that changes says nothing new of where a part comes from. */
        const struct json *generation = json_get(meta, STR("generation"));
        const struct json *revision = generation ? NULL : json_get(meta, STR("resourceVersion"));
        if (generation || revision)
            (void) json_append_member(a, entry,
                                      generation ? STR("generation") : STR("resourceVersion"),
                                      generation ? *generation : *revision);
    }
    return list;
}
