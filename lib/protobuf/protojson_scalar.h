/* SPDX-License-Identifier: Apache-2.0 */
/* Single values out of JSON: ranges, numbers in strings, base64. */
#pragma once

#include "protobuf/protojson_internal.h"

/* As the value lies in the message's struct. */
union protojson_scalar {
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f;
    double d;
    protobuf_c_boolean b;
    char *text;
    ProtobufCBinaryData bytes;
    ProtobufCMessage *message;
};

/* For every type but messages and the names of enums. NULL: done; otherwise what would have been
 * right, with its article. */
const char *protojson_scalar_read(struct arena *a, ProtobufCType type, const struct json *value,
                                  union protojson_scalar *ret_value);
/* The key of a map, which JSON has as a string. */
bool protojson_key_read(struct arena *a, ProtobufCType type, struct str key,
                        union protojson_scalar *ret_value);
