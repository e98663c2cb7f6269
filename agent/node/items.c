/* SPDX-License-Identifier: Apache-2.0 */
#include "node/items.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "eve/config_items.h"

/* What a controller may name: more is not kept. */
#define MAX_STATUSES 1024
#define MAX_AGENT_SETTINGS 256

/* ItemType of the topic. */
enum { TYPE_INT = 1, TYPE_BOOL = 2, TYPE_STRING = 3, TYPE_TRISTATE = 4 };

/* There are hundreds of it in each of thousands of nodes. */
union value {
    int64_t number;
    char *text; /* of what config_item_is_text(): heap; NULL: the default */
};

struct agent_setting {
    char *agent;
    struct str setting; /* static */
    char *level;
};

struct status {
    char *name;
    char *value; /* of one nobody knows: as it was given; otherwise NULL, the one in force counts */
    char *error;
};

struct values {
    union value *items; /* of the table, in its order */
    struct agent_setting *agents;
    size_t n_agents;
};

struct items {
    struct values now, before; /* before: when the controller's configuration began */
    struct status *statuses;
    size_t n_statuses;
};

/* ---- values -------------------------------------------------------------------------------- */

static void values_init(struct values *v)
{
    size_t n;
    const struct config_item *table = config_items(&n);
    *v = (struct values){.items = mem_zalloc(n * sizeof(*v->items))};
    for (size_t i = 0; i < n; i++)
        if (!config_item_is_text(&table[i]))
            v->items[i].number = table[i].number;
}

static void values_done(struct values *v)
{
    size_t n;
    const struct config_item *table = config_items(&n);
    for (size_t i = 0; v->items && i < n; i++)
        if (config_item_is_text(&table[i]))
            mem_free(v->items[i].text);
    for (size_t i = 0; i < v->n_agents; i++) {
        mem_free(v->agents[i].agent);
        mem_free(v->agents[i].level);
    }
    mem_free(v->items);
    mem_free(v->agents);
    *v = (struct values){0};
}

static size_t index_of(const struct config_item *item)
{
    size_t n;
    return (size_t) (item - config_items(&n));
}

static void set_value(struct values *v, const struct config_item *item, int64_t number,
                      struct str text)
{
    union value *at = &v->items[index_of(item)];
    if (!config_item_is_text(item)) {
        at->number = number;
        return;
    }
    char *before = at->text;
    at->text = str_is(text, item->text) ? NULL : str_dup(text);
    mem_free(before);
}

static struct config_item_value get_value(const struct values *v, const struct config_item *item)
{
    const union value *at = &v->items[index_of(item)];
    if (config_item_is_text(item))
        return (struct config_item_value){.text = str_of(at->text ? at->text : item->text)};
    return (struct config_item_value){.number = at->number};
}

static struct agent_setting *find_agent(const struct values *v, struct str agent,
                                        struct str setting)
{
    for (size_t i = 0; i < v->n_agents; i++)
        if (str_is(agent, v->agents[i].agent) && str_eq(setting, v->agents[i].setting))
            return &v->agents[i];
    return NULL;
}

static void set_agent(struct values *v, struct str agent, struct str setting, struct str level)
{
    struct agent_setting *at = find_agent(v, agent, setting);
    if (at) {
        mem_free(at->level);
        at->level = str_dup(level);
        return;
    }
    if (v->n_agents >= MAX_AGENT_SETTINGS)
        return;
    v->agents = mem_realloc_array(v->agents, v->n_agents + 1, sizeof(*v->agents));
    v->agents[v->n_agents++] = (struct agent_setting){
        .agent = str_dup(agent), .setting = setting, .level = str_dup(level)};
}

/* ---- reading ------------------------------------------------------------------------------- */

struct items *items_new(void)
{
    struct items *i = NEW(struct items);
    values_init(&i->now);
    return i;
}

static void forget_statuses(struct items *i)
{
    for (size_t k = 0; k < i->n_statuses; k++) {
        mem_free(i->statuses[k].name);
        mem_free(i->statuses[k].value);
        mem_free(i->statuses[k].error);
    }
    mem_free(i->statuses);
    i->statuses = NULL;
    i->n_statuses = 0;
}

void items_free(struct items *i)
{
    if (!i)
        return;
    forget_statuses(i);
    values_done(&i->now);
    values_done(&i->before);
    mem_free(i);
}

static const struct config_item *find_typed(const char *name, enum config_item_type type)
{
    const struct config_item *item = config_item_find(str_of(name));
    assert(item && item->type == type);
    return item;
}

int64_t items_int(const struct items *i, const char *name)
{
    return get_value(&i->now, find_typed(name, CONFIG_ITEM_INT)).number;
}

bool items_bool(const struct items *i, const char *name)
{
    return get_value(&i->now, find_typed(name, CONFIG_ITEM_BOOL)).number != 0;
}

enum items_tristate items_tristate(const struct items *i, const char *name)
{
    return (enum items_tristate) get_value(&i->now, find_typed(name, CONFIG_ITEM_TRISTATE)).number;
}

struct str items_text(const struct items *i, const char *name)
{
    const struct config_item *item = config_item_find(str_of(name));
    assert(item && config_item_is_text(item));
    return get_value(&i->now, item).text;
}

struct str items_agent_level(const struct items *i, struct str agent, bool is_remote)
{
    const struct str setting = is_remote ? STR("debug.remote.loglevel") : STR("debug.loglevel");
    const struct agent_setting *at = find_agent(&i->now, agent, setting);
    if (at)
        return str_of(at->level);
    return items_text(i, is_remote ? "debug.default.remote.loglevel" : "debug.default.loglevel");
}

/* ---- the topic ----------------------------------------------------------------------------- */

static int64_t type_of(const struct config_item *item)
{
    switch (item->type) {
    case CONFIG_ITEM_INT:
        return TYPE_INT;
    case CONFIG_ITEM_BOOL:
        return TYPE_BOOL;
    case CONFIG_ITEM_TRISTATE:
        return TYPE_TRISTATE;
    case CONFIG_ITEM_LEVEL:
    case CONFIG_ITEM_SYSLOG:
    case CONFIG_ITEM_BASE64:
    case CONFIG_ITEM_TEXT:
        break;
    }
    return TYPE_STRING;
}

static void read_value(struct values *v, const struct config_item *item, const struct json *from)
{
    if (json_get_int(from, STR("ItemType"), 0) != type_of(item))
        return;
    const struct str text = json_get_str(from, STR("StrValue"));
    switch (item->type) {
    case CONFIG_ITEM_INT:
        set_value(v, item, json_get_int(from, STR("IntValue"), 0) & UINT32_MAX, STR_NONE);
        break;
    case CONFIG_ITEM_BOOL:
        set_value(v, item, json_get_bool(from, STR("BoolValue"), false), STR_NONE);
        break;
    case CONFIG_ITEM_TRISTATE: {
        const int64_t state = json_get_int(from, STR("TriStateValue"), 0);
        if (state >= ITEMS_NONE && state <= ITEMS_ENABLED)
            set_value(v, item, state, STR_NONE);
        break;
    }
    case CONFIG_ITEM_LEVEL:
    case CONFIG_ITEM_SYSLOG:
    case CONFIG_ITEM_BASE64:
    case CONFIG_ITEM_TEXT:
        set_value(v, item, 0, text.p ? text : STR(""));
        break;
    }
}

static void read_agent(struct values *v, struct str agent, const struct json *settings)
{
    static const struct str known[] = {{"debug.loglevel", 14}, {"debug.remote.loglevel", 21}};
    for (size_t k = 0; k < N_ELEMENTS(known); k++) {
        const struct str level = json_get_str(json_get(settings, known[k]), STR("StrValue"));
        if (level.p)
            set_agent(v, agent, known[k], level);
    }
}

int items_read(struct items *i, const struct json *map)
{
    if (!json_is(map, JSON_OBJECT))
        return -EINVAL;
    values_done(&i->now);
    values_init(&i->now);
    JSON_FOR_EACH_MEMBER (json_get(map, STR("GlobalSettings")), m) {
        const struct config_item *item = config_item_find(json_str(&m->key));
        if (item)
            read_value(&i->now, item, &m->value);
    }
    JSON_FOR_EACH_MEMBER (json_get(map, STR("AgentSettings")), m)
        read_agent(&i->now, json_str(&m->key), &m->value);
    return 0;
}

static struct json value_json(struct arena *a, struct str key, const struct config_item *item,
                              const struct config_item_value *value)
{
    const int64_t type = type_of(item);
    struct json v = json_object();
    json_append_member(a, &v, STR("BoolValue"), json_bool(type == TYPE_BOOL && value->number));
    json_append_member(a, &v, STR("IntValue"), json_int(type == TYPE_INT ? value->number : 0));
    json_append_member(a, &v, STR("ItemType"), json_int(type));
    json_append_member(a, &v, STR("Key"), json_string(key));
    json_append_member(a, &v, STR("StrValue"),
                       json_string(type == TYPE_STRING ? value->text : STR("")));
    json_append_member(a, &v, STR("TriStateValue"),
                       json_int(type == TYPE_TRISTATE ? value->number : 0));
    return v;
}

static void write_agents(struct arena *a, const struct values *v, struct json *to)
{
    for (size_t k = 0; k < v->n_agents; k++) {
        const struct agent_setting *s = &v->agents[k];
        struct str agent, setting;
        const struct str name = arena_printf(a, "agent.%s.%.*s", s->agent, STR_ARG(s->setting));
        const struct config_item *item = config_item_of_agent(name, &agent, &setting);
        const struct config_item_value value = {.text = arena_str(a, str_of(s->level))};
        struct json *of = json_ensure_object(a, to, arena_str(a, str_of(s->agent)));
        json_set(a, of, s->setting, value_json(a, s->setting, item, &value));
    }
}

static bool is_default(const struct values *v, size_t index, const struct config_item *item)
{
    return config_item_is_text(item) ? !v->items[index].text
                                     : v->items[index].number == item->number;
}

static struct json *write_map(struct arena *a, const struct items *i, bool is_brief)
{
    size_t n;
    const struct config_item *table = config_items(&n);
    struct json *map = json_new(a, json_object());
    struct json *agents = json_ensure_object(a, map, STR("AgentSettings"));
    write_agents(a, &i->now, agents);
    struct json *global = json_ensure_object(a, map, STR("GlobalSettings"));
    for (size_t k = 0; k < n; k++) {
        if (is_brief && is_default(&i->now, k, &table[k]))
            continue;
        struct config_item_value value = get_value(&i->now, &table[k]);
        value.text = arena_str(a, value.text);
        const struct str name = str_of(table[k].name);
        json_append_member(a, global, name, value_json(a, name, &table[k], &value));
    }
    return map;
}

struct json *items_write(struct arena *a, const struct items *i)
{
    return write_map(a, i, /* is_brief= */ false);
}

struct json *items_write_brief(struct arena *a, const struct items *i)
{
    return write_map(a, i, /* is_brief= */ true);
}

/* ---- the controller's ---------------------------------------------------------------------- */

void items_begin(struct items *i)
{
    /* True until a controller speaks, so that somebody at the device can configure it. */
    static const char *const false_now[] = {"debug.enable.console", "debug.enable.usb",
                                            "debug.enable.vga"};
    forget_statuses(i);
    values_done(&i->before);
    i->before = i->now;
    values_init(&i->now);
    for (size_t k = 0; k < N_ELEMENTS(false_now); k++)
        set_value(&i->now, config_item_find(str_of(false_now[k])), false, STR_NONE);
}

/* Named twice: the last one counts. */
static struct status *add_status(struct items *i, struct str name)
{
    for (size_t k = 0; k < i->n_statuses; k++)
        if (str_is(name, i->statuses[k].name)) {
            struct status *s = &i->statuses[k];
            mem_free(TAKE(s->value));
            mem_free(TAKE(s->error));
            return s;
        }
    if (i->n_statuses >= MAX_STATUSES)
        return NULL;
    i->statuses = mem_realloc_array(i->statuses, i->n_statuses + 1, sizeof(*i->statuses));
    struct status *s = &i->statuses[i->n_statuses++];
    *s = (struct status){.name = str_dup(name)};
    return s;
}

static void keep_before(struct items *i, const struct config_item *item)
{
    if (!i->before.items)
        return;
    const struct config_item_value before = get_value(&i->before, item);
    set_value(&i->now, item, before.number, before.text);
}

static int set_global(struct arena *a, struct items *i, const struct config_item *item,
                      struct str value, struct str *ret_reason)
{
    struct config_item_value parsed;
    const int r = config_item_parse(a, item, value, &parsed, ret_reason);
    if (r < 0)
        keep_before(i, item);
    else
        set_value(&i->now, item, parsed.number, parsed.text);
    return r;
}

static int set_of_agent(struct arena *a, struct items *i, struct str name, struct str value,
                        struct str *ret_reason)
{
    struct str agent, setting;
    struct config_item_value parsed;
    const struct config_item *item = config_item_of_agent(name, &agent, &setting);
    if (!item)
        return -ENOENT;
    const int r = config_item_parse(a, item, value, &parsed, ret_reason);
    if (r == 0) {
        set_agent(&i->now, agent, setting, value);
        return 0;
    }
    const struct agent_setting *before = find_agent(&i->before, agent, setting);
    if (before)
        set_agent(&i->now, agent, setting, str_of(before->level));
    return r;
}

int items_set(struct items *i, struct str name, struct str value)
{
    ARENA_AUTO a = arena_new();
    struct str reason = STR("nobody knows this item");
    const struct config_item *item = config_item_find(name);
    const int r =
        item ? set_global(a, i, item, value, &reason) : set_of_agent(a, i, name, value, &reason);
    struct status *s = add_status(i, name);
    if (s && r < 0)
        s->error = str_dup(arena_printf(a, "'%.*s': %.*s", STR_ARG(value), STR_ARG(reason)));
    if (s && r == -ENOENT)
        s->value = str_dup(value);
    return r;
}

static struct str value_in_force(struct arena *a, const struct items *i, struct str name)
{
    struct str agent, setting;
    const struct config_item *item = config_item_find(name);
    if (item) {
        const struct config_item_value v = get_value(&i->now, item);
        return config_item_text(a, item, &v);
    }
    item = config_item_of_agent(name, &agent, &setting);
    const struct agent_setting *at = item ? find_agent(&i->now, agent, setting) : NULL;
    return str_of(at ? at->level : item ? item->text : "");
}

size_t items_statuses(struct arena *a, const struct items *i, struct items_status **ret)
{
    struct items_status *all = ARENA_ARRAY(a, struct items_status, i->n_statuses + 1);
    for (size_t k = 0; k < i->n_statuses; k++) {
        const struct status *s = &i->statuses[k];
        const struct str name = str_of(s->name);
        all[k] =
            (struct items_status){.name = name,
                                  .value = s->value ? str_of(s->value) : value_in_force(a, i, name),
                                  .error = str_of(s->error)};
    }
    *ret = all;
    return i->n_statuses;
}
