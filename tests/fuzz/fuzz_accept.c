/* SPDX-License-Identifier: Apache-2.0 */
/* An Accept header (also read as Content-Type): whatever is chosen, a refusal says why and a choice
 * is one of ours. */
#include <stdlib.h>

#include "api/media.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check(int r, const struct status *st, int code)
{
    expect(r < 0 ? st->code == code && st->message.n > 0 : st->code == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    const struct str header = str_range((const char *) data, size);
    struct media_range *ranges;
    const size_t n = media_parse_accept(a, header, &ranges);
    expect(n <= MEDIA_MAX_RANGES);
    for (size_t i = 1; i < n; i++)
        expect(ranges[i - 1].quality >= ranges[i].quality);

    for (int endpoint = MEDIA_NATIVE; endpoint <= MEDIA_CUSTOM; endpoint++) {
        struct media_choice choice = {0};
        struct status st;
        status_init(&st, a);
        check(media_choose(header, endpoint, &choice, &st), &st, 406);
        expect((choice.form == MEDIA_OBJECT) == (choice.version.n == 0));
        status_init(&st, a);
        const int r = media_choose_watch(header, endpoint, &choice, &st);
        check(r, &st, 406);
        expect(r < 0 || choice.encoding == MEDIA_JSON);
    }
    enum media_encoding e;
    (void) media_wants_aggregated_discovery(header, &e);
    (void) media_accepts_gzip(header);
    struct status st;
    status_init(&st, a);
    check(media_body_encoding(header, &e, &st), &st, 415);
    enum media_patch patch;
    status_init(&st, a);
    check(media_patch_type(header, true, &patch, &st), &st, 415);
    return 0;
}
