/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fixture.h"
#include "test.h"

static const struct client_options plain = {0};

static void do_nothing(void *arg)
{
    (void) arg;
}

/* ---- spreading ------------------------------------------------------------------------------ */

#define N_SPREAD 10

TEST(connections_go_to_the_loop_with_the_fewest)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.n_loops = 2, .echoes = true}));
    struct client clients[N_SPREAD];
    size_t n_on_first = 0;
    for (size_t i = 0; i < N_SPREAD; i++) {
        assert_true(client_open(&clients[i], s.port, &plain));
        n_on_first += server_connection(&s, i)->loop == s.loops[0];
    }
    assert_int_equal(n_on_first, N_SPREAD / 2);
    assert_int_equal(listener_connections(s.listener), N_SPREAD);
    for (size_t i = 0; i < N_SPREAD; i++) {
        char back = 0;
        client_send(&clients[i], "x", 1);
        assert_int_equal(client_receive(&clients[i], &back, 1), 1);
    }
    /* The second loop empties: it gets the next ones. */
    for (size_t i = 0; i < N_SPREAD; i++) {
        if (s.connections[i].loop == s.loops[0])
            continue;
        client_close(&clients[i]);
        connection_wait_closed(&s.connections[i]);
        assert_true(client_open(&clients[i], s.port, &plain));
        assert_ptr_equal(server_connection(&s, s.n_connections - 1)->loop, s.loops[1]);
    }
    for (size_t i = 0; i < N_SPREAD; i++)
        client_close(&clients[i]);
    server_stop(&s);
}

/* ---- limits --------------------------------------------------------------------------------- */

/* The third waits in the backlog, its handshake unanswered, until one of the two goes. */
TEST(connections_over_the_limit_wait_for_one_to_go)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.max_connections = 2, .n_loops = 2}));
    struct client first, second, third;
    assert_true(client_open(&first, s.port, &plain));
    assert_true(client_open(&second, s.port, &plain));
    (void) server_connection(&s, 1);
    int fd = client_connect_tcp(s.port, &plain);
    assert_true(fd >= 0);
    /* Two turns of the accepting loop, in which it would have been taken. */
    server_call(&s, s.loops[0], do_nothing, NULL);
    server_call(&s, s.loops[0], do_nothing, NULL);
    assert_int_equal(listener_connections(s.listener), 2);
    assert_int_equal(s.n_connections, 2);
    client_close(&first);
    assert_true(client_handshake(&third, fd, &plain));
    assert_true(server_connection(&s, 2)->is_open);
    assert_true(listener_connections(s.listener) <= 2);
    client_close(&second);
    client_close(&third);
    server_stop(&s);
}

static struct listener_stats stats_of(const struct server *s)
{
    struct listener_stats stats;
    listener_stats(s->listener, &stats);
    return stats;
}

TEST(connections_over_the_limit_of_their_address_are_closed)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.max_connections_per_address = 2}));
    struct client first, second, third;
    assert_true(client_open(&first, s.port, &plain));
    assert_true(client_open(&second, s.port, &plain));
    for (int i = 0; i < 3; i++) {
        assert_false(client_open(&third, s.port, &plain));
        client_abort(&third);
    }
    assert_int_equal(listener_connections(s.listener), 2);
    assert_int_equal(stats_of(&s).n_refused_addresses, 3);
    assert_int_equal(stats_of(&s).n_accepted, 5);
    client_close(&first);
    connection_wait_closed(server_connection(&s, 0));
    assert_true(client_open(&third, s.port, &plain));
    client_close(&second);
    client_close(&third);
    server_stop(&s);
}

/* Silent peers fill the places; whoever comes behind them gets in once they have had their grace.
 */
TEST(silent_handshakes_make_room_for_others)
{
    enum { N_SILENT = 6 };
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.max_handshakes = N_SILENT / 2,
                                                          .n_loops = 2,
                                                          .handshake_timeout_ms = 1000}));
    int silent[N_SILENT];
    for (size_t i = 0; i < N_SILENT; i++)
        silent[i] = client_connect_tcp(s.port, &plain);
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    assert_in_range(stats_of(&s).n_evicted_handshakes, 1, N_SILENT);
    assert_true(server_connection(&s, N_SILENT)->is_open);
    client_close(&c);
    for (size_t i = 0; i < N_SILENT; i++)
        close(silent[i]);
    server_stop(&s);
}

/* They wait for their turn in order, and none is lost. */
TEST(many_handshakes_at_once_are_all_done)
{
    enum { N_AT_ONCE = 40 };
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client all[N_AT_ONCE];
    int fds[N_AT_ONCE];
    for (size_t i = 0; i < N_AT_ONCE; i++)
        fds[i] = client_connect_tcp(s.port, &plain);
    for (size_t i = N_AT_ONCE; i-- > 0;)
        assert_true(client_handshake(&all[i], fds[i], &plain));
    for (size_t i = 0; i < N_AT_ONCE; i++) {
        char back = 0;
        client_send(&all[i], "x", 1);
        assert_int_equal(client_receive(&all[i], &back, 1), 1);
        client_close(&all[i]);
    }
    assert_int_equal(stats_of(&s).n_evicted_handshakes, 0);
    server_stop(&s);
}

TEST(a_handshake_that_does_not_come_is_cut_off)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.handshake_timeout_ms = 20}));
    int fd = client_connect_tcp(s.port, &plain);
    struct connection *conn = server_connection(&s, 0);
    assert_false(conn->is_open);
    assert_int_equal(conn->error, -ETIMEDOUT);
    char byte = 0;
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
    server_stop(&s);
}

TEST(what_is_not_tls_never_opens)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    static const struct str inputs[] = {
        {"GET / HTTP/1.1\r\nhost: x\r\n\r\n", 27}, {"\x16\x03\x01\xff\xff", 5}, {"", 0}};
    static const int errors[] = {-EPROTO, -EPROTO, -ECONNRESET};
    for (size_t i = 0; i < N_ELEMENTS(inputs); i++) {
        int fd = client_connect_tcp(s.port, &plain);
        assert_int_equal(write(fd, inputs[i].p, inputs[i].n), inputs[i].n);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        struct connection *conn = server_connection(&s, i);
        assert_false(conn->is_open);
        assert_int_equal(conn->error, errors[i]);
        assert_int_equal(conn->input.n, 0);
        close(fd);
    }
    server_stop(&s);
}

TEST(a_refused_connection_is_closed_without_events)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.refuses = true}));
    int fd = client_connect_tcp(s.port, &plain);
    char byte = 0;
    assert_int_equal(read(fd, &byte, 1), 0);
    assert_int_equal(s.n_refused, 1);
    assert_int_equal(s.n_connections, 0);
    close(fd);
    server_stop(&s);
}

static int lowest_free_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

/* The kernel keeps the connection in the backlog; we must neither lose it nor the listener. */
TEST(running_out_of_descriptors_passes)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* of another use, freed below */
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int client_fd = client_connect_tcp(s.port, &plain);
    struct client first;
    assert_true(client_handshake(&first, client_fd, &plain));
    (void) server_connection(&s, 0);

    close(fd);
    struct rlimit low = {.rlim_cur = (rlim_t) lowest_free_fd() + 1, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    client_fd = client_connect_tcp(s.port, &plain); /* takes the last descriptor */
    server_call(&s, s.loops[0], do_nothing, NULL);
    server_call(&s, s.loops[0], do_nothing, NULL);
    assert_int_equal(listener_connections(s.listener), 1);
    /* The connection we have goes on. */
    char back = 0;
    client_send(&first, "x", 1);
    assert_int_equal(client_receive(&first, &back, 1), 1);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    struct client second;
    assert_true(client_handshake(&second, client_fd, &plain));
    client_close(&first);
    client_close(&second);
    server_stop(&s);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void close_listener(void *arg)
{
    listener_close(arg);
}

TEST(closing_the_listener_leaves_connections_and_refuses_new_ones)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){.echoes = true}));
    struct client c;
    assert_true(client_open(&c, s.port, &plain));
    (void) server_connection(&s, 0);
    server_call(&s, s.loops[0], close_listener, s.listener);
    server_call(&s, s.loops[0], do_nothing, NULL);
    assert_int_equal(client_connect_tcp(s.port, &plain), -1);
    char back = 0;
    client_send(&c, "x", 1);
    assert_int_equal(client_receive(&c, &back, 1), 1);
    assert_int_equal(listener_connections(s.listener), 1);
    client_close(&c);
    connection_wait_closed(server_connection(&s, 0));
    assert_int_equal(listener_connections(s.listener), 0);
    server_stop(&s);
}

TEST(peers_are_named_by_family)
{
    static const struct {
        const char *listen, *connect, *seen;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
        {"0.0.0.0", "127.0.0.1", "127.0.0.1"},
        {"::1", "::1", "::1"},
        {"::", "127.0.0.1", "127.0.0.1"},
    };
    size_t n_tried = 0;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct server s;
        if (!server_start(&s, &(struct server_options){.address = cases[i].listen})) {
            print_message("# no address %s here\n", cases[i].listen);
            continue;
        }
        struct client c;
        assert_true(client_open(&c, s.port, &(struct client_options){.address = cases[i].connect}));
        assert_string_equal(server_connection(&s, 0)->address, cases[i].seen);
        client_close(&c);
        server_stop(&s);
        n_tried++;
    }
    assert_true(n_tried >= 2);
}

TEST(an_address_that_cannot_be_had_is_named)
{
    struct server s;
    assert_true(server_start(&s, &(struct server_options){0}));
    struct loop *l = loop_new();
    const struct {
        const char *address;
        int port, error;
        const char *text;
    } cases[] = {
        {"127.0.0.1", s.port, -EADDRINUSE, "Address already in use"},
        {"localhost", 0, -EINVAL, "listen on localhost:0: not a numeric address and port"},
        {"", 0, -EINVAL, "not a numeric address"},
        {"127.0.0.1", 65536, -EINVAL, "listen on 127.0.0.1:65536: not a numeric"},
        {"127.0.0.1", -1, -EINVAL, "not a numeric"},
        {"192.0.2.1", 0, -EADDRNOTAVAIL, "listen on 192.0.2.1:0: Cannot assign"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct listener_options o = {.address = cases[i].address,
                                     .port = cases[i].port,
                                     .tls = s.tls,
                                     .loops = &l,
                                     .n_loops = 1};
        struct listener *listener = NULL;
        char *error = NULL;
        assert_int_equal(listener_new(&o, &listener, &error), cases[i].error);
        assert_null(listener);
        if (!strstr(error, cases[i].text))
            fail_msg("\"%s\" lacks \"%s\"", error, cases[i].text);
        mem_free(error);
    }
    loop_free(l);
    server_stop(&s);
}
