/* SPDX-License-Identifier: Apache-2.0 */
/* What devices write, made fit for a status: texts in UTF-8 and bounded, names of states, times,
 * amounts. */
#pragma once

#include "api/quantity.h"
#include "base/arena.h"
#include "eve/info.pb-c.h"

#define WORDS_MAX_MESSAGE 1024 /* bytes; what an Event may hold */
#define WORDS_MAX_NAME 253
#define WORDS_MAX_ENTITIES 4
#define WORDS_MAX_SEVERITY_ENTRIES 64

/* Valid UTF-8 without control characters, no longer than max bytes; bad bytes become U+FFFD. */
struct str words_clean(struct arena *a, struct str text, size_t max);
struct str words_name(struct arena *a, const char *text);
/* The name of an enum's value, without prefix when it has that; "STATE_99" of one we do not know.
 */
struct str words_enum(struct arena *a, const ProtobufCEnumDescriptor *d, int value);
/* "ZDEVICE_STATE_POWERING_OFF" as "PoweringOff", for reasons of conditions. */
struct str words_reason(struct arena *a, struct str enum_name, const char *prefix);

/* Whether there is anything in it. */
bool words_has_error(const Eve__Info__ErrorInfo *e);
/* Neither a notice nor a warning: those leave the state alone. */
bool words_is_fatal(const Eve__Info__ErrorInfo *e);
/* The device's own words, then what it concerns and when the device tries again. */
struct str words_error(struct arena *a, const Eve__Info__ErrorInfo *e);
/* The worst entry with anything in it, or NULL. */
const Eve__Info__ErrorInfo *words_worst(Eve__Info__ErrorInfo *const *list, size_t n);

/* Microseconds since 1970; 0: absent or no time that can be written. */
int64_t words_time(const Google__Protobuf__Timestamp *t);
struct str words_stamp(struct arena *a, int64_t wall_us);
struct str words_stamp_exact(struct arena *a, int64_t wall_us);

struct str words_bytes(struct arena *a, uint64_t n_bytes);
struct str words_mebibytes(struct arena *a, uint64_t n_mebibytes);
