/* SPDX-License-Identifier: Apache-2.0 */
/* google.protobuf.Timestamp, the one well-known type the device API uses: seconds and nanos. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "protobuf/protojson_internal.h"

#define MIN_SECONDS INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define MAX_SECONDS INT64_C(253402300799) /* 9999-12-31T23:59:59Z */
#define NANOS_PER_SECOND 1000000000
#define MICROS_PER_SECOND 1000000
#define MAX_DECIMALS 9

bool protojson_is_timestamp(const ProtobufCMessageDescriptor *d)
{
    return strcmp(d->name, "google.protobuf.Timestamp") == 0;
}

static int64_t *seconds_of(const ProtobufCMessage *m)
{
    return pb_slot(m, &m->descriptor->fields[0]);
}

static int32_t *nanos_of(const ProtobufCMessage *m)
{
    return pb_slot(m, &m->descriptor->fields[1]);
}

struct str protojson_timestamp_text(struct arena *a, const ProtobufCMessage *timestamp)
{
    int64_t seconds = MIN(MAX(*seconds_of(timestamp), MIN_SECONDS), MAX_SECONDS);
    int32_t nanos = MIN(MAX(*nanos_of(timestamp), 0), NANOS_PER_SECOND - 1);
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(seconds * MICROS_PER_SECOND, text);
    if (nanos == 0)
        return arena_str(a, str_of(text));
    struct str day_and_time = str_range(text, strlen(text) - 1);
    if (nanos % 1000000 == 0)
        return arena_printf(a, "%.*s.%03dZ", STR_ARG(day_and_time), nanos / 1000000);
    if (nanos % 1000 == 0)
        return arena_printf(a, "%.*s.%06dZ", STR_ARG(day_and_time), nanos / 1000);
    return arena_printf(a, "%.*s.%09dZ", STR_ARG(day_and_time), nanos);
}

/* The digits behind the point as billionths; -EINVAL when there are too many. */
static int parse_nanos(struct str text, int32_t *ret_nanos)
{
    ptrdiff_t point = str_find(text, '.');
    int32_t nanos = 0, scale = NANOS_PER_SECOND;
    if (point >= 0) {
        for (size_t i = (size_t) point + 1; i < text.n && text.p[i] >= '0' && text.p[i] <= '9';
             i++) {
            if (i > (size_t) point + MAX_DECIMALS)
                return -EINVAL;
            nanos = nanos * 10 + (text.p[i] - '0');
            scale /= 10;
        }
    }
    *ret_nanos = nanos * scale;
    return 0;
}

int protojson_timestamp_parse(struct str text, ProtobufCMessage *timestamp)
{
    int64_t micros = 0;
    int32_t nanos = 0;
    if (clock_parse(text, &micros) < 0 || parse_nanos(text, &nanos) < 0)
        return -EINVAL;
    /* The fraction follows the second, before 1970 too. */
    int64_t seconds = (micros - nanos / 1000) / MICROS_PER_SECOND;
    if (seconds < MIN_SECONDS || seconds > MAX_SECONDS)
        return -EINVAL;
    *seconds_of(timestamp) = seconds;
    *nanos_of(timestamp) = nanos;
    return 0;
}
