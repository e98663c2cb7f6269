/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as Kubernetes writes them: 1500m, 1Gi, 12e6. Exact arithmetic in decimal; compared by
 * value, printed in canonical form. */
#pragma once

#include "base/arena.h"

#define QUANTITY_MAX_BYTES 64 /* of text */

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
    __int128 mantissa;
    int scale; /* the value is mantissa * 10^scale; not below -9 */
    enum quantity_format format;
    struct str
        text; /* as given, where kube-apiserver keeps it that way; else STR_NONE. Borrowed. */
};

/* -EINVAL and *ret_error (static) in kube-apiserver's words. Fractions finer than nano are rounded
 * up, away from zero. */
int quantity_parse(struct str text, struct quantity *ret, struct str *ret_error);
/* Rounds up to thousandths, as resource lists are. */
void quantity_round_milli(struct quantity *q);
/* Rounds up to an integer, as storage is. */
void quantity_round_whole(struct quantity *q);
struct str quantity_text(struct arena *a, const struct quantity *q);
int quantity_compare(const struct quantity *a, const struct quantity *b);
int quantity_sign(const struct quantity *q);
bool quantity_is_integer(const struct quantity *q);
struct quantity quantity_from_int(int64_t value);
/* In a's format, or b's when a is zero. A sum beyond all bounds is the larger of the two. */
struct quantity quantity_add(const struct quantity *a, const struct quantity *b);
/* Approximate, for ratios. */
double quantity_double(const struct quantity *q);
