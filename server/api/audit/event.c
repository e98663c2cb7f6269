/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/event.h"

#include <stdlib.h>

#include "api/audit/put.h"
#include "json/yaml.h"

#define MICROS 1000000
#define MAX_OWN_ANNOTATIONS 3 /* truncated, decision, reason */

/* ---- pieces --------------------------------------------------------------------------------- */

static char *put_time(char *to, struct audit_second *last, int64_t us)
{
    int64_t second = us / MICROS;
    uint32_t fraction = (uint32_t) (us % MICROS);
    if (second != last->second || !last->text[0]) {
        clock_format_seconds(us, last->text);
        last->second = second;
    }
    memcpy(to, "\"2006-01-02T15:04:05.000000Z\"", 29);
    memcpy(to + 1, last->text, 19);
    put_two_digits(to + 21, fraction / 10000);
    put_two_digits(to + 23, fraction / 100 % 100);
    put_two_digits(to + 25, fraction % 100);
    return to + 29;
}

/* ---- who and what --------------------------------------------------------------------------- */

/* Of the names of members and all else that is the same in every line. */
#define FIXED_BYTES 1024

static char *put_extra(char *to, const struct user *u)
{
    PUT(to, ",\"extra\":{");
    for (size_t i = 0; i < u->n_extra; i++) {
        if (i)
            *to++ = ',';
        to = put_text(to, u->extra[i].key);
        *to++ = ':';
        to = put_list(to, u->extra[i].values, u->extra[i].n_values);
    }
    *to++ = '}';
    return to;
}

/* NULL: nobody was found to ask. */
static char *put_user(char *to, const struct user *u)
{
    if (!u)
        return PUT(to, "{}");
    PUT(to, "{\"username\":");
    to = put_text(to, u->name);
    PUT_MEMBER(to, ",\"uid\":", u->uid);
    if (u->n_groups) {
        PUT(to, ",\"groups\":");
        to = put_list(to, u->groups, u->n_groups);
    }
    if (u->n_extra)
        to = put_extra(to, u);
    *to++ = '}';
    return to;
}

static size_t user_bound(const struct user *u)
{
    if (!u)
        return 0;
    size_t bound =
        put_text_bound(u->name) + put_text_bound(u->uid) + put_list_bound(u->groups, u->n_groups);
    for (size_t i = 0; i < u->n_extra; i++)
        bound += put_text_bound(u->extra[i].key) + 2 +
                 put_list_bound(u->extra[i].values, u->extra[i].n_values);
    return bound;
}

static char *put_object(char *to, const struct audit_record *r)
{
    PUT(to, ",\"objectRef\":{\"resource\":");
    to = put_text(to, r->resource);
    PUT_MEMBER(to, ",\"namespace\":", r->namespace);
    PUT_MEMBER(to, ",\"name\":", r->name);
    PUT_MEMBER(to, ",\"apiGroup\":", r->group);
    PUT_MEMBER(to, ",\"apiVersion\":", r->version);
    PUT_MEMBER(to, ",\"subresource\":", r->subresource);
    *to++ = '}';
    return to;
}

static size_t object_bound(const struct audit_record *r)
{
    return put_text_bound(r->resource) + put_text_bound(r->namespace) + put_text_bound(r->name) +
           put_text_bound(r->group) + put_text_bound(r->version) + put_text_bound(r->subresource);
}

static char *put_code(char *to, int code)
{
    PUT(to, ",\"responseStatus\":{\"metadata\":{},\"code\":");
    if (code < 100 || code > 999)
        return PUT(to, "0}");
    *to++ = (char) ('0' + code / 100);
    *to++ = (char) ('0' + code / 10 % 10);
    *to++ = (char) ('0' + code % 10);
    *to++ = '}';
    return to;
}

static void write_failure(struct buf *b, const struct status *st)
{
    static const struct str head = STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",");
    BUF_AUTO text = {0};
    status_write(&text, st);
    buf_append_str(b, STR(",\"responseStatus\":{"));
    buf_append_str(b, str_trim(str_from(buf_str(&text), head.n)));
}

/* ---- bodies --------------------------------------------------------------------------------- */

static void drop_managed_fields(struct json *object)
{
    (void) json_remove(json_get(object, STR("metadata")), STR("managedFields"));
}

/* Of an object, of the items of a list, of the objects in the rows of a table. */
static void drop_all_managed_fields(struct json *v)
{
    if (!json_is(v, JSON_OBJECT))
        return;
    drop_managed_fields(v);
    JSON_FOR_EACH_ITEM (json_get(v, STR("items")), item)
        drop_managed_fields(item);
    JSON_FOR_EACH_ITEM (json_get(v, STR("rows")), row)
        drop_managed_fields(json_get(row, STR("object")));
}

/* A text of ours is JSON; it can go as it is when it is one line. */
static bool is_line(struct str s)
{
    return s.n && s.p[0] == '{' && s.p[s.n - 1] == '}' && str_find(s, '\n') < 0;
}

/* False: too large. What is neither JSON nor YAML was refused, and has no place in JSON. */
static bool write_body(struct buf *b, struct str key, struct str body, bool is_ours,
                       bool omits_managed_fields)
{
    body = str_trim(body);
    if (body.n > AUDIT_MAX_BODY_BYTES)
        return false;
    if (!body.n)
        return true;
    if (is_ours && !omits_managed_fields && is_line(body)) {
        buf_append_str(b, key);
        buf_append_str(b, body);
        return true;
    }
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed = {0};
    if (yaml_parse(a, body, &parsed) < 0)
        return true;
    if (omits_managed_fields)
        drop_all_managed_fields(parsed.value);
    const size_t before = b->n;
    buf_append_str(b, key);
    json_write(b, parsed.value);
    if (b->n - before <= AUDIT_MAX_BODY_BYTES)
        return true;
    b->n = before; /* aliases made it grow */
    return false;
}

/* False: something was left out. */
static bool write_bodies(struct buf *b, const struct audit_record *r, enum audit_stage stage)
{
    bool fits = true;
    if (r->level >= AUDIT_REQUEST && stage != AUDIT_REQUEST_RECEIVED)
        fits = write_body(b, STR(",\"requestObject\":"), r->request_body, false,
                          r->omit_managed_fields);
    if (r->level >= AUDIT_REQUEST_RESPONSE && stage == AUDIT_RESPONSE_COMPLETE)
        fits = write_body(b, STR(",\"responseObject\":"), r->response_body, true,
                          r->omit_managed_fields) &&
               fits;
    return fits;
}

/* ---- annotations ---------------------------------------------------------------------------- */

struct annotation {
    struct str key, value;
};

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct annotation *) a)->key, ((const struct annotation *) b)->key);
}

static size_t gather(const struct audit_record *r, bool is_truncated, struct annotation *to)
{
    size_t n = 0, n_webhooks = 0;
    if (is_truncated)
        to[n++] = (struct annotation){STR("audit.k8s.io/truncated"), STR("true")};
    if (r->decision.n) {
        to[n++] = (struct annotation){STR("authorization.k8s.io/decision"), r->decision};
        to[n++] = (struct annotation){STR("authorization.k8s.io/reason"), r->reason};
    }
    for (const struct call_annotation *c = r->annotations; c && n_webhooks < AUDIT_MAX_ANNOTATIONS;
         c = c->next, n_webhooks++)
        to[n++] = (struct annotation){c->key, c->value};
    qsort(to, n, sizeof(*to), by_key);
    return n;
}

static void write_annotations(struct buf *b, const struct audit_record *r, bool is_truncated)
{
    struct annotation list[AUDIT_MAX_ANNOTATIONS + MAX_OWN_ANNOTATIONS];
    size_t n = gather(r, is_truncated, list);
    for (size_t i = 0; i < n; i++) {
        if (i && str_eq(list[i].key, list[i - 1].key))
            continue; /* a key says one thing */
        buf_append_str(b, i ? STR(",") : STR(",\"annotations\":{"));
        json_write_str(b, list[i].key);
        buf_append_char(b, ':');
        json_write_str(b, list[i].value);
    }
    if (n)
        buf_append_char(b, '}');
}

/* The usual ones alone. */
static char *put_decision(char *to, const struct audit_record *r)
{
    if (!r->decision.n)
        return to;
    PUT(to, ",\"annotations\":{\"authorization.k8s.io/decision\":");
    to = put_text(to, r->decision);
    PUT(to, ",\"authorization.k8s.io/reason\":");
    to = put_text(to, r->reason);
    *to++ = '}';
    return to;
}

/* ---- the line ------------------------------------------------------------------------------- */

static const struct str levels[] = {
    [AUDIT_NONE] = STR("None"),
    [AUDIT_METADATA] = STR("Metadata"),
    [AUDIT_REQUEST] = STR("Request"),
    [AUDIT_REQUEST_RESPONSE] = STR("RequestResponse"),
};
static const struct str stages[] = {
    [AUDIT_REQUEST_RECEIVED] = STR("RequestReceived"),
    [AUDIT_RESPONSE_STARTED] = STR("ResponseStarted"),
    [AUDIT_RESPONSE_COMPLETE] = STR("ResponseComplete"),
    [AUDIT_PANIC] = STR("Panic"),
};

/* A failure's words and bodies of others may hold bytes that JSON may not. */
static void mend_from(struct buf *b, size_t begin)
{
    struct str rest = str_from(buf_str(b), begin);
    if (str_is_utf8(rest))
        return;
    BUF_AUTO mended = {0};
    put_mended(&mended, rest);
    b->n = begin;
    buf_append_str(b, buf_str(&mended));
}

static size_t head_bound(const struct audit_record *r)
{
    return FIXED_BYTES + put_text_bound(r->uri) + put_text_bound(r->verb) + user_bound(r->user) +
           user_bound(r->impersonated) + put_text_bound(r->source_ip) +
           put_text_bound(r->user_agent) + object_bound(r);
}

static size_t tail_bound(const struct audit_record *r)
{
    return FIXED_BYTES + put_text_bound(r->decision) + put_text_bound(r->reason);
}

/* Up to what the answer was. */
static char *put_head(char *to, const struct audit_record *r, enum audit_stage stage)
{
    PUT(to, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"");
    to = put(to, levels[r->level]);
    PUT(to, "\",\"auditID\":\"");
    to = put(to, str_range(r->id, sizeof(r->id) - 1));
    PUT(to, "\",\"stage\":\"");
    to = put(to, stages[stage]);
    PUT(to, "\",\"requestURI\":");
    to = put_text(to, r->uri);
    PUT(to, ",\"verb\":");
    to = put_text(to, r->verb);
    PUT(to, ",\"user\":");
    to = put_user(to, r->user);
    if (r->impersonated) {
        PUT(to, ",\"impersonatedUser\":");
        to = put_user(to, r->impersonated);
    }
    if (r->source_ip.n) {
        PUT(to, ",\"sourceIPs\":");
        to = put_list(to, &r->source_ip, 1);
    }
    PUT_MEMBER(to, ",\"userAgent\":", r->user_agent);
    return r->is_resource ? put_object(to, r) : to;
}

static char *put_times(char *to, struct audit_second *last, const struct audit_record *r,
                       enum audit_stage stage)
{
    PUT(to, ",\"requestReceivedTimestamp\":");
    to = put_time(to, last, r->received_us);
    PUT(to, ",\"stageTimestamp\":");
    return put_time(to, last, stage == AUDIT_REQUEST_RECEIVED ? r->received_us : r->stage_us);
}

static inline void end_at(struct buf *b, const char *to)
{
    b->n = (size_t) (to - b->p);
}

/* Most lines: nothing in them whose length is not known beforehand. */
static void write_plain(struct buf *b, struct audit_second *last, const struct audit_record *r,
                        enum audit_stage stage)
{
    char *to = put_head(buf_reserve(b, head_bound(r) + tail_bound(r)), r, stage);
    if (stage != AUDIT_REQUEST_RECEIVED)
        to = put_code(to, r->code);
    to = put_decision(put_times(to, last, r, stage), r);
    PUT(to, "}\n");
    end_at(b, to);
}

void audit_event_write(struct buf *b, struct audit_second *last, const struct audit_record *r,
                       enum audit_stage stage)
{
    const size_t begin = b->n;
    const bool has_answer = stage != AUDIT_REQUEST_RECEIVED;
    const bool is_failure = r->failure && r->failure->code;
    if (!(is_failure && has_answer) && r->level < AUDIT_REQUEST && !r->annotations) {
        write_plain(b, last, r, stage);
        return;
    }
    char *to = put_head(buf_reserve(b, head_bound(r)), r, stage);
    if (has_answer && !is_failure)
        to = put_code(to, r->code);
    end_at(b, to);
    if (has_answer && is_failure)
        write_failure(b, r->failure);
    bool fits = write_bodies(b, r, stage);
    end_at(b, put_times(buf_reserve(b, tail_bound(r)), last, r, stage));
    write_annotations(b, r, !fits);
    buf_append_str(b, STR("}\n"));
    mend_from(b, begin);
}
