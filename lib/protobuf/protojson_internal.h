/* SPDX-License-Identifier: Apache-2.0 */
/* What reading and writing protobuf JSON share. */
#pragma once

#include "protobuf/message_internal.h"
#include "protobuf/protojson.h"

/* Whether the key of a JSON object names the field, by its JSON name or by that of the .proto. */
bool protojson_is_name_of(const ProtobufCFieldDescriptor *f, struct str key);
/* protobuf-c does not tell a map from the repeated entries it is on the wire; protoc's name for the
 * entry does. */
bool protojson_is_map(const ProtobufCMessageDescriptor *parent, const ProtobufCFieldDescriptor *f);

bool protojson_is_timestamp(const ProtobufCMessageDescriptor *d);
/* With 0, 3, 6 or 9 decimals. What lies outside the years 1 to 9999 becomes the nearest within. */
struct str protojson_timestamp_text(struct arena *a, const ProtobufCMessage *timestamp);
/* -EINVAL: no RFC 3339 time of those years, or more than nine decimals. */
int protojson_timestamp_parse(struct str text, ProtobufCMessage *timestamp);
