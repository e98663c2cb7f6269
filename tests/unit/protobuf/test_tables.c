/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that are compiled against the tables of the device API, in both directions. */
#include <inttypes.h>
#include <stdio.h>

#include "all_messages.h"
#include "base/buf.h"
#include "protobuf/protojson_internal.h"
#include "test.h"

#define MAX_COLUMNS 9

struct row {
    struct str cell[MAX_COLUMNS];
    struct str owner; /* package.message or package.enum */
    bool is_seen;     /* by the other direction */
};

struct table {
    struct row *rows;
    size_t n;
};

/* columns of messages.csv */
enum { PACKAGE, FILE_NAME, MESSAGE, FIELD, NUMBER, TYPE, LABEL, ONEOF, DEPRECATED };
/* of enums.csv */
enum { ENUM = 2, VALUE_NAME = 3, VALUE_NUMBER = 4 };
/* of newer-fields.csv */
enum { NEWER_KIND, NEWER_FILE, NEWER_OWNER, NEWER_NAME, NEWER_NUMBER };

static struct str read_file(struct arena *a, const char *name)
{
    struct str path = arena_printf(a, "%s/%s", TEST_DATA, name);
    FILE *f = fopen(path.p, "rb");
    if (!f)
        fail_msg("%s: cannot open", path.p);
    BUF_AUTO text = {0};
    size_t n = 0;
    do {
        n = fread(buf_reserve(&text, 65536), 1, 65536, f);
        text.n += n;
    } while (n > 0);
    (void) fclose(f);
    return arena_str(a, buf_str(&text));
}

/* No cell of ours is quoted. */
static struct table read_table(struct arena *a, const char *name, const char *header)
{
    struct table t = {0};
    struct str rest = read_file(a, name), line, cell;
    assert_true(str_split(&rest, '\n', &line));
    assert_str(str_trim(line), header);
    while (str_split(&rest, '\n', &line)) {
        t.rows = arena_grow(a, t.rows, t.n, sizeof(*t.rows));
        struct row *row = &t.rows[t.n++];
        *row = (struct row){0};
        line = str_trim(line);
        assert_int_equal(str_find(line, '"'), -1);
        for (size_t i = 0; i < MAX_COLUMNS; i++)
            row->cell[i] = str_split(&line, ',', &cell) ? cell : STR("");
    }
    assert_true(t.n > 0);
    return t;
}

/* With the owner of each row. */
static struct table read_owners(struct arena *a, const char *name, const char *header)
{
    struct table t = read_table(a, name, header);
    for (size_t i = 0; i < t.n; i++) {
        const struct str *c = t.rows[i].cell;
        t.rows[i].owner = arena_printf(a, "%.*s.%.*s", STR_ARG(c[PACKAGE]), STR_ARG(c[MESSAGE]));
    }
    return t;
}

static struct table messages_table(struct arena *a)
{
    return read_owners(a, "messages.csv",
                       "package,file,message,field,number,type,label,oneof,deprecated");
}

static struct table enums_table(struct arena *a)
{
    return read_owners(a, "enums.csv", "package,file,enum,value_name,number");
}

static const ProtobufCMessageDescriptor *find_message(struct str name)
{
    for (size_t i = 0; i < n_all_messages; i++) {
        if (str_is(name, all_messages[i]->name))
            return all_messages[i];
    }
    return NULL;
}

static const ProtobufCEnumDescriptor *find_enum(struct str name)
{
    for (size_t i = 0; i < n_all_enums; i++) {
        if (str_is(name, all_enums[i]->name))
            return all_enums[i];
    }
    return NULL;
}

/* ---- fields ------------------------------------------------------------------------------- */

static struct str type_text(struct arena *a, const ProtobufCMessageDescriptor *parent,
                            const ProtobufCFieldDescriptor *f)
{
    static const char *const names[] = {
        [PROTOBUF_C_TYPE_INT32] = "int32",       [PROTOBUF_C_TYPE_SINT32] = "sint32",
        [PROTOBUF_C_TYPE_SFIXED32] = "sfixed32", [PROTOBUF_C_TYPE_INT64] = "int64",
        [PROTOBUF_C_TYPE_SINT64] = "sint64",     [PROTOBUF_C_TYPE_SFIXED64] = "sfixed64",
        [PROTOBUF_C_TYPE_UINT32] = "uint32",     [PROTOBUF_C_TYPE_FIXED32] = "fixed32",
        [PROTOBUF_C_TYPE_UINT64] = "uint64",     [PROTOBUF_C_TYPE_FIXED64] = "fixed64",
        [PROTOBUF_C_TYPE_FLOAT] = "float",       [PROTOBUF_C_TYPE_DOUBLE] = "double",
        [PROTOBUF_C_TYPE_BOOL] = "bool",         [PROTOBUF_C_TYPE_STRING] = "string",
        [PROTOBUF_C_TYPE_BYTES] = "bytes",
    };
    if (protojson_is_map(parent, f)) {
        const ProtobufCMessageDescriptor *entry = f->descriptor;
        struct str key = type_text(a, entry, &entry->fields[0]);
        struct str value = type_text(a, entry, &entry->fields[1]);
        return arena_printf(a, "map<%.*s:%.*s>", STR_ARG(key), STR_ARG(value));
    }
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return str_of(((const ProtobufCMessageDescriptor *) f->descriptor)->name);
    if (f->type == PROTOBUF_C_TYPE_ENUM)
        return str_of(((const ProtobufCEnumDescriptor *) f->descriptor)->name);
    return str_of(names[f->type]);
}

static struct str label_text(const ProtobufCMessageDescriptor *parent,
                             const ProtobufCFieldDescriptor *f)
{
    if (protojson_is_map(parent, f))
        return STR("map");
    return pb_is_repeated(f) ? STR("repeated") : STR("optional");
}

/* The row of a field, in the order of the columns. */
static struct str field_text(struct arena *a, const ProtobufCMessageDescriptor *d,
                             const ProtobufCFieldDescriptor *f)
{
    bool is_deprecated = (f->flags & PROTOBUF_C_FIELD_FLAG_DEPRECATED) != 0;
    return arena_printf(a, "%s %s=%" PRIu32 " %.*s %.*s %s", d->name, f->name, f->id,
                        STR_ARG(type_text(a, d, f)), STR_ARG(label_text(d, f)),
                        is_deprecated ? "true" : "false");
}

static struct str row_text(struct arena *a, const struct row *row)
{
    const struct str *c = row->cell;
    return arena_printf(a, "%.*s %.*s=%.*s %.*s %.*s %.*s", STR_ARG(row->owner), STR_ARG(c[FIELD]),
                        STR_ARG(c[NUMBER]), STR_ARG(c[TYPE]), STR_ARG(c[LABEL]),
                        STR_ARG(c[DEPRECATED]));
}

TEST(every_field_of_the_table_is_compiled_with_its_number_type_and_label)
{
    ARENA_AUTO a = arena_new();
    struct table t = messages_table(a);
    for (size_t i = 0; i < t.n; i++) {
        const struct row *row = &t.rows[i];
        const ProtobufCMessageDescriptor *d = find_message(row->owner);
        if (!d)
            fail_msg("message %s is missing", row->owner.p);
        if (row->cell[FIELD].n == 0) {
            assert_int_equal(d->n_fields, 0);
            continue;
        }
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(d, arena_strz(a, row->cell[FIELD]));
        if (!f)
            fail_msg("%s is missing", row_text(a, row).p);
        assert_str(field_text(a, d, f), row_text(a, row).p);
    }
}

static bool is_entry_of_a_map(const ProtobufCMessageDescriptor *entry)
{
    for (size_t i = 0; i < n_all_messages; i++) {
        for (unsigned k = 0; k < all_messages[i]->n_fields; k++) {
            const ProtobufCFieldDescriptor *f = &all_messages[i]->fields[k];
            if (f->descriptor == entry && protojson_is_map(all_messages[i], f))
                return true;
        }
    }
    return false;
}

/* Entries of maps have no rows, nor have messages that are not the device API's. */
static bool is_in_tables(const ProtobufCMessageDescriptor *d)
{
    return strncmp(d->name, "org.lfedge.eve.", strlen("org.lfedge.eve.")) == 0 &&
           !is_entry_of_a_map(d);
}

static struct row *find_row(struct table *t, const char *owner, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        if (str_is(t->rows[i].owner, owner) && str_is(t->rows[i].cell[FIELD], name))
            return &t->rows[i];
    }
    return NULL;
}

TEST(every_compiled_field_is_in_the_table)
{
    ARENA_AUTO a = arena_new();
    struct table t = messages_table(a);
    size_t n_rows = 0;
    for (size_t i = 0; i < n_all_messages; i++) {
        const ProtobufCMessageDescriptor *d = all_messages[i];
        if (!is_in_tables(d))
            continue;
        for (unsigned k = 0; k < d->n_fields; k++, n_rows++) {
            const struct row *row = find_row(&t, d->name, d->fields[k].name);
            if (!row)
                fail_msg("%s is not in the table", field_text(a, d, &d->fields[k]).p);
        }
        if (d->n_fields == 0 && !find_row(&t, d->name, ""))
            fail_msg("%s is not in the table", d->name);
        n_rows += d->n_fields == 0;
    }
    assert_int_equal(n_rows, t.n);
}

/* ---- oneofs ------------------------------------------------------------------------------- */

/* The fields with presence of their own: oneofs of one, whose names the table does not have. */
static bool has_presence(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
    static const char *const fields[] = {
        "org.lfedge.eve.config.InlineOpaqueBase64Data.base64MetaData",
        "org.lfedge.eve.config.ExternalOpaqueBinaryBlob.fileNameToUse",
        "org.lfedge.eve.config.ExternalOpaqueBinaryBlob.blobMetaData",
        "org.lfedge.eve.config.EveBinaryArtifact.artifactMetaData",
        "org.lfedge.eve.config.EvePatchEnvelope.version",
    };
    size_t n = strlen(d->name);
    for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
        if (strncmp(fields[i], d->name, n) == 0 && fields[i][n] == '.' &&
            strcmp(fields[i] + n + 1, f->name) == 0)
            return true;
    }
    return false;
}

static size_t n_in_oneof_of(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
    size_t n = 0;
    for (unsigned i = 0; i < d->n_fields; i++)
        n +=
            pb_is_in_oneof(&d->fields[i]) && d->fields[i].quantifier_offset == f->quantifier_offset;
    return n;
}

static size_t n_in_oneof_of_row(const struct table *t, const struct row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += str_eq(t->rows[i].owner, row->owner) &&
             str_eq(t->rows[i].cell[ONEOF], row->cell[ONEOF]);
    return n;
}

/* Two fields of one message are in one oneof in the table if and only if they are in the code. */
static void check_pair(const ProtobufCFieldDescriptor *f, const struct row *f_row,
                       const ProtobufCFieldDescriptor *g, const struct row *g_row)
{
    bool compiled =
        pb_is_in_oneof(f) && pb_is_in_oneof(g) && f->quantifier_offset == g->quantifier_offset;
    bool in_table = f_row->cell[ONEOF].n > 0 && str_eq(f_row->cell[ONEOF], g_row->cell[ONEOF]);
    if (compiled != in_table)
        fail_msg("%s and %s: %d in the code, %d in the table", f->name, g->name, compiled,
                 in_table);
}

TEST(oneofs_have_the_members_of_the_table)
{
    ARENA_AUTO a = arena_new();
    struct table t = messages_table(a);
    size_t n_members = 0;
    for (size_t i = 0; i < n_all_messages; i++) {
        const ProtobufCMessageDescriptor *d = all_messages[i];
        for (unsigned k = 0; is_in_tables(d) && k < d->n_fields; k++) {
            const ProtobufCFieldDescriptor *f = &d->fields[k];
            const struct row *row = find_row(&t, d->name, f->name);
            assert_non_null(row);
            assert_int_equal(pb_is_in_oneof(f), row->cell[ONEOF].n > 0 || has_presence(d, f));
            if (!pb_is_in_oneof(f))
                continue;
            n_members++;
            assert_int_equal(n_in_oneof_of(d, f),
                             has_presence(d, f) ? 1 : n_in_oneof_of_row(&t, row));
            for (unsigned j = 0; j < k; j++)
                check_pair(f, row, &d->fields[j], find_row(&t, d->name, d->fields[j].name));
        }
    }
    assert_true(n_members > 40);
}

/* ---- enums -------------------------------------------------------------------------------- */

TEST(every_enum_value_of_the_table_is_compiled)
{
    ARENA_AUTO a = arena_new();
    struct table t = enums_table(a);
    for (size_t i = 0; i < t.n; i++) {
        const struct str *c = t.rows[i].cell;
        const ProtobufCEnumDescriptor *d = find_enum(t.rows[i].owner);
        if (!d)
            fail_msg("enum %s is missing", t.rows[i].owner.p);
        const ProtobufCEnumValue *v =
            protobuf_c_enum_descriptor_get_value_by_name(d, arena_strz(a, c[VALUE_NAME]));
        if (!v)
            fail_msg("%s %.*s is missing", d->name, STR_ARG(c[VALUE_NAME]));
        struct str compiled = arena_printf(a, "%s %s=%d", d->name, v->name, v->value);
        struct str in_table =
            arena_printf(a, "%s %s=%.*s", d->name, v->name, STR_ARG(c[VALUE_NUMBER]));
        assert_str(compiled, in_table.p);
    }
}

TEST(every_compiled_enum_value_is_in_the_table)
{
    ARENA_AUTO a = arena_new();
    struct table t = enums_table(a);
    size_t n_values = 0;
    for (size_t i = 0; i < n_all_enums; i++) {
        const ProtobufCEnumDescriptor *d = all_enums[i];
        for (unsigned k = 0; k < d->n_value_names; k++, n_values++) {
            if (!find_row(&t, d->name, d->values_by_name[k].name))
                fail_msg("%s %s is not in the table", d->name, d->values_by_name[k].name);
        }
    }
    assert_int_equal(n_values, t.n);
}

/* ---- packages and versions ---------------------------------------------------------------- */

TEST(packages_are_those_of_the_table)
{
    ARENA_AUTO a = arena_new();
    struct table t = read_table(a, "packages.csv", "file,package,syntax,imports");
    for (size_t i = 0; i < n_all_messages; i++) {
        bool is_known = !is_in_tables(all_messages[i]);
        for (size_t k = 0; k < t.n; k++) {
            bool is_same = str_is(t.rows[k].cell[1], all_messages[i]->package_name);
            t.rows[k].is_seen |= is_same;
            is_known |= is_same;
        }
        if (!is_known)
            fail_msg("package %s is not in the table", all_messages[i]->package_name);
    }
    for (size_t k = 0; k < t.n; k++) {
        assert_str(t.rows[k].cell[2], "proto3");
        if (!t.rows[k].is_seen)
            fail_msg("package %.*s is missing", STR_ARG(t.rows[k].cell[1]));
    }
}

static const ProtobufCMessageDescriptor *find_by_short_name(struct str name)
{
    for (size_t i = 0; i < n_all_messages; i++) {
        if (str_is(name, all_messages[i]->short_name))
            return all_messages[i];
    }
    return NULL;
}

static int64_t number_of_enum_value(struct str owner, const char *name)
{
    for (size_t i = 0; i < n_all_enums; i++) {
        const ProtobufCEnumValue *v =
            protobuf_c_enum_descriptor_get_value_by_name(all_enums[i], name);
        if (v && str_is(owner, all_enums[i]->short_name))
            return v->value;
    }
    return -1;
}

static int64_t number_of_field(struct str owner, const char *name)
{
    const ProtobufCMessageDescriptor *d = find_by_short_name(owner);
    const ProtobufCFieldDescriptor *f =
        d ? protobuf_c_message_descriptor_get_field_by_name(d, name) : NULL;
    return f ? (int64_t) f->id : -1;
}

TEST(fields_newer_than_the_oldest_devices_are_compiled)
{
    ARENA_AUTO a = arena_new();
    struct table t = read_table(a, "newer-fields.csv", "kind,file,message_or_enum,name,number");
    for (size_t i = 0; i < t.n; i++) {
        const struct str *c = t.rows[i].cell;
        const char *name = arena_strz(a, c[NEWER_NAME]);
        int64_t wanted = 0;
        assert_int_equal(str_to_i64(c[NEWER_NUMBER], &wanted), 0);
        assert_int_equal(str_is(c[NEWER_KIND], "message")
                             ? number_of_field(c[NEWER_OWNER], name)
                             : number_of_enum_value(c[NEWER_OWNER], name),
                         wanted);
    }
}
