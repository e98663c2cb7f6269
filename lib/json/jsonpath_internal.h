/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled path: a chain of steps, each turning a list of values into another. */
#pragma once

#include "json/jsonpath.h"

enum step_type {
    STEP_FIELD,     /* .name */
    STEP_WILDCARD,  /* .* */
    STEP_SLICE,     /* [i] [i:j:k] [*] */
    STEP_UNION,     /* [a,b] */
    STEP_RECURSIVE, /* .. */
    STEP_FILTER,    /* [?(left op right)] */
};

enum comparison { EXISTS, EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL };

/* A literal, or a path from the element when `literal` is NULL. */
struct operand {
    const struct json *literal;
    struct step *path;
};

struct step {
    enum step_type type;
    struct step *next;
    union {
        struct str name;
        struct {
            int64_t from, to, step; /* negative `from` and `to` count from the end */
            bool has_to, has_step;
            bool is_index; /* `from` alone */
        } slice;
        struct {
            struct step *path;  /* one alternative, applied to all values ... */
            struct step *other; /* ... then the next, a STEP_UNION or NULL */
        } alternative;
        struct {
            enum comparison comparison;
            struct operand left, right;
        } filter;
    };
};

struct jsonpath {
    struct step *steps; /* NULL: the value itself */
    bool is_simple;
};
