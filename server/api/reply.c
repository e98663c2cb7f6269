/* SPDX-License-Identifier: Apache-2.0 */
#include "api/reply.h"

#include <errno.h>
#include <inttypes.h>

#include "api/codec.h"
#include "base/alloc.h"
#include "json/yaml_write.h"

int reply_form_of(struct call *c, struct reply_form *ret_form)
{
    static const struct {
        const char *text;
        enum table_include include;
    } includes[] = {{"", TABLE_INCLUDE_METADATA},
                    {"Metadata", TABLE_INCLUDE_METADATA},
                    {"Object", TABLE_INCLUDE_OBJECT},
                    {"None", TABLE_INCLUDE_NONE}};
    struct reply_form f = {.kind = c->kind, .media = c->media, .live = api_table_live(c->api)};
    f.now_us = api_clock(c->api)->wall_us(api_clock(c->api));
    struct str asked = request_parameter(&c->in.query, "includeObject");
    bool known = c->media.form != MEDIA_TABLE;
    for (size_t i = 0; i < N_ELEMENTS(includes); i++) {
        if (str_is(asked, includes[i].text) || (!asked.p && i == 0)) {
            f.include = includes[i].include;
            known = true;
        }
    }
    if (!known)
        return status_bad_request(
            &c->status,
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            "%.*s: must be 'Metadata', 'Object', 'None', or empty",
            STR_ARG(status_quote(c->arena, asked)));
    *ret_form = f;
    return 0;
}

static void write_partial(struct buf *b, const struct reply_form *f, const struct json *object)
{
    buf_printf(
        b, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%.*s\",\"metadata\":",
        STR_ARG(f->media.version));
    const struct json *meta = json_get(object, STR("metadata"));
    if (meta)
        json_write(b, meta);
    else
        buf_append_str(b, STR("{}"));
    buf_append_char(b, '}');
}

/* Lists of custom resources always say `continue`, others only when there is more. */
static void write_list_meta(struct buf *b, const struct reply_list_meta *meta, bool says_continue)
{
    buf_printf(b, "\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"", meta->revision);
    if (says_continue && !meta->continue_token.n)
        buf_append_str(b, STR(",\"continue\":\"\""));
    if (meta->continue_token.n) {
        buf_append_str(b, STR(",\"continue\":"));
        json_write_str(b, meta->continue_token);
        if (meta->n_remaining >= 0)
            buf_printf(b, ",\"remainingItemCount\":%" PRId64, meta->n_remaining);
    }
    buf_append_char(b, '}');
}

static void write_table_head(struct buf *b, const struct reply_form *f,
                             const struct reply_list_meta *meta, bool with_columns)
{
    buf_printf(b, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%.*s\",",
               STR_ARG(f->media.version));
    write_list_meta(b, meta, false);
    buf_append_str(b, STR(",\"columnDefinitions\":"));
    if (with_columns)
        table_write_columns(b, f->kind);
    else
        buf_append_str(b, STR("null"));
    buf_append_str(b, STR(",\"rows\":"));
}

static void write_row(struct buf *b, const struct reply_form *f, struct arena *a,
                      const struct json *object)
{
    struct table_options options = {.include = f->include,
                                    .meta_version = f->media.version,
                                    .now_us = f->now_us,
                                    .live = f->live};
    table_write_row(b, a, f->kind, object, &options);
}

void reply_write(struct buf *b, const struct reply_form *f, const struct json *object,
                 bool with_columns)
{
    if (f->media.form == MEDIA_PARTIAL) {
        write_partial(b, f, object);
    } else if (f->media.form == MEDIA_TABLE) {
        ARENA_AUTO a = arena_new();
        struct reply_list_meta meta = {.n_remaining = -1};
        (void) str_to_i64(json_str(json_at(object, "metadata", "resourceVersion", NULL)),
                          &meta.revision);
        write_table_head(b, f, &meta, with_columns);
        buf_append_char(b, '[');
        write_row(b, f, a, object);
        buf_append_str(b, STR("]}"));
    } else {
        json_write(b, object);
    }
}

/* ---- ending a call ------------------------------------------------------------------------ */

static void finish(struct call *c, int code, struct slice *slices, size_t n)
{
    c->reply.code = code;
    c->reply.content_type = media_content_type(c->media.encoding);
    c->reply.body = slices;
    c->reply.n_slices = n;
    c->on_done(c);
}

static struct slice take_slice(struct buf *b)
{
    size_t n = b->n;
    return slice_adopt(buf_take(b), n);
}

void call_reply_value(struct call *c, int code, struct json *value)
{
    c->reply.value = value;
    finish(c, code, NULL, 0);
}

void call_reply_text(struct call *c, int code, struct buf *json)
{
    struct slice *slices = NEW(struct slice);
    bool rewrites = c->media.encoding == MEDIA_YAML || c->media.is_pretty ||
                    request_flag(&c->in.query, "pretty");
    if (rewrites) {
        struct json *value = json_parse_quick(c->arena, buf_str(json));
        buf_reset(json);
        if (c->media.encoding == MEDIA_YAML) {
            yaml_write(json, value);
        } else {
            json_write_pretty(json, value);
            buf_append_char(json, '\n');
        }
    }
    slices[0] = take_slice(json);
    finish(c, code, slices, 1);
}

/* Forms that do not fit what is being answered. */
static int check_single(struct call *c)
{
    if (c->media.form != MEDIA_PARTIAL_LIST)
        return 0;
    return status_fail(&c->status, 406, "NotAcceptable",
                       "you requested PartialObjectMetadataList, but the requested object is not a "
                       "list (*%s.%.*s)",
                       c->kind->is_native ? "core" : "unstructured", STR_ARG(c->kind->kind));
}

static bool is_plain(const struct call *c)
{
    return c->media.form == MEDIA_OBJECT && c->media.encoding == MEDIA_JSON &&
           !c->media.is_pretty && !request_parameter(&c->in.query, "pretty").p;
}

void call_reply_json(struct call *c, int code, const struct json *object)
{
    struct reply_form f = {0};
    if (check_single(c) < 0 || reply_form_of(c, &f) < 0) {
        call_fail(c);
        return;
    }
    if (c->takes_value && is_plain(c)) {
        call_reply_value(c, code, json_new(c->arena, json_clone(c->arena, object)));
        return;
    }
    struct buf b = {0};
    reply_write(&b, &f, object, true);
    buf_append_char(&b, '\n');
    call_reply_text(c, code, &b);
}

void call_reply_object(struct call *c, int code, struct object *o)
{
    if (c->takes_value && is_plain(c)) {
        call_reply_value(c, code, codec_decode(c->arena, o, c->kind));
        return;
    }
    if (is_plain(c)) {
        struct slice *slices = mem_alloc(sizeof(*slices) * (CODEC_MAX_SLICES + 1));
        size_t n = codec_slices(o, c->kind, false, slices);
        slices[n++] = slice_static(STR("\n"));
        finish(c, code, slices, n);
        return;
    }
    call_reply_json(c, code, codec_decode(c->arena, o, c->kind));
}

/* ---- lists -------------------------------------------------------------------------------- */

static void reply_plain_list(struct call *c, const struct reply_form *f, struct object **objects,
                             size_t n, const struct reply_list_meta *meta)
{
    struct slice *slices = mem_alloc(sizeof(*slices) * (n * (CODEC_MAX_SLICES + 1) + 2));
    size_t n_slices = 0;
    struct buf head = {0};
    buf_printf(&head, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",", STR_ARG(f->kind->list_kind),
               STR_ARG(f->kind->api_version));
    write_list_meta(&head, meta, !f->kind->is_native);
    buf_append_str(&head, STR(",\"items\":["));
    slices[n_slices++] = take_slice(&head);
    for (size_t i = 0; i < n; i++) {
        if (i)
            slices[n_slices++] = slice_static(STR(","));
        n_slices += codec_slices(objects[i], f->kind, f->kind->is_native, slices + n_slices);
    }
    slices[n_slices++] = slice_static(STR("]}\n"));
    finish(c, 200, slices, n_slices);
}

static void write_list(struct buf *b, const struct reply_form *f, struct object **objects, size_t n,
                       const struct reply_list_meta *meta)
{
    ARENA_AUTO a = arena_new();
    bool is_table = f->media.form == MEDIA_TABLE;
    if (is_table) {
        write_table_head(b, f, meta, true);
        if (n == 0) {
            buf_append_str(b, table_no_rows(f->kind));
            buf_append_str(b, STR("}\n"));
            return;
        }
        buf_append_char(b, '[');
    } else if (f->media.form == MEDIA_PARTIAL_LIST) {
        buf_printf(b,
                   "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/%.*s\",",
                   STR_ARG(f->media.version));
        write_list_meta(b, meta, false);
        buf_append_str(b, STR(",\"items\":["));
    } else {
        buf_printf(b, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",", STR_ARG(f->kind->list_kind),
                   STR_ARG(f->kind->api_version));
        write_list_meta(b, meta, !f->kind->is_native);
        buf_append_str(b, STR(",\"items\":["));
    }
    for (size_t i = 0; i < n; i++) {
        arena_reset(a);
        struct json *object = codec_decode(a, objects[i], f->kind);
        if (f->media.form == MEDIA_OBJECT && f->kind->is_native) {
            (void) json_remove(object, STR("apiVersion"));
            (void) json_remove(object, STR("kind"));
        }
        if (i)
            buf_append_char(b, ',');
        if (is_table)
            write_row(b, f, a, object);
        else if (f->media.form == MEDIA_PARTIAL_LIST)
            write_partial(b, f, object);
        else
            json_write(b, object);
    }
    buf_append_str(b, STR("]}\n"));
}

void call_reply_list(struct call *c, const struct reply_form *f, struct object **objects, size_t n,
                     const struct reply_list_meta *meta)
{
    if (c->media.form == MEDIA_PARTIAL) {
        (void) status_fail(
            &c->status, 406, "NotAcceptable",
            "you requested PartialObjectMetadata, but the requested object is a list (*%s.%.*s)",
            c->kind->is_native ? "core" : "unstructured", STR_ARG(c->kind->list_kind));
        call_fail(c);
    } else if (is_plain(c)) {
        reply_plain_list(c, f, objects, n, meta);
    } else {
        struct buf b = {0};
        write_list(&b, f, objects, n, meta);
        call_reply_text(c, 200, &b);
    }
}
