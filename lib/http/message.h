/* SPDX-License-Identifier: Apache-2.0 */
/* A request while it is gathered, whatever the protocol: its words go into one buffer as they come
 * and become headers when the head is complete. Knows no protocol and does no I/O. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "http/header.h"

/* What a header costs beyond its bytes, so that many tiny ones reach the limit too (RFC
 * 9113 6.5.2). */
#define MESSAGE_HEADER_OVERHEAD 32

struct message_span {
    uint32_t begin;
    uint32_t length;
};

struct message_field {
    struct message_span name;
    struct message_span value;
};

/* Zeroed but for the arena. The words are spans of text until message_finish(), then strings. */
struct message {
    struct arena *arena; /* the headers are in it */
    struct buf text;
    struct message_field *fields;
    size_t n_fields;
    size_t fields_capacity;
    size_t head_bytes; /* counted against the limit */
    struct message_span method_span, target_span, authority_span;

    struct str method, target, authority;
    struct http_header *headers;
    size_t n_headers;
    struct buf body;
};

void message_done(struct message *m);
/* Empties it, keeps memory of ordinary size for reuse and leaves the arena alone. */
void message_reset(struct message *m);

/* Opens an empty span at the end of the text, and adds bytes to it: to the newest span only. */
struct message_span message_open_span(const struct message *m);
void message_extend(struct message *m, struct message_span *span, struct str bytes);
struct message_span message_add_span(struct message *m, struct str bytes);
/* A whole header, or one whose name and value are extended as they come. */
struct message_field *message_add_field(struct message *m);
void message_add_header(struct message *m, struct str lower_name, struct str value);
/* Adds to the head's size; -EMSGSIZE when that passes the limit. */
int message_charge(struct message *m, size_t n_bytes, size_t limit_bytes);

/* The head is complete: fills the strings and headers. Cookies that came in crumbs become one (RFC
 * 9113 8.2.3). */
void message_finish(struct message *m);
/* First value of a header of a finished message; STR_NONE when absent. */
struct str message_header(const struct message *m, struct str lower_name);
size_t message_count_header(const struct message *m, struct str lower_name);
/* True when a comma-separated list names the token, in any case. */
bool message_has_token(struct str list, struct str token);

/* True for a header that the protocol itself decides (connection, content-length ...), in any case.
 */
bool message_is_framing_header(struct str name);

/* Splits the target into path and query. An absolute target gives its authority too. -EINVAL when
 * it is neither absolute, nor a path, nor the "*" of OPTIONS. */
int message_split_target(struct message *m, struct str *ret_path, struct str *ret_query);
