/* SPDX-License-Identifier: Apache-2.0 */
/* Between table.c and the cells of native kinds. */
#pragma once

#include "api/table.h"

struct table_cell {
    struct buf *out; /* each function appends one JSON value */
    struct arena *arena;
    const struct json *object;
    int64_t now_us;
};

struct table_function {
    const char *name;
    void (*write)(const struct table_cell *c);
};

/* The function of a manifest's column, or NULL. */
const struct table_function *table_function_find(struct str name);

/* "3m4s", or "<unknown>" when the time is absent or null and "<invalid>" when it is no time. */
void table_write_since(const struct table_cell *c, const struct json *time);
