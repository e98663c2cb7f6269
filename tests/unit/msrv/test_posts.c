/* SPDX-License-Identifier: Apache-2.0 */
/* What applications send, at its limits. */
#include "test.h"

#include "base/base64.h"
#include "desk.h"

struct post {
    const char *address, *path, *type; /* type NULL: no header */
    size_t n_body;
    bool is_chunked;
    int status;
};

#define KUBECONFIG "/eve/v1/kubeconfig"
#define STATUS "/eve/v1/app/appCustomStatus"
#define SIGNER "/eve/v1/tpm/signer"
#define ACTIVATE "/eve/v1/tpm/activatecredential/"
#define JSON "application/json"

/* clang-format off */
static const struct post posts[] = {
    {WEB_ADDRESS, KUBECONFIG, JSON, 0, false, 200},
    {WEB_ADDRESS, KUBECONFIG, JSON, 1, false, 200},
    {WEB_ADDRESS, KUBECONFIG, JSON, 32768, false, 200},
    {WEB_ADDRESS, KUBECONFIG, JSON, 32768, true, 200},
    {WEB_ADDRESS, KUBECONFIG, JSON, 32769, false, 500},
    {WEB_ADDRESS, KUBECONFIG, JSON, 32769, true, 500},
    {WEB_ADDRESS, KUBECONFIG, JSON, 35841, false, 500},
    {WEB_ADDRESS, KUBECONFIG, JSON, 65537, false, 500},
    {WEB_ADDRESS, KUBECONFIG, JSON, 1 << 20, false, 500},
    {WEB_ADDRESS, KUBECONFIG, JSON, 1 << 20, true, 500},
    {WEB_ADDRESS, KUBECONFIG, "application/json; charset=utf-8", 10, false, 415},
    {WEB_ADDRESS, KUBECONFIG, "Application/JSON", 10, false, 415},
    {WEB_ADDRESS, KUBECONFIG, NULL, 10, false, 415},
    {WEB_ADDRESS, KUBECONFIG, "text/plain", 1 << 20, false, 415},
    {NOBODY, KUBECONFIG, JSON, 10, false, 204},
    {NOBODY, KUBECONFIG, JSON, 32769, false, 500},
    {NOBODY, KUBECONFIG, "text/plain", 10, false, 415},
    {DB_ADDRESS, STATUS, JSON, 32768, false, 200},
    {DB_ADDRESS, STATUS, JSON, 32769, false, 500},
    {NOBODY, STATUS, JSON, 10, false, 204},
    {WEB_ADDRESS, SIGNER, NULL, 65535, false, 200},
    {WEB_ADDRESS, SIGNER, NULL, 65535, true, 200},
    {WEB_ADDRESS, SIGNER, NULL, 65536, false, 400},
    {WEB_ADDRESS, SIGNER, NULL, 1 << 20, true, 400},
    {NOBODY, SIGNER, NULL, 10, false, 403},
    {NOBODY, SIGNER, NULL, 65536, false, 400},
    {NOBODY, ACTIVATE, NULL, 10, false, 500}, /* no JSON */
    {NOBODY, ACTIVATE, NULL, 65536, false, 400},
    {NOBODY, "/metrics/", NULL, 65537, false, 413},
    {NOBODY, "/eve/v1/hostname", NULL, 1 << 20, false, 405},
};
/* clang-format on */

static void write_post(struct buf *out, const struct post *p)
{
    buf_printf(out, "POST %s HTTP/1.1\r\nHost: 169.254.169.254\r\n", p->path);
    if (p->type)
        buf_printf(out, "Content-Type: %s\r\n", p->type);
    if (p->is_chunked)
        buf_printf(out, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", p->n_body);
    else
        buf_printf(out, "Content-Length: %zu\r\n\r\n", p->n_body);
    memset(buf_reserve(out, p->n_body), 'k', p->n_body);
    out->n += p->n_body;
    if (p->is_chunked)
        buf_append_str(out, STR("\r\n0\r\n\r\n"));
}

TEST(posts_are_held_to_their_limits)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(posts); i++) {
        BUF_AUTO request = {0};
        write_post(&request, &posts[i]);
        size_t n_before = d.device.n_published;
        (void) desk_ask(&d, posts[i].address, buf_str(&request), 1000);
        if (desk_status(&d) != posts[i].status)
            fail_msg("%s of %zu bytes: got %d, expected %d", posts[i].path, posts[i].n_body,
                     desk_status(&d), posts[i].status);
        bool is_published = posts[i].status == 200 && !strstr(posts[i].path, "tpm");
        assert_int_equal(d.device.n_published - n_before, is_published);
    }
    desk_done(&d);
}

TEST(metadata_is_published_under_the_application_and_its_type)
{
    struct desk d;
    desk_init(&d);
    (void) desk_ask(&d, WEB_ADDRESS,
                    STR("POST /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\nContent-Type: "
                        "application/json\r\nContent-Length: 4\r\n\r\n{no}"),
                    0);
    assert_int_equal(desk_status(&d), 200);
    assert_str(desk_body(&d), "");
    assert_str(d.device.published_key, WEB_UUID "-1");
    assert_str(d.device.published,
               "{\"AppInstUUID\":\"" WEB_UUID "\",\"Data\":\"e25vfQ==\",\"Type\":1}");
    (void) desk_ask(&d, DB_ADDRESS,
                    STR("POST /eve/v1/app/appCustomStatus HTTP/1.1\r\nHost: x\r\nContent-Type: "
                        "application/json\r\nContent-Length: 2\r\n\r\n{}"),
                    0);
    assert_str(d.device.published_key, DB_UUID "-2");
    assert_str(d.device.published,
               "{\"AppInstUUID\":\"" DB_UUID "\",\"Data\":\"e30=\",\"Type\":2}");
    d.device.fails_publish = true;
    (void) desk_ask(&d, DB_ADDRESS,
                    STR("POST /eve/v1/app/appCustomStatus HTTP/1.1\r\nHost: x\r\nContent-Type: "
                        "application/json\r\nContent-Length: 2\r\n\r\n{}"),
                    0);
    assert_int_equal(desk_status(&d), 500);
    desk_done(&d);
}

/* base64 inside JSON, base64 once more: it must pass through a packet of pubsub. */
TEST(the_largest_kubeconfig_fits_a_packet)
{
    struct desk d;
    desk_init(&d);
    BUF_AUTO request = {0};
    write_post(&request, &(struct post){.path = KUBECONFIG, .type = JSON, .n_body = 32768});
    (void) desk_ask(&d, WEB_ADDRESS, buf_str(&request), 0);
    assert_int_equal(desk_status(&d), 200);
    struct str twice = base64_encode(d.device.arena, d.device.published, BASE64_STANDARD);
    assert_true(twice.n + d.device.published_key.n + 100 < 65535);
    desk_done(&d);
}

/* ---- proofs --------------------------------------------------------------------------------- */

static void post_text(struct desk *d, const char *path, const char *body)
{
    (void) desk_ask(d, WEB_ADDRESS,
                    arena_printf(d->device.arena,
                                 "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                                 path, strlen(body), body),
                    0);
}

TEST(the_signer_signs_the_bytes_as_they_are)
{
    struct desk d;
    desk_init(&d);
    post_text(&d, SIGNER, "hello");
    assert_int_equal(desk_status(&d), 200);
    assert_str(desk_header(&d, "Content-Type"), "application/x-proto-binary");
    assert_str(desk_body(&d), "signed:5");
    d.device.fails_tpm = true;
    post_text(&d, SIGNER, "hello");
    assert_int_equal(desk_status(&d), 500);
    desk_done(&d);
}

/* clang-format off */
static const struct {
    const char *body;
    int status;
    const char *answer;
} challenges[] = {
    /* data "data", cred "\0\4cred", secret "\0\6secret" */
    {"{\"data\":\"ZGF0YQ==\",\"cred\":\"AARjcmVk\",\"secret\":\"AAZzZWNyZXQ=\"}", 200, "{\"secret\":\"Y3JlZCtzZWNyZXQ=\",\"sig\":\"ZGF0YQ==\"}"},
    {"{\"data\":\"ZGF0YQ==\",\"cred\":\"AA==\",\"secret\":\"AAZzZWNyZXQ=\"}", 500, NULL},
    {"{\"data\":\"ZGF0YQ==\",\"cred\":\"!\",\"secret\":\"AAZzZWNyZXQ=\"}", 500, NULL},
    {"{\"data\":\"ZGF0YQ==\"}", 500, NULL},
    {"[]", 500, NULL},
    {"", 500, NULL},
};
/* clang-format on */

TEST(a_credential_is_activated)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(challenges); i++) {
        post_text(&d, ACTIVATE, challenges[i].body);
        assert_int_equal(desk_status(&d), challenges[i].status);
        assert_str(desk_body(&d), challenges[i].answer ? challenges[i].answer
                                                       : "{\"message\": \"Operation failed\"}");
    }
    d.device.fails_tpm = true;
    post_text(&d, ACTIVATE, challenges[0].body);
    assert_int_equal(desk_status(&d), 500);
    desk_done(&d);
}

TEST(an_unfinished_request_has_no_answer)
{
    struct desk d;
    desk_init(&d);
    assert_str(desk_ask(&d, WEB_ADDRESS,
                        STR("POST /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\nContent-Type: "
                            "application/json\r\nContent-Length: 5\r\n\r\n1234"),
                        0),
               "");
    assert_int_equal(d.device.n_published, 0);
    desk_done(&d);
}
