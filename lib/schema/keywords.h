/* SPDX-License-Identifier: Apache-2.0 */
/* Every keyword that a CRD's schema can have, and what it holds. */
#pragma once

#include "base/str.h"

enum keyword_shape {
    KEYWORD_STRING,
    KEYWORD_BOOL,
    KEYWORD_NUMBER,
    KEYWORD_INTEGER,
    KEYWORD_STRINGS,
    KEYWORD_ANY,
    KEYWORD_ARRAY,
    KEYWORD_OBJECT,
    KEYWORD_SCHEMA,
    KEYWORD_SCHEMA_OR_BOOL,
    KEYWORD_SCHEMA_OR_ARRAY,
    KEYWORD_SCHEMAS,
    KEYWORD_SCHEMA_MAP,
};

struct keyword {
    const char *name;
    enum keyword_shape shape;
    bool keeps_empty; /* Go tells an empty value from none */
};

#define KEYWORD_COUNT 44
extern const struct keyword keyword_table[KEYWORD_COUNT];

/* NULL: no keyword. */
const struct keyword *keyword_find(struct str name);
