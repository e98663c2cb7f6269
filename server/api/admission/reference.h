/* SPDX-License-Identifier: Apache-2.0 */
/* What an object says of others by name, as its kind's refer() (api/hooks.h) tells it. */
#pragma once

#include "schema/causes.h"

/* Not objects but versions of EVE: `<namespace>/<version>` is referred to by the Images that
 * provide it and by the Devices that want it. */
#define REFERENCE_EVE_OS_IMAGES STR("eve-os-images")
#define REFERENCE_EVE_OS_DEVICES STR("eve-os-devices")

struct reference;

/* Reads other objects while a reference is judged. */
struct reference_reader {
    struct arena *arena;
    /* NULL when there is none. */
    const struct json *(*get)(struct reference_reader *r, struct str collection,
                              struct str namespace, struct str name);
};

/* Adds a cause when the object referred to is there and does not fit. */
typedef void reference_check(struct reference_reader *reader, const struct reference *r,
                             const struct json *target, struct causes *causes);

struct reference {
    struct str collection; /* of the store */
    struct str namespace;  /* STR(""): a kind without, or (REFERENCE_OF_USERS) that of the users */
    struct str name;
    struct str field; /* "spec.containers[0].image"; empty unless the list wants fields */
    unsigned flags;
    reference_check *check; /* NULL: whatever exists fits */
    struct str detail;      /* what else check() goes by; another detail is judged anew */
    const struct json *user;
    struct str warning; /* given when nobody refers to the same name in `wants` */
    struct str wants;
};

enum reference_flag {
    REFERENCE_OPTIONAL = 1, /* it need not exist */
    REFERENCE_WEAK = 2,     /* nor is anything kept for it: it is only to be found */
    /* What the object referred to needs in a namespace (REFERENCE_OF_USERS) its user needs. */
    REFERENCE_INHERITS = 4,
    REFERENCE_OF_USERS = 8,
};

/* Of one object. */
#define REFERENCES_MAX 4096

struct reference_list {
    struct arena *arena;
    bool wants_fields; /* paths are made only for those who show them */
    struct reference *items;
    size_t n;
    bool is_full; /* more were left out */
};

/* A reference without a name is none. */
void reference_add(struct reference_list *l, const struct field_path *at,
                   const struct reference *reference);
/* "<collection>/<namespace>/<name>", the key of the store. */
struct str reference_key(struct arena *a, const struct reference *r);
