/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf JSON by descriptor, as the protobuf specification has it: lowerCamelCase names, 64-bit
 * integers as strings, enums by name, bytes as base64, Timestamp as RFC 3339, maps as objects. */
#pragma once

#include "base/buf.h"
#include "protobuf/message.h"
#include "json/json.h"

struct protojson_options {
    bool use_proto_names; /* maintenance_mode rather than maintenanceMode */
    bool write_defaults;  /* also fields that are unset */
    bool keep_unknown;    /* also fields that the descriptor does not know: PROTOJSON_UNKNOWN */
};

/* The member that holds what a newer API has put into a message, as base64 of its wire form, so
 * that JSON can carry what it has no names for. No field has such a name. */
#define PROTOJSON_UNKNOWN "@unknown"

/* options NULL: the defaults. Never fails: an enum's unknown number is written as a number, a
 * string's bad bytes as U+FFFD, a time outside the years 1 to 9999 as the nearest within; unknown
 * fields are left out unless they are to be kept. Fields by number, maps by key: equal messages
 * give equal texts. */
void protojson_write(struct buf *to, const ProtobufCMessage *m,
                     const struct protojson_options *options);
/* The same as a value in the arena; its strings may be those of m. */
struct json *protojson_value(struct arena *a, const ProtobufCMessage *m,
                             const struct protojson_options *options);

enum protojson_unknown {
    PROTOJSON_REFUSE_UNKNOWN, /* a member that is no field is an error */
    PROTOJSON_IGNORE_UNKNOWN  /* and counted */
};
/* Takes both names of a field, enums by name or number, both alphabets of base64, numbers as
 * strings, PROTOJSON_UNKNOWN. NULL on failure with *ret_error naming the place:
 * "apps[0].uuidandversion: expected an object". Both outputs may be NULL. The limits are those of
 * pb_unpack(). */
ProtobufCMessage *protojson_read(struct arena *a, const ProtobufCMessageDescriptor *d,
                                 const struct json *value, enum protojson_unknown unknown,
                                 size_t *ret_n_ignored, struct str *ret_error);
/* "maintenanceMode" of "maintenance_mode". */
struct str protojson_name(struct arena *a, struct str proto_name);
