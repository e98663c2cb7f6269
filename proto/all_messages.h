/* SPDX-License-Identifier: Apache-2.0 */
/* Every message and enum of the device API, generated from what protobuf-c compiles: for what must
 * hold for all of them. */
#pragma once

#include <protobuf-c/protobuf-c.h>

extern const ProtobufCMessageDescriptor *const all_messages[];
extern const size_t n_all_messages;
extern const ProtobufCEnumDescriptor *const all_enums[];
extern const size_t n_all_enums;
