/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that files were changed, replaced by rename, or swapped through a symbolic link as
 * Kubernetes does with mounted Secrets, and says so once when they have come to rest. */
#pragma once

#include "loop/loop.h"

#define RELOAD_MAX_FILES 64

struct reload;

/* On the loop's thread, or before it runs. Paths are copied; "" and NULL are left out. NULL when
 * the kernel cannot watch (it is logged): a signal is then the only way. */
struct reload *reload_new(struct loop *l, const char *const *paths, size_t n_paths,
                          void (*on_change)(void *arg), void *arg);
/* NULL allowed. */
void reload_free(struct reload *r);
