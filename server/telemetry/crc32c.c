/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u /* reflected */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < N_ELEMENTS(table); i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        table[i] = crc;
    }
}

uint32_t crc32c_plain(uint32_t crc, const void *p, size_t n)
{
    (void) pthread_once(&table_once, make_table);
    const unsigned char *at = p;
    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ at[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc,
                                                                 const unsigned char *p, size_t n)
{
    uint64_t sum = (uint32_t) ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        sum = __builtin_ia32_crc32di(sum, word);
    }
    for (; n > 0; p++, n--)
        sum = __builtin_ia32_crc32qi((uint32_t) sum, *p);
    return ~(uint32_t) sum;
}

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    return __builtin_cpu_supports("sse4.2") ? by_instruction(crc, p, n) : crc32c_plain(crc, p, n);
}
#else
uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    return crc32c_plain(crc, p, n);
}
#endif
