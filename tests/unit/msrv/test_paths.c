/* SPDX-License-Identifier: Apache-2.0 */
/* Every path with its callers, by table: what goes in, what comes out. */
#include "test.h"

#include <stdio.h>

#include "desk.h"

/* What is missing on the device. */
enum lack { NOTHING, READINESS, DOCUMENTS, NETWORK, PORTS, TPM };

struct row {
    const char *address, *method, *path;
    enum lack lack;
    int status;
    const char *type; /* NULL: no header */
    const char *body;
};

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json"
#define NETWORK_JSON(address, uuid, external) \
    "{\"app-instance-uuid\":\"" uuid "\",\"caller-ip\":\"" address \
    ":40000\",\"device-name\":\"edge-7\",\"device-uuid\":\"dev-id\",\"enterprise-id\":\"eid\"," \
    "\"enterprise-name\":\"e\",\"external-ipv4\":\"" external "\",\"hostname\":\"" uuid \
    "\",\"project-name\":\"p\",\"project-uuid\":\"pid\"}"

/* clang-format off */
static const struct row rows[] = {
    {WEB_ADDRESS, "GET", "/eve/v1/network.json", NOTHING, 200, JSON, NETWORK_JSON(WEB_ADDRESS, WEB_UUID, "192.0.2.7,198.51.100.7")},
    {NOBODY, "GET", "/eve/v1/network.json", NOTHING, 404, JSON, NETWORK_JSON(NOBODY, "", "")},
    {WEB_ADDRESS, "GET", "/eve/v1/network.json", PORTS, 204, JSON, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/network.json", NETWORK, 500, JSON, NETWORK_JSON(WEB_ADDRESS, WEB_UUID, "")},
    {WEB_ADDRESS, "GET", "/eve/v1/network.json", DOCUMENTS, 500, TEXT, "cannot fetch edge node information\n"},
    {WEB_ADDRESS, "GET", "/eve/v1/network.json?x=y", NOTHING, 200, JSON, NETWORK_JSON(WEB_ADDRESS, WEB_UUID, "192.0.2.7,198.51.100.7")},
    {WEB_ADDRESS, "GET", "http://169.254.169.254/eve/v1/hostname", NOTHING, 200, "text/plain", WEB_UUID "\n"},

    {WEB_ADDRESS, "GET", "/eve/v1/external_ipv4", NOTHING, 200, TEXT, "192.0.2.7\n198.51.100.7\n"},
    {NOBODY, "GET", "/eve/v1/external_ipv4", NOTHING, 404, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/external_ipv4", PORTS, 204, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/external_ipv4", NETWORK, 500, NULL, ""},

    {DB_ADDRESS, "GET", "/eve/v1/hostname", NOTHING, 200, "text/plain", DB_UUID "\n"},
    {NOBODY, "GET", "/eve/v1/hostname", NOTHING, 204, NULL, ""},
    {"fd00::2", "GET", "/eve/v1/hostname", NOTHING, 204, NULL, ""},

    {NOBODY, "GET", "/eve/v1/location.json", NOTHING, 200, JSON, "{\"LogicalLabel\":\"modem\",\"Latitude\":48.1,\"HorizontalReliability\":\"high\"}"},
    {NOBODY, "GET", "/eve/v1/location.json", DOCUMENTS, 204, NULL, ""},
    {NOBODY, "GET", "/eve/v1/wwan/status.json", NOTHING, 200, JSON, "{\"networks\":[{\"logical-label\":\"m\",\"cellular-module\":{\"imei\":\"1\"},\"sim-cards\":[{\"iccid\":\"2\"}]}]}"},
    {NOBODY, "GET", "/eve/v1/wwan/status.json", DOCUMENTS, 204, NULL, ""},
    {NOBODY, "GET", "/eve/v1/wwan/metrics.json", NOTHING, 200, JSON, "{\"networks\":[]}"},
    {NOBODY, "GET", "/eve/v1/wwan/metrics.json", DOCUMENTS, 204, NULL, ""},
    {NOBODY, "GET", "/eve/v1/networks/metrics.json", NOTHING, 200, JSON, "[{\"IfName\":\"eth0\",\"Up\":true,\"TxBytes\":5,\"RxBytes\":0,\"TxDrops\":0,\"RxDrops\":0,\"TxPkts\":0,\"RxPkts\":0,\"TxErrors\":0,\"RxErrors\":0,\"TxACLDrops\":0,\"RxACLDrops\":3,\"TxACLRateLimitDrops\":0,\"RxACLRateLimitDrops\":0}]"},
    {NOBODY, "GET", "/eve/v1/networks/metrics.json", DOCUMENTS, 204, NULL, ""},

    {WEB_ADDRESS, "GET", "/eve/v1/discover-network.json", NOTHING, 200, JSON, "{\"" DB_UUID "\":[{\"port\":\"eth0\",\"network-address\":\"10.1.0.3\"},{\"port\":\"eth1\",\"network-address\":\"fd00::3\"}],\"" ODD_UUID "\":[]}"},
    {DB_ADDRESS, "GET", "/eve/v1/discover-network.json", NOTHING, 403, "text/plain", "{\"message\": \"This app instance is not allowed to discover\"}"},
    {NOBODY, "GET", "/eve/v1/discover-network.json", NOTHING, 204, NULL, ""},

    {WEB_ADDRESS, "GET", "/eve/v1/diag", NOTHING, 404, TEXT, "diagHandler: file not found\n"},
    {NOBODY, "GET", "/eve/v1/diag", NOTHING, 403, TEXT, "diagHandler: no AppNetworkStatus for 10.1.0.99:40000\n"},

    {WEB_ADDRESS, "GET", "/eve/v1/app/info.json", NOTHING, 200, JSON, "{\"AppBlobs\":[{\"CustomMeta\":\"meta\",\"DownloadURL\":\"http://169.254.169.254/eve/app-custom-blobs/my blob\"},{\"CustomMeta\":\"\",\"DownloadURL\":\"http://169.254.169.254/eve/app-custom-blobs/gone\"}]}"},
    {DB_ADDRESS, "GET", "/eve/v1/app/info.json", NOTHING, 200, JSON, "{\"AppBlobs\":null}"},
    {NOBODY, "GET", "/eve/v1/app/info.json", NOTHING, 200, JSON, "not found"},

    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs", NOTHING, 404, TEXT, "/eve/app-custom-blobs\n"},
    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs/my%20blob", NOTHING, 200, "application/octet-stream", "0123456789"},
    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs/other", NOTHING, 404, TEXT, "/eve/app-custom-blobs/other\n"},
    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs/gone", NOTHING, 404, TEXT, "/eve/app-custom-blobs/gone\n"},
    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs/../../etc/passwd", NOTHING, 404, TEXT, "/eve/app-custom-blobs/../../etc/passwd\n"},
    {WEB_ADDRESS, "GET", "/eve/app-custom-blobs/%zz", NOTHING, 404, TEXT, "/eve/app-custom-blobs/%zz\n"},
    {DB_ADDRESS, "GET", "/eve/app-custom-blobs/my%20blob", NOTHING, 404, TEXT, "/eve/app-custom-blobs/my%20blob\n"},
    {NOBODY, "GET", "/eve/app-custom-blobs/my%20blob", NOTHING, 200, TEXT, "not found"},

    {NOBODY, "GET", "/eve/v1/tpm/activatecredential/", NOTHING, 200, JSON, "{\"ek\":\"ZWs=\",\"aikpub\":\"YWlr\",\"aikname\":\"bmFtZQ==\"}"},
    {NOBODY, "GET", "/eve/v1/tpm/activatecredential/", TPM, 500, "text/plain", "{\"message\": \"Operation failed\"}"},
    {NOBODY, "GET", "/eve/v1/tpm/activatecredential", NOTHING, 404, TEXT, "404 page not found\n"},

    {WEB_ADDRESS, "GET", "/openstack", NOTHING, 200, "text/plain", "latest\n"},
    {WEB_ADDRESS, "GET", "/openstack/", NOTHING, 200, "text/plain", "latest\n"},
    {WEB_ADDRESS, "GET", "/openstack/latest/meta_data.json", NOTHING, 200, JSON, "{\"hostname\":\"web\",\"keys\":null,\"launch_index\":0,\"name\":\"web\",\"public_keys\":{},\"uuid\":\"" WEB_UUID "\"}"},
    {WEB_ADDRESS, "GET", "/openstack/2015-10-15/meta_data.json", NOTHING, 200, JSON, "{\"hostname\":\"web\",\"keys\":null,\"launch_index\":0,\"name\":\"web\",\"public_keys\":{},\"uuid\":\"" WEB_UUID "\"}"},
    {WEB_ADDRESS, "GET", "/openstack/latest/network_data.json", NOTHING, 200, JSON, "{\"networks\":[],\"services\":[]}"},
    {WEB_ADDRESS, "GET", "/openstack/latest/vendor_data.json", NOTHING, 200, JSON, "{}"},
    {WEB_ADDRESS, "GET", "/openstack/latest/user_data", NOTHING, 200, "text/yaml", ""},
    {WEB_ADDRESS, "GET", "/openstack/latest/password", NOTHING, 404, TEXT, "not found\n"},
    {WEB_ADDRESS, "GET", "/openstack/latest/", NOTHING, 404, TEXT, "not found\n"},
    {DB_ADDRESS, "GET", "/openstack", NOTHING, 404, TEXT, "no MetaDataOpenStack for " DB_UUID "\n"},
    {ODD_ADDRESS, "GET", "/openstack", NOTHING, 501, TEXT, "no AppNetworkConfig for " ODD_UUID "\n"},
    {NOBODY, "GET", "/openstack/latest/user_data", NOTHING, 501, TEXT, "no AppNetworkStatus for 10.1.0.99:40000\n"},
    {WEB_ADDRESS, "GET", "/openstackx", NOTHING, 404, TEXT, "404 page not found\n"},

    {WEB_ADDRESS, "GET", "/", NOTHING, 404, TEXT, "404 page not found\n"},
    {WEB_ADDRESS, "GET", "/eve/v1/hostname/", NOTHING, 404, TEXT, "404 page not found\n"},
    {WEB_ADDRESS, "GET", "/eve/v1/Hostname", NOTHING, 404, TEXT, "404 page not found\n"},
    {WEB_ADDRESS, "POST", "/nothing", NOTHING, 404, TEXT, "404 page not found\n"},
    {WEB_ADDRESS, "HEAD", "/eve/v1/hostname", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "DELETE", "/eve/v1/hostname", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/kubeconfig", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/app/appCustomStatus", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/tpm/signer", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "PUT", "/openstack/latest/user_data", NOTHING, 405, NULL, ""},
    {WEB_ADDRESS, "GET", "/eve/v1/hostname", READINESS, 503, TEXT, "Service Unavailable\n"},
};
/* clang-format on */

static void lose(struct device *d, enum lack lack)
{
    d->is_not_ready = lack == READINESS;
    d->has_no_documents = lack == DOCUMENTS;
    d->has_no_network = lack == NETWORK;
    d->has_no_ports = lack == PORTS;
    d->fails_tpm = lack == TPM;
}

static void check(struct desk *d, const struct row *row, size_t n_piece)
{
    struct arena *a = d->device.arena;
    lose(&d->device, row->lack);
    struct str request =
        arena_printf(a, "%s %s HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", row->method, row->path);
    (void) desk_ask(d, row->address, request, n_piece);
    struct str type = desk_header(d, "Content-Type"), body = desk_body(d);
    if (desk_status(d) != row->status || !str_is(body, row->body))
        fail_msg("%s %s from %s: got %d \"%.*s\", expected %d \"%s\"", row->method, row->path,
                 row->address, desk_status(d), STR_ARG(body), row->status, row->body);
    if (!str_is(type, row->type ? row->type : "") && !(row->type == NULL && !type.p))
        fail_msg("%s %s: type is \"%.*s\"", row->method, row->path, STR_ARG(type));
    assert_str(desk_header(d, "Connection"), "close");
    struct str length = desk_header(d, "Content-Length");
    if (row->status == 204)
        assert_null(length.p);
    else
        assert_str(length, arena_printf(a, "%zu", body.n).p);
}

TEST(every_path_answers_as_described)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(rows); i++)
        check(&d, &rows[i], 0);
    desk_done(&d);
}

TEST(a_request_may_come_byte_by_byte)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(rows); i++)
        check(&d, &rows[i], 1);
    desk_done(&d);
}

TEST(an_answer_of_405_says_what_is_allowed)
{
    struct desk d;
    desk_init(&d);
    (void) desk_ask(&d, WEB_ADDRESS, STR("PUT /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    assert_str(desk_header(&d, "Allow"), "POST");
    (void) desk_ask(&d, WEB_ADDRESS,
                    STR("PUT /eve/v1/tpm/activatecredential/ HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    assert_str(desk_header(&d, "Allow"), "GET, POST");
    desk_done(&d);
}

/* clang-format off */
static const struct {
    const char *request;
    int status;
} refused[] = {
    {"GET /eve/v1/hostname HTTP/1.1\r\n\r\n", 400},                            /* no host */
    {"GET /eve/v1/hostname HTTP/1.0\r\n\r\n", 200},                            /* needs none */
    {"GET /eve/v1/hostname HTTP/2.0\r\nHost: x\r\n\r\n", 505},
    {"GET  /eve/v1/hostname HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET hostname HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"\x16\x03\x01 junk of TLS\r\n\r\n", 400},
    {"GET /eve/v1/hostname HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n", 417},
    {"POST /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
};
/* clang-format on */

TEST(what_is_no_request_is_refused)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(refused); i++) {
        (void) desk_ask(&d, WEB_ADDRESS, str_of(refused[i].request), 0);
        if (desk_status(&d) != refused[i].status)
            fail_msg("%s: got %d, expected %d", refused[i].request, desk_status(&d),
                     refused[i].status);
    }
    desk_done(&d);
}

TEST(heads_have_a_limit)
{
    struct desk d;
    desk_init(&d);
    BUF_AUTO request = {0};
    buf_append_str(&request, STR("GET /eve/v1/hostname HTTP/1.1\r\nHost: x\r\nA: "));
    for (size_t i = 0; i < MSRV_MAX_HEADER_BYTES; i++)
        buf_append_char(&request, 'a');
    (void) desk_ask(&d, WEB_ADDRESS, buf_str(&request), 100);
    assert_int_equal(desk_status(&d), 431);
    buf_reset(&request);
    buf_append_str(&request, STR("GET /eve/v1/hostname HTTP/1.1\r\nHost: x\r\n"));
    for (size_t i = 0; i < MSRV_MAX_HEADERS; i++)
        buf_printf(&request, "a%zu: b\r\n", i);
    (void) desk_ask(&d, WEB_ADDRESS, buf_str(&request), 0);
    assert_int_equal(desk_status(&d), 431);
    desk_done(&d);
}

/* ---- the rate of /metrics/ ------------------------------------------------------------------ */

static bool is_proxied(struct desk *d, const char *address)
{
    return str_is(desk_ask(d, address, STR("GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n"), 0),
                  "(proxied)");
}

TEST(metrics_have_a_rate_for_each_address)
{
    struct desk d;
    desk_init(&d);
    for (int i = 0; i < 10; i++)
        assert_true(is_proxied(&d, WEB_ADDRESS));
    assert_false(is_proxied(&d, WEB_ADDRESS));
    assert_int_equal(desk_status(&d), 429);
    assert_str(desk_body(&d), "Too Many Requests\n");
    assert_true(is_proxied(&d, NOBODY));
    d.device.clock.now_us += 2000000;
    assert_true(is_proxied(&d, WEB_ADDRESS));
    assert_true(is_proxied(&d, WEB_ADDRESS));
    assert_false(is_proxied(&d, WEB_ADDRESS));
    desk_done(&d);
}

TEST(a_new_rate_applies_at_once)
{
    struct desk d;
    desk_init(&d);
    assert_true(is_proxied(&d, WEB_ADDRESS));
    msrv_set_rate(d.msrv, &(struct msrv_rate){.per_second = 0, .burst = 2, .idle_timeout_s = 60});
    assert_true(is_proxied(&d, WEB_ADDRESS));
    assert_true(is_proxied(&d, WEB_ADDRESS));
    assert_false(is_proxied(&d, WEB_ADDRESS));
    d.device.clock.now_us += (int64_t) 61 * 1000000;
    assert_true(is_proxied(&d, WEB_ADDRESS)); /* was forgotten */
    desk_done(&d);
}

TEST(visitors_are_bounded)
{
    struct visitors v;
    visitors_init(&v);
    for (int i = 0; i < 3 * MSRV_MAX_VISITORS; i++) {
        char address[16];
        int n = snprintf(address, sizeof(address), "a%d", i);
        assert_true(visitors_admit(&v, str_range(address, (size_t) n), i));
        assert_true(v.by_address.n_items <= MSRV_MAX_VISITORS);
    }
    visitors_done(&v);
}
