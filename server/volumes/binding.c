/* SPDX-License-Identifier: Apache-2.0 */
/* A Volume for every claim on every Device where an Application uses it. It stays when the
 * Application goes, because it holds data, until the claim or the Device is gone. */
#include <errno.h>

#include "pki/pki.h"
#include "volumes/volumes_internal.h"

#define PROVISIONER "eve"
#define NAME_MAX_BYTES 253
/* Of the claim and the Device: enough for one claim on a million Devices. */
#define HASH_BYTES 6
/* A claim is mostly used within moments; longer, and it is told that it waits. */
#define PATIENCE_US ((int64_t) 10 * 1000000)

/* A claim with the Volumes that it has or is given now. */
struct binding {
    const struct volumes_task *t;
    struct object_place at;
    struct json *claim;
    struct link_claim links;
    struct str *bound; /* names of Volumes on Devices that are there */
    bool *is_used;
    size_t n_bound;
};

static struct json one_member(struct arena *a, const char *key, struct json value)
{
    struct json object = json_object();
    (void) json_append_member(a, &object, str_of(key), value);
    return object;
}

static void add_bound(struct binding *b, struct str name, bool is_used)
{
    b->bound = arena_grow(b->t->arena, b->bound, b->n_bound, sizeof(struct str));
    b->is_used = arena_grow(b->t->arena, b->is_used, b->n_bound, sizeof(bool));
    b->bound[b->n_bound] = name;
    b->is_used[b->n_bound++] = is_used;
}

/* ---- its class ------------------------------------------------------------------------------- */

/* 1: EVE makes its volumes; 0: somebody else does, or nobody yet. Without a class there is nobody
 * else who could. */
static int is_of_eve(struct binding *b)
{
    const struct str name = json_str(json_at(b->claim, "spec", "storageClassName", NULL));
    const struct object_place at = volumes_place(b->t, "storageclasses.storage.k8s.io", name);
    struct json *class = NULL;
    if (!name.n)
        return 1;
    const int r = objects_get(b->t->ctx, b->t->arena, &at, &class);
    if (r == -ENOENT) {
        volumes_tell(b->t, b->claim, /* is_warning= */ true, "ProvisioningFailed",
                     arena_printf(b->t->arena, "storageclass.storage.k8s.io \"%.*s\" not found",
                                  STR_ARG(name)));
        return 0;
    }
    return r < 0 ? r : str_is(json_get_str(class, STR("provisioner")), PROVISIONER);
}

/* ---- Volumes --------------------------------------------------------------------------------- */

/* Another claim of this name, or on another Device, has another. */
static struct str name_for(const struct binding *b, struct str device)
{
    unsigned char hash[SHA256_BYTES];
    struct arena *a = b->t->arena;
    const struct str uid = object_meta_text(b->claim, "uid");
    pki_sha256(arena_printf(a, "%.*s/%.*s", STR_ARG(uid), STR_ARG(device)), hash);
    const struct str hex = pki_hex(a, hash, HASH_BYTES);
    struct str head = b->t->name;
    head = str_sub(head, 0, MIN(head.n, NAME_MAX_BYTES - 1 - hex.n));
    while (head.n && (head.p[head.n - 1] == '.' || head.p[head.n - 1] == '-'))
        head.n--;
    return arena_printf(a, "%.*s-%.*s", STR_ARG(head), STR_ARG(hex));
}

static struct json *new_volume(const struct binding *b, struct str name,
                               const struct link_user *user)
{
    struct arena *a = b->t->arena;
    struct json *volume = json_new(a, json_object());
    struct json meta = one_member(a, "name", json_string(name));
    struct json spec = one_member(a, "claim", json_string(b->t->name));
    (void) json_append_member(a, &meta, STR("ownerReferences"), volumes_owned_by(a, b->claim));
    (void) json_append_member(a, &spec, STR("device"), json_string(user->device));
    (void) json_append_member(a, &spec, STR("application"), json_string(user->name));
    (void) json_append_member(a, volume, STR("apiVersion"),
                              json_string(STR("eve.lfedge.org/v1beta1")));
    (void) json_append_member(a, volume, STR("kind"), json_string(STR("Volume")));
    (void) json_append_member(a, volume, STR("metadata"), meta);
    (void) json_append_member(a, volume, STR("spec"), spec);
    return volume;
}

/* A Volume of this name is ours when an answer was lost, or its event is still on the way. */
static int check_namesake(struct binding *b, const struct object_place *at)
{
    struct json *there = NULL;
    const int r = objects_get(b->t->ctx, b->t->arena, at, &there);
    if (r < 0)
        return r;
    if (str_eq(volumes_controller_uid(there), object_meta_text(b->claim, "uid")))
        return 0;
    volumes_tell(b->t, b->claim, /* is_warning= */ true, "ProvisioningFailed",
                 arena_printf(b->t->arena, "volumes.eve.lfedge.org \"%.*s\" already exists",
                              STR_ARG(at->name)));
    return -EEXIST;
}

static int make_volume(struct binding *b, const struct link_user *user)
{
    const struct str name = name_for(b, user->device);
    const struct object_place at = volumes_place(b->t, "volumes.eve.lfedge.org", name);
    int r = objects_create(b->t->ctx, b->t->arena, &at, new_volume(b, name, user));
    if (r == -EEXIST)
        r = check_namesake(b, &at);
    else if (r == 0)
        volumes_tell(b->t, b->claim, /* is_warning= */ false, "ProvisioningSucceeded",
                     arena_printf(b->t->arena,
                                  "Successfully provisioned volume %.*s on Device %.*s",
                                  STR_ARG(name), STR_ARG(user->device)));
    if (r == 0)
        add_bound(b, name, true);
    return r;
}

static bool has_volume_on(const struct binding *b, struct str device)
{
    for (size_t i = 0; i < b->links.n_volumes; i++)
        if (!b->links.volumes[i].is_stranded && str_eq(b->links.volumes[i].device, device))
            return true;
    return false;
}

/* The first user on each Device has it made. */
static int make_volumes(struct binding *b)
{
    for (size_t i = 0; i < b->links.n_users; i++) {
        const struct link_user *user = &b->links.users[i];
        bool is_first = user->device.n && !user->is_deleting;
        for (size_t k = 0; is_first && k < i; k++)
            is_first =
                b->links.users[k].is_deleting || !str_eq(b->links.users[k].device, user->device);
        if (!is_first || has_volume_on(b, user->device))
            continue;
        const int r = make_volume(b, user);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Who is said to use it: who did before, if that is still so. */
static struct str user_of(const struct binding *b, const struct link_volume *v)
{
    struct str first = STR("");
    for (size_t i = 0; i < b->links.n_users; i++) {
        const struct link_user *user = &b->links.users[i];
        if (!str_eq(user->device, v->device))
            continue;
        if (str_eq(user->name, v->application))
            return v->application;
        if (!first.n && !user->is_deleting)
            first = user->name;
    }
    return first;
}

static int update_volume(struct binding *b, const struct link_volume *v)
{
    struct arena *a = b->t->arena;
    const struct object_place at = volumes_place(b->t, "volumes.eve.lfedge.org", v->name);
    const struct str user = user_of(b, v);
    if (v->is_stranded)
        return objects_delete(b->t->ctx, a, &at, &(struct delete_terms){.uid = v->uid});
    add_bound(b, v->name, user.n > 0);
    if (str_eq(user, v->application))
        return 0;
    const struct json spec = one_member(a, "application", user.n ? json_string(user) : json_null());
    const struct json body = one_member(a, "spec", spec);
    const int r = objects_merge(b->t->ctx, b->t->arena, &at, "", &body);
    return r == -ENOENT ? 0 : r;
}

/* ---- the claim ------------------------------------------------------------------------------- */

/* The Volume that the claim names: the one it named before, else one that is used. */
static struct str choose(const struct binding *b)
{
    const struct str before = json_str(json_at(b->claim, "spec", "volumeName", NULL));
    struct str used = STR("");
    for (size_t i = 0; i < b->n_bound; i++) {
        if (str_eq(b->bound[i], before))
            return before;
        if (!used.n && b->is_used[i])
            used = b->bound[i];
    }
    return used.n || !b->n_bound ? used : b->bound[0];
}

/* The size is the one that the volume was made with: a device cannot resize it. */
static struct json bound_status(struct binding *b)
{
    struct arena *a = b->t->arena;
    const struct json *modes = json_at(b->claim, "spec", "accessModes", NULL),
                      *size = json_at(b->claim, "spec", "resources", "requests", "storage", NULL);
    struct json status = one_member(a, "phase", json_string(STR("Bound")));
    if (modes)
        (void) json_append_member(a, &status, STR("accessModes"), *modes);
    if (size)
        (void) json_append_member(a, &status, STR("capacity"), one_member(a, "storage", *size));
    return status;
}

static int write_status(struct binding *b, struct json status)
{
    const struct json body = one_member(b->t->arena, "status", status);
    return objects_merge(b->t->ctx, b->t->arena, &b->at, "status", &body);
}

static int bind(struct binding *b, struct str volume)
{
    struct arena *a = b->t->arena;
    const bool is_bound = str_is(json_str(json_at(b->claim, "status", "phase", NULL)), "Bound");
    const bool is_same = str_eq(json_str(json_at(b->claim, "spec", "volumeName", NULL)), volume);
    if (is_same && is_bound)
        return 0;
    /* The name last: with it the size of this volume is settled. */
    const int r = write_status(b, bound_status(b));
    if (r < 0 || is_same)
        return r;
    const struct json body =
        one_member(a, "spec", one_member(a, "volumeName", json_string(volume)));
    return objects_merge(b->t->ctx, b->t->arena, &b->at, "", &body);
}

static int64_t wait(struct binding *b)
{
    int64_t since_us = 0;
    const int64_t now_us = b->t->ctx->clock->wall_us(b->t->ctx->clock);
    (void) clock_parse(object_meta_text(b->claim, "creationTimestamp"), &since_us);
    if (b->links.n_users)
        return 0;
    if (now_us < since_us + PATIENCE_US)
        return (since_us + PATIENCE_US - now_us) / 1000 + 1;
    volumes_tell(b->t, b->claim, /* is_warning= */ false, "WaitForFirstConsumer",
                 STR("waiting for first consumer to be created before binding"));
    return 0;
}

static int64_t release(struct binding *b)
{
    const struct str phase = json_str(json_at(b->claim, "status", "phase", NULL));
    if (!str_is(phase, "Bound"))
        return str_is(phase, "Lost") ? 0 : wait(b);
    const int r = write_status(b, one_member(b->t->arena, "phase", json_string(STR("Lost"))));
    if (r == 0)
        volumes_tell(
            b->t, b->claim, /* is_warning= */ true, "ClaimLost",
            STR("Bound claim has lost its Volume: it or its Device was deleted. Data on the "
                "volume is lost!"));
    return r;
}

static int64_t follow(struct binding *b)
{
    const int is_eve = is_of_eve(b);
    if (is_eve <= 0)
        return is_eve;
    for (size_t i = 0; i < b->links.n_volumes; i++) {
        const int r = update_volume(b, &b->links.volumes[i]);
        if (r < 0)
            return r;
    }
    const int r = make_volumes(b);
    if (r < 0)
        return r;
    const struct str volume = choose(b);
    return volume.n ? bind(b, volume) : release(b);
}

int64_t binding_reconcile(const struct volumes_task *t)
{
    struct binding b = {.t = t, .at = volumes_place(t, "persistentvolumeclaims", t->name)};
    int64_t r = objects_get(t->ctx, t->arena, &b.at, &b.claim);
    if (r == 0 && !object_is_deleting(b.claim)) {
        b.links = links_claim(t->links, t->arena, volumes_key(t->arena, t->namespace, t->name));
        r = follow(&b);
    }
    return r == -ENOENT ? 0 : r;
}
