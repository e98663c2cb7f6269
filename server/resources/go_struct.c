/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/go_struct.h"

#include <ctype.h>

#define CONTEXT_LINES 3
#define DIFF_MAX_LINES 2000 /* of either side; longer values are shown without a diff */

/* ---- names -------------------------------------------------------------------------------- */

/* Where Go's name is not the JSON name with a capital; `in` NULL: in any struct. */
static const struct {
    const char *in, *name, *go;
} go_names[] = {
    {NULL, "apiGroup", "APIGroup"},
    {NULL, "fsType", "FSType"},
    {NULL, "pdName", "PDName"},
    {NULL, "nfs", "NFS"},
    {NULL, "rbd", "RBD"},
    {NULL, "iscsi", "ISCSI"},
    {NULL, "cephfs", "CephFS"},
    {NULL, "fc", "FC"},
    {NULL, "csi", "CSI"},
    {NULL, "storageos", "StorageOS"},
    {NULL, "gcePersistentDisk", "GCEPersistentDisk"},
    {NULL, "awsElasticBlockStore", "AWSElasticBlockStore"},
    {"glusterfs", "endpoints", "EndpointsName"},
    {"rbd", "monitors", "CephMonitors"},
    {"rbd", "image", "RBDImage"},
    {"rbd", "pool", "RBDPool"},
    {"rbd", "user", "RadosUser"},
    {"iscsi", "iqn", "IQN"},
    {"iscsi", "iscsiInterface", "ISCSIInterface"},
    {"iscsi", "chapAuthDiscovery", "DiscoveryCHAPAuth"},
    {"iscsi", "chapAuthSession", "SessionCHAPAuth"},
    {"fc", "wwids", "WWIDs"},
    {"azureDisk", "diskURI", "DataDiskURI"},
    {"scaleIO", "sslEnabled", "SSLEnabled"},
};

struct str go_field_name(struct arena *a, struct str in, struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(go_names); i++)
        if (str_is(name, go_names[i].name) && (!go_names[i].in || str_is(in, go_names[i].in)))
            return str_of(go_names[i].go);
    char *copy = arena_strz(a, name);
    if (name.n > 0)
        copy[0] = (char) toupper((unsigned char) copy[0]);
    return str_range(copy, name.n);
}

/* ---- shape -------------------------------------------------------------------------------- */

static struct json shape(struct arena *a, const struct schema *s, const struct json *v,
                         struct str name);

static struct json zero_of(struct arena *a, const struct schema *s, struct str name)
{
    const bool is_struct = s->type == SCHEMA_OBJECT && json_is(s->default_value, JSON_OBJECT);
    const struct json nothing = json_object();
    if (is_struct)
        return shape(a, s, &nothing, name);
    if (s->nullable)
        return json_null();
    switch (s->type) {
    case SCHEMA_STRING:
        return json_string(STR(""));
    case SCHEMA_INTEGER:
        return json_int(0);
    case SCHEMA_BOOLEAN:
        return json_bool(false);
    default:
        return json_null();
    }
}

static struct json shape_struct(struct arena *a, const struct schema *s, const struct json *v,
                                struct str name)
{
    struct json out = json_object();
    for (size_t i = 0; i < s->n_properties; i++) {
        const struct str field = s->property_names[i];
        const struct schema *inner = map_get(&s->properties, field);
        const struct json *value = json_get(v, field);
        const bool is_absent = !value || value->type == JSON_NULL;
        (void) json_append_member(a, &out, go_field_name(a, name, field),
                                  is_absent ? zero_of(a, inner, field)
                                            : shape(a, inner, value, field));
    }
    return out;
}

/* A label selector is the one type here that has JSON names of its own in Go too. */
static struct json shape(struct arena *a, const struct schema *s, const struct json *v,
                         struct str name)
{
    if (s->n_properties > 0 && v->type == JSON_OBJECT && !str_is(name, "selector"))
        return shape_struct(a, s, v, name);
    if (v->type != JSON_ARRAY || !s->items)
        return *v;
    struct json out = json_array();
    JSON_FOR_EACH_ITEM (v, item)
        (void) json_push(a, &out, shape(a, s->items, item, name));
    return out;
}

struct json go_struct_of(struct arena *a, const struct schema *schema, const struct json *value,
                         struct str name)
{
    const struct json nothing = json_object();
    return shape(a, schema, value ? value : &nothing, name);
}

/* ---- lines -------------------------------------------------------------------------------- */

static void indent(struct buf *b, size_t depth)
{
    buf_append_char(b, '\n');
    for (size_t i = 0; i < depth; i++)
        buf_append_char(b, ' ');
}

/* As Go's MarshalIndent with one blank. */
static void write_indented(struct buf *b, const struct json *v, size_t depth)
{
    if (json_count(v) == 0) {
        json_write(b, v);
        return;
    }
    const bool is_object = v->type == JSON_OBJECT;
    buf_append_char(b, is_object ? '{' : '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i > 0)
            buf_append_char(b, ',');
        indent(b, depth + 1);
        if (is_object) {
            json_write(b, &v->members[i].key);
            buf_append_str(b, STR(": "));
        }
        write_indented(b, is_object ? &v->members[i].value : &v->items[i], depth + 1);
    }
    indent(b, depth);
    buf_append_char(b, is_object ? '}' : ']');
}

struct lines {
    struct str *line;
    size_t n;
};

static struct lines lines_of(struct arena *a, const struct json *v)
{
    BUF_AUTO b = {0};
    write_indented(&b, v, 0);
    struct str text = arena_str(a, buf_str(&b)), part;
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    struct lines out = {ARENA_ARRAY(a, struct str, n), 0};
    while (str_split(&text, '\n', &part))
        out.line[out.n++] = part;
    return out;
}

/* ---- diff --------------------------------------------------------------------------------- */

/* One line of the result: ' ', '-' or '+', with the places in both texts before it. */
struct step {
    char sign;
    struct str line;
    size_t at_old, at_new;
};

struct script {
    struct step *step;
    size_t n;
};

/* By the longest common subsequence; removals stand before additions. */
static struct script diff_lines(struct arena *a, const struct lines *old, const struct lines *new)
{
    const size_t width = new->n + 1;
    uint16_t *length = ARENA_ARRAY(a, uint16_t, (old->n + 1) * width);
    for (size_t i = old->n; i-- > 0;)
        for (size_t j = new->n; j-- > 0;)
            length[i * width + j] =
                str_eq(old->line[i], new->line[j])
                    ? (uint16_t) (length[(i + 1) * width + j + 1] + 1)
                    : MAX(length[(i + 1) * width + j], length[i * width + j + 1]);
    struct script out = {ARENA_ARRAY(a, struct step, old->n + new->n), 0};
    for (size_t i = 0, j = 0; i < old->n || j < new->n;) {
        struct step s = {' ', STR_NONE, i, j};
        if (i < old->n && j < new->n &&str_eq(old->line[i], new->line[j])) {
            s.line = old->line[i++];
            j++;
        } else if (j >= new->n ||
                   (i < old->n && length[(i + 1) * width + j] >= length[i * width + j + 1])) {
            s.sign = '-';
            s.line = old->line[i++];
        } else {
            s.sign = '+';
            s.line = new->line[j++];
        }
        out.step[out.n++] = s;
    }
    return out;
}

static void write_range(struct buf *b, char sign, size_t begin, size_t n)
{
    if (n == 1)
        buf_printf(b, "%c%zu", sign, begin + 1);
    else
        buf_printf(b, "%c%zu,%zu", sign, n == 0 ? begin : begin + 1, n);
}

static void write_hunk(struct buf *b, const struct script *s, size_t from, size_t to)
{
    size_t n_old = 0, n_new = 0;
    for (size_t i = from; i < to; i++) {
        n_old += s->step[i].sign != '+';
        n_new += s->step[i].sign != '-';
    }
    buf_append_str(b, STR("@@ "));
    write_range(b, '-', s->step[from].at_old, n_old);
    buf_append_char(b, ' ');
    write_range(b, '+', s->step[from].at_new, n_new);
    buf_append_str(b, STR(" @@\n"));
    for (size_t i = from; i < to; i++)
        buf_printf(b, "%c%.*s\n", s->step[i].sign, STR_ARG(s->step[i].line));
}

/* The end of the hunk that begins with the change at `at`: changes with few lines between them
 * share one. */
static size_t hunk_end(const struct script *s, size_t at)
{
    size_t end = at + 1;
    for (size_t i = at; i < s->n && i < end + 2 * CONTEXT_LINES; i++)
        if (s->step[i].sign != ' ')
            end = i + 1;
    return end;
}

struct str go_struct_diff(struct arena *a, const struct json *old, const struct json *value)
{
    BUF_AUTO b = {0};
    const struct lines x = lines_of(a, old), y = lines_of(a, value);
    if (x.n > DIFF_MAX_LINES || y.n > DIFF_MAX_LINES)
        return STR("");
    const struct script s = diff_lines(a, &x, &y);
    for (size_t i = 0; i < s.n;) {
        if (s.step[i].sign == ' ') {
            i++;
            continue;
        }
        const size_t end = hunk_end(&s, i);
        write_hunk(&b, &s, i - MIN(i, (size_t) CONTEXT_LINES), MIN(end + CONTEXT_LINES, s.n));
        i = end;
    }
    return arena_str(a, buf_str(&b));
}
