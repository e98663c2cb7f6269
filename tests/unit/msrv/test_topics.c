/* SPDX-License-Identifier: Apache-2.0 */
/* The server's world as other services publish it. */
#include "test.h"

#include <errno.h>

#include "msrv/topics.h"
#include "world.h"

#define WEB "11111111-1111-4111-8111-111111111111"
#define DB "22222222-2222-4222-8222-222222222222"

/* clang-format off */
static const struct {
    const char *agent, *topic, *key, *value;
    bool is_persistent;
} values[] = {
    {"zedagent", "EdgeNodeInfo", "global", "{\"DeviceName\":\"edge\"}", false},
    {"zedagent", "ControllerCert", "c", "{\"a\":1}", false},
    {"tpmmgr", "EdgeNodeCert", "c", "{\"a\":1}", true},
    {"nim", "DeviceNetworkStatus", "global",
     "{\"Ports\":[{\"Logicallabel\":\"up\",\"AddrInfoList\":[{\"Addr\":\"192.0.2.1\"},{\"Addr\":\"169.254.1.1\"},{\"Addr\":\"fd00::1\"},"
     "{\"Addr\":\"\"}]},{\"Logicallabel\":\"other\",\"AddrInfoList\":[{\"Addr\":\"192.0.2.2\"}]}]}", false},
    {"zedrouter", "NetworkInstanceStatus", "n1", "{\"Ports\":[\"up\"]}", false},
    {"zedmanager", "AppNetworkConfig", WEB, "{\"MetaDataType\":2,\"pubsub-large-CloudInitUserData\":\"eA==\"}", false},
    {"zedagent", "AppNetworkConfig", DB, "{\"MetaDataType\":0,\"CipherBlockStatus\":{\"IsCipher\":true,\"CipherBlockID\":\"b\"}}", false},
    {"zedagent", "PatchEnvelopeInfoList", "global",
     "{\"Envelopes\":[{\"PatchID\":\"p1\",\"Version\":\"2\",\"State\":5,\"AllowedApps\":[\"x\",\"" WEB "\"],"
     "\"BinaryBlobs\":[{\"fileName\":\"f\",\"fileSha\":\"s\",\"url\":\"/p/f\",\"size\":3}],"
     "\"VolumeRefs\":[{\"fileName\":\"v\",\"imageName\":\"i\",\"imageId\":\"d\"}],"
     "\"CipherBlobs\":[{\"EncType\":1,\"Inline\":{\"fileName\":\"c\"}},{\"EncType\":2,\"Inline\":null,\"Volume\":{\"fileName\":\"w\"}},{}]},"
     "{\"PatchID\":\"p2\",\"State\":4,\"AllowedApps\":[\"" WEB "\"]},{\"PatchID\":\"p3\",\"State\":5,\"AllowedApps\":[\"" DB "\"]}]}", true},
    {"domainmgr", "DomainStatus", WEB,
     "{\"DiskStatusList\":[{\"Devtype\":\"hdd\",\"DisplayName\":\"root\",\"FileLocation\":\"/r\"},"
     "{\"Devtype\":\"AppCustom\",\"DisplayName\":\"blob\",\"CustomMeta\":\"m\",\"FileLocation\":\"/b\"}]}", false},
    {"zedrouter", "AppNetworkStatus", WEB,
     "{\"UUIDandVersion\":{\"UUID\":\"" WEB "\"},\"DisplayName\":\"web\",\"AppNetAdapterList\":["
     "{\"Network\":\"n0\",\"Vif\":\"v0\",\"AssignedAddresses\":{\"IPv4Addrs\":[{\"Address\":\"10.0.0.22\"}],\"IPv6Addrs\":null}},"
     "{\"Network\":\"n1\",\"Vif\":\"v1\",\"AllowToDiscover\":true,\"AssignedAddresses\":{\"IPv4Addrs\":[{\"Address\":\"10.0.0.2\"}],"
     "\"IPv6Addrs\":[{\"Address\":\"fd00::2\"}]}}]}", false},
    {"zedrouter", "AppNetworkStatus", DB,
     "{\"UUIDandVersion\":{\"UUID\":\"" DB "\"},\"DisplayName\":\"db\",\"AppNetAdapterList\":["
     "{\"Network\":\"n2\",\"Vif\":\"v2\",\"AssignedAddresses\":{\"IPv4Addrs\":[{\"Address\":\"10.0.0.2\"},{\"Address\":\"10.0.0.3\"}]}}]}", false},
};
/* clang-format on */

struct scene {
    struct world world;
    struct publication *publications[N_ELEMENTS(values)];
    struct msrv_topics *topics;
};

/* Several values may be of one topic. */
static struct publication *find_publication(struct scene *s, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(values[i].agent, values[at].agent) == 0 &&
            strcmp(values[i].topic, values[at].topic) == 0)
            return s->publications[i];
    return world_publication(&s->world, values[at].agent, values[at].topic,
                             values[at].is_persistent);
}

static const struct msrv_world *w = &msrv_topics_world;

static bool is_complete(void *arg)
{
    struct scene *s = arg;
    struct msrv_app app = {0};
    struct msrv_blob *blobs = NULL;
    struct msrv_envelope *envelopes = NULL;
    struct str *addresses = NULL;
    size_t n = 0;
    ARENA_AUTO a = arena_new();
    if (!w->is_ready(s->topics) ||
        w->find_app(s->topics, a, STR("n1"), STR("10.0.0.2"), &app) < 0 || !app.has_config ||
        w->external_ipv4(s->topics, a, &app, &addresses, &n) < 0 ||
        w->blobs(s->topics, a, &app, &blobs, &n) < 0 || n == 0 ||
        w->envelopes(s->topics, a, &app, &envelopes, &n) < 0 || n == 0)
        return false;
    return w->find_app(s->topics, a, STR("n2"), STR("10.0.0.3"), &app) == 0 && app.has_config;
}

static void scene_init(struct scene *s)
{
    *s = (struct scene){0};
    world_init(&s->world);
    for (size_t i = 0; i < N_ELEMENTS(values); i++) {
        s->publications[i] = find_publication(s, i);
        assert_int_equal(
            world_publish(&s->world, s->publications[i], values[i].key, values[i].value), 0);
    }
    struct msrv_topics_options options = {.pubsub = s->world.pubsub, .loop = s->world.loop};
    assert_int_equal(msrv_topics_new(&options, &s->topics), 0);
    assert_false(w->is_ready(s->topics));
    world_run_until(&s->world, is_complete, s);
}

static void scene_done(struct scene *s)
{
    msrv_topics_free(s->topics);
    for (size_t i = 0; i < N_ELEMENTS(values); i++) {
        bool is_repeated = false;
        for (size_t k = 0; k < i; k++)
            is_repeated |= s->publications[k] == s->publications[i];
        if (!is_repeated)
            publication_free(s->publications[i]);
    }
    world_done(&s->world);
}

TEST(an_application_is_found_by_its_address)
{
    struct scene s;
    scene_init(&s);
    struct arena *a = s.world.arena;
    struct msrv_app app = {0};
    assert_int_equal(w->find_app(s.topics, a, STR("n1"), STR("10.0.0.2"), &app), 0);
    assert_str(app.uuid, WEB);
    assert_str(app.name, "web");
    assert_true(app.can_discover && app.has_config && app.is_openstack);
    assert_str(app.user_data, "eA==");
    assert_null(app.user_data_cipher);
    /* The same address in another network is another's. */
    assert_int_equal(w->find_app(s.topics, a, STR("n2"), STR("10.0.0.2"), &app), 0);
    assert_str(app.uuid, DB);
    assert_false(app.can_discover || app.is_openstack);
    assert_non_null(app.user_data_cipher);
    /* Of another network is better than nobody. */
    assert_int_equal(w->find_app(s.topics, a, STR("n9"), STR("10.0.0.3"), &app), 0);
    assert_str(app.uuid, DB);
    /* A part of an address is none. */
    assert_int_equal(w->find_app(s.topics, a, STR("n1"), STR("10.0.0.22"), &app), 0);
    assert_false(app.can_discover);
    assert_int_equal(w->find_app(s.topics, a, STR("n1"), STR("0.0.0.2"), &app), -ENOENT);
    assert_int_equal(w->find_app(s.topics, a, STR("n1"), STR("10.0.0.4"), &app), -ENOENT);
    scene_done(&s);
}

TEST(external_addresses_are_those_of_the_networks_ports)
{
    struct scene s;
    scene_init(&s);
    struct arena *a = s.world.arena;
    struct str *list = NULL;
    size_t n = 0;
    assert_int_equal(
        w->external_ipv4(s.topics, a, &(struct msrv_app){.network = STR("n1")}, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_str(list[0], "192.0.2.1");
    assert_int_equal(
        w->external_ipv4(s.topics, a, &(struct msrv_app){.network = STR("n2")}, &list, &n),
        -ENOENT);
    scene_done(&s);
}

TEST(neighbours_and_blobs_come_from_their_topics)
{
    struct scene s;
    scene_init(&s);
    struct arena *a = s.world.arena;
    struct msrv_neighbour *list = NULL;
    struct msrv_blob *blobs = NULL;
    size_t n = 0, n_web = 0;
    assert_int_equal(w->neighbours(s.topics, a, &list, &n), 0);
    assert_int_equal(n, 2 + 3 + 2); /* each by itself, and its addresses */
    for (size_t i = 0; i < n; i++)
        n_web += str_is(list[i].app_uuid, WEB);
    assert_int_equal(n_web, 4);
    assert_int_equal(w->blobs(s.topics, a, &(struct msrv_app){.uuid = STR(WEB)}, &blobs, &n), 0);
    assert_int_equal(n, 1);
    assert_str(blobs[0].name, "blob");
    assert_string_equal(blobs[0].path, "/b");
    assert_int_equal(w->blobs(s.topics, a, &(struct msrv_app){.uuid = STR(DB)}, &blobs, &n), 0);
    assert_int_equal(n, 0);
    scene_done(&s);
}

TEST(metadata_is_kept_on_disk)
{
    struct scene s;
    scene_init(&s);
    struct json *value =
        world_json(&s.world, "{\"AppInstUUID\":\"x\",\"Data\":\"eA==\",\"Type\":1}");
    assert_int_equal(w->publish_metadata(s.topics, STR(WEB "-1"), value), 0);
    assert_true(world_exists(&s.world, "persist/status/msrv/AppInstMetaData/" WEB "-1.json"));
    scene_done(&s);
}

/* clang-format off */
static const struct {
    enum msrv_patch_kind kind;
    const char *name;
    bool has_secret;
} files[] = {
    {MSRV_PATCH_BINARY, "f", false},
    {MSRV_PATCH_VOLUME, "v", false},
    {MSRV_PATCH_ENCRYPTED_INLINE, "c", true},
    {MSRV_PATCH_VOLUME, "w", true},
};
/* clang-format on */

TEST(envelopes_are_those_active_for_the_application)
{
    struct scene s;
    scene_init(&s);
    struct arena *a = s.world.arena;
    struct msrv_envelope *list = NULL;
    size_t n = 0;
    assert_int_equal(w->envelopes(s.topics, a, &(struct msrv_app){.uuid = STR(WEB)}, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_str(list[0].id, "p1");
    assert_str(list[0].version, "2");
    assert_int_equal(list[0].n_files, N_ELEMENTS(files));
    for (size_t i = 0; i < N_ELEMENTS(files); i++) {
        assert_int_equal(list[0].files[i].kind, files[i].kind);
        assert_str(list[0].files[i].name, files[i].name);
        assert_int_equal(list[0].files[i].secret != NULL, files[i].has_secret);
    }
    assert_string_equal(list[0].files[0].path, "/p/f");
    assert_int_equal(list[0].files[0].size, 3);
    assert_int_equal(w->envelopes(s.topics, a, &(struct msrv_app){.uuid = STR("x")}, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(w->envelopes(s.topics, a, &(struct msrv_app){.uuid = STR("y")}, &list, &n), 0);
    assert_int_equal(n, 0);
    scene_done(&s);
}

#define USAGE "persist/status/msrv/PatchEnvelopeUsage/patchEnvelopeUsage:p1-v-2-app-" WEB ".json"

TEST(the_use_of_envelopes_is_counted_beyond_a_restart)
{
    struct scene s;
    scene_init(&s);
    struct msrv_topics_options options = {.pubsub = s.world.pubsub, .loop = s.world.loop};
    struct msrv_app app = {.uuid = STR(WEB)};
    struct msrv_envelope e = {.id = STR("p1"), .version = STR("2")};
    for (int life = 0; life < 2; life++) {
        w->count_patch(s.topics, &app, &e, MSRV_PATCH_DESCRIBED);
        w->count_patch(s.topics, &app, &e, MSRV_PATCH_DESCRIBED);
        w->count_patch(s.topics, &app, &e, MSRV_PATCH_DOWNLOADED);
        msrv_topics_free(s.topics);
        world_run_turns(&s.world, 5);
        assert_int_equal(msrv_topics_new(&options, &s.topics), 0);
    }
    struct json *value = world_json(&s.world, world_read(&s.world, USAGE));
    assert_str(json_get_str(value, STR("AppUUID")), WEB);
    assert_str(json_get_str(value, STR("PatchID")), "p1");
    assert_str(json_get_str(value, STR("Version")), "2");
    assert_int_equal(json_get_int(value, STR("PatchAPICallCount"), 0), 4);
    assert_int_equal(json_get_int(value, STR("DownloadCount"), 0), 2);
    scene_done(&s);
}

TEST(what_nobody_tells_is_not_there)
{
    struct scene s;
    scene_init(&s);
    struct arena *a = s.world.arena;
    struct str out = STR_NONE;
    struct msrv_app app = {.uuid = STR(WEB)};
    assert_null(w->document(s.topics, a, MSRV_LOCATION));
    assert_non_null(w->document(s.topics, a, MSRV_EDGE_NODE_INFO));
    assert_int_equal(w->sign(s.topics, a, STR("x"), &out), -EOPNOTSUPP);
    assert_int_equal(w->decrypt_user_data(s.topics, a, &app, &out), -EOPNOTSUPP);
    scene_done(&s);
}
