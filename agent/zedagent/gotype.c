/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/gotype.h"

#include "base/base64.h"
#include "base/uuid.h"
#include "zedagent/address.h"

#define NIL_UUID STR("00000000-0000-0000-0000-000000000000")
#define SEVERITY_ERROR 3

struct gotype gotype_new(struct arena *a)
{
    return (struct gotype){.arena = a, .object = json_new(a, json_object())};
}

struct gotype gotype_sparse(struct arena *a)
{
    struct gotype g = gotype_new(a);
    g.is_sparse = true;
    return g;
}

static void add(struct gotype *g, const char *name, struct json value, bool is_zero)
{
    if (g->is_sparse && is_zero)
        return;
    json_append_member(g->arena, g->object, str_of(name), value);
}

/* Byte by byte: what is no sequence becomes U+FFFD. */
static struct str repair(struct arena *a, struct str s)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < s.n;) {
        size_t n = 1;
        while (n < 4 && i + n < s.n && ((unsigned char) s.p[i + n] & 0xC0) == 0x80)
            n++;
        if (str_is_utf8(str_sub(s, i, i + n))) {
            buf_append(&b, s.p + i, n);
            i += n;
        } else {
            buf_append_str(&b, STR("\xEF\xBF\xBD"));
            i++;
        }
    }
    return arena_str(a, buf_str(&b));
}

struct json gotype_string(struct arena *a, struct str value)
{
    if (!value.n)
        return json_string(STR(""));
    return json_string(str_is_utf8(value) ? value : repair(a, value));
}

struct str gotype_key(struct arena *a, struct str value)
{
    const struct json v = gotype_string(a, value);
    return json_str(&v);
}

void gotype_text(struct gotype *g, const char *name, struct str value)
{
    add(g, name, gotype_string(g->arena, value), value.n == 0);
}

void gotype_int(struct gotype *g, const char *name, int64_t value)
{
    add(g, name, json_int(value), value == 0);
}

void gotype_uint(struct gotype *g, const char *name, uint64_t value)
{
    gotype_int(g, name, value > INT64_MAX ? INT64_MAX : (int64_t) value);
}

void gotype_bool(struct gotype *g, const char *name, bool value)
{
    add(g, name, json_bool(value), !value);
}

void gotype_value(struct gotype *g, const char *name, struct json *value)
{
    add(g, name, value ? *value : json_null(), !value || (json_is_container(value) && !value->n));
}

struct json gotype_uuid_value(struct arena *a, struct str text)
{
    struct uuid u;
    char canonical[UUID_TEXT_BYTES];
    if (uuid_parse(text, &u) < 0)
        return json_string(NIL_UUID);
    uuid_text(&u, canonical);
    return json_string(arena_str(a, str_of(canonical)));
}

void gotype_uuid(struct gotype *g, const char *name, struct str text)
{
    add(g, name, gotype_uuid_value(g->arena, text), text.n == 0);
}

struct json gotype_bytes_value(struct arena *a, struct str bytes)
{
    return bytes.n ? json_string(base64_encode(a, bytes, BASE64_STANDARD)) : json_null();
}

void gotype_bytes(struct gotype *g, const char *name, struct str bytes)
{
    add(g, name, gotype_bytes_value(g->arena, bytes), bytes.n == 0);
}

void gotype_texts(struct gotype *g, const char *name, char *const *texts, size_t n)
{
    struct json list = n ? json_array() : json_null();
    for (size_t i = 0; i < n; i++)
        json_push(g->arena, &list, gotype_string(g->arena, str_of(texts[i])));
    add(g, name, list, n == 0);
}

struct str gotype_time_text(struct arena *a, int64_t wall_us)
{
    char text[CLOCK_MICROS_BYTES];
    struct str s;
    if (!wall_us)
        return STR("0001-01-01T00:00:00Z");
    clock_format_micros(wall_us, text);
    s = str_sub(str_of(text), 0, strlen(text) - 1);
    while (s.n && s.p[s.n - 1] == '0')
        s.n--;
    if (s.n && s.p[s.n - 1] == '.')
        s.n--;
    return arena_printf(a, "%.*sZ", STR_ARG(s));
}

void gotype_time(struct gotype *g, const char *name, int64_t wall_us)
{
    add(g, name, json_string(gotype_time_text(g->arena, wall_us)), wall_us == 0);
}

void gotype_address(struct gotype *g, const char *name, const struct address *address)
{
    const struct str text = address && address->n ? address_text(g->arena, address) : STR("");
    add(g, name, json_string(text), text.n == 0);
}

void gotype_subnet(struct gotype *g, const char *name, const struct subnet *subnet)
{
    struct gotype o = gotype_new(g->arena);
    unsigned char mask[ADDRESS_MAX_BYTES] = {0};
    if (!subnet || !subnet->base.n) {
        gotype_value(g, name, NULL);
        return;
    }
    for (unsigned i = 0; i < subnet->bits; i++)
        mask[i / 8] |= (unsigned char) (0x80 >> (i % 8));
    gotype_address(&o, "IP", &subnet->base);
    gotype_bytes(&o, "Mask", str_range((const char *) mask, subnet->base.n));
    gotype_value(g, name, o.object);
}

void gotype_error(struct gotype *g, struct str error, int64_t now_us)
{
    gotype_text(g, "Error", error);
    gotype_time(g, "ErrorTime", error.n ? now_us : 0);
    gotype_int(g, "ErrorSeverity", error.n ? SEVERITY_ERROR : 0);
    gotype_text(g, "ErrorRetryCondition", STR(""));
    gotype_value(g, "ErrorEntities", NULL);
}
