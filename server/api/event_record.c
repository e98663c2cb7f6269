/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event_record.h"

#include <errno.h>

#include "pki/pki.h"
#include "json/json.h"

#define MAX_ATTEMPTS 4
#define MAX_MESSAGE_BYTES 1024
#define MAX_NAME_BYTES 200
#define COMPONENT "seth"

static void add(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

/* The same thing happening to the same object has the same name. */
static struct str event_name(struct arena *a, const struct event_notice *n)
{
    unsigned char hash[SHA256_BYTES];
    const struct str what =
        arena_printf(a, "%.*s\n%s\n%.*s", STR_ARG(n->about.uid), n->reason, STR_ARG(n->key));
    pki_sha256(what, hash);
    const struct str hex = pki_hex(a, hash, 8);
    return arena_printf(a, "%.*s.%.*s",
                        STR_ARG(str_sub(n->about.name, 0, MIN(n->about.name.n, MAX_NAME_BYTES))),
                        STR_ARG(hex));
}

static struct str message_of(const struct event_notice *n)
{
    size_t end = MIN(n->message.n, MAX_MESSAGE_BYTES);
    /* Not in the middle of a character. */
    while (end < n->message.n && end > 0 && ((unsigned char) n->message.p[end] & 0xC0) == 0x80)
        end--;
    return str_sub(n->message, 0, end);
}

static struct json subject(struct arena *a, const struct event_subject *s)
{
    struct json o = json_object();
    add(a, &o, "apiVersion", s->api_version);
    add(a, &o, "kind", s->kind);
    add(a, &o, "namespace", s->namespace);
    add(a, &o, "name", s->name);
    add(a, &o, "uid", s->uid);
    return o;
}

static struct json *new_event(struct arena *a, const struct event_notice *n, struct str name,
                              struct str now)
{
    struct json *e = json_new(a, json_object());
    struct json meta = json_object(), source = json_object();
    add(a, &meta, "name", name);
    add(a, &meta, "namespace", n->about.namespace);
    add(a, &source, "component", STR(COMPONENT));
    add(a, e, "apiVersion", STR("v1"));
    add(a, e, "kind", STR("Event"));
    (void) json_append_member(a, e, STR("metadata"), meta);
    (void) json_append_member(a, e, STR("involvedObject"), subject(a, &n->about));
    add(a, e, "reason", str_of(n->reason));
    add(a, e, "message", message_of(n));
    (void) json_append_member(a, e, STR("source"), source);
    add(a, e, "firstTimestamp", now);
    add(a, e, "lastTimestamp", now);
    (void) json_append_member(a, e, STR("count"), json_int(1));
    add(a, e, "type", n->is_warning ? STR("Warning") : STR("Normal"));
    return e;
}

static struct kube_request request_of(enum verb verb, struct str namespace)
{
    return (struct kube_request){.verb = verb,
                                 .group = STR(""),
                                 .version = STR("v1"),
                                 .resource = STR("events"),
                                 .namespace = namespace};
}

static int count_again(struct kube_client *c, struct arena *a, const struct event_notice *n,
                       struct str name, struct str now)
{
    struct status st;
    struct json *e = NULL;
    status_init(&st, a);
    struct kube_request get = request_of(VERB_GET, n->about.namespace);
    get.name = name;
    const int r = kube_request(c, a, &get, &e, &st);
    if (r < 0)
        return r;
    (void) json_set(a, e, STR("count"), json_int(json_get_int(e, STR("count"), 0) + 1));
    (void) json_set(a, e, STR("lastTimestamp"), json_string(now));
    (void) json_set(a, e, STR("message"), json_string(message_of(n)));
    struct kube_request update = request_of(VERB_UPDATE, n->about.namespace);
    update.name = name;
    update.body = e;
    return kube_request(c, a, &update, NULL, &st);
}

static int create(struct kube_client *c, struct arena *a, const struct json *event,
                  struct str namespace)
{
    struct status st;
    status_init(&st, a);
    struct kube_request r = request_of(VERB_CREATE, namespace);
    r.body = event;
    return kube_request(c, a, &r, NULL, &st);
}

int event_record(struct kube_client *c, const struct clock *clock, const struct event_notice *n)
{
    ARENA_AUTO a = arena_new();
    char now_text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(clock->wall_us(clock), now_text);
    const struct str now = str_of(now_text), name = event_name(a, n);
    int r = -ESTALE;
    /* Between the two requests the Event may expire, or somebody else may count. */
    for (int i = 0; i < MAX_ATTEMPTS && (r == -ESTALE || r == -ENOENT); i++) {
        r = create(c, a, new_event(a, n, name, now), n->about.namespace);
        if (r == -EEXIST)
            r = count_again(c, a, n, name, now);
    }
    return r;
}
