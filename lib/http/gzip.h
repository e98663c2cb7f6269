/* SPDX-License-Identifier: Apache-2.0 */
/* gzip of an answer's body, at the level kube-apiserver uses. */
#pragma once

#include "base/bytes.h"

/* Compresses the slices, in order, into one. The input stays the caller's. */
int http_gzip(const struct slice *in, size_t n, struct slice *ret);
