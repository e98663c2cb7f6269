/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fixture.h"
#include "net/net_internal.h"
#include "test.h"

#define MIB ((size_t) 1024 * 1024)
static const struct client_options plain = {0};

struct writing {
    struct connection *connection;
    const char *p;
    size_t n, n_pieces, pending_after;
    bool closes, after_flush;
};

/* Writes in pieces within one turn, then perhaps closes. */
static void run_writing(void *arg)
{
    struct writing *w = arg;
    for (size_t i = 0; i < w->n_pieces; i++)
        connection_write(w->connection, w->p + i * (w->n / w->n_pieces), w->n / w->n_pieces);
    w->pending_after = stream_pending(w->connection->stream);
    if (w->closes)
        connection_close(w->connection, w->after_flush);
}

static void write_on_loop(struct writing *w)
{
    w->n_pieces = MAX(w->n_pieces, (size_t) 1);
    server_call(w->connection->server, w->connection->loop, run_writing, w);
}

static char *pattern(size_t n)
{
    char *p = mem_alloc(n);
    fill_pattern(p, n);
    return p;
}

/* ---- bytes in and out ----------------------------------------------------------------------- */

TEST(echo_works_over_tls_1_2_and_1_3)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
        struct server s;
        assert_true(server_start(&s, &(struct server_options){.echoes = true}));
        struct client c;
        assert_true(client_open(&c, s.port, &(struct client_options){.max_version = versions[i]}));
        assert_int_equal(SSL_version(c.ssl), versions[i]);
        client_send(&c, "hello", 5);
        char back[6] = "";
        assert_int_equal(client_receive(&c, back, 5), 5);
        assert_string_equal(back, "hello");
        assert_string_equal(server_connection(&s, 0)->address, "127.0.0.1");
        client_close(&c);
        server_stop(&s);
    }
}

TEST(a_megabyte_comes_back_unchanged)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    char *sent = pattern(MIB), *back = mem_zalloc(MIB);
    client_send(&c, sent, MIB);
    assert_int_equal(client_receive(&c, back, MIB), MIB);
    assert_memory_equal(sent, back, MIB);
    mem_free(sent);
    mem_free(back);
    client_close(&c);
    server_stop(&s);
}

TEST(small_writes_of_a_turn_become_one_record)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    char *bytes = pattern(1000);
    struct writing w = {server_connection(&s, 0), bytes, 1000, .n_pieces = 100};
    write_on_loop(&w);
    assert_int_equal(w.pending_after, 1000);
    /* SSL_read() gives at most one record. */
    char got[2000];
    assert_int_equal(SSL_read(c.ssl, got, sizeof(got)), 1000);
    assert_memory_equal(got, bytes, 1000);
    mem_free(bytes);
    client_close(&c);
    server_stop(&s);
}

TEST(what_is_written_before_the_handshake_goes_out_after_it)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.greeting = "welcome"}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    char got[8] = "";
    assert_int_equal(client_receive(&c, got, 7), 7);
    assert_string_equal(got, "welcome");
    client_close(&c);
    server_stop(&s);
}

/* A key update makes the server's SSL_read() write. */
TEST(key_update_by_the_client_is_answered)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    for (int i = 0; i < 10; i++) {
        assert_int_equal(SSL_key_update(c.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        client_send(&c, "x", 1);
        char back = 0;
        assert_int_equal(client_receive(&c, &back, 1), 1);
        assert_int_equal(back, 'x');
    }
    client_close(&c);
    server_stop(&s);
}

/* ---- back-pressure -------------------------------------------------------------------------- */

TEST(a_slow_reader_makes_output_pend_until_it_reads)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.receive_buffer_bytes = 4096}));
    size_t n = 24 * MIB;
    char *bytes = pattern(n);
    struct connection *conn = server_connection(&s, 0);
    struct writing w = {conn, bytes, n};
    write_on_loop(&w);
    assert_int_equal(w.pending_after, n);
    assert_true(connection_pending(conn) > 0);

    /* More while it is blocked keeps its place. */
    struct writing more = {conn, "tail", 4};
    write_on_loop(&more);
    assert_int_equal(connection_counts(conn).n_drained, 0);

    char *got = mem_zalloc(n + 4);
    assert_int_equal(client_receive(&c, got, n + 4), n + 4);
    assert_memory_equal(got, bytes, n);
    assert_memory_equal(got + n, "tail", 4);
    connection_wait_drained(conn, 1);
    assert_int_equal(connection_pending(conn), 0);
    mem_free(bytes);
    mem_free(got);
    client_close(&c);
    server_stop(&s);
}

TEST(each_drain_is_told)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    for (int i = 1; i <= 3; i++) {
        struct writing w = {conn, "x", 1};
        write_on_loop(&w);
        connection_wait_drained(conn, i);
    }
    assert_int_equal(connection_counts(conn).n_drained, 3);
    client_close(&c);
    server_stop(&s);
}

TEST(a_paused_stream_reads_nothing_until_resumed)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    connection_pause(conn, true);
    client_send(&c, "first", 5);
    client_send(&c, "second", 6);
    /* Two turns that poll: the input is there by then and must be left alone. */
    (void) connection_pending(conn);
    (void) connection_pending(conn);
    assert_int_equal(connection_counts(conn).n_input, 0);
    connection_pause(conn, false);
    connection_wait_input(conn, 11);
    assert_str(buf_str(&conn->input), "firstsecond");
    client_close(&c);
    server_stop(&s);
}

/* A request that comes in one segment with the end of the handshake is read together with it: then
 * it is inside OpenSSL and no event tells. */
TEST(input_that_came_with_the_handshake_is_found)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.is_corked = true}));
    client_send(&c, "early", 5);
    client_uncork(&c);
    connection_wait_input(server_connection(&s, 0), 5);
    client_close(&c);
    server_stop(&s);
}

TEST(input_inside_openssl_is_found_when_resumed)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.starts_paused = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.is_corked = true}));
    client_send(&c, "early", 5);
    client_uncork(&c);
    struct connection *conn = server_connection(&s, 0);
    (void) connection_pending(conn);
    assert_int_equal(connection_counts(conn).n_input, 0);
    connection_pause(conn, false);
    connection_wait_input(conn, 5);
    client_close(&c);
    server_stop(&s);
}

/* Waits until the server's kernel has it all. */
static void wait_until_delivered(struct client *c)
{
    for (int n_unacknowledged = 1; n_unacknowledged;) {
        sched_yield();
        assert_int_equal(ioctl(c->fd, SIOCOUTQ, &n_unacknowledged), 0);
    }
}

/* A turn's reading ends in the middle of the second record: its rest is inside OpenSSL, the socket
 * empty. */
TEST(input_beyond_what_a_turn_reads_is_found)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.starts_paused = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    size_t n = (size_t) 2 * 16 * 1024;
    assert_true(n > STREAM_READ_BYTES && n / 2 < STREAM_READ_BYTES);
    char *bytes = pattern(n);
    client_send(&c, bytes, n);
    wait_until_delivered(&c);
    struct connection *conn = server_connection(&s, 0);
    connection_pause(conn, false);
    connection_wait_input(conn, n);
    assert_memory_equal(conn->input.p, bytes, n);
    mem_free(bytes);
    client_close(&c);
    server_stop(&s);
}

TEST(pausing_at_each_piece_loses_nothing)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.pauses_at_input = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    size_t n = MIB / 2 + 100;
    char *bytes = pattern(n);
    client_send(&c, bytes, n);
    struct connection *conn = server_connection(&s, 0);
    int n_resumed = 0;
    for (size_t seen = 0; seen < n; n_resumed++) {
        connection_wait_input(conn, seen + 1);
        seen = connection_counts(conn).n_input;
        connection_pause(conn, false);
    }
    assert_true(n_resumed > 1);
    assert_memory_equal(conn->input.p, bytes, n);
    mem_free(bytes);
    client_close(&c);
    server_stop(&s);
}

/* The close_notify arrives together with the last bytes, while paused. */
TEST(the_end_is_told_after_resuming)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.pauses_at_input = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    client_send(&c, "bye", 3);
    client_close(&c);
    connection_wait_input(conn, 3);
    (void) connection_pending(conn);
    assert_int_equal(connection_counts(conn).n_closed, 0);
    connection_pause(conn, false);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, 0);
    server_stop(&s);
}

/* ---- closing -------------------------------------------------------------------------------- */

TEST(closing_after_flush_sends_everything_then_close_notify)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.receive_buffer_bytes = 4096}));
    size_t n = 8 * MIB;
    char *bytes = pattern(n), *got = mem_zalloc(n);
    struct connection *conn = server_connection(&s, 0);
    struct writing w = {conn, bytes, n, .closes = true, .after_flush = true};
    write_on_loop(&w);
    assert_int_equal(connection_counts(conn).n_closed, 0);
    assert_int_equal(client_receive(&c, got, n), n);
    assert_memory_equal(got, bytes, n);
    assert_int_equal(client_read_end(&c), SSL_ERROR_ZERO_RETURN);
    client_close(&c);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, 0);
    assert_false(conn->closed_inside_call);
    mem_free(bytes);
    mem_free(got);
    server_stop(&s);
}

TEST(closing_after_flush_of_nothing_says_goodbye_at_once)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    struct writing w = {conn, "", 0, .closes = true, .after_flush = true};
    write_on_loop(&w);
    assert_int_equal(client_read_end(&c), SSL_ERROR_ZERO_RETURN);
    client_close(&c);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, 0);
    server_stop(&s);
}

/* The client is still sending when the answer is complete: a plain close would reset the connection
 * and the client would lose the answer. */
TEST(an_answer_survives_input_that_was_never_read)
{
    struct server s;
    size_t n = 100 * 1000;
    assert_true(server_start(&s, &(struct server_options){.answers_and_closes_bytes = n}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    char *upload = pattern(4 * MIB), *answer = pattern(n), *got = mem_zalloc(n);
    client_send(&c, upload, 4 * MIB);
    assert_int_equal(client_receive(&c, got, n), n);
    assert_memory_equal(got, answer, n);
    assert_int_equal(client_read_end(&c), SSL_ERROR_ZERO_RETURN);
    client_close(&c);
    connection_wait_closed(server_connection(&s, 0));
    mem_free(upload);
    mem_free(answer);
    mem_free(got);
    server_stop(&s);
}

TEST(closing_at_once_drops_what_is_queued)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    struct writing w = {conn, "never", 5, .closes = true};
    write_on_loop(&w);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, 0);
    char got[8];
    assert_int_equal(client_receive(&c, got, 5), 0);
    client_close(&c);
    server_stop(&s);
}

static void run_close_in_every_way(void *arg)
{
    struct connection *c = arg;
    connection_close(c, true);
    connection_write(c, "late", 4);
    connection_close(c, true);
    connection_close(c, false);
    connection_close(c, false);
    stream_pause_reading(c->stream, true);
    stream_pause_reading(c->stream, false);
    connection_write(c, "later", 5);
}

TEST(closing_again_and_writing_after_it_do_no_harm)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    server_call(&s, conn->loop, run_close_in_every_way, conn);
    connection_wait_closed(conn);
    char got[8];
    assert_int_equal(client_receive(&c, got, 4), 0);
    client_close(&c);
    server_stop(&s);
}

TEST(the_peers_end_is_orderly_with_close_notify_and_an_error_without)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client orderly, abrupt;
    assert_true(client_open(&orderly, s.port, &plain));
    assert_true(client_open(&abrupt, s.port, &plain));
    struct connection *first = server_connection(&s, 0), *second = server_connection(&s, 1);
    client_close(&orderly);
    connection_wait_closed(first);
    assert_int_equal(first->error, 0);
    client_abort(&abrupt);
    connection_wait_closed(second);
    assert_int_equal(second->error, -ECONNRESET);
    server_stop(&s);
}

TEST(a_reset_while_output_pends_closes_with_an_error)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.receive_buffer_bytes = 4096}));
    struct connection *conn = server_connection(&s, 0);
    char *bytes = pattern(24 * MIB);
    struct writing w = {conn, bytes, 24 * MIB};
    write_on_loop(&w);
    /* Closing with unread input resets. */
    client_abort(&c);
    connection_wait_closed(conn);
    assert_true(conn->error < 0);
    assert_int_equal(conn->n_drained, 0);
    mem_free(bytes);
    server_stop(&s);
}

/* Takes the five seconds a peer is given to read. */
TEST(flushing_to_a_peer_that_does_not_read_ends)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &(struct client_options){.receive_buffer_bytes = 4096}));
    struct connection *conn = server_connection(&s, 0);
    char *bytes = pattern(24 * MIB);
    struct writing w = {conn, bytes, 24 * MIB, .closes = true, .after_flush = true};
    write_on_loop(&w);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, -ETIMEDOUT);
    mem_free(bytes);
    client_close(&c);
    server_stop(&s);
}

/* The client has been told goodbye and keeps its side open all the same. */
TEST(lingering_for_a_peer_that_does_not_close_ends)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    struct connection *conn = server_connection(&s, 0);
    struct writing w = {conn, "x", 1, .closes = true, .after_flush = true};
    write_on_loop(&w);
    connection_wait_closed(conn);
    assert_int_equal(conn->error, 0);
    client_close(&c);
    server_stop(&s);
}
