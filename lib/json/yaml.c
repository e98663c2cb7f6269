/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <yaml.h>

#include "base/map.h"
#include "json/json_internal.h"
#include "json/yaml_internal.h"

struct anchor {
    struct json value;
    bool is_open; /* its node is still being read: an alias would contain itself */
};

struct reader {
    struct arena *arena;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    struct map anchors; /* struct anchor */
    size_t n_alias_nodes, n_alias_bytes;
    struct json_duplicates duplicates;
    struct str error;
};

/* A node where it is read: its path, and how many containers are around it. */
struct place {
    const struct field_path *path;
    int depth;
};

static int read_node(struct reader *r, struct place at, struct json *ret_value);

static int fail(struct reader *r, struct str error)
{
    r->error = error;
    return -EINVAL;
}

static int fail_too_deep(struct reader *r)
{
    r->error = STR("yaml: exceeded max depth");
    return -E2BIG;
}

/* Lines count as go-yaml counts them: from 0, but from 1 when the scanner complains. */
static int fail_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line;
    if (line > 0)
        line += p->error == YAML_SCANNER_ERROR;
    else
        line = p->context_mark.line;
    const char *problem = p->problem ? p->problem : "unknown problem parsing YAML content";
    return fail(r, line > 0 ? arena_printf(r->arena, "yaml: line %zu: %s", line, problem)
                            : arena_printf(r->arena, "yaml: %s", problem));
}

static int next_event(struct reader *r)
{
    yaml_event_delete(&r->event);
    return yaml_parser_parse(&r->parser, &r->event) ? 0 : fail_syntax(r);
}

static struct str text_of(const yaml_char_t *z)
{
    return str_of((const char *) z);
}

/* The value after the trip through JSON text, where 1.0 is 1. */
static void settle_number(struct json *v)
{
    if (v->type == JSON_DOUBLE && v->d >= -0x1p63 && v->d < 0x1p63 &&
        v->d == (double) (int64_t) v->d)
        *v = json_int((int64_t) v->d);
}

/* ---- aliases ------------------------------------------------------------------------------ */

static struct anchor *open_anchor(struct reader *r, const yaml_char_t *name)
{
    if (!name)
        return NULL;
    struct anchor *anchor = ARENA_NEW(r->arena, struct anchor);
    anchor->is_open = true;
    (void) map_put(&r->anchors, arena_str(r->arena, text_of(name)), anchor);
    return anchor;
}

static void close_anchor(struct anchor *anchor, const struct json *value)
{
    if (!anchor)
        return;
    anchor->value = *value;
    anchor->is_open = false;
}

/* Accounts for one more copy of the value; stops as soon as a limit is passed. */
static int charge_alias(struct reader *r, const struct json *v, int depth)
{
    r->n_alias_nodes++;
    r->n_alias_bytes += v->type == JSON_STRING ? v->n : 0;
    if (r->n_alias_nodes > YAML_MAX_ALIAS_NODES || r->n_alias_bytes > YAML_MAX_ALIAS_BYTES)
        return fail(r, STR("yaml: document contains excessive aliasing"));
    if (json_count(v) == 0)
        return 0;
    if (depth >= JSON_MAX_DEPTH)
        return fail_too_deep(r);
    int error = 0;
    JSON_FOR_EACH_ITEM (v, item) {
        if (!error)
            error = charge_alias(r, item, depth + 1);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        r->n_alias_bytes += m->key.n;
        if (!error)
            error = charge_alias(r, &m->value, depth + 1);
    }
    return error;
}

static int read_alias(struct reader *r, int depth, struct json *ret_value)
{
    struct str name = text_of(r->event.data.alias.anchor);
    const struct anchor *anchor = map_get(&r->anchors, name);
    if (!anchor)
        return fail(
            r, arena_printf(r->arena, "yaml: unknown anchor '%.*s' referenced", STR_ARG(name)));
    if (anchor->is_open)
        return fail(
            r, arena_printf(r->arena, "yaml: anchor '%.*s' value contains itself", STR_ARG(name)));
    int error = charge_alias(r, &anchor->value, depth);
    if (error)
        return error;
    *ret_value = json_clone(r->arena, &anchor->value);
    settle_number(ret_value);
    return 0;
}

/* ---- scalars ------------------------------------------------------------------------------ */

static int read_scalar(struct reader *r, struct json *ret_value)
{
    struct yaml_scalar scalar = {
        .text = str_range((const char *) r->event.data.scalar.value, r->event.data.scalar.length),
        .tag = text_of(r->event.data.scalar.tag),
        .is_implicit = r->event.data.scalar.plain_implicit,
    };
    struct anchor *anchor = open_anchor(r, r->event.data.scalar.anchor);
    int error = yaml_resolve(r->arena, &scalar, ret_value, &r->error);
    if (error)
        return error;
    close_anchor(anchor, ret_value);
    return 0;
}

/* As a value, that is: for keys, numbers stay what YAML says. */
static int read_scalar_value(struct reader *r, struct json *ret_value)
{
    int error = read_scalar(r, ret_value);
    if (error)
        return error;
    settle_number(ret_value);
    if (ret_value->type != JSON_DOUBLE || isfinite(ret_value->d))
        return 0;
    return fail(r, isnan(ret_value->d) ? STR("json: unsupported value: NaN")
                   : ret_value->d > 0  ? STR("json: unsupported value: +Inf")
                                       : STR("json: unsupported value: -Inf"));
}

/* ---- containers --------------------------------------------------------------------------- */

static int read_sequence(struct reader *r, struct place at, struct json *ret_value)
{
    struct anchor *anchor = open_anchor(r, r->event.data.sequence_start.anchor);
    *ret_value = json_array();
    for (;;) {
        int error = next_event(r);
        if (error)
            return error;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        struct field_path here = FIELD_INDEX(at.path, ret_value->n);
        struct json item;
        error = read_node(r, (struct place){&here, at.depth}, &item);
        if (error)
            return error;
        (void) json_push(r->arena, ret_value, item);
    }
    close_anchor(anchor, ret_value);
    return 0;
}

/* A mapping while its members arrive. */
struct mapping {
    struct json *object;
    struct json_keys keys;
    struct place at;
};

static void mapping_done(struct mapping *m)
{
    json_keys_done(&m->keys);
}

static struct str already_set(struct reader *r, struct str key, bool is_string, size_t line)
{
    BUF_AUTO quoted = {0};
    if (is_string)
        json_write_str(&quoted, key);
    else
        buf_append_str(&quoted, key);
    return arena_printf(r->arena, "line %zu: key %.*s already set in map", line,
                        STR_ARG(buf_str(&quoted)));
}

/* `line` is that of the value; `is_string` whether the key was one before it became a member's
 * name. */
static void set_member(struct reader *r, struct mapping *m, struct json_member member,
                       bool is_string, size_t line)
{
    struct str key = json_str(&member.key);
    struct json_member *old = json_keys_find(&m->keys, key);
    if (!old) {
        (void) json_append_member(r->arena, m->object, key, member.value);
        return;
    }
    if (r->duplicates.n < JSON_MAX_DUPLICATES) {
        struct field_path here = FIELD_NAME(m->at.path, key);
        json_duplicates_add(r->arena, &r->duplicates, &here, already_set(r, key, is_string, line));
    }
    old->value = member.value;
}

static bool is_merge(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 2 &&
           memcmp(e->data.scalar.value, "<<", 2) == 0 &&
           (e->data.scalar.plain_implicit ||
            str_is(text_of(e->data.scalar.tag), "tag:yaml.org,2002:merge"));
}

static int merge_object(struct reader *r, struct mapping *m, const struct json *from, size_t line)
{
    if (from->type != JSON_OBJECT)
        return fail(r, STR("yaml: map merge requires map or sequence of maps as the value"));
    JSON_FOR_EACH_MEMBER (from, member) {
        set_member(r, m, *member, /* is_string= */ true, line);
    }
    return 0;
}

/* `<<: *a` or `<<: [*a, *b]`, of which the earlier takes precedence. */
static int read_merge(struct reader *r, struct mapping *m)
{
    int error = next_event(r);
    if (error)
        return error;
    size_t line = r->event.start_mark.line + 1;
    struct json from;
    error = read_node(r, m->at, &from);
    if (error)
        return error;
    if (from.type != JSON_ARRAY)
        return merge_object(r, m, &from, line);
    for (uint32_t i = from.n; i-- > 0 && !error;)
        error = merge_object(r, m, &from.items[i], line);
    return error;
}

static int read_key(struct reader *r, struct place at, struct json *ret_key, bool *ret_is_string)
{
    struct json key;
    int error = r->event.type == YAML_SCALAR_EVENT ? read_scalar(r, &key) : read_node(r, at, &key);
    if (error)
        return error;
    if (key.type == JSON_ARRAY || key.type == JSON_OBJECT)
        return fail(r, arena_printf(r->arena, "yaml: invalid map key: %.*s",
                                    STR_ARG(json_text(r->arena, &key))));
    struct str text = yaml_key_text(r->arena, &key);
    if (!text.p)
        return fail(r, STR("unsupported map key of type: null"));
    *ret_key = json_string(text);
    *ret_is_string = key.type == JSON_STRING;
    return 0;
}

static int read_member(struct reader *r, struct mapping *m)
{
    if (is_merge(&r->event))
        return read_merge(r, m);
    struct json_member member;
    bool is_string = false;
    int error = read_key(r, m->at, &member.key, &is_string);
    if (error)
        return error;
    error = next_event(r);
    if (error)
        return error;
    size_t line = r->event.start_mark.line + 1;
    struct field_path here = FIELD_NAME(m->at.path, json_str(&member.key));
    error = read_node(r, (struct place){&here, m->at.depth}, &member.value);
    if (error)
        return error;
    set_member(r, m, member, is_string, line);
    return 0;
}

static int read_mapping(struct reader *r, struct place at, struct json *ret_value)
{
    struct anchor *anchor = open_anchor(r, r->event.data.mapping_start.anchor);
    *ret_value = json_object();
    CLEANUP(mapping_done)
    struct mapping m = {.object = ret_value, .keys = {.object = ret_value}, .at = at};
    for (;;) {
        int error = next_event(r);
        if (error)
            return error;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        error = read_member(r, &m);
        if (error)
            return error;
    }
    close_anchor(anchor, ret_value);
    return 0;
}

/* The node that begins with the current event; on return that event is its last. */
static int read_node(struct reader *r, struct place at, struct json *ret_value)
{
    if (r->event.type == YAML_ALIAS_EVENT)
        return read_alias(r, at.depth, ret_value);
    if (r->event.type == YAML_SCALAR_EVENT)
        return read_scalar_value(r, ret_value);
    if (at.depth >= JSON_MAX_DEPTH)
        return fail_too_deep(r);
    at.depth++;
    if (r->event.type == YAML_SEQUENCE_START_EVENT)
        return read_sequence(r, at, ret_value);
    assert(r->event.type == YAML_MAPPING_START_EVENT);
    return read_mapping(r, at, ret_value);
}

/* ---- documents ---------------------------------------------------------------------------- */

static int read_document(struct reader *r, struct json *ret_value)
{
    int error = next_event(r); /* the stream begins */
    if (!error)
        error = next_event(r);
    if (error)
        return error;
    *ret_value = json_null();
    if (r->event.type == YAML_STREAM_END_EVENT)
        return 0;
    error = next_event(r); /* past the start of the document */
    if (!error)
        error = read_node(r, (struct place){NULL, 0}, ret_value);
    if (!error)
        error = next_event(r); /* its end; what follows is not looked at */
    return error;
}

static int read_yaml(struct arena *a, struct str text, struct json_parse_result *ret)
{
    struct reader r = {.arena = a};
    if (!yaml_parser_initialize(&r.parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *) text.p, text.n);
    struct json value;
    int error = read_document(&r, &value);
    if (error) {
        ret->error = r.error;
        ret->error_at = MIN(r.parser.mark.index, text.n);
    } else {
        ret->value = json_new(a, value);
        ret->duplicates = r.duplicates.first;
    }
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    map_done(&r.anchors);
    return error;
}

/* Doubles that YAML would have given as integers. */
static void settle_numbers(struct json *v)
{
    settle_number(v);
    JSON_FOR_EACH_ITEM (v, item) {
        settle_numbers(item);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        settle_numbers(&m->value);
    }
}

/* libyaml compares each %TAG with all before it. A directive stands at the start of a line; lines
 * end as in YAML 1.1, the last three bytes being those of NEL, LS and PS. */
static bool has_many_directives(struct str text)
{
    const struct str directive = STR("%TAG");
    size_t n = 0;
    for (size_t from = 0;;) {
        ptrdiff_t found = str_find_str(str_from(text, from), directive);
        if (found < 0)
            return false;
        size_t at = from + (size_t) found;
        if ((at == 0 || memchr("\n\r\x85\xa8\xa9", text.p[at - 1], 5)) &&
            ++n > YAML_MAX_TAG_DIRECTIVES)
            return true;
        from = at + directive.n;
    }
}

int yaml_parse(struct arena *a, struct str text, struct json_parse_result *ret)
{
    /* Clients send JSON as YAML more often than not, and libyaml is a factor of twenty slower. */
    if (str_starts_with(text, STR("{")) && json_parse(a, text, ret) == 0 && !ret->duplicates) {
        settle_numbers(ret->value);
        return 0;
    }
    *ret = (struct json_parse_result){0};
    if (str_starts_with(text, STR("\xef\xbb\xbf"))) /* a byte order mark */
        text = str_from(text, 3);
    if (text.n > JSON_MAX_TEXT_BYTES || has_many_directives(text)) {
        ret->error = STR("yaml: document is too large");
        return -E2BIG;
    }
    return read_yaml(a, text.n ? text : STR("\n"), ret);
}
