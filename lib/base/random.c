/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/str.h"

/* One system call serves many small requests; each byte is handed out once. */
#define RANDOM_POOL_BYTES 512

static void kernel_bytes(void *p, size_t n)
{
    for (char *at = p; n > 0;) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno != EINTR)
            abort();
        if (got > 0) {
            at += got;
            n -= (size_t) got;
        }
    }
}

void random_bytes(void *p, size_t n)
{
    static _Thread_local unsigned char pool[RANDOM_POOL_BYTES];
    static _Thread_local size_t n_left;

    if (n > sizeof(pool)) {
        kernel_bytes(p, n);
        return;
    }
    if (n > n_left) {
        kernel_bytes(pool, sizeof(pool));
        n_left = sizeof(pool);
    }
    unsigned char *from = pool + sizeof(pool) - n_left;
    memcpy(p, from, n);
    memset(from, 0, n);
    n_left -= n;
}

uint64_t random_below(uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value = 0;
    do
        random_bytes(&value, sizeof(value));
    while (value >= limit);
    return value % bound;
}

void random_name(char *p, size_t n)
{
    static const struct str alphabet = {"bcdfghjklmnpqrstvwxz2456789", 27};
    for (size_t i = 0; i < n; i++)
        p[i] = alphabet.p[random_below(alphabet.n)];
    p[n] = '\0';
}

void random_uuid(char out[UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char u[16];
    random_bytes(u, sizeof(u));
    u[6] = (unsigned char) ((u[6] & 0x0f) | 0x40); /* version 4 */
    u[8] = (unsigned char) ((u[8] & 0x3f) | 0x80); /* variant 1 */
    char *to = out;
    for (size_t i = 0; i < sizeof(u); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[u[i] >> 4];
        *to++ = digits[u[i] & 15];
    }
    *to = '\0';
}
