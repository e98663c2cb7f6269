/* SPDX-License-Identifier: Apache-2.0 */
/* Subresources that annexes answer, not the verbs: discovery shows them, so that clients know what
 * there is to be granted and asked for. */
#pragma once

#include "api/kind.h"

/* Those of a kind, by name; returns how many. */
size_t annexed_subresources(const struct kind *k, const struct kind_subresource **ret);
