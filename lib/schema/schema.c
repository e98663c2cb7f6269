/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/schema_internal.h"

#define HASH_FACTOR 0x9e3779b97f4a7c15u
#define NUMBER_BYTES 40

/* ---- properties by name ------------------------------------------------------------------- */

static uint64_t load(const char *p, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, p, n);
    return word;
}

/* Cheaper than the map's hash and not keyed: who writes the property names owns the table. Up to 16
 * bytes it takes two loads that may overlap. */
static inline uint32_t name_hash(struct str name)
{
    uint64_t first = 0, last = 0, h = name.n;
    if (name.n >= 8) {
        for (size_t i = 8; i + 8 < name.n; i += 8)
            h = (h ^ load(name.p + i, 8)) * HASH_FACTOR;
        first = load(name.p, 8);
        last = load(name.p + name.n - 8, 8);
    } else if (name.n >= 4) {
        first = load(name.p, 4);
        last = load(name.p + name.n - 4, 4);
    } else if (name.n > 0) {
        first = (unsigned char) name.p[0];
        last =
            (uint64_t) (unsigned char) name.p[name.n / 2] << 8 | (unsigned char) name.p[name.n - 1];
    }
    h = (h ^ first) * HASH_FACTOR;
    h = (h ^ h >> 32 ^ last) * HASH_FACTOR;
    return (uint32_t) (h >> 32);
}

uint32_t schema_name_hash(struct str name)
{
    return name_hash(name);
}

const struct schema *schema_property(const struct schema *schema, struct str name)
{
    const struct schema_rules *r = schema->rules;
    if (!r->slots)
        return NULL;
    uint32_t hash = name_hash(name);
    for (uint32_t i = hash & r->slot_mask; r->slots[i].schema; i = (i + 1) & r->slot_mask)
        if (r->slots[i].hash == hash && str_eq(r->slots[i].name, name))
            return r->slots[i].schema;
    return NULL;
}

void schema_index_properties(struct arena *a, const struct schema *schema,
                             struct schema_rules *rules)
{
    if (!schema->n_properties)
        return;
    uint32_t n_slots = 4;
    while (n_slots < 2 * schema->n_properties)
        n_slots *= 2;
    struct schema_slot *slots = ARENA_ARRAY(a, struct schema_slot, n_slots);
    rules->slot_mask = n_slots - 1;
    for (size_t i = 0; i < schema->n_properties; i++) {
        struct str name = schema->property_names[i];
        uint32_t hash = name_hash(name), slot = hash & rules->slot_mask;
        while (slots[slot].schema && !str_eq(slots[slot].name, name))
            slot = (slot + 1) & rules->slot_mask;
        slots[slot] = (struct schema_slot){hash, name, map_get(&schema->properties, name)};
    }
    rules->slots = slots;
}

const struct schema *schema_member(const struct schema *schema, struct str name)
{
    if (!schema)
        return NULL;
    const struct schema *property = schema_property(schema, name);
    return property ? property : schema->additional_properties;
}

bool schema_is_meta_name(struct str name)
{
    return str_is(name, "metadata") || str_is(name, "kind") || str_is(name, "apiVersion");
}

/* ---- texts -------------------------------------------------------------------------------- */

struct str schema_type_name(const struct json *value)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "boolean",  [JSON_INT] = "integer",
        [JSON_DOUBLE] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    return str_of(names[value->type]);
}

static void write_path(struct buf *b, const struct field_path *path)
{
    if (path->parent)
        write_path(b, path->parent);
    if (path->name.p || path->key.p) {
        if (path->parent)
            buf_append_char(b, '.');
        buf_append_str(b, path->name.p ? path->name : path->key);
    } else {
        buf_printf(b, "[%lld]", (long long) path->index);
    }
}

struct str schema_path_text(struct arena *a, const struct field_path *path)
{
    if (!path)
        return STR("");
    BUF_AUTO b = {0};
    write_path(&b, path);
    return arena_str(a, buf_str(&b));
}

void schema_write_number(struct buf *b, double d)
{
    struct json v = json_double(d);
    double size = fabs(d);
    /* %v takes the exponent below 1e-4 already, where JSON does below 1e-6. */
    if (size == 0 || size >= 1e-4 || size < 1e-6) {
        json_write(b, &v);
        return;
    }
    char text[NUMBER_BYTES];
    for (int precision = 0; precision < 17; precision++) {
        (void) snprintf(text, sizeof(text), "%.*e", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    buf_append_str(b, str_of(text));
}

/* ---- ObjectMeta --------------------------------------------------------------------------- */

#define STRING_SCHEMA "{\"type\":\"string\"}"
#define TIME_SCHEMA "{\"type\":\"string\",\"format\":\"date-time\"}"
#define INTEGER_SCHEMA "{\"type\":\"integer\",\"format\":\"int64\"}"
#define STRING_MAP_SCHEMA "{\"type\":\"object\",\"additionalProperties\":" STRING_SCHEMA "}"

static const char object_meta_text[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"name\":" STRING_SCHEMA ",\"generateName\":" STRING_SCHEMA ",\"namespace\":" STRING_SCHEMA ","
    "\"selfLink\":" STRING_SCHEMA ",\"uid\":" STRING_SCHEMA ",\"resourceVersion\":" STRING_SCHEMA
    ","
    "\"generation\":" INTEGER_SCHEMA ",\"creationTimestamp\":" TIME_SCHEMA ","
    "\"deletionTimestamp\":" TIME_SCHEMA ",\"deletionGracePeriodSeconds\":" INTEGER_SCHEMA ","
    "\"labels\":" STRING_MAP_SCHEMA ",\"annotations\":" STRING_MAP_SCHEMA ","
    "\"ownerReferences\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
    "\"x-kubernetes-list-map-keys\":[\"uid\"],\"x-kubernetes-patch-strategy\":\"merge\","
    "\"x-kubernetes-patch-merge-key\":\"uid\",\"items\":{\"type\":\"object\","
    "\"x-kubernetes-map-type\":\"atomic\",\"properties\":{\"apiVersion\":" STRING_SCHEMA ","
    "\"kind\":" STRING_SCHEMA ",\"name\":" STRING_SCHEMA ",\"uid\":" STRING_SCHEMA ","
    "\"controller\":{\"type\":\"boolean\"},\"blockOwnerDeletion\":{\"type\":\"boolean\"}}}},"
    "\"finalizers\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\","
    "\"x-kubernetes-patch-strategy\":\"merge\",\"items\":" STRING_SCHEMA "},"
    "\"managedFields\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"atomic\",\"items\":{"
    "\"type\":\"object\",\"properties\":{\"manager\":" STRING_SCHEMA ",\"operation\":" STRING_SCHEMA
    ","
    "\"apiVersion\":" STRING_SCHEMA ",\"time\":" TIME_SCHEMA ",\"fieldsType\":" STRING_SCHEMA ","
    "\"fieldsV1\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true},"
    "\"subresource\":" STRING_SCHEMA "}}}}}";

static const struct schema *object_meta;
static struct arena *object_meta_arena; /* lives as long as the process */
static pthread_once_t object_meta_once = PTHREAD_ONCE_INIT;

static void compile_object_meta(void)
{
    struct arena *a = object_meta_arena = arena_new();
    struct str error = {0};
    const struct json *source = json_parse_quick(a, str_of(object_meta_text));
    if (!source || schema_compile(a, source, &object_meta, &error) < 0)
        abort();
}

const struct schema *schema_object_meta(void)
{
    (void) pthread_once(&object_meta_once, compile_object_meta);
    return object_meta;
}
