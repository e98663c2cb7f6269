/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's bytes through a whole HTTP/1.1 connection, WebSocket included, without a socket. The
 * first byte chooses the size of the pieces they come in; then time passes, held exchanges are
 * answered, and the peer leaves. */
#include "fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer_held(struct fixture *f)
{
    if (!f->held)
        return;
    struct http_exchange *x = f->held;
    struct slice text = slice_static(STR("text"));
    f->held = NULL;
    http_on_closed(x, NULL, NULL);
    http_send(x, &text, 1); /* dropped when the answer has not begun */
    http_end(x);
    fake_loop_turn(f->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t n_piece = data[0] ? data[0] : size;
    struct str rest = str_range((const char *) data + 1, size - 1);
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = fake_stream_open(f.loop, f.server, "http/1.1");
    for (size_t n = 0; rest.n > 0 && fake_stream_state(s).is_open; n++) {
        fake_stream_feed(s, str_sub(rest, 0, MIN(n_piece, rest.n)));
        rest = str_from(rest, n_piece);
        if (n % 4 == 3)
            answer_held(&f);
    }
    fake_loop_advance(f.loop, 70 * 1000);
    answer_held(&f);
    fake_stream_hang_up(s);
    return 0;
}
