/* SPDX-License-Identifier: Apache-2.0 */
#include "roster/state.h"

#include <errno.h>

#include "base/base64.h"
#include "json/json.h"

/* Conflicts with ourselves only: nobody else has business with these Secrets. */
#define MAX_ATTEMPTS 8
#define NAME_MAX_BYTES 253

/* ---- the parts ---------------------------------------------------------------------------- */

static const struct part {
    const char *key;
    size_t offset;
} parts[] = {
    {"certificates", offsetof(struct device_state, certificates)},
    {"storage-keys", offsetof(struct device_state, storage_keys)},
    {"integrity-token", offsetof(struct device_state, integrity_token)},
    {"event-log", offsetof(struct device_state, event_log)},
    {"pcrs", offsetof(struct device_state, pcrs)},
};
#define KEY_HAS_TPM "has-tpm"

static struct str *part_of(struct device_state *s, const struct part *p)
{
    return (struct str *) ((char *) s + p->offset);
}

static const struct str *part_in(const struct device_state *s, const struct part *p)
{
    return (const struct str *) ((const char *) s + p->offset);
}

/* -EBADMSG: a part is no base64, so that nobody takes it for absent. */
static int read_part(struct arena *a, const struct json *data, const char *key, struct str *ret)
{
    const struct json *value = json_get(data, str_of(key));
    *ret = STR("");
    if (!value)
        return 0;
    return base64_decode(a, json_str(value), BASE64_STANDARD, ret, NULL) < 0 ? -EBADMSG : 0;
}

static int parse_secret(struct arena *a, const struct json *secret, struct device_state *ret)
{
    const struct json *data = json_get(secret, STR("data"));
    struct device_state s = {0};
    struct str has_tpm = STR("");
    int r = read_part(a, data, KEY_HAS_TPM, &has_tpm);
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(parts); i++)
        r = read_part(a, data, parts[i].key, part_of(&s, &parts[i]));
    if (r < 0)
        return r;
    s.has_tpm = str_is(has_tpm, "true");
    *ret = s;
    return 0;
}

int device_state_parse(struct arena *a, struct str secret_text, struct device_state *ret)
{
    const struct json *secret = json_parse_quick(a, secret_text);
    return secret ? parse_secret(a, secret, ret) : -EBADMSG;
}

/* ---- the Secret --------------------------------------------------------------------------- */

struct task {
    struct kube_client *client;
    struct arena *arena;
    const struct device *device;
    struct str name;
    struct status *st;
};

static int task_init(struct task *t)
{
    const struct str device = t->device->name;
    if (device.n + sizeof(DEVICE_STATE_SUFFIX) - 1 > NAME_MAX_BYTES) {
        (void) status_fail(t->st, 422, "Invalid",
                           "device '%.*s': the name leaves no room for that of its Secret; use at "
                           "most %zu characters",
                           STR_ARG(device), NAME_MAX_BYTES - sizeof(DEVICE_STATE_SUFFIX) + 1);
        return -ENAMETOOLONG;
    }
    t->name = arena_printf(t->arena, "%.*s" DEVICE_STATE_SUFFIX, STR_ARG(device));
    return 0;
}

static int ask(struct task *t, enum verb verb, const struct json *body, struct json **ret)
{
    const struct kube_request r = {.verb = verb,
                                   .group = STR(""),
                                   .version = STR("v1"),
                                   .resource = STR("secrets"),
                                   .namespace = t->device->namespace,
                                   .name = verb == VERB_CREATE ? STR_NONE : t->name,
                                   .body = body};
    status_init(t->st, t->arena);
    return kube_request(t->client, t->arena, &r, ret, t->st);
}

/* A Device that is deleted and made again under its name is another device: what the old one left
 * until it is collected is not its. */
static bool is_ours(const struct task *t, const struct json *secret)
{
    JSON_FOR_EACH_ITEM (json_at(secret, "metadata", "ownerReferences", NULL), owner)
        if (str_eq(json_get_str(owner, STR("uid")), t->device->uid))
            return true;
    return false;
}

/* 1 and the Secret, 0 when the device has none, or a negative errno. */
static int find(struct task *t, struct json **ret_secret)
{
    const int r = ask(t, VERB_GET, NULL, ret_secret);
    return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static void add(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

static struct json owner_of(struct arena *a, const struct device *d)
{
    struct json owner = json_object();
    add(a, &owner, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    add(a, &owner, "kind", STR("Device"));
    add(a, &owner, "name", d->name);
    add(a, &owner, "uid", d->uid);
    (void) json_append_member(a, &owner, STR("controller"), json_bool(true));
    return owner;
}

static struct json *new_secret(const struct task *t)
{
    struct arena *a = t->arena;
    struct json *s = json_new(a, json_object());
    struct json meta = json_object(), owners = json_array();
    (void) json_push(a, &owners, owner_of(a, t->device));
    add(a, &meta, "name", t->name);
    add(a, &meta, "namespace", t->device->namespace);
    (void) json_append_member(a, &meta, STR("ownerReferences"), owners);
    add(a, s, "apiVersion", STR("v1"));
    add(a, s, "kind", STR("Secret"));
    (void) json_append_member(a, s, STR("metadata"), meta);
    add(a, s, "type", STR(DEVICE_STATE_TYPE));
    return s;
}

static void fill(struct arena *a, struct json *secret, const struct device_state *s)
{
    struct json *data = json_ensure_object(a, secret, STR("data"));
    for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
        const struct str *value = part_in(s, &parts[i]);
        if (value->p)
            (void) json_set(a, data, str_of(parts[i].key),
                            json_string(base64_encode(a, *value, BASE64_STANDARD)));
    }
    if (s->has_tpm)
        (void) json_set(a, data, STR(KEY_HAS_TPM),
                        json_string(base64_encode(a, STR("true"), BASE64_STANDARD)));
}

static int remove_namesake(struct task *t, const struct json *secret)
{
    struct json body = json_object(), preconditions = json_object();
    add(t->arena, &preconditions, "uid", json_str(json_at(secret, "metadata", "uid", NULL)));
    (void) json_append_member(t->arena, &body, STR("preconditions"), preconditions);
    const int r = ask(t, VERB_DELETE, &body, NULL);
    return r == -ENOENT ? 0 : r;
}

/* -ESTALE and -EEXIST: somebody was faster, look again. */
static int save_once(struct task *t, const struct device_state *s)
{
    struct json *secret = NULL;
    int r = find(t, &secret);
    if (r > 0 && !is_ours(t, secret)) {
        r = remove_namesake(t, secret);
        secret = NULL;
    }
    if (r < 0)
        return r;
    const bool is_new = !secret;
    if (is_new)
        secret = new_secret(t);
    fill(t->arena, secret, s);
    return ask(t, is_new ? VERB_CREATE : VERB_UPDATE, secret, NULL);
}

int device_state_load(struct kube_client *c, struct arena *a, const struct device *d,
                      struct device_state *ret, struct status *st)
{
    struct task t = {.client = c, .arena = a, .device = d, .st = st};
    struct json *secret = NULL;
    int r = task_init(&t);
    if (r == 0)
        r = find(&t, &secret);
    if (r < 0)
        return r;
    struct device_state s = {STR(""), STR(""), STR(""), STR(""), STR(""), false};
    if (r > 0 && is_ours(&t, secret) && parse_secret(a, secret, &s) < 0) {
        (void) status_fail(st, 500, "InternalError", "secret '%.*s/%.*s' is damaged",
                           STR_ARG(d->namespace), STR_ARG(t.name));
        return -EBADMSG;
    }
    status_init(st, a);
    *ret = s;
    return 0;
}

int device_state_save(struct kube_client *c, struct arena *a, const struct device *d,
                      const struct device_state *s, struct status *st)
{
    struct task t = {.client = c, .arena = a, .device = d, .st = st};
    int r = task_init(&t);
    if (r < 0)
        return r;
    r = -ESTALE;
    for (int i = 0; i < MAX_ATTEMPTS && (r == -ESTALE || r == -EEXIST); i++)
        r = save_once(&t, s);
    return r;
}
