/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/put.h"

#include "json/json.h"

#define REPLACEMENT STR("\xef\xbf\xbd")

/* The first character and *ret_n, how many bytes of the text it takes. */
static struct str next_character(struct str s, size_t *ret_n)
{
    for (size_t n = 1; n <= 4 && n <= s.n; n++) {
        if (str_is_utf8(str_sub(s, 0, n))) {
            *ret_n = n;
            return str_sub(s, 0, n);
        }
    }
    *ret_n = 1;
    return REPLACEMENT;
}

void put_mended(struct buf *b, struct str s)
{
    size_t n = 0;
    if (str_is_utf8(s)) {
        buf_append_str(b, s);
        return;
    }
    for (; s.n; s = str_from(s, n))
        buf_append_str(b, next_character(s, &n));
}

/* The reason of a right quotes names: the one text in most lines that is not clean. */
static bool has_only_quotes(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((signed char) s.p[i] < 0x20)
            return false;
    return true;
}

char *put_escaped(char *to, struct str s)
{
    if (has_only_quotes(s)) {
        for (size_t i = 0; i < s.n; i++) {
            if (s.p[i] == '"' || s.p[i] == '\\')
                *to++ = '\\';
            *to++ = s.p[i];
        }
        return to;
    }
    BUF_AUTO mended = {0}, text = {0};
    put_mended(&mended, s);
    json_write_str(&text, buf_str(&mended));
    return put(to, str_sub(buf_str(&text), 1, text.n - 1));
}
