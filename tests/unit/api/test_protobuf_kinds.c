/* SPDX-License-Identifier: Apache-2.0 */
/* kinds/protobuf.yaml and the manifests say the same of every native kind: an object with all
 * fields of its messages is read whole, its schema knows every one of them, and has no other. */
#include "../../test.h"

#include <stdio.h>

#include "api/decode.h"
#include "kinds_fixture.h"
#include "protobuf_fixture.h"

#define SAMPLE_DEPTH 7 /* schemas inside schemas end here */

static struct json sample(struct arena *a, const struct protobuf_message *m, int depth,
                          struct buf *out);

/* Writes a value of a field and returns it as JSON. */
static struct json sample_value(struct arena *a, const struct protobuf_field *f, uint32_t number,
                                int depth, struct buf *out)
{
    BUF_AUTO inner = {0};
    struct json value = json_null();
    switch (f->type) {
    case PROTOBUF_STRING:
        wire_bytes(out, number, STR("1"));
        return json_string(STR("1"));
    case PROTOBUF_BYTES:
        wire_bytes(out, number, STR("\xff"));
        return json_string(STR("/w=="));
    case PROTOBUF_BOOL:
        wire_int(out, number, 1);
        return json_bool(true);
    case PROTOBUF_INT32:
    case PROTOBUF_INT64:
        wire_int(out, number, -2);
        return json_int(-2);
    case PROTOBUF_DOUBLE:
        wire_double(out, number, 0.5);
        return json_double(0.5);
    case PROTOBUF_TIME:
    case PROTOBUF_MICRO_TIME:
        wire_int(&inner, 1, 1000000000);
        wire_int(&inner, 2, 123456789);
        value = json_string(f->type == PROTOBUF_TIME ? STR("2001-09-09T01:46:40Z")
                                                     : STR("2001-09-09T01:46:40.123456Z"));
        break;
    case PROTOBUF_JSON:
        wire_bytes(out, number, STR("{\"a\":1}"));
        return *fixture_json(a, "{'a':1}");
    case PROTOBUF_MESSAGE:
        value = sample(a, f->message, depth + 1, &inner);
        break;
    }
    wire_message(out, number, &inner);
    return value;
}

static void sample_field(struct arena *a, const struct protobuf_field *f, int depth,
                         struct json *object, struct buf *out)
{
    struct json value = json_array();
    BUF_AUTO inner = {0};
    switch (f->form) {
    case PROTOBUF_PLAIN:
    case PROTOBUF_OPTIONAL:
        value = sample_value(a, f, f->number, depth, out);
        if (value.type == JSON_NULL)
            return;
        break;
    case PROTOBUF_REPEATED:
        (void) json_push(a, &value, sample_value(a, f, f->number, depth, out));
        (void) json_push(a, &value, sample_value(a, f, f->number, depth, out));
        break;
    case PROTOBUF_MAP:
        value = json_object();
        wire_bytes(&inner, 1, STR("k"));
        (void) json_set(a, &value, STR("k"), sample_value(a, f, 2, depth, &inner));
        wire_message(out, f->number, &inner);
        break;
    case PROTOBUF_INLINE:
        value = sample(a, f->message, depth + 1, &inner);
        wire_message(out, f->number, &inner);
        JSON_FOR_EACH_MEMBER (&value, m)
            (void) json_set(a, object, json_str(&m->key), m->value);
        return;
    }
    (void) json_set(a, object, f->name, value);
}

static struct json sample(struct arena *a, const struct protobuf_message *m, int depth,
                          struct buf *out)
{
    struct json object = json_object();
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].type != PROTOBUF_MESSAGE || depth < SAMPLE_DEPTH)
            sample_field(a, &m->fields[i], depth, &object, out);
    if (!m->is_union)
        return object;
    const struct json *first = object.n > 0 ? &object.members[0].value : NULL;
    return first ? *first : json_null();
}

static const struct protobuf_message *message_of(const struct registry *r, const struct kind *k)
{
    const struct protobuf_message *m = protobuf_find(r->protobuf, k->api_version, k->kind);
    if (!m)
        fail_msg("%.*s %.*s has no messages in kinds/protobuf.yaml", STR_ARG(k->api_version),
                 STR_ARG(k->kind));
    return m;
}

static void assert_reads(struct arena *a, const struct protobuf_message *m, struct json *object)
{
    BUF_AUTO bytes = {0};
    struct str error = STR("");
    const struct json expected = sample(a, m, 0, &bytes);
    *object = json_object();
    if (protobuf_decode(a, m, buf_str(&bytes), object, &error) < 0)
        fail_msg("%.*s: %.*s", STR_ARG(m->name), STR_ARG(error));
    if (!json_equal(object, &expected))
        fail_msg("%.*s: got %.*s", STR_ARG(m->name), STR_ARG(json_text(a, object)));
}

/* Another word for apiGroup, which Kubernetes does not have and nobody stores. */
#define OURS "PersistentVolumeClaim.spec.dataSourceRef.group"

/* Every property of the schema is in the object, which has all fields of the messages. */
static void assert_complete(struct arena *a, const struct schema *s, const struct json *v,
                            const struct field_path *at)
{
    for (size_t i = 0; i < s->n_properties; i++) {
        const struct str name = s->property_names[i];
        const struct field_path inner = FIELD_NAME(at, name);
        const struct json *member = json_get(v, name);
        if (!member && str_is(field_path_text(a, &inner), OURS))
            continue;
        if (!member)
            fail_msg("kinds/protobuf.yaml lacks %.*s", STR_ARG(field_path_text(a, &inner)));
        assert_complete(a, map_get(&s->properties, name), member, &inner);
    }
    if (s->items)
        assert_complete(a, s->items, &v->items[0], at);
    if (s->additional_properties && v->n > 0)
        assert_complete(a, s->additional_properties, &v->members[0].value, at);
}

static void assert_same_as_manifest(struct arena *a, const struct registry *r, const struct kind *k)
{
    struct json object;
    struct str error = STR("");
    struct unknown_field *unknown = NULL;
    assert_reads(a, message_of(r, k), &object);
    const struct field_path at = FIELD_NAME(NULL, k->kind);
    assert_complete(a, k->schema, &object, &at);
    schema_prune(a, k->schema, &object, &unknown);
    if (unknown)
        fail_msg("the manifest of %.*s lacks %.*s", STR_ARG(k->kind), STR_ARG(unknown->path));
    if (decode_object(a, k, &object, &error) < 0)
        fail_msg("%.*s: %.*s", STR_ARG(k->kind), STR_ARG(error));
}

TEST(every_native_kind_is_read_whole)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *r = fixture_registry();
    size_t n = 0;
    for (size_t g = 0; g < r->n_groups; g++)
        for (size_t v = 0; v < r->groups[g].n_versions; v++)
            for (size_t k = 0; k < r->groups[g].versions[v].n_kinds; k++) {
                const struct kind *kind = r->groups[g].versions[v].kinds[k];
                if (!kind->is_native)
                    continue;
                assert_same_as_manifest(a, r, kind);
                n++;
            }
    assert_true(n >= 18);
}

TEST(so_is_what_goes_with_requests)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *r = fixture_registry();
    struct json object;
    assert_reads(a, protobuf_find(r->protobuf, STR("meta.k8s.io/v1"), STR("DeleteOptions")),
                 &object);
    assert_str(json_get_str(json_get(&object, STR("preconditions")), STR("uid")), "1");
    assert_reads(a, protobuf_find(r->protobuf, STR("autoscaling/v1"), STR("Scale")), &object);
    assert_int_equal(json_get_int(json_get(&object, STR("spec")), STR("replicas"), 0), -2);
}

TEST(numbers_of_a_message_are_its_own)
{
    CLEANUP(registry_unrefp) struct registry *r = fixture_registry();
    for (size_t i = 0; i < r->protobuf->n_messages; i++) {
        const struct protobuf_message *m = &r->protobuf->messages[i];
        for (size_t j = 0; j < m->n_fields; j++)
            for (size_t k = 0; k < j; k++)
                if (m->fields[k].number == m->fields[j].number)
                    fail_msg("%.*s has %u twice", STR_ARG(m->name), m->fields[j].number);
    }
}
