/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <errno.h>
#include <stdlib.h>

#include "pki/pki.h"
#include "protobuf/protojson.h"

#define CONTEXT "c0ffee00-0000-4000-8000-000000000001"

static struct str kind_of(const struct json *o)
{
    return json_get_str(o, STR("kind"));
}

static struct str name_of(const struct json *o)
{
    return json_str(json_at(o, "metadata", "name", NULL));
}

void world_apply(struct world *w, const struct json *object)
{
    for (size_t i = 0; i < w->n_objects; i++)
        if (str_eq(kind_of(w->objects[i]), kind_of(object)) &&
            str_eq(name_of(w->objects[i]), name_of(object))) {
            w->objects[i] = object;
            return;
        }
    if (w->n_objects == WORLD_MAX)
        abort();
    w->objects[w->n_objects++] = object;
}

void world_remove(struct world *w, struct str kind, struct str name)
{
    for (size_t i = 0; i < w->n_objects; i++)
        if (str_eq(kind_of(w->objects[i]), kind) && str_eq(name_of(w->objects[i]), name)) {
            w->objects[i] = w->objects[--w->n_objects];
            return;
        }
    abort();
}

const struct json *world_find(const struct world *w, const char *kind, const char *name)
{
    for (size_t i = 0; i < w->n_objects; i++)
        if (str_is(kind_of(w->objects[i]), kind) && str_is(name_of(w->objects[i]), name))
            return w->objects[i];
    return NULL;
}

/* No cipher: the block holds what it was given, so that a test can read it. */
static int seal(void *ctx, struct arena *a, struct str identity, struct str plaintext,
                struct compose_sealed *ret)
{
    const struct world *w = ctx;
    if (!w->is_sealable)
        return -EAGAIN;
    unsigned char *hash = arena_alloc(a, SHA256_BYTES);
    unsigned char *iv = arena_alloc(a, SHA256_BYTES);
    pki_sha256(plaintext, hash);
    pki_sha256(identity, iv);
    Eve__Common__CipherBlock *block = arena_zalloc(a, sizeof(*block));
    eve__common__cipher_block__init(block);
    block->ciphercontextid = arena_strz(a, STR(CONTEXT));
    block->initialvalue = (ProtobufCBinaryData){16, iv};
    block->cleartextsha256 = (ProtobufCBinaryData){SHA256_BYTES, hash};
    block->cipherdata = w->is_hidden ? block->cleartextsha256 : pb_data(plaintext);
    Eve__Common__CipherContext *context = arena_zalloc(a, sizeof(*context));
    eve__common__cipher_context__init(context);
    context->contextid = block->ciphercontextid;
    context->devicecerthash = pb_data(STR("device's"));
    context->controllercerthash = pb_data(STR("controller's"));
    *ret = (struct compose_sealed){block, context};
    return 0;
}

static const struct json *find_named(const struct world *w, const char *name)
{
    return world_find(w, "ConfigMap", name);
}

void world_compose_once(struct world *w, struct arena *a, struct compose_result *ret)
{
    struct compose_inputs in = {
        .device = NULL,
        .namespace_options = find_named(w, "eve-options"),
        .global_options = find_named(w, "global-options"),
        .report = w->report,
        .seal = seal,
        .seal_ctx = w,
        .previous = w->derived,
    };
    const struct {
        const char *kind;
        struct compose_set *set;
    } sets[] = {
        {"NetworkConfig", &in.network_configs},
        {"DeviceNetwork", &in.device_networks},
        {"Image", &in.images},
        {"StorageClass", &in.storage_classes},
        {"PersistentVolumeClaim", &in.claims},
        {"Volume", &in.volumes},
        {"Application", &in.applications},
        {"Secret", &in.secrets},
        {"ConfigMap", &in.config_maps},
    };
    const struct json **items[N_ELEMENTS(sets)];
    for (size_t s = 0; s < N_ELEMENTS(sets); s++) {
        items[s] = ARENA_ARRAY(a, const struct json *, w->n_objects + 1);
        sets[s].set->items = items[s];
    }
    for (size_t i = 0; i < w->n_objects; i++) {
        if (str_is(kind_of(w->objects[i]), "Device"))
            in.device = w->objects[i];
        for (size_t s = 0; s < N_ELEMENTS(sets); s++)
            if (str_is(kind_of(w->objects[i]), sets[s].kind))
                items[s][sets[s].set->n++] = w->objects[i];
    }
    compose(a, &in, ret);
}

void world_compose(struct world *w, struct arena *a, struct compose_result *ret)
{
    world_compose_once(w, a, ret);
    /* As it is kept: as a text. */
    w->derived = json_parse_quick(w->arena, json_text(a, ret->derived));
}

static struct json *problems_json(struct arena *a, const struct compose_result *r)
{
    struct json *list = json_new(a, json_array());
    for (size_t i = 0; i < r->n_problems; i++) {
        const struct compose_problem *p = &r->problems[i];
        const struct str object =
            arena_printf(a, "%.*s/%.*s", STR_ARG(kind_of(p->object)), STR_ARG(name_of(p->object)));
        struct json *entry = json_push(a, list, json_object());
        (void) json_set(a, entry, STR("object"), json_string(object));
        (void) json_set(a, entry, STR("field"), json_string(p->field));
        (void) json_set(a, entry, STR("message"), json_string(p->message));
    }
    return list;
}

struct json *world_outcome(struct arena *a, const struct compose_result *r)
{
    struct json *all = json_new(a, json_object());
    (void) json_set(a, all, STR("config"), *protojson_value(a, &r->config->message, NULL));
    (void) json_set(a, all, STR("problems"), *problems_json(a, r));
    (void) json_set(a, all, STR("derived"), *r->derived);
    (void) json_set(a, all, STR("sources"), *compose_sources_json(a, r, true));
    return all;
}

struct str world_bytes(struct arena *a, const struct compose_result *r)
{
    return pb_pack(a, &r->config->message);
}
