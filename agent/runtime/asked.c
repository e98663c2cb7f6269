/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what callers ask for, within limits, and a hash to tell a repetition from a change. */
#include <errno.h>

#include "runtime/runtime_internal.h"

struct copier {
    struct arena *arena;
    uint64_t hash;
    bool is_bad;
};

static void mix(struct copier *c, uint64_t v)
{
    c->hash = (c->hash ^ v) * 0x9e3779b97f4a7c15ULL;
    c->hash ^= c->hash >> 29;
}

static void copy_text(struct copier *c, struct str *s)
{
    mix(c, s->p ? s->n + 1 : 0);
    if (!s->p)
        return;
    /* A NUL inside would end the text early for the kernel and for crun. */
    if (s->n > RUNTIME_MAX_TEXT_BYTES || memchr(s->p, 0, s->n)) {
        c->is_bad = true;
        return;
    }
    mix(c, map_hash(*s));
    *s = arena_str(c->arena, *s);
}

/* A document, of any bytes. */
static void copy_document(struct copier *c, struct str *s)
{
    mix(c, s->p ? s->n + 1 : 0);
    c->is_bad |= s->n > RUNTIME_MAX_USER_DATA_BYTES;
    if (!s->p || c->is_bad)
        return;
    mix(c, map_hash(*s));
    *s = arena_str(c->arena, *s);
}

static void copy_texts(struct copier *c, const struct str **texts, size_t n)
{
    mix(c, n);
    if (n > RUNTIME_MAX_ITEMS) {
        c->is_bad = true;
        return;
    }
    struct str *copy = ARENA_ARRAY(c->arena, struct str, n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*texts)[i];
        copy_text(c, &copy[i]);
    }
    *texts = copy;
}

static void copy_mounts(struct copier *c, struct runtime_instance *i)
{
    mix(c, i->n_mounts);
    if (i->n_mounts > RUNTIME_MAX_ITEMS) {
        c->is_bad = true;
        return;
    }
    struct runtime_mount *copy = ARENA_ARRAY(c->arena, struct runtime_mount, i->n_mounts);
    for (size_t k = 0; k < i->n_mounts; k++) {
        copy[k] = i->mounts[k];
        copy_text(c, &copy[k].volume);
        copy_text(c, &copy[k].target);
        mix(c, copy[k].is_read_only);
        bool is_directory = copy[k].target.n && copy[k].target.p[0] == '/';
        c->is_bad |= !runtime_id_is_valid(copy[k].volume) || (copy[k].target.p && !is_directory);
    }
    i->mounts = copy;
}

static void copy_interfaces(struct copier *c, struct runtime_instance *i)
{
    mix(c, i->n_interfaces);
    if (i->n_interfaces > RUNTIME_MAX_ITEMS) {
        c->is_bad = true;
        return;
    }
    struct runtime_interface *copy =
        ARENA_ARRAY(c->arena, struct runtime_interface, i->n_interfaces);
    for (size_t k = 0; k < i->n_interfaces; k++) {
        copy[k] = i->interfaces[k];
        copy_text(c, &copy[k].tap);
        copy_text(c, &copy[k].mac);
    }
    i->interfaces = copy;
}

int runtime_copy_content(struct arena *a, struct runtime_content *c, uint64_t *ret_hash)
{
    struct copier k = {.arena = a, .hash = 1};
    copy_text(&k, &c->id);
    copy_text(&k, &c->url);
    copy_text(&k, &c->sha256);
    copy_text(&k, &c->user);
    copy_text(&k, &c->password);
    copy_text(&k, &c->ca_pem);
    mix(&k, c->format);
    mix(&k, (uint64_t) c->max_bytes);
    *ret_hash = k.hash | 1;
    return k.is_bad || c->max_bytes < 0 ? -EINVAL : 0;
}

int runtime_copy_volume(struct arena *a, struct runtime_volume *v, uint64_t *ret_hash)
{
    struct copier k = {.arena = a, .hash = 2};
    copy_text(&k, &v->id);
    copy_text(&k, &v->content);
    mix(&k, (uint64_t) v->size_bytes);
    *ret_hash = k.hash | 1;
    k.is_bad |= v->size_bytes < 0 || (v->content.p && !runtime_id_is_valid(v->content));
    return k.is_bad ? -EINVAL : 0;
}

int runtime_copy_instance(struct arena *a, struct runtime_instance *i, uint64_t *ret_hash)
{
    struct copier k = {.arena = a, .hash = 3};
    copy_text(&k, &i->id);
    copy_text(&k, &i->root_volume);
    copy_mounts(&k, i);
    copy_interfaces(&k, i);
    copy_document(&k, &i->user_data);
    copy_document(&k, &i->meta_data);
    copy_texts(&k, &i->args, i->n_args);
    copy_texts(&k, &i->env, i->n_env);
    copy_text(&k, &i->hostname);
    copy_text(&k, &i->network_path);
    copy_text(&k, &i->resolv_conf);
    mix(&k, (uint64_t) i->memory_max_bytes);
    mix(&k, (uint64_t) i->cpu_millis);
    mix(&k, (uint64_t) i->max_processes);
    mix(&k, i->network * 2U + i->is_root_read_only);
    mix(&k, (uint64_t) i->stop_ms);
    *ret_hash = k.hash | 1;
    bool is_negative =
        i->memory_max_bytes < 0 || i->cpu_millis < 0 || i->max_processes < 0 || i->stop_ms < 0;
    return k.is_bad || is_negative || !runtime_id_is_valid(i->root_volume) ? -EINVAL : 0;
}
