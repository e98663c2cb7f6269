/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fixture.h"
#include "test.h"

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
