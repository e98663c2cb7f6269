/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for any message of the device API: what is refused has a reason, what is read packs, unpacks
 * and is written so that it reads as the same. */
#include "choose_message.h"
#include "protobuf/protojson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ProtobufCMessage *read_value(struct arena *a, const ProtobufCMessageDescriptor *d,
                                    const struct json *value)
{
    size_t n_ignored = 0;
    struct str error = STR_NONE;
    ProtobufCMessage *strict = protojson_read(a, d, value, PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    require(strict || error.n > 0);
    ProtobufCMessage *lenient =
        protojson_read(a, d, value, PROTOJSON_IGNORE_UNKNOWN, &n_ignored, &error);
    if (strict)
        require(lenient && n_ignored == 0 && str_eq(pb_pack(a, strict), pb_pack(a, lenient)));
    return lenient;
}

/* A negative zero is a zero when it is read the second time. */
static void check_message(struct arena *a, const ProtobufCMessageDescriptor *d,
                          const ProtobufCMessage *m)
{
    const ProtobufCMessage *unpacked = pb_unpack(a, d, pb_pack(a, m));
    require(unpacked && pb_count_unknown(unpacked) == 0);
    require(str_eq(json_text(a, protojson_value(a, m, NULL)),
                   json_text(a, protojson_value(a, unpacked, NULL))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct str input = str_range((const char *) data, size);
    const ProtobufCMessageDescriptor *d = choose_message(&input);
    struct json_parse_result parsed;
    if (!d || json_parse(a, input, &parsed) < 0)
        return 0;
    const ProtobufCMessage *m = read_value(a, d, parsed.value);
    if (!m)
        return 0;
    const ProtobufCMessage *again =
        read_value(a, d, json_parse_quick(a, json_text(a, protojson_value(a, m, NULL))));
    require(again != NULL);
    check_message(a, d, again);
    return 0;
}
