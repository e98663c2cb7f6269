/* SPDX-License-Identifier: Apache-2.0 */
#include "json/fieldpath.h"

#include <stdio.h>

#define INDEX_BYTES 24 /* '[', an int64, ']', NUL */

/* The text of one frame, in its pieces: an opening character or none, the middle, a closing one or
 * none. */
struct piece {
    const char *open, *close;
    struct str middle;
    char digits[INDEX_BYTES];
};

static void piece_of(const struct field_path *frame, struct piece *ret_piece)
{
    bool is_name = frame->name.p;
    ret_piece->open = !is_name ? "[" : frame->parent ? "." : "";
    ret_piece->close = is_name ? "" : "]";
    if (is_name) {
        ret_piece->middle = frame->name;
    } else if (frame->key.p) {
        ret_piece->middle = frame->key;
    } else {
        int n = snprintf(ret_piece->digits, INDEX_BYTES, "%lld", (long long) frame->index);
        ret_piece->middle = str_range(ret_piece->digits, (size_t) n);
    }
}

static char *prepend(char *end, const char *p, size_t n)
{
    if (n)
        memcpy(end - n, p, n);
    return end - n;
}

struct str field_path_text(struct arena *a, const struct field_path *path)
{
    struct piece piece;
    size_t n = 0;
    for (const struct field_path *f = path; f; f = f->parent) {
        piece_of(f, &piece);
        n += strlen(piece.open) + piece.middle.n + strlen(piece.close);
    }
    char *text = arena_alloc(a, n + 1);
    char *at = text + n;
    *at = '\0';
    for (const struct field_path *f = path; f; f = f->parent) {
        piece_of(f, &piece);
        at = prepend(at, piece.close, strlen(piece.close));
        at = prepend(at, piece.middle.p, piece.middle.n);
        at = prepend(at, piece.open, strlen(piece.open));
    }
    return str_range(text, n);
}
