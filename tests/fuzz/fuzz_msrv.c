/* SPDX-License-Identifier: Apache-2.0 */
/* An application's bytes through a whole exchange with the metadata server, without a socket. The
 * first byte chooses who asks and what the device lacks, the second the size of the pieces. */
#include <stdlib.h>

#include "desk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Made once: a request leaves nothing behind but the rate of /metrics/, which time refills. */
static struct desk the_desk;

static void close_desk(void)
{
    if (the_desk.msrv)
        desk_done(&the_desk);
    the_desk = (struct desk){0};
}

static struct desk *desk(void)
{
    static bool is_known;
    if (!is_known)
        (void) atexit(close_desk);
    is_known = true;
    if (!the_desk.msrv)
        desk_init(&the_desk);
    return &the_desk;
}

static void check_answer(const struct desk *d, struct str answer)
{
    if (answer.n == 0 || str_is(answer, "(proxied)"))
        return;
    int status = desk_status(d);
    int64_t length = 0;
    struct str length_text = desk_header(d, "Content-Length");
    if (status < 200 || status > 599 || !str_is(desk_header(d, "Connection"), "close"))
        __builtin_trap();
    if (length_text.p &&
        (str_to_i64(length_text, &length) < 0 || (size_t) length != desk_body(d).n))
        __builtin_trap();
    if (!length_text.p && desk_body(d).n != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const callers[] = {WEB_ADDRESS, DB_ADDRESS, ODD_ADDRESS, NOBODY};
    if (size < 2)
        return 0;
    struct desk *d = desk();
    d->device.has_no_documents = data[0] & 4;
    d->device.has_no_ports = data[0] & 8;
    d->device.fails_tpm = data[0] & 16;
    d->device.fails_publish = data[0] & 32;
    d->device.user_data = data[0] & 64 ? STR("I2Nsb3VkLWNvbmZpZwo=") : STR("");
    d->device.has_cipher = data[0] & 128;
    d->device.clock.now_us += 100000;
    struct str request = str_range((const char *) data + 2, size - 2);
    check_answer(d, desk_ask(d, callers[data[0] & 3], request, data[1]));
    /* Nothing of the device's arena is kept for long. */
    if (arena_used(d->device.arena) > (size_t) 16 * 1024 * 1024)
        close_desk();
    return 0;
}
