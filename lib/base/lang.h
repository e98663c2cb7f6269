/* SPDX-License-Identifier: Apache-2.0 */
/* What the C language lacks: scope cleanup, hand-over, element counts. Nothing with behaviour. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs fn(&variable) when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Declares `<fn>p`, which passes the pointer a local holds to fn; for CLEANUP on `T *x`. */
#define DEFINE_CLEANUP(type, fn) \
    static inline void fn##p(type *p) \
    { \
        if (*p) \
            fn(*p); \
    }

/* Hands a pointer over: yields its value and leaves NULL behind. */
#define TAKE(p) \
    ({ \
        __typeof__(p) *take_at = &(p); \
        __typeof__(p) take_value = *take_at; \
        *take_at = NULL; \
        take_value; \
    })

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *) ((char *) (p) -offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
