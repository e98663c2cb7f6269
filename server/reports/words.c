/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/words.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/buf.h"
#include "base/clock.h"
#include "protobuf/message.h"

#define MAX_SECONDS INT64_C(253402300799) /* the end of the year 9999 */

/* Length of the character at p, or 0 when there is no good one. */
static size_t character(struct str s, size_t at)
{
    unsigned char c = (unsigned char) s.p[at];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    return n && at + n <= s.n && str_is_utf8(str_range(s.p + at, n)) ? n : 0;
}

struct str words_clean(struct arena *a, struct str text, size_t max)
{
    static const char replacement[] = "\xef\xbf\xbd";
    text = str_trim(text);
    char *out = arena_alloc(a, MIN(text.n * 3, max) + 1);
    size_t n = 0;
    for (size_t at = 0; at < text.n;) {
        size_t n_char = character(text, at);
        const char *from = n_char ? text.p + at : replacement;
        size_t n_out = n_char ? n_char : 3;
        if (n + n_out > max)
            break;
        memcpy(out + n, from, n_out);
        if (n_out == 1 && ((unsigned char) *from < 0x20 || *from == 0x7f))
            out[n] = ' ';
        n += n_out;
        at += n_char ? n_char : 1;
    }
    out[n] = '\0';
    return str_trim(str_range(out, n));
}

struct str words_name(struct arena *a, const char *text)
{
    return words_clean(a, pb_text(text), WORDS_MAX_NAME);
}

struct str words_enum(struct arena *a, const ProtobufCEnumDescriptor *d, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d, value);
    return v ? str_of(v->name) : arena_printf(a, "STATE_%d", value);
}

struct str words_reason(struct arena *a, struct str enum_name, const char *prefix)
{
    struct str rest = str_starts_with(enum_name, str_of(prefix))
                          ? str_from(enum_name, strlen(prefix))
                          : enum_name;
    char *out = arena_alloc(a, rest.n + 1);
    size_t n = 0;
    bool is_first = true;
    for (size_t i = 0; i < rest.n; i++) {
        int c = (unsigned char) rest.p[i];
        if (c != '_')
            out[n++] = (char) (is_first ? toupper(c) : tolower(c));
        is_first = c == '_';
    }
    out[n] = '\0';
    return str_range(out, n);
}

/* ---- errors ------------------------------------------------------------------------------- */

bool words_has_error(const Eve__Info__ErrorInfo *e)
{
    return e && str_trim(pb_text(e->description)).n > 0;
}

bool words_is_fatal(const Eve__Info__ErrorInfo *e)
{
    return words_has_error(e) && e->severity != EVE__INFO__SEVERITY__SEVERITY_NOTICE &&
           e->severity != EVE__INFO__SEVERITY__SEVERITY_WARNING;
}

static struct str entity_kind(struct arena *a, int entity)
{
    struct str name = words_enum(a, &eve__info__entity__descriptor, entity);
    char *out = arena_strz(a, str_from(name, str_starts_with(name, STR("ENTITY_")) ? 7 : 0));
    for (char *p = out; *p; p++)
        *p = *p == '_' ? ' ' : (char) tolower((unsigned char) *p);
    return str_of(out);
}

struct str words_error(struct arena *a, const Eve__Info__ErrorInfo *e)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, words_clean(a, pb_text(e->description), WORDS_MAX_MESSAGE));
    for (size_t i = 0; i < MIN(e->n_entities, (size_t) WORDS_MAX_ENTITIES); i++) {
        const Eve__Info__DeviceEntity *of = e->entities[i];
        struct str name = words_name(a, of->entity_name);
        name = name.n ? name : words_name(a, of->entity_id);
        buf_printf(&b, "%s%.*s %.*s", i ? ", " : "; concerns ", STR_ARG(entity_kind(a, of->entity)),
                   STR_ARG(name));
    }
    struct str retry = words_clean(a, pb_text(e->retry_condition), WORDS_MAX_NAME);
    if (retry.n)
        buf_printf(&b, "; retried: %.*s", STR_ARG(retry));
    return words_clean(a, buf_str(&b), WORDS_MAX_MESSAGE);
}

static int weight(const Eve__Info__ErrorInfo *e)
{
    if (!words_has_error(e))
        return 0;
    return words_is_fatal(e) ? 3 : (int) e->severity;
}

const Eve__Info__ErrorInfo *words_worst(Eve__Info__ErrorInfo *const *list, size_t n)
{
    const Eve__Info__ErrorInfo *worst = NULL;
    for (size_t i = 0; i < MIN(n, (size_t) WORDS_MAX_SEVERITY_ENTRIES); i++)
        if (weight(list[i]) > weight(worst))
            worst = list[i];
    return worst;
}

/* ---- times and amounts -------------------------------------------------------------------- */

int64_t words_time(const Google__Protobuf__Timestamp *t)
{
    if (!t || t->seconds <= 0 || t->seconds > MAX_SECONDS || t->nanos < 0 || t->nanos > 999999999)
        return 0;
    return t->seconds * 1000000 + t->nanos / 1000;
}

struct str words_stamp(struct arena *a, int64_t wall_us)
{
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(wall_us, text);
    return arena_str(a, str_of(text));
}

struct str words_stamp_exact(struct arena *a, int64_t wall_us)
{
    char text[CLOCK_MICROS_BYTES];
    clock_format_micros(wall_us, text);
    return arena_str(a, str_of(text));
}

struct str words_bytes(struct arena *a, uint64_t n_bytes)
{
    struct quantity q = quantity_from_int((int64_t) MIN(n_bytes, (uint64_t) INT64_MAX));
    q.format = QUANTITY_BINARY;
    return quantity_text(a, &q);
}

struct str words_mebibytes(struct arena *a, uint64_t n_mebibytes)
{
    return words_bytes(a, MIN(n_mebibytes, (uint64_t) INT64_MAX >> 20) << 20);
}
