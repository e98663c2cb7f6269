/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/protobuf.h"

/* Where a name that its own group version lacks is looked for. */
static const struct str shared_group_versions[] = {STR("meta.k8s.io/v1"), STR("v1")};

static const struct str form_names[] = {
    [PROTOBUF_OPTIONAL] = STR("optional"),
    [PROTOBUF_REPEATED] = STR("repeated"),
    [PROTOBUF_MAP] = STR("map"),
    [PROTOBUF_INLINE] = STR("inline"),
};

static const struct str type_names[] = {
    [PROTOBUF_STRING] = STR("string"), [PROTOBUF_BYTES] = STR("bytes"),
    [PROTOBUF_BOOL] = STR("bool"),     [PROTOBUF_INT32] = STR("int32"),
    [PROTOBUF_INT64] = STR("int64"),   [PROTOBUF_DOUBLE] = STR("double"),
    [PROTOBUF_TIME] = STR("time"),     [PROTOBUF_MICRO_TIME] = STR("micro-time"),
    [PROTOBUF_JSON] = STR("json"),
};

const struct protobuf_message *protobuf_find(const struct protobuf *p, struct str group_version,
                                             struct str name)
{
    for (size_t i = 0; i < p->n_messages; i++)
        if (str_eq(p->messages[i].name, name) &&
            str_eq(p->messages[i].group_version, group_version))
            return &p->messages[i];
    return NULL;
}

/* ---- compiling ---------------------------------------------------------------------------- */

struct compiler {
    struct arena *arena;
    const struct protobuf *table;
    const struct protobuf_message *message; /* the one at hand */
    struct str *ret_error;
};

static int fail(struct compiler *c, struct str field, struct str text)
{
    *c->ret_error = arena_printf(c->arena, "%.*s: %.*s.%.*s: \"%.*s\" is no field",
                                 STR_ARG(c->message->group_version), STR_ARG(c->message->name),
                                 STR_ARG(field), STR_ARG(text));
    return -EINVAL;
}

/* The place of a name in a list, or -1. */
static int find_name(const struct str *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].n > 0 && str_eq(names[i], name))
            return (int) i;
    return -1;
}

static int set_type(struct compiler *c, struct str name, struct protobuf_field *f)
{
    const int type = find_name(type_names, N_ELEMENTS(type_names), name);
    if (type >= 0) {
        f->type = (enum protobuf_type) type;
        return f->form == PROTOBUF_INLINE ? -EINVAL : 0;
    }
    f->type = PROTOBUF_MESSAGE;
    f->message = protobuf_find(c->table, c->message->group_version, name);
    for (size_t i = 0; !f->message && i < N_ELEMENTS(shared_group_versions); i++)
        f->message = protobuf_find(c->table, shared_group_versions[i], name);
    return f->message ? 0 : -EINVAL;
}

/* "<number> <type>" or "<number> <form> <type>". */
static int compile_field(struct compiler *c, struct str name, struct str text,
                         struct protobuf_field *f)
{
    struct str rest = text, number = STR_NONE, type = STR_NONE;
    int64_t value = 0;
    if (!str_split(&rest, ' ', &number) || str_to_i64(number, &value) < 0 || value < 1 ||
        value > PROTOBUF_MAX_NUMBER || !str_split(&rest, ' ', &type))
        return fail(c, name, text);
    const int form = rest.n > 0 ? find_name(form_names, N_ELEMENTS(form_names), type) : 0;
    *f = (struct protobuf_field){
        .name = name.n > 0 ? name : number,
        .number = (uint32_t) value,
        .form = (enum protobuf_form) MAX(form, 0),
    };
    if (form < 0 || set_type(c, rest.n > 0 ? rest : type, f) < 0)
        return fail(c, name, text);
    return 0;
}

static int compile_message(struct compiler *c, const struct json *source,
                           struct protobuf_message *m)
{
    c->message = m;
    struct protobuf_field *fields =
        ARENA_ARRAY(c->arena, struct protobuf_field, json_count(source));
    m->fields = fields;
    m->is_union = source->type == JSON_ARRAY;
    JSON_FOR_EACH_MEMBER (source, field) {
        const int r = compile_field(c, json_str(&field->key), json_str(&field->value),
                                    &fields[m->n_fields++]);
        if (r < 0)
            return r;
    }
    JSON_FOR_EACH_ITEM (source, field) {
        const int r = compile_field(c, STR(""), json_str(field), &fields[m->n_fields++]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Names first: messages refer to each other. */
static struct protobuf_message *list_messages(struct arena *a, const struct json *table, size_t *n)
{
    *n = 0;
    JSON_FOR_EACH_MEMBER (table, group_version)
        *n += json_count(&group_version->value);
    struct protobuf_message *messages = ARENA_ARRAY(a, struct protobuf_message, *n), *next;
    next = messages;
    JSON_FOR_EACH_MEMBER (table, group_version)
        JSON_FOR_EACH_MEMBER (&group_version->value, message)
            *next++ = (struct protobuf_message){.group_version = json_str(&group_version->key),
                                                .name = json_str(&message->key)};
    return messages;
}

int protobuf_compile(struct arena *a, const struct json *table, const struct protobuf **ret,
                     struct str *ret_error)
{
    struct protobuf *p = ARENA_NEW(a, struct protobuf);
    struct protobuf_message *next = list_messages(a, table, &p->n_messages);
    p->messages = next;
    struct compiler c = {.arena = a, .table = p, .ret_error = ret_error};
    JSON_FOR_EACH_MEMBER (table, group_version)
        JSON_FOR_EACH_MEMBER (&group_version->value, message) {
            const int r = compile_message(&c, &message->value, next++);
            if (r < 0)
                return r;
        }
    *ret = p;
    return 0;
}
