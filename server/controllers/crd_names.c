/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/crd_names.h"

/* Resources (plural, singular, short names) share one set of names, kinds another. */
enum name_set { NAMES_RESOURCES, NAMES_KINDS };

struct judge {
    struct arena *arena;
    const struct json *others;
    struct str group, self;
    const struct json *asked, *had; /* spec.names, status.acceptedNames */
    struct crd_verdict verdict;
};

static bool list_has(const struct json *list, struct str name)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), name))
            return true;
    return false;
}

static bool has_name(const struct json *names, enum name_set set, struct str name)
{
    const char *const keys[][2] = {{"plural", "singular"}, {"kind", "listKind"}};
    for (size_t i = 0; i < 2; i++)
        if (str_eq(json_get_str(names, str_of(keys[set][i])), name))
            return true;
    return set == NAMES_RESOURCES && list_has(json_get(names, STR("shortNames")), name);
}

static bool is_taken(const struct judge *j, enum name_set set, struct str name)
{
    JSON_FOR_EACH_ITEM (j->others, crd) {
        if (str_eq(json_str(json_at(crd, "metadata", "name", NULL)), j->self) ||
            !str_eq(json_str(json_at(crd, "spec", "group", NULL)), j->group))
            continue;
        if (name.n && has_name(json_at(crd, "status", "acceptedNames", NULL), set, name))
            return true;
    }
    return false;
}

static void refuse(struct judge *j, const char *reason, struct str name)
{
    j->verdict.reason = str_of(reason);
    j->verdict.message = arena_printf(j->arena, "\"%.*s\" is already in use", STR_ARG(name));
}

/* What is refused stays as it was accepted before. */
static void judge_one(struct judge *j, const char *key, enum name_set set, const char *reason)
{
    struct str asked = json_get_str(j->asked, str_of(key));
    struct str had = json_get_str(j->had, str_of(key));
    bool is_free = str_eq(asked, had) || !is_taken(j, set, asked);
    if (!is_free)
        refuse(j, reason, asked);
    struct str given = is_free ? asked : had;
    bool is_always_there = str_is(str_of(key), "plural") || str_is(str_of(key), "kind");
    if (given.n || is_always_there)
        (void) json_append_member(j->arena, &j->verdict.accepted, str_of(key),
                                  json_string(given.p ? given : STR("")));
}

/* Several refused ones make one message, as Go joins errors. */
static void judge_short_names(struct judge *j)
{
    const struct json *asked = json_get(j->asked, STR("shortNames"));
    const struct json *had = json_get(j->had, STR("shortNames"));
    struct str refused = STR_NONE;
    size_t n_refused = 0;
    JSON_FOR_EACH_ITEM (asked, item) {
        struct str name = json_str(item);
        if (list_has(had, name) || !is_taken(j, NAMES_RESOURCES, name))
            continue;
        refuse(j, "ShortNamesConflict", name);
        refused = n_refused++ ? arena_printf(j->arena, "%.*s, %.*s", STR_ARG(refused),
                                             STR_ARG(j->verdict.message))
                              : j->verdict.message;
    }
    if (n_refused)
        j->verdict.message =
            n_refused > 1 ? arena_printf(j->arena, "[%.*s]", STR_ARG(refused)) : refused;
    const struct json *given = n_refused ? had : asked;
    if (json_count(given))
        (void) json_append_member(j->arena, &j->verdict.accepted, STR("shortNames"), *given);
}

struct crd_verdict crd_judge_names(struct arena *a, const struct json *crd,
                                   const struct json *others)
{
    struct judge j = {.arena = a,
                      .others = others,
                      .group = json_str(json_at(crd, "spec", "group", NULL)),
                      .self = json_str(json_at(crd, "metadata", "name", NULL)),
                      .asked = json_at(crd, "spec", "names", NULL),
                      .had = json_at(crd, "status", "acceptedNames", NULL),
                      .verdict = {.accepted = json_object()}};
    judge_one(&j, "plural", NAMES_RESOURCES, "PluralConflict");
    judge_one(&j, "singular", NAMES_RESOURCES, "SingularConflict");
    judge_short_names(&j);
    judge_one(&j, "kind", NAMES_KINDS, "KindConflict");
    judge_one(&j, "listKind", NAMES_KINDS, "ListKindConflict");
    const struct json *categories = json_get(j.asked, STR("categories"));
    if (json_count(categories))
        (void) json_append_member(a, &j.verdict.accepted, STR("categories"), *categories);
    return j.verdict;
}
