/* SPDX-License-Identifier: Apache-2.0 */
/* Values in messages, as Go's fmt shows what its decoder made of them. */
#include <stdlib.h>

#include "schema/causes.h"
#include "schema/patch_internal.h"

#define MAX_SHOWN_BYTES 16384 /* of one value; the rest is cut off */

static int compare_names(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp(json_str(&(*x)->key), json_str(&(*y)->key));
}

static const struct json_member **sorted(struct arena *a, const struct json *object)
{
    const struct json_member **members = ARENA_ARRAY(a, const struct json_member *, object->n + 1);
    for (uint32_t i = 0; i < object->n; i++)
        members[i] = &object->members[i];
    if (object->n > 1)
        qsort(members, object->n, sizeof(*members), compare_names);
    return members;
}

static void write_text(struct arena *a, struct buf *b, const struct json *value)
{
    if (b->n > MAX_SHOWN_BYTES)
        return;
    if (json_is(value, JSON_OBJECT)) {
        const struct json_member **members = sorted(a, value);
        buf_append_str(b, STR("map["));
        for (uint32_t i = 0; i < value->n; i++) {
            buf_append_str(b, i ? STR(" ") : STR(""));
            buf_append_str(b, json_str(&members[i]->key));
            buf_append_char(b, ':');
            write_text(a, b, &members[i]->value);
        }
        buf_append_char(b, ']');
    } else if (json_is(value, JSON_ARRAY)) {
        buf_append_char(b, '[');
        JSON_FOR_EACH_ITEM (value, item) {
            buf_append_str(b, item != value->items ? STR(" ") : STR(""));
            write_text(a, b, item);
        }
        buf_append_char(b, ']');
    } else if (json_is(value, JSON_STRING)) {
        buf_append_str(b, json_str(value));
    } else if (json_is(value, JSON_NULL)) {
        buf_append_str(b, STR("<nil>"));
    } else {
        json_write(b, value);
    }
}

static void write_syntax(struct arena *a, struct buf *b, const struct json *value)
{
    if (b->n > MAX_SHOWN_BYTES)
        return;
    if (json_is(value, JSON_OBJECT)) {
        const struct json_member **members = sorted(a, value);
        buf_append_str(b, STR("map[string]interface {}{"));
        for (uint32_t i = 0; i < value->n; i++) {
            buf_append_str(b, i ? STR(", ") : STR(""));
            causes_quote(b, json_str(&members[i]->key));
            buf_append_char(b, ':');
            write_syntax(a, b, &members[i]->value);
        }
        buf_append_char(b, '}');
    } else if (json_is(value, JSON_ARRAY)) {
        buf_append_str(b, STR("[]interface {}{"));
        JSON_FOR_EACH_ITEM (value, item) {
            buf_append_str(b, item != value->items ? STR(", ") : STR(""));
            write_syntax(a, b, item);
        }
        buf_append_char(b, '}');
    } else if (json_is(value, JSON_STRING)) {
        causes_quote(b, json_str(value));
    } else if (json_is(value, JSON_NULL)) {
        buf_append_str(b, STR("interface {}(nil)"));
    } else {
        json_write(b, value);
    }
}

static struct str cut(struct arena *a, const struct buf *b)
{
    struct str s = str_sub(buf_str(b), 0, MAX_SHOWN_BYTES);
    while (s.n < b->n && s.n > 0 && ((unsigned char) s.p[s.n] & 0xc0) == 0x80)
        s.n--;
    return arena_str(a, s);
}

struct str patch_go_text(struct arena *a, const struct json *value)
{
    BUF_AUTO b = {0};
    write_text(a, &b, value);
    return cut(a, &b);
}

struct str patch_go_syntax(struct arena *a, const struct json *value)
{
    BUF_AUTO b = {0};
    write_syntax(a, &b, value);
    return cut(a, &b);
}

const char *patch_go_kind(const struct json *value)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "bool",     [JSON_INT] = "number",
        [JSON_DOUBLE] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    return names[value->type];
}
