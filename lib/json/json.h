/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values: a small tree in an arena. yyjson reads the text; this is the only module that knows
 * it.
 *
 * A value is 16 bytes and is passed by pointer. Trees may share subtrees: treat a value you did not
 * make as immutable, or json_clone() it first. Strings are UTF-8, not NUL-terminated, and may point
 * into the text that was parsed (which lives in the same arena). Members keep the order of the
 * text; a duplicate key is reported by the parser and the last one wins, as in Go.
 *
 * Numbers: what fits int64 is JSON_INT, all else JSON_DOUBLE; `1.0` is a double, as Kubernetes sees
 * it. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#define JSON_MAX_DEPTH 128
#define JSON_MAX_TEXT_BYTES ((size_t) 1 << 30)
#define JSON_MAX_DUPLICATES 100 /* reported in one text, as Kubernetes does */

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_DOUBLE,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json {
    uint8_t type;  /* enum json_type */
    uint8_t room;  /* log2 of a container's capacity; 0: no room beyond n */
    bool is_plain; /* a string that is known to need no escape when it is written */
    uint8_t reserved;
    uint32_t n; /* bytes of a string, items of an array, members of an object */
    union {
        bool b;
        int64_t i;
        double d;
        const char *s;
        struct json *items;          /* JSON_ARRAY */
        struct json_member *members; /* JSON_OBJECT */
    };
};

struct json_member {
    struct json key; /* JSON_STRING */
    struct json value;
};

/* ---- reading ------------------------------------------------------------------------------ */

static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}
static inline bool json_is_number(const struct json *v)
{
    return json_is(v, JSON_INT) || json_is(v, JSON_DOUBLE);
}
/* The string's bytes; STR_NONE when v is NULL or no string. */
static inline struct str json_str(const struct json *v)
{
    return json_is(v, JSON_STRING) ? str_range(v->s, v->n) : STR_NONE;
}
/* The member of an object, or NULL when absent or v is NULL or no object. Linear for small objects.
 */
struct json *json_get(const struct json *object, struct str key);
/* json_get() along the keys, NULL-terminated: json_at(v, "metadata", "name", NULL). */
struct json *json_at(const struct json *v, ...) __attribute__((sentinel));
/* Shorthands with a default for what is absent or of another type. */
struct str json_get_str(const struct json *object, struct str key);
bool json_get_bool(const struct json *object, struct str key, bool or_else);
int64_t json_get_int(const struct json *object, struct str key, int64_t or_else);
/* 0 for anything but arrays and objects. */
static inline size_t json_count(const struct json *v)
{
    return json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT) ? v->n : 0;
}
/* What Go leaves out under `omitempty`: null, false, 0, and what has nothing in it. */
bool json_is_empty(const struct json *v);
/* Numbers compare by value (1 equals 1.0), objects without regard to order. */
bool json_equal(const struct json *a, const struct json *b);
/* Whether both would be written as the same text: numbers of one type, members in one order. */
bool json_identical(const struct json *a, const struct json *b);
static inline bool json_is_container(const struct json *v)
{
    return v->type == JSON_ARRAY || v->type == JSON_OBJECT;
}
/* One container, not empty, seen from two trees: the one was made from the other and left this part
 * alone. */
static inline bool json_is_shared(const struct json *a, const struct json *b)
{
    return a->type == b->type && a->n == b->n && a->n && json_is_container(a) &&
           a->items == b->items;
}
/* False when the tree is deeper than JSON_MAX_DEPTH or has more than max_values values, shared
 * subtrees counted each time: a patch can make such a tree from small parts, and what is written
 * must be readable again. */
bool json_fits(const struct json *v, size_t max_values);

/* A hash index over the members of one object, for many lookups in a large one: json_get() is
 * linear. The object must not change meanwhile. */
struct json_index {
    const struct json *object;
    uint32_t *slots; /* member number + 1; 0: free */
    size_t n_slots;
};
void json_index_init(struct json_index *ix, const struct json *object);
void json_index_done(struct json_index *ix);
struct json *json_index_get(const struct json_index *ix, struct str key);

#define JSON_FOR_EACH_MEMBER(object, m) \
    for (struct json_member *m = json_is((object), JSON_OBJECT) ? (object)->members : NULL, \
                            *m##_end = m ? m + (object)->n : NULL; \
         m != m##_end; m++)
#define JSON_FOR_EACH_ITEM(array, item) \
    for (struct json *item = json_is((array), JSON_ARRAY) ? (array)->items : NULL, \
                     *item##_end = item ? item + (array)->n : NULL; \
         item != item##_end; item++)

/* ---- building ----------------------------------------------------------------------------- */

/* By value, to put into a container. Strings are borrowed: copy into the arena what may go away. */
static inline struct json json_null(void)
{
    return (struct json){.type = JSON_NULL};
}
static inline struct json json_bool(bool b)
{
    return (struct json){.type = JSON_BOOL, .b = b};
}
static inline struct json json_int(int64_t i)
{
    return (struct json){.type = JSON_INT, .i = i};
}
static inline struct json json_double(double d)
{
    return (struct json){.type = JSON_DOUBLE, .d = d};
}
static inline struct json json_string(struct str s)
{
    return (struct json){.type = JSON_STRING, .n = (uint32_t) s.n, .s = s.p};
}
static inline struct json json_object(void)
{
    return (struct json){.type = JSON_OBJECT};
}
static inline struct json json_array(void)
{
    return (struct json){.type = JSON_ARRAY};
}
struct json *json_new(struct arena *a, struct json value);

/* Sets or replaces a member and returns where it is; pointers into the container become invalid. */
struct json *json_set(struct arena *a, struct json *object, struct str key, struct json value);
/* As json_set() without looking for an older member: the caller knows that there is none. */
struct json *json_append_member(struct arena *a, struct json *object, struct str key,
                                struct json value);
struct json *json_push(struct arena *a, struct json *array, struct json value);
/* Inserts before position `at`, which may be n. */
struct json *json_insert(struct arena *a, struct json *array, size_t at, struct json value);
/* The member of that key, made as an empty object when absent or no object. */
struct json *json_ensure_object(struct arena *a, struct json *object, struct str key);
bool json_remove(struct json *object, struct str key); /* true if it was there */
void json_remove_at(struct json *array, size_t at);
/* Sorts members by key (bytes), at this level only. */
void json_sort_members(struct json *object);
/* A deep copy of the tree; strings stay shared. */
struct json json_clone(struct arena *a, const struct json *v);
/* Gives a container that may be shared elements of its own, with room for so many more; what is
 * below stays shared. */
void json_unshare(struct arena *a, struct json *container, size_t n_more);
/* Makes the tree share with old what is identical in both, so that who compares the two later need
 * not look into it. Changes value in place; true when all of it is identical. */
bool json_share(struct json *value, const struct json *old);

/* ---- text --------------------------------------------------------------------------------- */

/* A key that stood twice in one object; `path` as Kubernetes writes it: spec.ports[0].name. */
struct json_duplicate {
    struct str path;
    struct str yaml_message; /* from yaml_parse(): line 5: key "a" already set in map */
    struct json_duplicate *next;
};

struct json_parse_result {
    struct json *value;                /* NULL on failure */
    struct json_duplicate *duplicates; /* in the order of the text, each path once */
    struct str error;                  /* in the words of Go's decoder where we can */
    size_t error_at;
};

/* Parses one JSON text, with nothing behind it but blanks. Deeper than JSON_MAX_DEPTH is -E2BIG,
 * bad text is -EINVAL; both fill ret->error. Invalid UTF-8 is refused. The text need not outlive
 * the call. */
int json_parse(struct arena *a, struct str text, struct json_parse_result *ret);
/* For text known to be good, such as what we stored: NULL on failure. */
struct json *json_parse_quick(struct arena *a, struct str text);

/* Appends the compact text. Doubles are written as Go writes them; strings escaped minimally. */
void json_write(struct buf *b, const struct json *v);
void json_write_str(struct buf *b, struct str s);
/* Indented by two blanks, as `?pretty=true` asks. */
void json_write_pretty(struct buf *b, const struct json *v);
struct str json_text(struct arena *a, const struct json *v);
