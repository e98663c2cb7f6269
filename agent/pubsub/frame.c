/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/frame.h"

#include <errno.h>
#include <inttypes.h>

#include "base/base64.h"

#define MAX_WORDS 4

/* Words as Go's readers count them: a further one makes no difference but to an update. */
static const struct {
    struct str text;
    size_t min_words, max_words;
} words[] = {
    [PUBSUB_REQUEST] = {STR("request"), 2, 2},
    [PUBSUB_HELLO] = {STR("hello"), 2, SIZE_MAX},
    [PUBSUB_UPDATE] = {STR("update"), 4, 4},
    [PUBSUB_DELETE] = {STR("delete"), 3, SIZE_MAX},
    [PUBSUB_COMPLETE] = {STR("complete"), 2, SIZE_MAX},
    [PUBSUB_RESTARTED] = {STR("restarted"), 2, SIZE_MAX},
};

/* The words of a packet, the first MAX_WORDS of them kept; an empty word is one, too. */
static size_t split(struct str packet, struct str kept[MAX_WORDS])
{
    size_t n = 0;
    for (;;) {
        ptrdiff_t end = str_find(packet, ' ');
        if (n < MAX_WORDS)
            kept[n] = end < 0 ? packet : str_sub(packet, 0, (size_t) end);
        n++;
        if (end < 0)
            return n;
        packet = str_from(packet, (size_t) end + 1);
    }
}

static int find_word(struct str text)
{
    for (size_t i = 0; i < N_ELEMENTS(words); i++) {
        if (str_eq(words[i].text, text))
            return (int) i;
    }
    return -EBADMSG;
}

static int read_counter(struct str text, int64_t *ret)
{
    int64_t counter = 0;
    if (text.n && (text.p[0] < '0' || text.p[0] > '9'))
        return -EBADMSG;
    if (str_to_i64(text, &counter) < 0)
        return -EBADMSG;
    *ret = counter;
    return 0;
}

static int read_base64(struct arena *a, struct str text, struct str *ret)
{
    return base64_decode(a, text, BASE64_STANDARD, ret, NULL) < 0 ? -EBADMSG : 0;
}

int pubsub_frame_read(struct arena *a, struct str packet, struct pubsub_frame *ret)
{
    struct str part[MAX_WORDS] = {0};
    if (packet.n >= PUBSUB_MAX_PACKET_BYTES)
        return -EBADMSG;
    size_t n = split(packet, part);
    int word = find_word(part[0]);
    if (word < 0 || n < words[word].min_words || n > words[word].max_words)
        return -EBADMSG;
    struct pubsub_frame f = {.word = (enum pubsub_word) word, .topic = part[1]};
    int r = 0;
    if (word == PUBSUB_HELLO) {
        f.is_persistent = n > 2 && str_is(part[2], "true");
    } else if (word == PUBSUB_RESTARTED) {
        f.counter = 1;
        r = n > 2 ? read_counter(part[2], &f.counter) : 0;
    } else if (word == PUBSUB_UPDATE || word == PUBSUB_DELETE) {
        r = read_base64(a, part[2], &f.key);
        if (r == 0 && word == PUBSUB_UPDATE)
            r = read_base64(a, part[3], &f.value);
    }
    if (r == 0)
        *ret = f;
    return r;
}

static size_t base64_bytes(size_t n)
{
    return (n + 2) / 3 * 4;
}

size_t pubsub_frame_update_bytes(size_t n_topic, size_t n_key, size_t n_value)
{
    return words[PUBSUB_UPDATE].text.n + n_topic + base64_bytes(n_key) + base64_bytes(n_value) + 3;
}

static void append_base64(struct buf *b, struct arena *a, struct str bytes)
{
    buf_append_char(b, ' ');
    buf_append_str(b, base64_encode(a, bytes, BASE64_STANDARD));
}

int pubsub_frame_write(struct buf *b, const struct pubsub_frame *f)
{
    size_t before = b->n;
    buf_append_str(b, words[f->word].text);
    buf_append_char(b, ' ');
    buf_append_str(b, f->topic);
    if (f->word == PUBSUB_HELLO)
        buf_append_str(b, f->is_persistent ? STR(" true") : STR(" false"));
    if (f->word == PUBSUB_RESTARTED)
        buf_printf(b, " %" PRId64, f->counter);
    if (f->word == PUBSUB_UPDATE || f->word == PUBSUB_DELETE) {
        ARENA_AUTO a = arena_new();
        append_base64(b, a, f->key);
        if (f->word == PUBSUB_UPDATE)
            append_base64(b, a, f->value);
    }
    if (b->n - before < PUBSUB_MAX_PACKET_BYTES)
        return 0;
    b->n = before;
    return -EMSGSIZE;
}
