/* SPDX-License-Identifier: Apache-2.0 */
#include "api/codec.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"

/* ---- writing ------------------------------------------------------------------------------ */

/* ObjectMeta in the order of its text; resourceVersion comes behind uid, where the store fills it
 * in. */
static const struct str meta_order[] = {
    {"name", 4},
    {"generateName", 12},
    {"namespace", 9},
    {"uid", 3},
    {"generation", 10},
    {"creationTimestamp", 17},
    {"deletionTimestamp", 17},
    {"deletionGracePeriodSeconds", 26},
    {"labels", 6},
    {"annotations", 11},
    {"ownerReferences", 15},
    {"finalizers", 10},
    {"managedFields", 13},
};
#define META_REVISION_BEHIND 3

static void write_metadata(struct buf *b, const struct json *meta)
{
    buf_append_char(b, '{');
    bool is_first = true;
    for (size_t i = 0; i < N_ELEMENTS(meta_order); i++) {
        const struct json *value = json_get(meta, meta_order[i]);
        if (value && value->type != JSON_NULL) {
            if (!is_first)
                buf_append_char(b, ',');
            is_first = false;
            json_write_str(b, meta_order[i]);
            buf_append_char(b, ':');
            json_write(b, value);
        }
        if (i == META_REVISION_BEHIND) {
            buf_append_str(b, is_first ? STR("\"resourceVersion\":\"\"")
                                       : STR(",\"resourceVersion\":\"\""));
            is_first = false;
        }
    }
    buf_append_char(b, '}');
}

static bool is_head_member(struct str key)
{
    return str_is(key, "apiVersion") || str_is(key, "kind") || str_is(key, "metadata");
}

int codec_encode(const struct kind *kind, const struct json *object, struct object **ret_object)
{
    BUF_AUTO b = {0};
    (void) buf_reserve(&b, 2048);
    buf_append_str(&b, STR("{\"apiVersion\":\""));
    buf_append_str(&b, kind->api_version);
    buf_append_str(&b, STR("\",\"kind\":\""));
    buf_append_str(&b, kind->kind);
    buf_append_str(&b, STR("\",\"metadata\":"));
    write_metadata(&b, json_get(object, STR("metadata")));
    JSON_FOR_EACH_MEMBER (object, m) {
        if (is_head_member(json_str(&m->key)))
            continue;
        buf_append_char(&b, ',');
        json_write_str(&b, json_str(&m->key));
        buf_append_char(&b, ':');
        json_write(&b, &m->value);
    }
    buf_append_char(&b, '}');
    if (b.n > OBJECT_MAX_BYTES)
        return -E2BIG;
    struct object_head head = {0};
    int r = codec_parse_head(buf_str(&b), &head);
    if (r < 0)
        return r;
    *ret_object = object_new(buf_str(&b), &head);
    return 0;
}

/* ---- reading the head --------------------------------------------------------------------- */

/* A cursor over a JSON text with a sticky error. It trusts nothing: the text may come from a
 * damaged file. */
struct scan {
    struct str text;
    size_t at;
    bool failed;
};

static char scan_peek(const struct scan *s)
{
    return s->at < s->text.n ? s->text.p[s->at] : '\0';
}

static void scan_expect(struct scan *s, char c)
{
    if (scan_peek(s) != c || s->at >= s->text.n)
        s->failed = true;
    else
        s->at++;
}

/* The contents between the quotes, escapes and all. */
static struct span scan_string(struct scan *s)
{
    scan_expect(s, '"');
    size_t begin = s->at;
    while (!s->failed && s->at < s->text.n && s->text.p[s->at] != '"')
        s->at += s->text.p[s->at] == '\\' ? 2 : 1;
    struct span span = {(uint32_t) begin, (uint32_t) (MIN(s->at, s->text.n) - begin)};
    scan_expect(s, '"');
    return span;
}

/* Any value: strings whole, containers by counting brackets outside strings. */
static void scan_skip(struct scan *s)
{
    size_t depth = 0;
    do {
        char c = scan_peek(s);
        if (c == '"') {
            (void) scan_string(s);
        } else if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if (c == '}' || c == ']') {
            s->failed |= depth == 0;
            depth -= depth > 0;
            s->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            s->at++;
        } else {
            size_t begin = s->at;
            while (s->at < s->text.n && !strchr(",:{}[]\"", s->text.p[s->at]))
                s->at++;
            s->failed |= s->at == begin;
        }
    } while (depth > 0 && !s->failed);
}

/* Steps to the next member: returns its key, or a zero span at the end. */
static bool scan_member(struct scan *s, bool *is_first, struct span *ret_key)
{
    if (s->failed)
        return false;
    if (scan_peek(s) == '}') {
        s->at++;
        return false;
    }
    if (!*is_first)
        scan_expect(s, ',');
    *is_first = false;
    *ret_key = scan_string(s);
    scan_expect(s, ':');
    return !s->failed;
}

static bool span_is(const struct scan *s, struct span span, const char *z)
{
    return str_is(str_range(s->text.p + span.offset, span.length), z);
}

static void scan_labels(struct scan *s, struct object_head *head)
{
    scan_expect(s, '{');
    bool is_first = true;
    struct span key = {0};
    size_t capacity = 0;
    while (scan_member(s, &is_first, &key)) {
        struct span value = scan_string(s);
        if (s->failed || head->n_labels == UINT16_MAX) {
            s->failed = true;
            return;
        }
        if (head->n_labels == capacity) {
            capacity = MAX(capacity * 2, (size_t) 4);
            head->labels = mem_realloc_array(head->labels, capacity, sizeof(*head->labels));
        }
        head->labels[head->n_labels++] = (struct object_label){key, value};
    }
}

/* True when the container at the cursor has something in it. */
static bool scan_not_empty(struct scan *s)
{
    size_t at = s->at;
    scan_skip(s);
    return s->at > at + 2;
}

static void scan_metadata(struct scan *s, struct object_head *head)
{
    scan_expect(s, '{');
    bool is_first = true, has_revision = false;
    struct span key = {0};
    while (scan_member(s, &is_first, &key)) {
        if (span_is(s, key, "name")) {
            head->name = scan_string(s);
        } else if (span_is(s, key, "namespace")) {
            head->namespace = scan_string(s);
        } else if (span_is(s, key, "uid")) {
            head->uid = scan_string(s);
        } else if (span_is(s, key, "resourceVersion")) {
            struct span revision = scan_string(s);
            head->revision_at = revision.offset;
            has_revision = true;
            s->failed |= revision.length > 0;
        } else if (span_is(s, key, "labels") && head->n_labels == 0) {
            scan_labels(s, head);
        } else if (span_is(s, key, "deletionTimestamp")) {
            head->is_deleting = true;
            scan_skip(s);
        } else if (span_is(s, key, "ownerReferences")) {
            head->has_owners = scan_not_empty(s);
        } else if (span_is(s, key, "finalizers")) {
            head->has_finalizers = scan_not_empty(s);
        } else if (span_is(s, key, "managedFields")) {
            break; /* the last and by far the longest: nothing of the head is in it or behind it */
        } else {
            scan_skip(s);
        }
    }
    s->failed |= !has_revision;
}

/* Up to the value of metadata; returns where its key begins. */
static uint32_t scan_to_metadata(struct scan *s)
{
    struct span key = {0};
    bool is_first = true;
    scan_expect(s, '{');
    for (const char *const *wanted = (const char *const[]){"apiVersion", "kind", NULL}; *wanted;
         wanted++) {
        s->failed |= !scan_member(s, &is_first, &key) || !span_is(s, key, *wanted);
        if (!s->failed)
            (void) scan_string(s);
    }
    const uint32_t body_at = (uint32_t) s->at + 1;
    s->failed |= !scan_member(s, &is_first, &key) || !span_is(s, key, "metadata");
    return body_at;
}

int codec_parse_head(struct str text, struct object_head *ret_head)
{
    struct scan s = {.text = text};
    struct object_head head = {0};
    head.body_at = scan_to_metadata(&s);
    if (!s.failed)
        scan_metadata(&s, &head);
    if (s.failed || text.n > OBJECT_MAX_BYTES + OBJECT_REVISION_ROOM) {
        mem_free(head.labels);
        return -EINVAL;
    }
    *ret_head = head;
    return 0;
}

struct str codec_without_managed(struct arena *a, struct str text)
{
    struct scan s = {.text = text};
    struct span key = {0};
    bool is_first = true;
    (void) scan_to_metadata(&s);
    scan_expect(&s, '{');
    for (size_t begin = s.at; scan_member(&s, &is_first, &key); begin = s.at) {
        scan_skip(&s);
        if (span_is(&s, key, "managedFields") && text.p[begin] == ',' && !s.failed)
            return arena_join(a, (struct str[]){str_sub(text, 0, begin), str_from(text, s.at)}, 2);
    }
    return text;
}

int codec_parse_stored(void *ctx, struct str key, struct str text, struct object_head *ret_head)
{
    (void) ctx;
    (void) key;
    return codec_parse_head(text, ret_head);
}

struct object *codec_farewell(const struct object *o)
{
    BUF_AUTO b = {0};
    size_t at = o->head.revision_at, end = at;
    while (end < o->n && o->text[end] != '"')
        end++;
    buf_append(&b, o->text, at);
    buf_append(&b, o->text + end, o->n - end);
    struct object_head head = {0};
    /* The text was ours when it was committed and still is without its digits. */
    if (codec_parse_head(buf_str(&b), &head) < 0)
        return NULL;
    return object_new(buf_str(&b), &head);
}

/* ---- other versions ----------------------------------------------------------------------- */

/* Does the stored text need more than a look to be this kind's? Another version may know fewer
 * fields, and a schema may have changed since the text was written. */
static bool needs_decoding(const struct object *o, const struct kind *kind)
{
    return kind->from_stored ||
           (!kind->is_native && (!kind->is_storage || o->revision < kind->since_revision));
}

struct json *codec_decode(struct arena *a, const struct object *o, const struct kind *kind)
{
    struct json *value = json_parse_quick(a, object_text(o));
    if (!value)
        return NULL;
    if (kind->from_stored)
        kind->from_stored(a, value);
    else if (needs_decoding(o, kind)) {
        schema_prune(a, kind->schema, value, NULL);
        schema_default(a, kind->schema, value);
    }
    (void) json_set(a, value, STR("apiVersion"), json_string(kind->api_version));
    (void) json_set(a, value, STR("kind"), json_string(kind->kind));
    return value;
}

static struct json stored_metadata(struct arena *a, const struct json *meta, int64_t revision)
{
    struct json stored = json_object();
    for (size_t i = 0; i < N_ELEMENTS(meta_order); i++) {
        const struct json *value = json_get(meta, meta_order[i]);
        if (value && value->type != JSON_NULL)
            (void) json_append_member(a, &stored, meta_order[i], json_clone(a, value));
        if (i == META_REVISION_BEHIND)
            (void) json_append_member(a, &stored, STR("resourceVersion"),
                                      json_string(arena_printf(a, "%" PRId64, revision)));
    }
    return stored;
}

struct json *codec_stored_value(struct arena *a, const struct kind *kind, const struct json *object,
                                int64_t revision)
{
    if (kind->from_stored || kind->to_stored || (!kind->is_native && !kind->is_storage))
        return NULL;
    struct json *value = json_new(a, json_object());
    (void) json_append_member(a, value, STR("apiVersion"), json_string(kind->api_version));
    (void) json_append_member(a, value, STR("kind"), json_string(kind->kind));
    (void) json_append_member(a, value, STR("metadata"),
                              stored_metadata(a, json_get(object, STR("metadata")), revision));
    JSON_FOR_EACH_MEMBER (object, m)
        if (!is_head_member(json_str(&m->key)))
            (void) json_append_member(a, value, json_str(&m->key), json_clone(a, &m->value));
    return value;
}

static struct slice decoded_slice(struct object *o, const struct kind *kind, bool as_item)
{
    ARENA_AUTO a = arena_new();
    struct buf b = {0};
    struct json *value = codec_decode(a, o, kind);
    if (as_item) {
        (void) json_remove(value, STR("apiVersion"));
        (void) json_remove(value, STR("kind"));
    }
    json_write(&b, value);
    size_t n = b.n;
    return slice_adopt(buf_take(&b), n);
}

size_t codec_slices(struct object *o, const struct kind *kind, bool as_item,
                    struct slice *ret_slices)
{
    if (needs_decoding(o, kind)) {
        ret_slices[0] = decoded_slice(o, kind, as_item);
        return 1;
    }
    if (as_item) {
        ret_slices[0] = slice_static(STR("{"));
        ret_slices[1] = object_slice(o, o->head.body_at);
        return 2;
    }
    ret_slices[0] = object_slice(o, 0);
    return 1;
}
