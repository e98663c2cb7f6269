/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's bytes through a whole HTTP/2 connection without a socket. The first byte chooses whether
 * the preface is given for free (so that frames are reached) and the size of the pieces. */
#include "fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The client's preface and an empty SETTINGS frame. */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t n_piece = (data[0] & 0x7f) ? data[0] & 0x7f : size;
    struct str rest = str_range((const char *) data + 1, size - 1);
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = fake_stream_open(f.loop, f.server, "h2");
    if (!(data[0] & 0x80))
        fake_stream_feed(s, STR(PREFACE));
    while (rest.n > 0 && fake_stream_state(s).is_open) {
        fake_stream_feed(s, str_sub(rest, 0, MIN(n_piece, rest.n)));
        rest = str_from(rest, n_piece);
        if (f.held)
            fixture_send(&f, "event");
    }
    if (f.held)
        http_end(f.held);
    f.held = NULL;
    fake_loop_advance(f.loop, 130 * 1000);
    fake_stream_hang_up(s);
    return 0;
}
