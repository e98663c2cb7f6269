/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "fixture.h"
#include "test.h"

static const struct client_options plain = {0};

/* ---- client certificates -------------------------------------------------------------------- */

/* Connects with an identity and returns what the server made of it. */
static struct connection *connect_as(struct server *s, const struct identity *i, int max_version)
{
    struct client c;
    size_t index = s->n_connections;
    assert_true(client_open(&c, s->port,
                            &(struct client_options){.identity = i, .max_version = max_version}));
    struct connection *conn = server_connection(s, index);
    client_close(&c);
    connection_wait_closed(conn);
    return conn;
}

TEST(a_client_certificate_of_our_authority_is_known_by_name)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct identity jane = identity_client(&s.ca, "jane", "system:masters", 1);
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
        struct connection *conn = connect_as(&s, &jane, versions[i]);
        assert_true(conn->has_certificate);
        assert_false(conn->certificate_rejected);
        assert_string_equal(conn->common_name, "jane");
        assert_int_equal(conn->n_organizations, 1);
        assert_string_equal(conn->organization, "system:masters");
    }
    identity_done(&jane);
    server_stop(&s);
}

TEST(no_certificate_is_no_identity)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct connection *conn = connect_as(&s, NULL, 0);
    assert_false(conn->has_certificate);
    assert_false(conn->certificate_rejected);
    assert_string_equal(conn->common_name, "");
    server_stop(&s);
}

TEST(a_certificate_that_does_not_verify_is_told_and_does_not_end_the_handshake)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct identity other_ca = identity_ca("test-ca"); /* same name, another key */
    struct identity bad[] = {
        identity_client(&other_ca, "jane", "system:masters", 1),
        identity_client(&s.ca, "expired", "system:masters", -1),
        identity_server(&s.ca, "not-for-clients"),
        identity_ca("self-signed"),
    };
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < N_ELEMENTS(bad) * N_ELEMENTS(versions); i++) {
        struct connection *conn = connect_as(&s, &bad[i / 2], versions[i % 2]);
        assert_true(conn->is_open);
        assert_false(conn->has_certificate);
        assert_true(conn->certificate_rejected);
        assert_string_equal(conn->common_name, "");
    }
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        identity_done(&bad[i]);
    identity_done(&other_ca);
    server_stop(&s);
}

TEST(without_client_ca_no_certificate_is_asked_for)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.has_no_client_ca = true}));
    struct identity jane = identity_client(&s.ca, "jane", NULL, 1);
    struct connection *conn = connect_as(&s, &jane, 0);
    assert_false(conn->has_certificate);
    assert_false(conn->certificate_rejected);
    identity_done(&jane);
    server_stop(&s);
}

/* ---- resumption ----------------------------------------------------------------------------- */

/* A whole exchange, so that the ticket has come; the caller frees the session. */
static SSL_SESSION *exchange(struct server *s, const struct client_options *o, bool is_resumed,
                             struct connection **ret_connection)
{
    struct client c;
    size_t index = s->n_connections;
    assert_true(client_open(&c, s->port, o));
    assert_int_equal(SSL_session_reused(c.ssl), is_resumed);
    client_send(&c, "x", 1);
    char back = 0;
    assert_int_equal(client_receive(&c, &back, 1), 1);
    SSL_SESSION *session = c.session ? c.session : SSL_get1_session(c.ssl);
    c.session = NULL;
    struct connection *conn = server_connection(s, index);
    client_close(&c);
    connection_wait_closed(conn);
    *ret_connection = conn;
    return session;
}

/* Two loops: the ticket of one is good on the other. */
TEST(a_resumed_session_keeps_its_identity_on_any_loop)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
        struct server s;
        assert_true(server_start(&s, &(struct server_options){.echoes = true, .n_loops = 2}));
        struct identity jane = identity_client(&s.ca, "jane", "devs", 1);
        struct client_options o = {.identity = &jane, .max_version = versions[i]};
        struct connection *first = NULL, *second = NULL, *third = NULL;
        SSL_SESSION *session = exchange(&s, &o, false, &first);
        /* Occupies the first loop. */
        struct client idle;
        assert_true(client_open(&idle, s.port, &plain));
        o.session = session;
        SSL_SESSION *again = exchange(&s, &o, true, &second);
        o.session = again;
        SSL_SESSION *last = exchange(&s, &o, true, &third);
        assert_ptr_not_equal(first->loop, second->loop);
        struct connection *resumed[] = {second, third};
        for (size_t k = 0; k < N_ELEMENTS(resumed); k++) {
            assert_true(resumed[k]->has_certificate);
            assert_string_equal(resumed[k]->common_name, "jane");
            assert_string_equal(resumed[k]->organization, "devs");
        }
        SSL_SESSION_free(session);
        SSL_SESSION_free(again);
        SSL_SESSION_free(last);
        client_close(&idle);
        identity_done(&jane);
        server_stop(&s);
    }
}

TEST(a_resumed_session_keeps_its_rejection)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct identity mallory = identity_ca("mallory");
    struct client_options o = {.identity = &mallory};
    struct connection *first = NULL, *second = NULL;
    SSL_SESSION *session = exchange(&s, &o, false, &first);
    o.session = session;
    SSL_SESSION *again = exchange(&s, &o, true, &second);
    assert_true(second->certificate_rejected);
    assert_false(second->has_certificate);
    SSL_SESSION_free(session);
    SSL_SESSION_free(again);
    identity_done(&mallory);
    server_stop(&s);
}

/* Where any certificate is taken, its bytes come back with the session, and nobody else's. */
TEST(a_resumed_session_keeps_a_certificate_that_nobody_judged)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
        struct server s;
        assert_true(
            server_start(&s, &(struct server_options){.echoes = true, .takes_any_client = true}));
        struct identity box = identity_ca("box");
        struct client_options o = {.identity = &box, .max_version = versions[i]};
        ARENA_AUTO a = arena_new();
        unsigned char print[SHA256_BYTES];
        pki_sha256(pki_cert_der(a, box.cert), print);
        for (int life = 0; life < 4; life++) {
            struct connection *conn = NULL;
            SSL_SESSION *session = exchange(&s, &o, life > 0, &conn);
            assert_false(conn->has_certificate);
            assert_memory_equal(conn->certificate_print, print, sizeof(print));
            SSL_SESSION_free(o.session);
            o.session = session;
        }
        struct connection *conn = NULL;
        SSL_SESSION_free(exchange(&s, &plain, false, &conn));
        assert_int_equal(conn->n_certificate_bytes, 0);
        SSL_SESSION_free(o.session);
        identity_done(&box);
        server_stop(&s);
    }
}

static void reload(struct server *s)
{
    char *error = NULL;
    if (tls_config_reload(s->tls, &error) < 0)
        fail_msg("reload: %s", error);
}

TEST(tickets_end_when_the_client_authority_changes_and_not_before)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct identity jane = identity_client(&s.ca, "jane", NULL, 1);
    struct identity other_ca = identity_ca("other-ca");
    struct client_options o = {.identity = &jane};
    struct connection *conn = NULL;
    SSL_SESSION *session = exchange(&s, &o, false, &conn);

    reload(&s);
    o.session = session;
    SSL_SESSION *again = exchange(&s, &o, true, &conn);
    assert_true(conn->has_certificate);

    server_install(&s, &s.server_identity, &other_ca);
    reload(&s);
    o.session = again;
    SSL_SESSION *last = exchange(&s, &o, false, &conn);
    assert_false(conn->has_certificate);
    assert_true(conn->certificate_rejected);
    SSL_SESSION_free(session);
    SSL_SESSION_free(again);
    SSL_SESSION_free(last);
    identity_done(&jane);
    identity_done(&other_ca);
    server_stop(&s);
}

/* ---- reload --------------------------------------------------------------------------------- */

static void assert_served_name(struct server *s, const char *expected)
{
    struct client c;
    char name[64];
    assert_true(client_open(&c, s->port, &plain));
    client_server_name(&c, name, sizeof(name));
    assert_string_equal(name, expected);
    client_close(&c);
}

TEST(reload_serves_the_new_certificate_and_leaves_connections_alone)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true, .n_loops = 2}));
    struct client old;
    assert_true(client_open(&old, s.port, &plain));
    assert_served_name(&s, "first");
    struct identity second = identity_server(&s.ca, "second");
    server_install(&s, &second, &s.ca);
    assert_served_name(&s, "first");
    reload(&s);
    for (int i = 0; i < 4; i++)
        assert_served_name(&s, "second");
    char back = 0;
    client_send(&old, "o", 1);
    assert_int_equal(client_receive(&old, &back, 1), 1);
    client_close(&old);
    identity_done(&second);
    server_stop(&s);
}

TEST(a_reload_that_fails_keeps_the_old)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct identity second = identity_server(&s.ca, "second");
    assert_int_equal(pki_cert_save(second.cert, s.certificate_path), 0);
    char *error = NULL;
    assert_true(tls_config_reload(s.tls, &error) < 0);
    assert_non_null(strstr(error, s.key_path));
    mem_free(error);
    assert_served_name(&s, "first");
    identity_done(&second);
    server_stop(&s);
}

/* ---- configuration errors ------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

TEST(bad_files_are_refused_by_name)
{
    struct server s; /* for its files */
    assert_true(server_start(&s, &(struct server_options){0}));
    char damaged[96], empty[96];
    snprintf(damaged, sizeof(damaged), "%s/damaged", s.directory);
    snprintf(empty, sizeof(empty), "%s/empty", s.directory);
    write_text(damaged, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write_text(empty, "");
    const struct {
        struct tls_files files;
        const char *named;
        int error;
    } cases[] = {
        {{"/nonexistent", s.key_path, NULL}, "certificate '/nonexistent': No such file", -ENOENT},
        {{s.certificate_path, "/nonexistent", NULL}, "key '/nonexistent': No such file", -ENOENT},
        {{s.certificate_path, s.key_path, "/nonexistent"}, "client CA '/nonexistent'", -ENOENT},
        {{damaged, s.key_path, NULL}, damaged, -EBADMSG},
        {{empty, s.key_path, NULL}, empty, -EBADMSG},
        {{s.certificate_path, empty, NULL}, empty, -EBADMSG},
        {{s.certificate_path, s.certificate_path, NULL}, s.certificate_path, -EBADMSG},
        {{s.certificate_path, s.key_path, empty}, empty, -EBADMSG},
        {{s.ca_path, s.key_path, NULL}, "key values mismatch", -EBADMSG},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct tls_config *config = NULL;
        char *error = NULL;
        assert_int_equal(tls_config_new(&cases[i].files, &config, &error), cases[i].error);
        assert_null(config);
        if (!strstr(error, cases[i].named))
            fail_msg("\"%s\" does not name \"%s\"", error, cases[i].named);
        mem_free(error);
    }
    remove(damaged);
    remove(empty);
    server_stop(&s);
}

/* ---- ALPN ----------------------------------------------------------------------------------- */

TEST(alpn_prefers_http_2_whatever_the_order)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    static const struct {
        struct str offered;
        const char *chosen; /* NULL: the handshake fails */
    } cases[] = {
        {{"\x02h2\x08http/1.1", 12}, "h2"}, {{"\x08http/1.1\x02h2", 12}, "h2"},
        {{"\x08http/1.1", 9}, "http/1.1"},  {{"\x06spdy/3\x08http/1.1", 16}, "http/1.1"},
        {{"\x08http/1.0", 9}, ""},          {{NULL, 0}, ""},
        {{"\x06spdy/3", 7}, NULL},          {{"\x03h2c", 4}, NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct client c;
        bool ok = client_open(&c, s.port, &(struct client_options){.alpn = cases[i].offered});
        assert_int_equal(ok, cases[i].chosen != NULL);
        struct connection *conn = server_connection(&s, i);
        assert_int_equal(conn->is_open, ok);
        if (ok)
            assert_string_equal(conn->alpn, cases[i].chosen);
        client_close(&c);
    }
    server_stop(&s);
}

TEST(tls_1_1_is_refused)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_false(client_open(&c, s.port, &(struct client_options){.max_version = TLS1_1_VERSION}));
    struct connection *conn = server_connection(&s, 0);
    assert_false(conn->is_open);
    assert_int_equal(conn->error, -EPROTO);
    client_close(&c);
    server_stop(&s);
}

/* ---- after the handshake -------------------------------------------------------------------- */

static void echo_once(struct client *c)
{
    char back = 0;
    client_send(c, "x", 1);
    assert_int_equal(client_receive(c, &back, 1), 1);
}

TEST(negotiating_anew_is_refused)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.max_version = TLS1_2_VERSION}));
    echo_once(&c);
    assert_int_equal(SSL_renegotiate(c.ssl), 1);
    (void) SSL_do_handshake(c.ssl);
    char byte = 0;
    assert_true(SSL_read(c.ssl, &byte, 1) <= 0);
    client_abort(&c);
    /* Others are served. */
    assert_true(client_open(&c, s.port, &plain));
    echo_once(&c);
    client_close(&c);
    server_stop(&s);
}

static bool update_key(struct client *c)
{
    char back = 0;
    return SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_write(c->ssl, "x", 1) == 1 && SSL_read(c->ssl, &back, 1) == 1;
}

TEST(new_keys_are_taken_but_not_without_end)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    int n = 0;
    while (n < 1000 && update_key(&c))
        n++;
    assert_in_range(n, 60, 64);
    connection_wait_closed(server_connection(&s, 0));
    client_abort(&c);
    server_stop(&s);
}
