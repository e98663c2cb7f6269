/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for any objects: their order says nothing, what is added and removed again leaves
 * nothing behind, and whatever they hold the configuration is sound and has a port for
 * management. */
#include "test.h"

#include "base/uuid.h"
#include "pki/pki.h"
#include "protobuf/protojson.h"
#include "world.h"
#include "json/yaml.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 150

static const char *const cases[] = {
    "common",  "container", "virtual_machine", "switch_passthrough", "static_proxies", "wifi",
    "base_os", "options",   "volume_edit",     "user_data",          "problems"};

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static size_t below(uint64_t *seed, size_t limit)
{
    return (size_t) (next(seed) % limit);
}

/* ---- worlds ---------------------------------------------------------------------------------- */

static const struct json *read_case(struct arena *a, const char *name)
{
    BUF_AUTO text = {0};
    struct json_parse_result parsed;
    const struct str path = arena_printf(a, "%s/%s.yaml", TEST_DATA, name);
    FILE *f = fopen(path.p, "r");
    assert_non_null(f);
    for (size_t n = 1; n > 0;) {
        n = fread(buf_reserve(&text, 65536), 1, 65536, f);
        text.n += n;
    }
    fclose(f);
    assert_int_equal(yaml_parse(a, buf_str(&text), &parsed), 0);
    return parsed.value;
}

/* Cases share UUIDs with each other; here each name has its own. */
static const struct json *with_own_uuid(struct arena *a, const struct json *object)
{
    struct json copy = json_clone(a, object);
    struct json *status = json_get(&copy, STR("status"));
    const struct str name = json_str(json_at(object, "metadata", "name", NULL));
    unsigned char hash[SHA256_BYTES];
    char text[UUID_TEXT_BYTES];
    struct uuid u;
    pki_sha256(
        arena_printf(a, "%.*s/%.*s", STR_ARG(json_get_str(object, STR("kind"))), STR_ARG(name)),
        hash);
    memcpy(u.bytes, hash, sizeof(u.bytes));
    uuid_text(&u, text);
    if (json_get(status, STR("uuid")))
        (void) json_set(a, status, STR("uuid"), json_string(arena_str(a, str_of(text))));
    return json_new(a, copy);
}

static void apply_all(struct world *w, const struct json *step)
{
    JSON_FOR_EACH_ITEM (json_get(step, STR("apply")), object)
        world_apply(w, with_own_uuid(w->arena, object));
    if (json_get(step, STR("report")))
        w->report = json_get(step, STR("report"));
}

static const struct json **read_cases(struct arena *a)
{
    const struct json **read = ARENA_ARRAY(a, const struct json *, N_ELEMENTS(cases));
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        read[i] = read_case(a, cases[i]);
    return read;
}

/* Objects of all cases; those of one name come from one case or another. */
static void load(struct world *w, const struct json *const *read, uint64_t *seed)
{
    *w = (struct world){.arena = w->arena, .is_sealable = true};
    apply_all(w, read[0]);
    for (size_t i = 1; i < N_ELEMENTS(cases); i++)
        JSON_FOR_EACH_ITEM (json_get(read[i], STR("steps")), step)
            if (!seed || below(seed, 2))
                apply_all(w, step);
}

/* ---- soundness, by the rules that a device has ----------------------------------------------- */

static bool has_uuid(const Eve__Config__EdgeDevConfig *c, const char *what, const char *uuid)
{
#define SEARCH(kind, list, field) \
    if (strcmp(what, kind) == 0) \
        for (size_t i = 0; i < c->n_##list; i++) \
            if (strcmp(c->list[i]->field, uuid) == 0) \
                return true;
    SEARCH("network", networks, id)
    SEARCH("tree", contentinfo, uuid)
    SEARCH("store", datastores, id)
    SEARCH("volume", volumes, uuid)
    SEARCH("context", ciphercontexts, contextid)
    SEARCH("instance", networkinstances, uuidandversion->uuid)
    SEARCH("port", deviceiolist, logicallabel)
#undef SEARCH
    return false;
}

static void check_adapters(const Eve__Config__EdgeDevConfig *c)
{
    size_t n_uplinks = 0;
    for (size_t i = 0; i < c->n_systemadapterlist; i++) {
        const Eve__Config__SystemAdapter *s = c->systemadapterlist[i];
        assert_true(has_uuid(c, "port", s->lowerlayername));
        assert_true(has_uuid(c, "network", s->networkuuid));
        assert_true(i == 0 || strcmp(s->name, c->systemadapterlist[i - 1]->name) > 0);
        for (size_t n = 0; n < c->n_networks; n++) {
            const Eve__Config__NetworkConfig *network = c->networks[n];
            if (strcmp(network->id, s->networkuuid) || !s->uplink)
                continue;
            n_uplinks++;
            assert_true(network->ip->dhcp == EVE__COMMON__DHCPTYPE__Client ||
                        (network->ip->dhcp == EVE__COMMON__DHCPTYPE__Static && *s->addr));
        }
    }
    assert_true(n_uplinks > 0);
    for (size_t i = 1; i < c->n_deviceiolist; i++)
        assert_true(strcmp(c->deviceiolist[i]->phylabel, c->deviceiolist[i - 1]->phylabel) > 0);
}

static bool has_label(const Eve__Config__EdgeDevConfig *c, const char *label)
{
    for (size_t i = 0; i < c->n_systemadapterlist; i++) {
        const Eve__Config__SystemAdapter *s = c->systemadapterlist[i];
        if (strcmp(s->name, label) == 0 || strcmp(label, "uplink") == 0)
            return true;
        for (size_t l = 0; l < s->n_shared_labels; l++)
            if (strcmp(s->shared_labels[l], label) == 0)
                return true;
    }
    return false;
}

static void check_storage(const Eve__Config__EdgeDevConfig *c)
{
    for (size_t i = 0; i < c->n_contentinfo; i++) {
        const Eve__Config__ContentTree *t = c->contentinfo[i];
        assert_true(t->n_ds_ids_list == 1 && has_uuid(c, "store", t->ds_ids_list[0]));
        assert_true(*t->url && t->iformat);
    }
    for (size_t i = 0; i < c->n_datastores; i++) {
        const Eve__Config__DatastoreConfig *d = c->datastores[i];
        assert_true(!*d->apikey && !*d->password);
        assert_true(!d->cipherdata || has_uuid(c, "context", d->cipherdata->ciphercontextid));
    }
    for (size_t i = 0; i < c->n_volumes; i++) {
        const Eve__Config__Volume *v = c->volumes[i];
        if (v->origin->type == EVE__CONFIG__VOLUME_CONTENT_ORIGIN_TYPE__VCOT_BLANK)
            assert_true(v->maxsizebytes > 0);
        else
            assert_true(has_uuid(c, "tree", v->origin->downloadcontenttreeid));
    }
}

static void check_app(const Eve__Config__EdgeDevConfig *c, const Eve__Config__AppInstanceConfig *m)
{
    int32_t last = 0;
    assert_true(m->uuidandversion && *m->uuidandversion->uuid && m->fixedresources);
    assert_true(m->fixedresources->memory > 0 && m->fixedresources->vcpus > 0);
    assert_true(m->n_volumereflist > 0 && !*m->userdata);
    for (size_t i = 0; i < m->n_volumereflist; i++) {
        assert_true(has_uuid(c, "volume", m->volumereflist[i]->uuid));
        for (size_t v = 0; v < c->n_volumes; v++)
            if (strcmp(c->volumes[v]->uuid, m->volumereflist[i]->uuid) == 0)
                assert_int_equal(c->volumes[v]->generationcount,
                                 m->volumereflist[i]->generationcount);
    }
    for (size_t i = 0; i < m->n_interfaces; i++) {
        assert_true(has_uuid(c, "instance", m->interfaces[i]->networkid));
        for (size_t r = 0; r < m->interfaces[i]->n_acls; r++) {
            assert_true(m->interfaces[i]->acls[r]->id > last);
            last = m->interfaces[i]->acls[r]->id;
        }
    }
    for (size_t i = 0; i < m->n_adapters; i++)
        for (size_t s = 0; s < c->n_systemadapterlist; s++)
            assert_true(strcmp(m->adapters[i]->name, c->systemadapterlist[s]->name) != 0);
    assert_true(!m->cipherdata || has_uuid(c, "context", m->cipherdata->ciphercontextid));
}

static void check(const Eve__Config__EdgeDevConfig *c)
{
    check_adapters(c);
    check_storage(c);
    for (size_t i = 0; i < c->n_networkinstances; i++)
        assert_true(has_label(c, c->networkinstances[i]->port->name));
    for (size_t i = 0; i < c->n_apps; i++)
        check_app(c, c->apps[i]);
    assert_true(!c->baseos || has_uuid(c, "tree", c->baseos->content_tree_uuid));
}

/* ---- properties ------------------------------------------------------------------------------ */

static void shuffle(struct world *w, uint64_t *seed)
{
    for (size_t i = w->n_objects; i > 1; i--) {
        const size_t j = below(seed, i);
        const struct json *swapped = w->objects[i - 1];
        w->objects[i - 1] = w->objects[j];
        w->objects[j] = swapped;
    }
}

TEST(order_says_nothing)
{
    uint64_t seed = 0x5e7471;
    ARENA_AUTO data = arena_new();
    const struct json **read = read_cases(data);
    for (int round = 0; round < 40; round++) {
        ARENA_AUTO a = arena_new();
        struct world w = {.arena = a};
        struct compose_result first, second;
        load(&w, read, &seed);
        world_compose(&w, a, &first);
        check(first.config);
        shuffle(&w, &seed);
        w.derived = NULL;
        world_compose(&w, a, &second);
        assert_true(str_eq(world_bytes(a, &first), world_bytes(a, &second)));
        assert_true(json_identical(world_outcome(a, &first), world_outcome(a, &second)));
    }
}

/* Whatever is there already is not moved by an application that comes and goes. */
TEST(what_goes_leaves_nothing)
{
    uint64_t seed = 0x90e5;
    ARENA_AUTO data = arena_new();
    const struct json **read = read_cases(data);
    size_t n_changed = 0;
    for (int round = 0; round < 40; round++) {
        ARENA_AUTO a = arena_new();
        struct world w = {.arena = a};
        struct compose_result before, with, after;
        load(&w, read, &seed);
        const struct json *guest = NULL;
        for (size_t i = below(&seed, w.n_objects), n = 0; n < w.n_objects && !guest; n++, i++)
            if (str_is(json_get_str(w.objects[i % w.n_objects], STR("kind")), "Application"))
                guest = w.objects[i % w.n_objects];
        assert_non_null(guest);
        const struct str name = json_str(json_at(guest, "metadata", "name", NULL));
        world_remove(&w, STR("Application"), name);
        world_compose(&w, a, &before);
        const struct json *derived = w.derived;
        world_apply(&w, guest);
        world_compose(&w, a, &with);
        check(with.config);
        n_changed += with.config->n_apps != before.config->n_apps;
        assert_true(with.config->n_apps >= before.config->n_apps);
        world_remove(&w, STR("Application"), name);
        world_compose(&w, a, &after);
        assert_true(str_eq(world_bytes(a, &before), world_bytes(a, &after)));
        assert_true(json_equal(derived, w.derived));
    }
    assert_true(n_changed > 10);
}

/* No text of a Secret is in what a device is sent, nor in what is kept. */
TEST(secrets_are_never_clear)
{
    ARENA_AUTO a = arena_new();
    struct world w = {.arena = a, .is_sealable = true};
    struct compose_result r;
    load(&w, read_cases(a), NULL);
    w.is_hidden = true;
    world_compose(&w, a, &r);
    BUF_AUTO all = {0};
    buf_append_str(&all, world_bytes(a, &r));
    json_write(&all, world_outcome(a, &r));
    static const char *const secrets[] = {"s3cr3t", "czNjcjN0", "hunter22", "dXNlcjpzM2NyM3Q="};
    for (size_t i = 0; i < N_ELEMENTS(secrets); i++)
        assert_true(str_find_str(buf_str(&all), str_of(secrets[i])) < 0);
    assert_true(r.config->n_ciphercontexts == 1);
}

/* ---- anything at all ------------------------------------------------------------------------- */

static struct json strange(struct arena *a, uint64_t *seed)
{
    static const char *const texts[] = {
        "",
        "eth0",
        "uplink",
        "all",
        "nginx",
        "dhcp",
        "static",
        "none",
        "10.0.0.0/8",
        "10.64.0.0/10",
        "0.0.0.0/0",
        "1.2.3.4/33",
        "::1/64",
        "fe80::1",
        "-1",
        "1e400",
        "99999999999Ei",
        "https://",
        "://",
        "[{}]",
        "a,b,,c@d/e",
        "[",
        "switch",
        "container",
        "\xf0\x9f\x90\xb3",
        "0d000000-0000-4000-8000-000000000001",
        "local",
        "store",
    };
    switch (below(seed, 8)) {
    case 0:
        return json_null();
    case 1:
        return json_bool(below(seed, 2));
    case 2:
        return json_int((int64_t) next(seed));
    case 3:
        return json_int((int64_t) below(seed, 70000));
    case 4:
        return json_double(0.5);
    case 5:
        return json_array();
    case 6: {
        struct json o = json_object();
        (void) json_set(a, &o, STR("name"), json_string(STR("web")));
        return o;
    }
    default:
        return json_string(str_of(texts[below(seed, N_ELEMENTS(texts))]));
    }
}

/* Changes about one value in `rarity`. */
static void mutate(struct arena *a, struct json *v, uint64_t *seed, size_t rarity)
{
    JSON_FOR_EACH_ITEM (v, item) {
        if (below(seed, rarity) == 0)
            *item = strange(a, seed);
        mutate(a, item, seed, rarity);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        if (str_is(json_str(&m->key), "kind"))
            continue;
        if (below(seed, rarity) == 0)
            m->value = strange(a, seed);
        mutate(a, &m->value, seed, rarity);
    }
}

TEST(anything_is_sound_and_manageable)
{
    uint64_t seed = 0xdecade;
    ARENA_AUTO data = arena_new();
    const struct json **read = read_cases(data);
    size_t n_apps = 0, n_problems = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ARENA_AUTO a = arena_new();
        struct world w = {.arena = a};
        struct compose_result r;
        load(&w, read, &seed);
        w.is_sealable = below(&seed, 4) > 0;
        const size_t rarity = 10u << below(&seed, 5);
        for (int step = 0; step < 3; step++) {
            const size_t i = below(&seed, w.n_objects);
            for (size_t o = 0; o < w.n_objects; o++) {
                struct json copy = json_clone(a, w.objects[o]);
                mutate(a, &copy, &seed, rarity);
                if (step == 0 || o == i)
                    w.objects[o] = json_new(a, copy);
            }
            if (below(&seed, 4) == 0)
                w.derived = json_new(a, strange(a, &seed));
            if (w.derived && below(&seed, 4) == 0) {
                struct json copy = json_clone(a, w.derived);
                mutate(a, &copy, &seed, rarity);
                w.derived = json_new(a, copy);
            }
            world_compose(&w, a, &r);
            check(r.config);
            (void) world_bytes(a, &r);
            (void) world_outcome(a, &r);
            n_apps += r.config->n_apps;
            n_problems += r.n_problems;
        }
    }
    assert_true(n_apps > ROUNDS && n_problems > ROUNDS);
}

/* ---- for a judge of its own ------------------------------------------------------------------ */

/* A line for each configuration of one device, an empty one where another device begins. */
static void record(FILE *f, const struct world *w, const Eve__Config__EdgeDevConfig *c)
{
    ARENA_AUTO a = arena_new();
    if (!f)
        return;
    const struct str text = json_text(a, protojson_value(a, &c->message, NULL));
    assert_true(fprintf(f, "{\"isReported\":%s,\"config\":%.*s}\n", w->report ? "true" : "false",
                        STR_ARG(text)) > 0);
}

/* Claims hold the Image that they were made from to what it was; admission sees to it. */
static bool is_held(const struct world *w, const struct json *object)
{
    const struct str name = json_str(json_at(object, "metadata", "name", NULL));
    if (!str_is(json_get_str(object, STR("kind")), "Image"))
        return false;
    for (size_t i = 0; i < w->n_objects; i++) {
        const struct json *spec = json_get(w->objects[i], STR("spec"));
        if (str_eq(json_str(json_at(spec, "dataSourceRef", "name", NULL)), name))
            return true;
    }
    return false;
}

/* What a user would do: something is changed, taken away, or comes. The Device stays. */
static void edit(struct world *w, const struct json *const *read, uint64_t *seed)
{
    const struct json *steps = json_get(read[1 + below(seed, N_ELEMENTS(cases) - 1)], STR("steps"));
    const struct json *step = &steps->items[below(seed, json_count(steps))];
    const struct json *gone = w->objects[below(seed, w->n_objects)];
    const struct str kind = json_get_str(gone, STR("kind"));
    if (below(seed, 3) == 0 && !str_is(kind, "Device")) {
        world_remove(w, kind, json_str(json_at(gone, "metadata", "name", NULL)));
        return;
    }
    JSON_FOR_EACH_ITEM (json_get(step, STR("apply")), object)
        if (!is_held(w, object))
            world_apply(w, with_own_uuid(w->arena, object));
}

/* Devices live through edits; tests/compose judges what they were told by rules that know nothing
 * of the composer ($SETH_COMPOSED says where to). */
TEST(lives_of_devices)
{
    uint64_t seed = 0x11fe;
    ARENA_AUTO data = arena_new();
    const struct json **read = read_cases(data);
    const char *path = getenv("SETH_COMPOSED");
    FILE *f = path ? fopen(path, "w") : NULL;
    assert_true(!path || f);
    for (int round = 0; round < ROUNDS; round++) {
        ARENA_AUTO a = arena_new();
        struct world w = {.arena = a};
        struct compose_result r;
        load(&w, read, &seed);
        for (int step = 0; step < 8; step++) {
            world_compose(&w, a, &r);
            check(r.config);
            record(f, &w, r.config);
            edit(&w, read, &seed);
        }
        assert_true(!f || fputc('\n', f) == '\n');
    }
    assert_true(!f || fclose(f) == 0);
}

TEST(nothing_at_all_is_manageable)
{
    ARENA_AUTO a = arena_new();
    const struct compose_inputs in = {0};
    struct compose_result r;
    compose(a, &in, &r);
    check(r.config);
    assert_int_equal(r.n_problems, 0);
}

TEST(ports_come_from_the_report)
{
    ARENA_AUTO a = arena_new();
    char *members[] = {(char *) "eth0", (char *) "eth1"};
    Eve__Info__ZioBundle bundle = EVE__INFO__ZIO_BUNDLE__INIT;
    bundle.type = EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
    bundle.name = (char *) "group";
    bundle.n_members = 2;
    bundle.members = members;
    Eve__Info__ZioBundle *bundles[] = {&bundle};
    Eve__Info__DevicePort port = EVE__INFO__DEVICE_PORT__INIT;
    port.name = (char *) "eth1";
    port.ifname = (char *) "enp2s0";
    Eve__Info__DevicePort *ports[] = {&port};
    Eve__Info__DevicePortStatus status = EVE__INFO__DEVICE_PORT_STATUS__INIT;
    status.n_ports = 1;
    status.ports = ports;
    Eve__Info__DevicePortStatus *statuses[] = {&status};
    Eve__Info__SystemAdapterInfo adapters = EVE__INFO__SYSTEM_ADAPTER_INFO__INIT;
    adapters.n_status = 1;
    adapters.status = statuses;
    Eve__Info__ZInfoDevice info;
    eve__info__zinfo_device__init(&info);
    info.n_assignableadapters = 1;
    info.assignableadapters = bundles;
    info.systemadapter = &adapters;
    assert_str(json_text(a, compose_report(a, &info)),
               "{\"ports\":[{\"label\":\"eth0\",\"type\":1,\"group\":\"group\"},"
               "{\"label\":\"eth1\",\"type\":1,\"group\":\"group\",\"interface\":\"enp2s0\"}]}");
}
