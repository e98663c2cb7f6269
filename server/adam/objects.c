/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/objects.h"

#include <errno.h>

#include "base/buf.h"

#define GROUP "eve.lfedge.org"
#define VERSION "v1beta1"
#define PAGE_OBJECTS 500
/* Of a name before the digest that tells it apart. */
#define NAME_MAX_BYTES 200
#define NAME_DIGEST_BYTES 4

/* ---- requests -------------------------------------------------------------------------------- */

static struct kube_request request_of(const struct adam_place *p, enum verb verb,
                                      struct str resource, struct str name)
{
    const bool is_core = str_is(resource, "configmaps") || str_is(resource, "secrets");
    return (struct kube_request){.verb = verb,
                                 .group = is_core ? STR("") : STR(GROUP),
                                 .version = is_core ? STR("v1") : STR(VERSION),
                                 .resource = resource,
                                 .namespace = p->namespace,
                                 .name = name};
}

int adam_get(const struct adam_place *p, struct str resource, struct str name,
             struct json **ret_object)
{
    const struct kube_request r = request_of(p, VERB_GET, resource, name);
    status_init(p->st, p->arena);
    return kube_request(p->client, p->arena, &r, ret_object, p->st);
}

int adam_write(const struct adam_place *p, enum verb verb, struct str resource, struct str name,
               const struct json *object, struct json **ret_object)
{
    struct kube_request r = request_of(p, verb, resource, verb == VERB_CREATE ? STR_NONE : name);
    r.body = object;
    if (verb == VERB_PATCH)
        r.content_type = STR("application/merge-patch+json");
    status_init(p->st, p->arena);
    return kube_request(p->client, p->arena, &r, ret_object, p->st);
}

int adam_delete(const struct adam_place *p, struct str resource, struct str name)
{
    const struct kube_request r = request_of(p, VERB_DELETE, resource, name);
    status_init(p->st, p->arena);
    return kube_request(p->client, p->arena, &r, NULL, p->st);
}

int adam_delete_all(const struct adam_place *p, struct str resource)
{
    const struct kube_request r = request_of(p, VERB_DELETE_COLLECTION, resource, STR_NONE);
    status_init(p->st, p->arena);
    return kube_request(p->client, p->arena, &r, NULL, p->st);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* What a page says of its failure lives as long as the call. */
static void keep_status(const struct adam_place *p, const struct status *st)
{
    status_init(p->st, p->arena);
    p->st->code = st->code;
    p->st->reason = st->reason.p ? arena_str(p->arena, st->reason) : STR_NONE;
    p->st->message = arena_str(p->arena, st->message);
}

static int each_of_page(const struct adam_place *p, struct arena *page, struct kube_request *r,
                        int (*fn)(void *ctx, const struct json *object), void *ctx,
                        struct buf *query)
{
    struct json *list = NULL;
    struct status st;
    status_init(&st, page);
    int result = kube_request(p->client, page, r, &list, &st);
    if (result < 0) {
        keep_status(p, &st);
        return result;
    }
    JSON_FOR_EACH_ITEM (json_get(list, STR("items")), item) {
        result = fn(ctx, item);
        if (result != 0)
            return result;
    }
    struct str more = json_str(json_at(list, "metadata", "continue", NULL));
    buf_reset(query);
    if (more.n)
        buf_printf(query, "limit=%d&continue=%.*s", PAGE_OBJECTS, STR_ARG(more));
    return 0;
}

int adam_each(const struct adam_place *p, struct str resource,
              int (*fn)(void *ctx, const struct json *object), void *ctx)
{
    ARENA_AUTO page = arena_new();
    BUF_AUTO query = {0};
    struct kube_request r = request_of(p, VERB_LIST, resource, STR_NONE);
    int result = 0;
    buf_printf(&query, "limit=%d", PAGE_OBJECTS);
    while (result == 0 && query.n) {
        r.query = arena_str(page, buf_str(&query));
        result = each_of_page(p, page, &r, fn, ctx, &query);
        arena_reset(page);
    }
    return result;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

struct json *adam_member(const struct json *object, const char *name)
{
    struct json *found = json_get(object, str_of(name));
    if (found)
        return found;
    JSON_FOR_EACH_MEMBER (object, m)
        if (str_eq_nocase(json_str(&m->key), str_of(name)))
            return &m->value;
    return NULL;
}

void adam_add(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

struct pki_cert *adam_cert_of(const struct json *object, const char *field)
{
    struct pki_cert *cert = NULL;
    const char *reason = NULL;
    struct str text = json_str(json_at(object, "spec", field, NULL));
    return text.n && pki_cert_decode(text, &cert, &reason) == 0 ? cert : NULL;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

struct str adam_name_of(struct arena *a, struct str words)
{
    char *name = arena_alloc(a, NAME_MAX_BYTES);
    size_t n = 0;
    for (size_t i = 0; i < words.n && n < NAME_MAX_BYTES; i++) {
        const char c = words.p[i];
        const char lower = c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
        if (is_plain(lower))
            name[n++] = lower;
        else if (n > 0 && name[n - 1] != '-')
            name[n++] = '-';
    }
    while (n > 0 && name[n - 1] == '-')
        n--;
    if (str_eq(str_range(name, n), words) && n > 0)
        return words;
    unsigned char digest[SHA256_BYTES];
    pki_sha256(words, digest);
    return arena_printf(a, "%.*s%s%.*s", (int) n, name, n ? "-" : "onboard-",
                        STR_ARG(pki_hex(a, digest, NAME_DIGEST_BYTES)));
}
