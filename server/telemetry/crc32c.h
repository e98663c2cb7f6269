/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), by the processor's instruction where it has one: every byte a device sends
 * passes through it twice. */
#pragma once

#include "base/lang.h"

/* Goes on from `crc`, 0 or another seed at the beginning. From any thread. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);
/* The same without the instruction. */
uint32_t crc32c_plain(uint32_t crc, const void *p, size_t n);
