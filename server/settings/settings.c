/* SPDX-License-Identifier: Apache-2.0 */
#include "settings/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "eve/config_items.h"

#define NAMESPACE_MAX_BYTES 63
#define OPEN "open"
#define DEFAULT_NAMESPACE STR("default")
#define POLL_INTERVAL STR("config.timer.config.interval")
#define POLL_INTERVAL_S 60
#define RETENTION_MIN_S 60
#define RETENTION_MAX_S ((int64_t) 10 * 366 * 86400)

/* ---- durations ----------------------------------------------------------------------------- */

static int64_t unit_s(char unit)
{
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    case 'w':
        return (int64_t) 7 * 86400;
    default:
        return 0;
    }
}

int settings_parse_duration(struct str text, int64_t *ret_s)
{
    int64_t total_s = 0, number = 0;
    bool has_digits = false;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (c >= '0' && c <= '9') {
            has_digits = true;
            number = number * 10 + (c - '0');
            if (number > RETENTION_MAX_S)
                return -EINVAL;
            continue;
        }
        if (!has_digits || !unit_s(c))
            return -EINVAL;
        total_s += number * unit_s(c);
        if (total_s > RETENTION_MAX_S)
            return -EINVAL;
        number = 0;
        has_digits = false;
    }
    if (has_digits || total_s <= 0)
        return -EINVAL;
    *ret_s = total_s;
    return 0;
}

/* ---- the options that are ours ------------------------------------------------------------- */

static bool is_label(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        const bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_alphanumeric && (c != '-' || i == 0 || i + 1 == s.n))
            return false;
    }
    return s.n > 0 && s.n <= NAMESPACE_MAX_BYTES;
}

static const char *const attestations[] = {
    [SETTINGS_ATTESTATION_REPORT] = "report",
    [SETTINGS_ATTESTATION_OFF] = "off",
    [SETTINGS_ATTESTATION_ENFORCE] = "enforce",
};

static bool parse_attestation(struct str value, enum settings_attestation *ret)
{
    for (size_t i = 0; i < N_ELEMENTS(attestations); i++)
        if (str_is(value, attestations[i])) {
            *ret = (enum settings_attestation) i;
            return true;
        }
    return false;
}

static bool parse_retention(struct str value, int64_t *ret_s)
{
    return settings_parse_duration(value, ret_s) == 0 && *ret_s >= RETENTION_MIN_S;
}

static bool is_good_registration(struct str value)
{
    return str_is(value, OPEN) || str_is(value, "closed");
}

static bool is_good_attestation(struct str value)
{
    enum settings_attestation ignored;
    return parse_attestation(value, &ignored);
}

static bool is_good_retention(struct str value)
{
    int64_t ignored;
    return parse_retention(value, &ignored);
}

static const struct option {
    const char *name;
    bool (*is_good)(struct str value);
    const char *reason;
    bool is_global;
} options[] = {
    {"registration", is_good_registration, "must be closed or open", true},
    {"registration.namespace", is_label, "must be the name of a namespace", true},
    {"attestation", is_good_attestation, "must be off, report or enforce", false},
    {"telemetry.retention", is_good_retention,
     "must be a duration of at least a minute, such as 12h, 30d or 1d12h", false},
};

static const struct option *find_option(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(options); i++)
        if (str_is(name, options[i].name))
            return &options[i];
    return NULL;
}

static bool is_item(struct str option)
{
    return str_starts_with(option, STR(SETTINGS_ITEM_PREFIX)) &&
           option.n > sizeof(SETTINGS_ITEM_PREFIX) - 1;
}

static struct str item_name(struct str option)
{
    return str_from(option, sizeof(SETTINGS_ITEM_PREFIX) - 1);
}

/* ---- judging ------------------------------------------------------------------------------- */

/* A device keeps the previous value when it is given a bad one, so bad ones are better refused
 * where they are written. */
static enum settings_verdict judge_item(struct arena *a, struct str name, struct str value,
                                        struct str *ret_reason)
{
    struct str agent, setting;
    struct config_item_value ignored;
    const struct config_item *item = config_item_find(name);
    if (!item)
        item = config_item_of_agent(name, &agent, &setting);
    if (!item)
        return SETTINGS_UNKNOWN;
    return config_item_parse(a, item, value, &ignored, ret_reason) == 0 ? SETTINGS_GOOD
                                                                        : SETTINGS_BAD;
}

enum settings_verdict settings_judge(struct arena *a, struct str option, struct str value,
                                     struct str *ret_reason)
{
    if (is_item(option))
        return judge_item(a, item_name(option), value, ret_reason);
    const struct option *known = find_option(option);
    if (!known)
        return SETTINGS_UNKNOWN;
    if (known->is_good(value))
        return SETTINGS_GOOD;
    *ret_reason = str_of(known->reason);
    return SETTINGS_BAD;
}

struct str settings_of_annotation(struct str annotation)
{
    if (!str_starts_with(annotation, STR(SETTINGS_PREFIX)))
        return STR_NONE;
    const struct str option = str_from(annotation, sizeof(SETTINGS_PREFIX) - 1);
    return is_item(option) || find_option(option) ? option : STR_NONE;
}

bool settings_is_options(struct str namespace, struct str name)
{
    return str_is(name, SETTINGS_NAMESPACE_NAME) ||
           (str_is(name, SETTINGS_GLOBAL_NAME) && str_is(namespace, SETTINGS_GLOBAL_NAMESPACE));
}

bool settings_is_global(struct str option)
{
    const struct option *known = find_option(option);
    return known && known->is_global;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_bad(struct str option, struct str value)
{
    ARENA_AUTO a = arena_new();
    struct str reason;
    return settings_judge(a, option, value, &reason) == SETTINGS_BAD;
}

static const struct json *level_of(const struct settings_sources *s, enum settings_level level)
{
    const struct json *const levels[SETTINGS_LEVELS] = {s->annotations, s->namespace, s->global};
    return levels[level];
}

/* The option that a member of this level sets, or STR_NONE. */
static struct str option_of(enum settings_level level, const struct json_member *m)
{
    const struct str key = json_str(&m->key);
    return level == SETTINGS_DEVICE ? settings_of_annotation(key) : key;
}

struct str settings_find(const struct settings_sources *s, struct str option)
{
    for (int level = 0; level < SETTINGS_LEVELS; level++)
        JSON_FOR_EACH_MEMBER (level_of(s, (enum settings_level) level), m)
            if (str_eq(option_of((enum settings_level) level, m), option) &&
                json_is(&m->value, JSON_STRING) && !is_bad(option, json_str(&m->value)))
                return json_str(&m->value);
    return STR_NONE;
}

static int compare_items(const void *a, const void *b)
{
    const struct settings_item *x = a, *y = b;
    const int order = str_cmp(x->name, y->name);
    return order ? order : (int) x->from - (int) y->from;
}

/* Sorted by name and nearness: the first of each name stays. */
static size_t keep_nearest(struct settings_item *items, size_t n)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (n_kept == 0 || !str_eq(items[i].name, items[n_kept - 1].name))
            items[n_kept++] = items[i];
    return n_kept;
}

size_t settings_items(struct arena *a, const struct settings_sources *s,
                      struct settings_item **ret_items)
{
    const size_t most =
        json_count(s->annotations) + json_count(s->namespace) + json_count(s->global);
    struct settings_item *items = ARENA_ARRAY(a, struct settings_item, most + 1);
    size_t n = 0;
    for (int i = 0; i < SETTINGS_LEVELS; i++) {
        const enum settings_level level = (enum settings_level) i;
        JSON_FOR_EACH_MEMBER (level_of(s, level), m) {
            const struct str option = option_of(level, m), value = json_str(&m->value);
            if (is_item(option) && value.p && !is_bad(option, value))
                items[n++] = (struct settings_item){item_name(option), value, level};
        }
    }
    qsort(items, n, sizeof(*items), compare_items);
    *ret_items = items;
    return keep_nearest(items, n);
}

enum settings_attestation settings_attestation(const struct settings_sources *s)
{
    enum settings_attestation found = SETTINGS_ATTESTATION_REPORT;
    (void) parse_attestation(settings_find(s, STR("attestation")), &found);
    return found;
}

int64_t settings_retention_s(const struct settings_sources *s, int64_t or_else_s)
{
    int64_t found_s = 0;
    return parse_retention(settings_find(s, STR("telemetry.retention")), &found_s) ? found_s
                                                                                   : or_else_s;
}

int64_t settings_poll_interval_s(const struct settings_sources *s)
{
    int64_t found_s = 0;
    return str_to_i64(settings_find(s, POLL_INTERVAL), &found_s) == 0 ? found_s : POLL_INTERVAL_S;
}

struct settings_registration settings_registration(const struct json *global)
{
    const struct settings_sources s = {.global = global};
    const struct str namespace = settings_find(&s, STR("registration.namespace"));
    return (struct settings_registration){
        .is_open = str_is(settings_find(&s, STR("registration")), OPEN),
        .namespace = namespace.n ? namespace : DEFAULT_NAMESPACE,
    };
}
