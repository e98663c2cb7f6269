/* SPDX-License-Identifier: Apache-2.0 */
/* The tables by which OpenAPI JSON becomes gnostic's protobuf messages: one table of fields per
 * message. */
#pragma once

#include "base/lang.h"

enum proto_type {
    PROTO_STRING,
    PROTO_BOOL,
    PROTO_INT64,
    PROTO_DOUBLE,
    PROTO_MESSAGE,
    PROTO_ANY,        /* openapi.Any: the value as YAML text */
    PROTO_NAMED,      /* an object's members, each a message {1: name, 2: value of `message`} */
    PROTO_EXTENSIONS, /* members that begin with "x-", each a message {1: name, 2: Any} */
};

struct proto_message;

struct proto_field {
    const char
        *key; /* of the JSON object; NULL: its members themselves (PROTO_NAMED, PROTO_EXTENSIONS) */
    int number;
    enum proto_type type;
    const struct proto_message *message;
    bool is_repeated; /* an array of these */
};

/* What JSON becomes this message. */
enum proto_shape {
    PROTO_OBJECT,       /* an object: by its fields */
    PROTO_WRAPPED,      /* any: field 0 of the table holds it (ItemsItem, TypeItem ...) */
    PROTO_OR_REFERENCE, /* an object: field 0, or field 1 when it has $ref */
    PROTO_OR_BOOL,      /* field 0, or field 1 when it is a boolean */
    PROTO_BY_PLACE,     /* the field whose key is the parameter's `in`, or that without a key */
    PROTO_DEFAULT,      /* v3: number, boolean or string */
};

struct proto_message {
    enum proto_shape shape;
    const struct proto_field *fields; /* by number; PROTO_EXTENSIONS last */
    size_t n_fields;
};

extern const struct proto_message openapi_v2_document_message, openapi_v3_document_message;

/* One line per field. */
#define MESSAGE(name, message_shape, fields) \
    static const struct proto_message name = {message_shape, fields, N_ELEMENTS(fields)}
#define STRING(key, number) \
    { \
        key, number, PROTO_STRING, NULL, false \
    }
#define STRINGS(key, number) \
    { \
        key, number, PROTO_STRING, NULL, true \
    }
#define BOOL(key, number) \
    { \
        key, number, PROTO_BOOL, NULL, false \
    }
#define INT(key, number) \
    { \
        key, number, PROTO_INT64, NULL, false \
    }
#define DOUBLE(key, number) \
    { \
        key, number, PROTO_DOUBLE, NULL, false \
    }
#define ANY(key, number) \
    { \
        key, number, PROTO_ANY, NULL, false \
    }
#define ANYS(key, number) \
    { \
        key, number, PROTO_ANY, NULL, true \
    }
#define ONE(key, number, message) \
    { \
        key, number, PROTO_MESSAGE, &message, false \
    }
#define MANY(key, number, message) \
    { \
        key, number, PROTO_MESSAGE, &message, true \
    }
#define NAMED(number, message) \
    { \
        NULL, number, PROTO_NAMED, &message, false \
    }
#define EXTENSIONS(number) \
    { \
        NULL, number, PROTO_EXTENSIONS, NULL, false \
    }
