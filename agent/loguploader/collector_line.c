/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "loguploader/collector_internal.h"
#include "machine/machine.h"

/* Cut between characters. */
static struct str shortened(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    size_t n = max;
    while (n > 0 && ((unsigned char) s.p[n] & 0xc0) == 0x80)
        n--;
    return str_sub(s, 0, n);
}

static size_t valid_length(struct str s)
{
    for (size_t n = 1; n <= 4 && n <= s.n; n++)
        if (str_is_utf8(str_sub(s, 0, n)))
            return n;
    return 0;
}

/* Bytes that are no UTF-8 become U+FFFD: whatever an application prints must be readable. */
static void append_clean(struct buf *b, struct str s)
{
    while (s.n > 0) {
        size_t n = valid_length(s);
        buf_append_str(b, n ? str_sub(s, 0, n) : STR("\xef\xbf\xbd"));
        s = str_from(s, MAX(n, 1));
    }
}

static void append_text(struct buf *b, struct str s, size_t max)
{
    s = shortened(s, max);
    if (str_is_utf8(s)) {
        json_write_str(b, s);
        return;
    }
    BUF_AUTO clean = {0};
    append_clean(&clean, s);
    json_write_str(b, buf_str(&clean));
}

static void append_member(struct buf *b, const char *name, struct str value, size_t max)
{
    if (value.n == 0)
        return;
    buf_printf(b, "\"%s\":", name);
    append_text(b, value, max);
    buf_append_char(b, ',');
}

void collector_encode(struct buf *b, const struct collector_line *line, uint64_t msgid)
{
    char pid[24];
    (void) snprintf(pid, sizeof(pid), "%ld", (long) getpid());
    int64_t us = line->wall_us;
    buf_append_char(b, '{');
    append_member(b, "severity", line->severity.n ? line->severity : STR("info"),
                  COLLECTOR_MAX_WORD_BYTES);
    append_member(b, "source", line->source, COLLECTOR_MAX_WORD_BYTES);
    append_member(b, "iid", line->iid.p ? line->iid : str_of(pid), COLLECTOR_MAX_WORD_BYTES);
    append_member(b, "content", line->content, COLLECTOR_MAX_CONTENT_BYTES);
    buf_printf(b, "\"msgid\":%llu,\"timestamp\":{\"seconds\":%lld,\"nanos\":%d}",
               (unsigned long long) msgid, (long long) (us / 1000000), (int) (us % 1000000) * 1000);
    if (line->filename.n) {
        buf_append_str(b, STR(",\"filename\":"));
        append_text(b, line->filename, COLLECTOR_MAX_WORD_BYTES);
    }
    if (line->function.n) {
        buf_append_str(b, STR(",\"function\":"));
        append_text(b, line->function, COLLECTOR_MAX_WORD_BYTES);
    }
    buf_append_str(b, STR("}\n"));
}

static void encode_device_head(struct buf *b, struct node *n)
{
    ARENA_AUTO a = arena_new();
    struct machine_identity identity = {0};
    char device[UUID_TEXT_BYTES];
    (void) n->machine->functions->identity(n->machine, a, &identity);
    buf_append_char(b, '{');
    if (!uuid_is_zero(&n->device)) {
        uuid_text(&n->device, device);
        buf_printf(b, "\"devID\":\"%s\",", device);
    }
    buf_append_str(b, STR("\"image\":\"IMGA\",\"eveVersion\":"));
    append_text(b, identity.eve_version, COLLECTOR_MAX_WORD_BYTES);
    buf_append_str(b, STR("}\n"));
}

void collector_encode_head(struct buf *b, const struct collector *c,
                           const struct collector_stream *s)
{
    if (uuid_is_zero(&s->app)) {
        encode_device_head(b, c->node);
        return;
    }
    struct str name = shortened(str_of(s->name ? s->name : ""), COLLECTOR_MAX_WORD_BYTES);
    for (size_t i = 0; i < name.n; i++)
        buf_append_char(b, name.p[i] == '\n' ? ' ' : name.p[i]);
    buf_append_char(b, '\n');
}
