/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled form of a subject's rules: per scope a hash table from (group, resource) and from
 * (group, resource, name) to the set of verbs granted. Wildcards are entries like any other, which
 * a question looks up as well. */
#include "api/auth/rbac_internal.h"
#include "base/alloc.h"

#define TABLE_MIN_SLOTS 8

enum entry_type { ENTRY_FREE, ENTRY_ANY_NAME, ENTRY_ONE_NAME, ENTRY_URL };

struct entry {
    uint64_t hash;
    uint64_t verbs;
    struct str group, resource, name; /* of a URL: in resource */
    enum entry_type type;
    bool has_names; /* of ENTRY_ANY_NAME: there are entries of single names, too */
};

/* One bit per entry, by its hash: most questions end here, without a look at the slots. */
#define FILTER_WORDS 4
struct filter {
    uint64_t words[FILTER_WORDS];
};

struct rbac_table {
    struct filter filter;
    struct entry *slots; /* heap */
    size_t n_slots;      /* a power of two */
    size_t n;
    struct str namespace;
    uint64_t namespace_hash;
    /* URLs that end in '*', walked: there are few. */
    struct entry *patterns; /* in the arena */
    size_t n_patterns;
    /* Rules that were not compiled. */
    const struct rbac_rule **wide; /* in the arena */
    size_t n_wide;
};

struct rbac_compiled {
    struct arena *arena;
    struct rbac_table *cluster; /* NULL: none */
    /* Those of namespaces by the hash of the name; NULL: a free slot. */
    struct rbac_table **tables; /* heap */
    size_t n_slots;             /* zero or a power of two */
    size_t n_tables;
    size_t n_entries;
};

/* ---- verbs --------------------------------------------------------------------------------- */

static void add_verb(struct rbac_verbs *v, struct str verb)
{
    char *copy = mem_dup(verb.p, verb.n);
    v->names[v->n++] = copy;
    (void) map_put(&v->bits, str_range(copy, verb.n), (void *) (uintptr_t) v->n);
}

void rbac_verbs_init(struct rbac_verbs *v)
{
    /* What everybody uses has its place before anybody else's inventions. */
    static const struct str usual[] = {STR("*"),       STR("get"),      STR("list"),
                                       STR("watch"),   STR("create"),   STR("update"),
                                       STR("patch"),   STR("delete"),   STR("deletecollection"),
                                       STR("bind"),    STR("escalate"), STR("impersonate"),
                                       STR("approve"), STR("sign"),     STR("use"),
                                       STR("post"),    STR("put"),      STR("head"),
                                       STR("options")};
    *v = (struct rbac_verbs){0};
    for (size_t i = 0; i < N_ELEMENTS(usual); i++)
        add_verb(v, usual[i]);
}

void rbac_verbs_done(struct rbac_verbs *v)
{
    for (size_t i = 0; i < v->n; i++)
        mem_free(v->names[i]);
    map_done(&v->bits);
}

/* 0: not known. */
static uint64_t verb_bit(const struct rbac_verbs *v, struct str verb)
{
    uintptr_t number = (uintptr_t) map_get(&v->bits, verb);
    return number ? UINT64_C(1) << (number - 1) : 0;
}

/* False: there is no place for one of them. */
static bool verb_set(struct rbac_verbs *v, const struct rbac_texts *verbs, uint64_t *ret_set)
{
    uint64_t set = 0;
    for (size_t i = 0; i < verbs->n; i++) {
        if (!verb_bit(v, verbs->items[i])) {
            if (v->n == RBAC_MAX_VERBS || !verbs->items[i].n)
                return false;
            add_verb(v, verbs->items[i]);
        }
        set |= verb_bit(v, verbs->items[i]);
    }
    *ret_set = set;
    return true;
}

/* ---- entries ------------------------------------------------------------------------------- */

/* The parts are keyed hashes already; this only keeps (a, b) and (b, a) apart. */
static uint64_t join(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 31 | b >> 33)) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static bool is_same(const struct entry *a, const struct entry *b)
{
    return a->hash == b->hash && a->type == b->type && str_eq(a->resource, b->resource) &&
           str_eq(a->group, b->group) && str_eq(a->name, b->name);
}

static size_t filter_bit(uint64_t hash)
{
    return hash >> 56;
}

static void filter_add(struct filter *f, uint64_t hash)
{
    f->words[filter_bit(hash) / 64] |= UINT64_C(1) << filter_bit(hash) % 64;
}

static bool filter_has(const struct filter *f, uint64_t hash)
{
    return f->words[filter_bit(hash) / 64] >> filter_bit(hash) % 64 & 1;
}

/* The slot of the entry, or the free one where it belongs. */
static struct entry *find_slot(const struct rbac_table *t, const struct entry *wanted)
{
    size_t mask = t->n_slots - 1, i = wanted->hash & mask;
    while (t->slots[i].type != ENTRY_FREE && !is_same(&t->slots[i], wanted))
        i = (i + 1) & mask;
    return &t->slots[i];
}

static void grow(struct rbac_table *t)
{
    struct rbac_table bigger = {.n_slots = MAX(2 * t->n_slots, (size_t) TABLE_MIN_SLOTS)};
    bigger.slots = mem_zalloc(bigger.n_slots * sizeof(struct entry));
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].type != ENTRY_FREE)
            *find_slot(&bigger, &t->slots[i]) = t->slots[i];
    mem_free(t->slots);
    t->slots = bigger.slots;
    t->n_slots = bigger.n_slots;
}

static void add_entry(struct rbac_compiled *c, struct rbac_table *t, const struct entry *e)
{
    if (2 * (t->n + 1) > t->n_slots)
        grow(t);
    struct entry *slot = find_slot(t, e);
    uint64_t verbs = slot->verbs | e->verbs;
    bool has_names = slot->has_names || e->has_names;
    if (slot->type == ENTRY_FREE) {
        t->n++;
        c->n_entries++;
        *slot = *e;
        filter_add(&t->filter, e->hash);
    }
    slot->verbs = verbs;
    slot->has_names = has_names;
}

/* NULL: there is none. */
static const struct entry *find_entry(const struct rbac_table *t, const struct entry *wanted)
{
    if (!filter_has(&t->filter, wanted->hash))
        return NULL;
    const struct entry *e = find_slot(t, wanted);
    return e->type == ENTRY_FREE ? NULL : e;
}

/* ---- compiling ----------------------------------------------------------------------------- */

struct rbac_compiled *rbac_compiled_new(void)
{
    struct rbac_compiled *c = NEW(struct rbac_compiled);
    c->arena = arena_new();
    return c;
}

void rbac_compiled_free(struct rbac_compiled *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->tables[i])
            mem_free(c->tables[i]->slots);
    mem_free(c->tables);
    if (c->cluster)
        mem_free(c->cluster->slots);
    arena_free(c->arena);
    mem_free(c);
}

/* The slot of the namespace's table, or the free one where it belongs. */
static struct rbac_table **find_table(const struct rbac_compiled *c, struct str namespace,
                                      uint64_t hash)
{
    size_t mask = c->n_slots - 1, i = hash & mask;
    while (c->tables[i] &&
           (c->tables[i]->namespace_hash != hash || !str_eq(c->tables[i]->namespace, namespace)))
        i = (i + 1) & mask;
    return &c->tables[i];
}

static void grow_tables(struct rbac_compiled *c)
{
    struct rbac_compiled bigger = {.n_slots = MAX(2 * c->n_slots, (size_t) TABLE_MIN_SLOTS)};
    bigger.tables = mem_zalloc(bigger.n_slots * sizeof(struct rbac_table *));
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->tables[i])
            *find_table(&bigger, c->tables[i]->namespace, c->tables[i]->namespace_hash) =
                c->tables[i];
    mem_free(c->tables);
    c->tables = bigger.tables;
    c->n_slots = bigger.n_slots;
}

static struct rbac_table *ensure_table(struct rbac_compiled *c, struct str namespace)
{
    if (2 * (c->n_tables + 1) > c->n_slots)
        grow_tables(c);
    uint64_t hash = map_hash(namespace);
    struct rbac_table **at = namespace.n ? find_table(c, namespace, hash) : &c->cluster;
    if (*at)
        return *at;
    *at = ARENA_NEW(c->arena, struct rbac_table);
    (*at)->namespace = namespace;
    (*at)->namespace_hash = hash;
    c->n_tables += namespace.n > 0;
    return *at;
}

static size_t n_combinations(const struct rbac_rule *rule)
{
    size_t n = rule->groups.n;
    const size_t factors[] = {rule->resources.n, rule->names.n + 1};
    for (size_t i = 0; i < N_ELEMENTS(factors); i++)
        if (__builtin_mul_overflow(n, factors[i], &n))
            return SIZE_MAX;
    return MAX(n, rule->urls.n);
}

static void add_names(struct rbac_compiled *c, struct rbac_table *t, struct entry e,
                      const struct rbac_texts *names)
{
    uint64_t of_any = e.hash, verbs = e.verbs;
    e.type = ENTRY_ANY_NAME;
    e.has_names = names->n > 0;
    e.verbs = names->n ? 0 : verbs;
    add_entry(c, t, &e);
    e.type = ENTRY_ONE_NAME;
    e.has_names = false;
    e.verbs = verbs;
    for (size_t i = 0; i < names->n; i++) {
        e.name = names->items[i];
        e.hash = join(of_any, map_hash(e.name));
        add_entry(c, t, &e);
    }
}

static void add_resources(struct rbac_compiled *c, struct rbac_table *t,
                          const struct rbac_rule *rule, uint64_t verbs)
{
    for (size_t g = 0; g < rule->groups.n; g++)
        for (size_t r = 0; r < rule->resources.n; r++) {
            struct entry e = {.verbs = verbs,
                              .group = rule->groups.items[g],
                              .resource = rule->resources.items[r]};
            e.hash = join(map_hash(e.group), map_hash(e.resource));
            add_names(c, t, e, &rule->names);
        }
}

static void add_pattern(struct rbac_compiled *c, struct rbac_table *t, const struct entry *e)
{
    for (size_t i = 0; i < t->n_patterns; i++)
        if (str_eq(t->patterns[i].resource, e->resource)) {
            t->patterns[i].verbs |= e->verbs;
            return;
        }
    t->patterns = arena_grow(c->arena, t->patterns, t->n_patterns, sizeof(struct entry));
    t->patterns[t->n_patterns++] = *e;
    c->n_entries++;
}

static void add_urls(struct rbac_compiled *c, struct rbac_table *t, const struct rbac_rule *rule,
                     uint64_t verbs)
{
    for (size_t i = 0; i < rule->urls.n; i++) {
        struct entry e = {.verbs = verbs, .resource = rule->urls.items[i], .type = ENTRY_URL};
        e.hash = map_hash(e.resource);
        /* A path that is the pattern to the letter matches it, too. */
        add_entry(c, t, &e);
        if (!str_ends_with(e.resource, STR("*")))
            continue;
        while (str_ends_with(e.resource, STR("*")))
            e.resource.n--;
        add_pattern(c, t, &e);
    }
}

void rbac_compiled_add(struct rbac_compiled *c, struct rbac_verbs *v, struct str namespace,
                       const struct rbac_rule *rule)
{
    struct rbac_table *t = ensure_table(c, namespace);
    size_t n = n_combinations(rule);
    uint64_t verbs = 0;
    if (n > RBAC_RULE_MAX_ENTRIES || c->n_entries + n > RBAC_SUBJECT_MAX_ENTRIES ||
        !verb_set(v, &rule->verbs, &verbs)) {
        t->wide = arena_grow(c->arena, t->wide, t->n_wide, sizeof(struct rbac_rule *));
        t->wide[t->n_wide++] = rule;
        return;
    }
    add_resources(c, t, rule, verbs);
    add_urls(c, t, rule, verbs);
}

/* ---- asking -------------------------------------------------------------------------------- */

void rbac_probes_init(struct rbac_probes *p, const struct rbac_verbs *v, const struct rbac_query *q)
{
    p->query = q;
    p->verbs = verb_bit(v, q->verb) | 1;
    p->n = 0;
    if (q->is_url) {
        p->list[p->n++] = (struct rbac_probe){map_hash(q->url), STR_NONE, q->url};
        return;
    }
    const struct str groups[] = {q->group, STR("*")};
    const struct str resources[] = {q->resource, STR("*"), q->any_resource};
    const size_t n_resources = q->any_resource.n ? 3 : 2;
    uint64_t resource_hashes[3];
    for (size_t i = 0; i < n_resources; i++)
        resource_hashes[i] = map_hash(resources[i]);
    for (size_t g = 0; g < N_ELEMENTS(groups); g++) {
        uint64_t group_hash = map_hash(groups[g]);
        for (size_t i = 0; i < n_resources; i++)
            p->list[p->n++] =
                (struct rbac_probe){join(group_hash, resource_hashes[i]), groups[g], resources[i]};
    }
    p->name_hash = q->has_name ? map_hash(q->name) : 0;
}

const struct rbac_table *rbac_compiled_cluster(const struct rbac_compiled *c)
{
    return c->cluster;
}

const struct rbac_table *rbac_compiled_table(const struct rbac_compiled *c, struct str namespace,
                                             uint64_t hash)
{
    return c->n_tables ? *find_table(c, namespace, hash) : NULL;
}

static bool name_allowed(const struct rbac_table *t, const struct rbac_probes *p,
                         const struct entry *any)
{
    struct entry wanted = *any;
    wanted.type = ENTRY_ONE_NAME;
    wanted.name = p->query->name;
    wanted.hash = join(any->hash, p->name_hash);
    const struct entry *e = find_entry(t, &wanted);
    return e && e->verbs & p->verbs;
}

static bool resource_allowed(const struct rbac_table *t, const struct rbac_probes *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct rbac_probe *probe = &p->list[i];
        struct entry wanted = {.hash = probe->hash,
                               .group = probe->group,
                               .resource = probe->resource,
                               .type = ENTRY_ANY_NAME};
        const struct entry *e = find_entry(t, &wanted);
        if (e &&
            (e->verbs & p->verbs || (e->has_names && p->query->has_name && name_allowed(t, p, e))))
            return true;
    }
    return false;
}

static bool url_allowed(const struct rbac_table *t, const struct rbac_probes *p)
{
    const struct rbac_probe *probe = &p->list[0];
    struct entry wanted = {.hash = probe->hash, .resource = probe->resource, .type = ENTRY_URL};
    const struct entry *e = find_entry(t, &wanted);
    if (e && e->verbs & p->verbs)
        return true;
    for (size_t i = 0; i < t->n_patterns; i++)
        if (t->patterns[i].verbs & p->verbs &&
            str_starts_with(p->query->url, t->patterns[i].resource))
            return true;
    return false;
}

bool rbac_table_allows(const struct rbac_table *t, const struct rbac_probes *p)
{
    if (p->query->is_url ? url_allowed(t, p) : resource_allowed(t, p))
        return true;
    for (size_t i = 0; i < t->n_wide; i++)
        if (rbac_rule_matches(t->wide[i], p->query))
            return true;
    return false;
}
