/* SPDX-License-Identifier: Apache-2.0 */
/* Publications, and how a section of a configuration becomes one. */
#include <dirent.h>
#include <errno.h>

#include "base/log.h"
#include "zedagent/zedagent_internal.h"

#define AGENT STR("zedagent")
#define CACHE STR("patchEnvelopesCache")

static int open_one(struct zedagent *z, const char *topic, bool is_persistent,
                    struct publication **ret)
{
    const struct pubsub_name name = {
        .agent = AGENT, .topic = str_of(topic), .is_persistent = is_persistent};
    return publication_new(z->node->pubsub, &name, ret);
}

int topics_open(struct zedagent *z)
{
    struct topics *t = &z->topics;
    int r = open_one(z, "ConfigItemValueMap", false, &t->items);
    for (size_t i = 0; r == 0 && i < SECTIONS; i++)
        r = open_one(z, parse_sections[i].topic, parse_sections[i].is_persistent, &t->sections[i]);
    if (r == 0)
        r = open_one(z, "ZedAgentStatus", false, &t->status);
    if (r == 0)
        r = open_one(z, "ControllerCert", false, &t->controller_certs);
    if (r == 0)
        r = open_one(z, "LOCConfig", false, &t->loc);
    return r;
}

void topics_close(struct zedagent *z)
{
    struct topics *t = &z->topics;
    publication_free(t->items);
    for (size_t i = 0; i < SECTIONS; i++)
        publication_free(t->sections[i]);
    publication_free(t->status);
    publication_free(t->controller_certs);
    publication_free(t->loc);
    publication_free(t->collect_info);
}

/* ---- values --------------------------------------------------------------------------------- */

/* When nothing else is different, a port configuration keeps its rank. */
bool topics_is_same_ports(struct arena *a, const struct json *value, const struct json *old)
{
    struct json x, y;
    if (!old)
        return false;
    x = json_clone(a, value);
    y = json_clone(a, old);
    struct json *both[] = {&x, &y};
    for (size_t i = 0; i < N_ELEMENTS(both); i++) {
        (void) json_remove(both[i], STR("TimePriority"));
        (void) json_remove(both[i], STR("LastFailed"));
        JSON_FOR_EACH_ITEM (json_get(both[i], STR("Ports")), port) {
            (void) json_remove(port, STR("ConfigSource"));
            (void) json_remove(port, STR("LastFailed"));
        }
    }
    return json_equal(&x, &y);
}

static void publish_one(struct zedagent *z, enum section_id id, struct arena *a, struct str key,
                        const struct json *value)
{
    struct publication *p = z->topics.sections[id];
    int r;
    if (id == SECTION_PORTS && topics_is_same_ports(a, value, publication_get(a, p, key)))
        return;
    r = publication_publish(p, key, value);
    if ((r == -EMSGSIZE || r == -EFBIG) && id == SECTION_APPS)
        r = publication_publish(p, key, parse_shrink_app(a, value));
    if (r < 0)
        log_error("part of the configuration is not published, ignoring",
                  LOG_TEXT("topic", parse_sections[id].topic), LOG_STR("key", key), LOG_ERRNO(r));
}

struct keys {
    struct str key;
    struct keys *next;
};

static struct keys *list_keys(struct arena *a, const struct publication *p)
{
    struct keys *list = NULL;
    size_t position = 0;
    struct str key, text;
    while (publication_next(p, &position, &key, &text)) {
        struct keys *k = ARENA_NEW(a, struct keys);
        *k = (struct keys){.key = arena_str(a, key), .next = list};
        list = k;
    }
    return list;
}

static void publish_all(struct zedagent *z, enum section_id id, struct arena *a,
                        const struct json *all)
{
    struct publication *p = z->topics.sections[id];
    const bool keeps =
        id == SECTION_PORTS || (parse_sections[id].deletes_nothing_in_departure && z->is_departing);
    struct json_index index;
    json_index_init(&index, all);
    for (const struct keys *k = keeps ? NULL : list_keys(a, p); k; k = k->next)
        if (!json_index_get(&index, k->key))
            (void) publication_unpublish(p, k->key);
    json_index_done(&index);
    JSON_FOR_EACH_MEMBER (all, m)
        publish_one(z, id, a, json_str(&m->key), &m->value);
}

/* ---- files of patch envelopes ---------------------------------------------------------------- */

static struct str file_name(struct arena *a, struct str name)
{
    return arena_printf(a, "%.*s/%.*s", STR_ARG(CACHE), STR_ARG(name));
}

static void write_files(struct zedagent *z, const struct parse *p)
{
    for (const struct parse_file *f = p->files; f; f = f->next) {
        const struct str name = file_name(p->arena, f->name);
        BUF_AUTO before = {0};
        int r = node_file_read(z->node, NODE_PERSIST, name, &before);
        if (r == 0 && str_eq(buf_str(&before), f->content))
            continue;
        r = node_file_write(z->node, NODE_PERSIST, name, f->content);
        if (r < 0)
            log_error("a patch for applications is not kept, ignoring", LOG_STR("file", name),
                      LOG_ERRNO(r));
    }
}

static bool has_file(const struct parse *p, const char *name)
{
    for (const struct parse_file *f = p->files; f; f = f->next)
        if (str_is(f->name, name))
            return true;
    return false;
}

/* After who serves them was told that they are gone. */
static void remove_other_files(struct zedagent *z, const struct parse *p)
{
    DIR *d = opendir(node_path(p->arena, z->node, NODE_PERSIST, CACHE));
    struct dirent *e;
    if (!d)
        return;
    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && !has_file(p, e->d_name))
            (void) node_file_remove(z->node, NODE_PERSIST, file_name(p->arena, str_of(e->d_name)));
    (void) closedir(d);
}

/* ---- sections ------------------------------------------------------------------------------- */

void topics_forget(struct zedagent *z, enum section_id id)
{
    z->topics.sources[id] = PARSE_NOWHERE;
}

static bool is_parsed(const struct topics *t, enum section_id id, enum parse_source source,
                      const unsigned char *hash)
{
    if (t->sources[id] == PARSE_NOWHERE ||
        (parse_sections[id].depends_on_source && t->sources[id] != source))
        return false;
    return memcmp(t->hashes[id], hash, SHA256_BYTES) == 0;
}

void topics_apply(struct zedagent *z, enum section_id id, struct parse *p)
{
    const struct section *s = &parse_sections[id];
    struct topics *t = &z->topics;
    unsigned char hash[SHA256_BYTES];
    parse_hash(s, p->config, hash);
    if (is_parsed(t, id, p->source, hash))
        return;
    memcpy(t->hashes[id], hash, sizeof(hash));
    t->sources[id] = p->source;
    p->files = NULL;
    p->cache_directory = node_path(p->arena, z->node, NODE_PERSIST, CACHE);
    struct json *all = s->parse(p);
    if (!all)
        return;
    all = local_amend(z, id, p->arena, all);
    write_files(z, p);
    publish_all(z, id, p->arena, all);
    if (id == SECTION_PATCH_ENVELOPES)
        remove_other_files(z, p);
    if (s->signals_restarted)
        (void) publication_signal_restarted(t->sections[id]);
}

void topics_stop_apps(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    struct publication *p = z->topics.sections[SECTION_APPS];
    for (const struct keys *k = list_keys(a, p); k; k = k->next) {
        const struct json *app = publication_get(a, p, k->key);
        if (!json_get_bool(app, STR("Activate"), false))
            continue;
        struct json stopped = json_clone(a, app);
        (void) json_set(a, &stopped, STR("Activate"), json_bool(false));
        (void) publication_publish(p, k->key, &stopped);
    }
    /* What was parsed is not what is published any more. */
    topics_forget(z, SECTION_APPS);
}
