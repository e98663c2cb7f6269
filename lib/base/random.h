/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness from the kernel, good enough for keys and names. */
#pragma once

#include "base/lang.h"

void random_bytes(void *p, size_t n);
/* Uniform below bound, which is not 0. */
uint64_t random_below(uint64_t bound);
/* n characters of the alphabet Kubernetes uses for generated names (no vowels, no 0, 1, 3), then
 * NUL. */
void random_name(char *p, size_t n);

#define UUID_TEXT_BYTES 37
/* A version 4 UUID in lower case with its NUL. */
void random_uuid(char out[UUID_TEXT_BYTES]);
