/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protobuf/protojson.h"

static void on_event(struct zedagent_listener *l, enum zedagent_event e)
{
    CONTAINER_OF(l, struct desk, listener)->n_events[e]++;
}

void desk_init(struct desk *k)
{
    *k = (struct desk){0};
    device_init(&k->d);
}

void desk_start(struct desk *k)
{
    const struct zedagent_options o = {.must_not_fetch = true};
    const struct pubsub_name name = {.agent = STR("nodeagent"), .topic = STR("NodeAgentStatus")};
    device_start(&k->d, /* is_simulated= */ true);
    assert_int_equal(publication_new(k->d.node->pubsub, &name, &k->nodeagent), 0);
    assert_int_equal(zedagent_new(k->d.node, &o, &k->z), 0);
    k->listener.on_event = on_event;
    zedagent_listen(k->z, &k->listener);
}

void desk_stop(struct desk *k)
{
    zedagent_free(TAKE(k->z));
    publication_free(TAKE(k->nodeagent));
    device_stop(&k->d);
}

void desk_done(struct desk *k)
{
    desk_stop(k);
    device_done(&k->d);
}

const Eve__Config__EdgeDevConfig *desk_config(struct desk *k, const char *text)
{
    struct json_parse_result parsed;
    struct str error = STR_NONE;
    assert_int_equal(json_parse(k->d.arena, str_of(text), &parsed), 0);
    const void *m = protojson_read(k->d.arena, &eve__config__edge_dev_config__descriptor,
                                   parsed.value, PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    if (!m)
        fail_msg("%.*s", STR_ARG(error));
    return m;
}

enum apply_result desk_apply(struct desk *k, const char *text)
{
    return apply_config(k->z, desk_config(k, text), PARSE_CONTROLLER);
}

/* An envelope as the controller sends it. */
struct str desk_envelope(struct desk *k, const struct authority *by, const char *text)
{
    Eve__Config__ConfigResponse r = EVE__CONFIG__CONFIG_RESPONSE__INIT;
    r.config = (Eve__Config__EdgeDevConfig *) (uintptr_t) desk_config(k, text);
    return device_seal(&k->d, by, pb_pack(k->d.arena, &r.base));
}

/* What an earlier life has left. */
void desk_leave(struct desk *k, const char *file, struct str content)
{
    desk_start(k);
    assert_int_equal(node_file_write(k->d.node, NODE_PERSIST, str_from(str_of(file), 8), content),
                     0);
    desk_stop(k);
}

void desk_leave_certs(struct desk *k)
{
    desk_leave(k, "persist/checkpoint/controllercerts", device_good_certs(&k->d));
    desk_leave(k, "persist/status/zedclient/OnboardingStatus/global.json",
               STR("{\"DeviceUUID\":\"" DEVICE_UUID "\",\"HardwareModel\":\"a.b\"}"));
}

struct json *desk_published(struct desk *k, enum section_id id, const char *key)
{
    return publication_get(k->d.arena, k->z->topics.sections[id], str_of(key));
}

struct json *desk_status(struct desk *k)
{
    return publication_get(k->d.arena, k->z->topics.status, STR("zedagent"));
}

void desk_say_nodeagent(struct desk *k, const char *text)
{
    assert_int_equal(publication_publish(k->nodeagent, STR("nodeagent"),
                                         json_parse_quick(k->d.arena, str_of(text))),
                     0);
    device_run_turns(&k->d, 3);
}
