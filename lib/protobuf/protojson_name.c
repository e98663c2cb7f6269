/* SPDX-License-Identifier: Apache-2.0 */
/* Names protoc derives from the names of fields. */
#include "protobuf/protojson_internal.h"

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char) (c - 'a' + 'A') : c;
}

/* The next character of the name without its underscores, each of which makes what follows a
 * capital; '\0' at the end. */
static char next_camel(const char **name, bool is_capital)
{
    for (; **name == '_'; (*name)++)
        is_capital = true;
    char c = **name;
    if (c)
        (*name)++;
    return is_capital ? upper(c) : c;
}

struct str protojson_name(struct arena *a, struct str proto_name)
{
    const char *from = arena_strz(a, proto_name);
    char *name = arena_alloc(a, proto_name.n + 1);
    size_t n = 0;
    for (char c = next_camel(&from, false); c; c = next_camel(&from, false))
        name[n++] = c;
    name[n] = '\0';
    return str_range(name, n);
}

bool protojson_is_name_of(const ProtobufCFieldDescriptor *f, struct str key)
{
    if (str_is(key, f->name))
        return true;
    const char *name = f->name;
    for (size_t i = 0; i < key.n; i++) {
        char c = next_camel(&name, false);
        if (!c || c != key.p[i])
            return false;
    }
    return next_camel(&name, false) == '\0';
}

/* "PhysAddrsEntry" of "phys_addrs". */
static bool is_entry_name(const char *entry, const char *field)
{
    bool is_first = true;
    for (char c; (c = next_camel(&field, is_first)); is_first = false) {
        if (*entry++ != c)
            return false;
    }
    return strcmp(entry, "Entry") == 0;
}

bool protojson_is_map(const ProtobufCMessageDescriptor *parent, const ProtobufCFieldDescriptor *f)
{
    if (!pb_is_repeated(f) || f->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *entry = f->descriptor;
    size_t n = strlen(parent->name);
    return entry->n_fields == 2 && strcmp(entry->fields[0].name, "key") == 0 &&
           strcmp(entry->fields[1].name, "value") == 0 &&
           strncmp(entry->name, parent->name, n) == 0 && entry->name[n] == '.' &&
           is_entry_name(entry->short_name, f->name);
}
