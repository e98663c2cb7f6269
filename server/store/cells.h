/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for stored objects, apart from all other: cells of one size share a page. Objects stay, so
 * that in a common heap they would settle in the holes that requests leave behind and waste a sixth
 * of it. Process-wide, as the heap is; any thread. */
#pragma once

#include "base/lang.h"

/* Larger ones are a matter of the heap. */
#define CELL_MAX_BYTES ((size_t) 16 * 1024)

/* Never NULL. */
void *cell_alloc(size_t n_bytes);
/* n_bytes as asked for. NULL allowed. */
void cell_free(void *p, size_t n_bytes);

/* Bytes of the pages that cells are in. */
size_t cell_page_bytes(void);
