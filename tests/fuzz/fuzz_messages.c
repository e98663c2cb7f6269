/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of the device API: what unpacks must pack to bytes that unpack to the same, and its
 * JSON must be read and written again without change. */
#include "choose_message.h"
#include "protobuf/protojson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str text_of(struct arena *a, const ProtobufCMessage *m)
{
    return json_text(a, protojson_value(a, m, NULL));
}

static ProtobufCMessage *read_text(struct arena *a, const ProtobufCMessageDescriptor *d,
                                   struct str text)
{
    struct json_parse_result parsed;
    require(json_parse(a, text, &parsed) == 0 && !parsed.duplicates);
    ProtobufCMessage *m = protojson_read(a, d, parsed.value, PROTOJSON_REFUSE_UNKNOWN, NULL, NULL);
    require(m != NULL);
    return m;
}

/* A text has no unknown fields, no negative zeros and no bytes that are no UTF-8: only the second
 * is all that the first was. */
static void check_text(struct arena *a, const ProtobufCMessage *m)
{
    const ProtobufCMessage *first = read_text(a, m->descriptor, text_of(a, m));
    struct str text = text_of(a, first);
    const ProtobufCMessage *second = read_text(a, m->descriptor, text);
    require(str_eq(text_of(a, second), text));
    require(str_eq(pb_pack(a, second), pb_pack(a, first)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct str input = str_range((const char *) data, size);
    const ProtobufCMessageDescriptor *d = choose_message(&input);
    const ProtobufCMessage *m = d ? pb_unpack(a, d, input) : NULL;
    if (!m)
        return 0;
    struct str packed = pb_pack(a, m);
    const ProtobufCMessage *again = pb_unpack(a, d, packed);
    require(again && str_eq(pb_pack(a, again), packed));
    require(pb_count_unknown(again) == pb_count_unknown(m));
    check_text(a, m);
    return 0;
}
