/* SPDX-License-Identifier: Apache-2.0 */
/* Log uploads, whole and as the lines within: a check and an inflation agree, heads are UTF-8, and
 * every line is met once. */
#include <errno.h>
#include <stdlib.h>

#include "eve/newlog.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_head(struct arena *a, struct str gzip, int whole)
{
    struct newlog_head head;
    if (newlog_read_head(a, gzip, &head) < 0) {
        require(whole == -EBADMSG);
        return;
    }
    require(str_is_utf8(head.name) && str_is_utf8(head.comment));
    require(head.name.n + head.comment.n <= 2 * NEWLOG_MAX_HEADER_BYTES);
    require(head.created_s >= 0);
}

static void read_lines(struct arena *a, struct str text)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < text.n; i++)
        n_lines += text.p[i] == '\n';
    struct newlog_entry e;
    int r = 0;
    for (struct str rest = text; (r = newlog_next(a, &rest, &e)) != -ENOENT;) {
        require(n_lines-- > 0);
        if (r < 0)
            continue;
        require(str_is_utf8(e.severity) && str_is_utf8(e.content) && str_is_utf8(e.source));
        require(!e.tags || json_is(e.tags, JSON_OBJECT));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = str_range((const char *) data, size);
    ARENA_AUTO arena = arena_new();
    BUF_AUTO content = {0};
    int r = newlog_check(bytes);
    require(newlog_inflate(&content, bytes) == r);
    require(content.n <= NEWLOG_MAX_INFLATED_BYTES && (r == 0 || content.n == 0));
    read_head(arena, bytes, r);
    read_lines(arena, r == 0 ? buf_str(&content) : bytes);
    return 0;
}
