/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/event.h"

#include <stdlib.h>

#include "json/yaml.h"

#define MICROS 1000000
#define MAX_OWN_ANNOTATIONS 3 /* truncated, decision, reason */

/* ---- pieces --------------------------------------------------------------------------------- */

/* buf_append_str() without the call while there is room. */
static inline void put(struct buf *b, struct str s)
{
    if (b->n + s.n < b->capacity) {
        memcpy(b->p + b->n, s.p, s.n);
        b->n += s.n;
    } else {
        buf_append_str(b, s);
    }
}

#define PUT(b, literal) put(b, STR(literal))

/* key is `,"name":` with whatever goes before; nothing is written without a value. */
static inline void put_member(struct buf *b, struct str key, struct str value)
{
    if (!value.n)
        return;
    put(b, key);
    json_write_str(b, value);
}

#define PUT_MEMBER(b, key, value) put_member(b, STR(key), value)

static void put_time(struct buf *b, struct audit_second *last, int64_t us)
{
    int64_t second = us / MICROS, fraction = us % MICROS;
    if (second != last->second || !last->text[0]) {
        clock_format_seconds(us, last->text);
        last->second = second;
    }
    char text[] = "2006-01-02T15:04:05.000000Z";
    memcpy(text, last->text, 19);
    for (size_t i = 25; i > 19; i--, fraction /= 10)
        text[i] = (char) ('0' + fraction % 10);
    PUT(b, "\"");
    put(b, str_range(text, sizeof(text) - 1));
    PUT(b, "\"");
}

static void put_list(struct buf *b, const struct str *items, size_t n)
{
    PUT(b, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            PUT(b, ",");
        json_write_str(b, items[i]);
    }
    PUT(b, "]");
}

/* ---- who and what --------------------------------------------------------------------------- */

static void put_extra(struct buf *b, const struct user *u)
{
    PUT(b, ",\"extra\":{");
    for (size_t i = 0; i < u->n_extra; i++) {
        if (i)
            PUT(b, ",");
        json_write_str(b, u->extra[i].key);
        PUT(b, ":");
        put_list(b, u->extra[i].values, u->extra[i].n_values);
    }
    PUT(b, "}");
}

/* NULL: nobody was found to ask. */
static void put_user(struct buf *b, const struct user *u)
{
    PUT(b, "{");
    if (u) {
        PUT(b, "\"username\":");
        json_write_str(b, u->name);
        PUT_MEMBER(b, ",\"uid\":", u->uid);
        if (u->n_groups) {
            PUT(b, ",\"groups\":");
            put_list(b, u->groups, u->n_groups);
        }
        if (u->n_extra)
            put_extra(b, u);
    }
    PUT(b, "}");
}

static void put_object(struct buf *b, const struct audit_record *r)
{
    PUT(b, ",\"objectRef\":{\"resource\":");
    json_write_str(b, r->resource);
    PUT_MEMBER(b, ",\"namespace\":", r->namespace);
    PUT_MEMBER(b, ",\"name\":", r->name);
    PUT_MEMBER(b, ",\"apiGroup\":", r->group);
    PUT_MEMBER(b, ",\"apiVersion\":", r->version);
    PUT_MEMBER(b, ",\"subresource\":", r->subresource);
    PUT(b, "}");
}

static void put_status(struct buf *b, const struct audit_record *r)
{
    static const struct str head = STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",");
    PUT(b, ",\"responseStatus\":");
    if (r->failure && r->failure->code) {
        BUF_AUTO text = {0};
        status_write(&text, r->failure);
        PUT(b, "{");
        put(b, str_trim(str_from(buf_str(&text), head.n)));
        return;
    }
    char digits[] = "000";
    for (size_t i = 3, n = (size_t) r->code; i-- > 0; n /= 10)
        digits[i] = (char) ('0' + n % 10);
    PUT(b, "{\"metadata\":{},\"code\":");
    put(b, r->code >= 100 && r->code < 1000 ? str_range(digits, 3) : STR("0"));
    PUT(b, "}");
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
static bool put_body(struct buf *b, struct str key, struct str body, bool is_ours,
                     bool omits_managed_fields)
{
    body = str_trim(body);
    if (body.n > AUDIT_MAX_BODY_BYTES)
        return false;
    if (!body.n)
        return true;
    if (is_ours && !omits_managed_fields && is_line(body)) {
        put(b, key);
        put(b, body);
        return true;
    }
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed = {0};
    if (yaml_parse(a, body, &parsed) < 0)
        return true;
    if (omits_managed_fields)
        drop_all_managed_fields(parsed.value);
    const size_t before = b->n;
    put(b, key);
    json_write(b, parsed.value);
    if (b->n - before <= AUDIT_MAX_BODY_BYTES)
        return true;
    b->n = before; /* aliases made it grow */
    return false;
}

/* False: something was left out. */
static bool put_bodies(struct buf *b, const struct audit_record *r, enum audit_stage stage)
{
    bool fits = true;
    if (r->level >= AUDIT_REQUEST && stage != AUDIT_REQUEST_RECEIVED)
        fits =
            put_body(b, STR(",\"requestObject\":"), r->request_body, false, r->omit_managed_fields);
    if (r->level >= AUDIT_REQUEST_RESPONSE && stage == AUDIT_RESPONSE_COMPLETE)
        fits = put_body(b, STR(",\"responseObject\":"), r->response_body, true,
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
    if (n_webhooks)
        qsort(to, n, sizeof(*to), by_key);
    return n;
}

static void put_annotations(struct buf *b, const struct audit_record *r, bool is_truncated)
{
    struct annotation list[AUDIT_MAX_ANNOTATIONS + MAX_OWN_ANNOTATIONS];
    size_t n = gather(r, is_truncated, list);
    if (!n)
        return;
    PUT(b, ",\"annotations\":{");
    for (size_t i = 0; i < n; i++) {
        if (i && str_eq(list[i].key, list[i - 1].key))
            continue; /* a key says one thing */
        if (i)
            PUT(b, ",");
        json_write_str(b, list[i].key);
        PUT(b, ":");
        json_write_str(b, list[i].value);
    }
    PUT(b, "}");
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

static bool is_ascii(const char *p, size_t n)
{
    const uint64_t highs = 0x8080808080808080u;
    uint64_t found = 0, bytes = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&bytes, p + i, 8);
        found |= bytes;
    }
    for (; i < n; i++)
        found |= (uint64_t) (unsigned char) p[i];
    return !(found & highs);
}

/* Paths and headers may hold any bytes, JSON may not: what is no UTF-8 becomes U+FFFD. */
static void mend_utf8(struct buf *b, size_t begin)
{
    struct str rest = str_from(buf_str(b), begin);
    if (is_ascii(rest.p, rest.n) || str_is_utf8(rest))
        return;
    BUF_AUTO mended = {0};
    while (rest.n) {
        size_t n = 1; /* the shortest valid piece at the front, if any */
        while (n < 4 && n < rest.n && !str_is_utf8(str_sub(rest, 0, n)))
            n++;
        bool is_valid = str_is_utf8(str_sub(rest, 0, n));
        buf_append_str(&mended, is_valid ? str_sub(rest, 0, n) : STR("\xef\xbf\xbd"));
        rest = str_from(rest, is_valid ? n : 1);
    }
    b->n = begin;
    buf_append_str(b, buf_str(&mended));
}

void audit_event_write(struct buf *b, struct audit_second *last, const struct audit_record *r,
                       enum audit_stage stage)
{
    const size_t begin = b->n;
    PUT(b, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"");
    put(b, levels[r->level]);
    PUT(b, "\",\"auditID\":");
    json_write_str(b, str_of(r->id));
    PUT(b, ",\"stage\":\"");
    put(b, stages[stage]);
    PUT(b, "\",\"requestURI\":");
    json_write_str(b, r->uri);
    PUT(b, ",\"verb\":");
    json_write_str(b, r->verb);
    PUT(b, ",\"user\":");
    put_user(b, r->user);
    if (r->impersonated) {
        PUT(b, ",\"impersonatedUser\":");
        put_user(b, r->impersonated);
    }
    if (r->source_ip.n) {
        PUT(b, ",\"sourceIPs\":");
        put_list(b, &r->source_ip, 1);
    }
    PUT_MEMBER(b, ",\"userAgent\":", r->user_agent);
    if (r->is_resource)
        put_object(b, r);
    if (stage != AUDIT_REQUEST_RECEIVED)
        put_status(b, r);
    bool fits = put_bodies(b, r, stage);
    PUT(b, ",\"requestReceivedTimestamp\":");
    put_time(b, last, r->received_us);
    PUT(b, ",\"stageTimestamp\":");
    put_time(b, last, stage == AUDIT_REQUEST_RECEIVED ? r->received_us : r->stage_us);
    put_annotations(b, r, !fits);
    PUT(b, "}\n");
    b->p[b->n] = '\0';
    mend_utf8(b, begin);
}
