/* SPDX-License-Identifier: Apache-2.0 */
#include "device/route.h"

#include "test.h"

#define V2 "/api/v2/edgedevice/"
#define V1 "/api/v1/edgedevice/"
#define D "id/0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab/"
#define APP "5a39b3b1-3a4f-4a2e-8d1a-7f0f6e2f9c11"

struct expectation {
    const char *path;
    enum http_method method;
    int status;
    const char *endpoint; /* when 0 */
    bool has_uuid, has_app;
};

static const struct expectation expectations[] = {
    {V2 "ping", HTTP_GET, 0, "ping"},
    {V2 "ping", HTTP_POST, 405},
    {V2 "certs", HTTP_GET, 0, "certs"},
    {V2 "certs", HTTP_POST, 0, "certs"},
    {V2 "register", HTTP_POST, 0, "register"},
    {V2 "register", HTTP_GET, 405},
    {V2 "uuid", HTTP_POST, 0, "uuid"},
    {V2 "config", HTTP_POST, 0, "config"},
    {V2 "config", HTTP_GET, 405}, /* nobody signed it */
    {V1 "config", HTTP_GET, 0, "config"},
    {V2 D "config", HTTP_POST, 0, "config", true},
    {V2 D "attest", HTTP_POST, 0, "attest", true},
    {V2 "attest", HTTP_POST, 404},
    {V1 D "attest", HTTP_POST, 0, "attest", true},
    {V2 D "info", HTTP_POST, 0, "info", true},
    {V2 "info", HTTP_POST, 404},
    {V1 "info", HTTP_POST, 0, "info"},
    {V2 D "info", HTTP_PUT, 405},
    {V2 D "hardwarehealth", HTTP_POST, 0, "hardwarehealth", true},
    {V1 "hardwarehealth", HTTP_POST, 404},
    {V2 D "proxy/scep", HTTP_POST, 0, "proxy/scep", true},
    {V2 D "compound-config", HTTP_POST, 0, "compound-config", true},
    {V2 D "newlogs", HTTP_POST, 0, "newlogs", true},
    {V2 D "apps/instanceid/" APP "/newlogs", HTTP_POST, 0, "newlogs", true, true},
    {V2 D "apps/instances/id/" APP "/logs", HTTP_POST, 0, "logs", true, true},
    {V2 "apps/instanceid/" APP "/newlogs", HTTP_POST, 0, "newlogs", false, true},
    {V1 "apps/instanceid/id/" APP "/newlogs", HTTP_POST, 0, "newlogs", false, true},
    {V1 "apps/instances/id/" APP "/logs", HTTP_POST, 0, "logs", false, true},
    {V2 D "apps/instanceid/" APP "/info", HTTP_POST, 404},
    {V2 D "apps/instanceid/none/newlogs", HTTP_POST, 400},
    {V2 D "apps/instanceid/", HTTP_POST, 400},
    {V2 "id/none/info", HTTP_POST, 400},
    {V2 "id/", HTTP_POST, 400},
    {"/api/v2/edgeDevice/ping", HTTP_GET, 0, "ping"},
    {"/api/v3/edgedevice/ping", HTTP_GET, 404},
    {V2, HTTP_GET, 404},
    {V2 "ping/", HTTP_GET, 404},
    {V2 "/ping", HTTP_GET, 404},
    {"", HTTP_GET, 404},
    {"*", HTTP_OPTIONS, 404},
};

TEST(paths)
{
    for (size_t i = 0; i < N_ELEMENTS(expectations); i++) {
        const struct expectation *e = &expectations[i];
        struct route route;
        int status = route_find(str_of(e->path), e->method, &route);
        if (status != e->status)
            fail_msg("%s: %d instead of %d", e->path, status, e->status);
        if (status)
            continue;
        assert_string_equal(route.endpoint->name, e->endpoint);
        assert_int_equal(route.has_uuid, e->has_uuid);
        assert_int_equal(!uuid_is_zero(&route.app), e->has_app);
        assert_int_equal(route.endpoint->is_of_app, e->has_app);
    }
}

/* What the door relies on: something answers, and only strangers and devices are asked to sign. */
TEST(every_endpoint_is_answered)
{
    for (size_t i = 0; i < route_count(); i++) {
        const struct endpoint *e = route_endpoint(i);
        assert_true(e->begin || e->run);
        assert_true(e->takes_get || e->takes_post);
        if (e->signer == SIGNED_BY_NOBODY)
            assert_int_equal(e->class, DEVICE_ESSENTIAL);
    }
}
