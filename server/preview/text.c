/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, for people. */
#include "preview/review.h"

/* "Application edge/web" */
static void write_object(struct buf *b, const struct json *one)
{
    const struct str namespace = json_get_str(one, STR("namespace"));
    buf_printf(b, "%.*s ", STR_ARG(json_get_str(one, STR("kind"))));
    if (namespace.n)
        buf_printf(b, "%.*s/", STR_ARG(namespace));
    buf_append_str(b, json_get_str(one, STR("name")));
}

static void write_device(struct buf *b, const struct json *answer)
{
    const struct json *meta = json_get(answer, STR("metadata"));
    buf_printf(b, "Device %.*s/%.*s\n", STR_ARG(json_get_str(meta, STR("namespace"))),
               STR_ARG(json_get_str(meta, STR("name"))));
}

static void write_problems(struct buf *b, const struct json *answer)
{
    JSON_FOR_EACH_ITEM (json_get(answer, STR("problems")), p) {
        buf_append_str(b, STR("! "));
        write_object(b, p);
        buf_printf(b, " %.*s: %.*s%s\n", STR_ARG(json_get_str(p, STR("field"))),
                   STR_ARG(json_get_str(p, STR("message"))),
                   json_get_bool(p, STR("isNew"), false) ? " (new)" : "");
    }
    JSON_FOR_EACH_ITEM (json_get(answer, STR("notes")), note)
        buf_printf(b, "* %.*s\n", STR_ARG(json_str(note)));
}

/* "generation 3" or "resourceVersion 17", whatever the object is counted by. */
static void write_revision(struct buf *b, const struct json *source)
{
    const struct json *generation = json_get(source, STR("generation"));
    const struct str revision = json_get_str(source, STR("resourceVersion"));
    if (generation)
        buf_printf(b, "generation %lld", (long long) generation->i);
    else if (revision.n)
        buf_printf(b, "resourceVersion %.*s", STR_ARG(revision));
}

/* ---- a preview ----------------------------------------------------------------------------- */

static void write_lines(struct buf *b, char sign, const struct json *value)
{
    BUF_AUTO text = {0};
    struct str line;
    if (json_is(value, JSON_NULL) || !value)
        return;
    json_write_pretty(&text, value);
    for (struct str rest = buf_str(&text); str_split(&rest, '\n', &line);)
        buf_printf(b, "%c%.*s\n", sign, STR_ARG(line));
}

static void write_change(struct buf *b, const struct json *change)
{
    const struct json *source = json_get(change, STR("source"));
    const struct str keeper = json_get_str(change, STR("overriddenBy"));
    buf_printf(b, "@@ %.*s @@", STR_ARG(json_get_str(change, STR("path"))));
    if (source) {
        buf_append_char(b, ' ');
        write_object(b, source);
        buf_printf(b, " %.*s", STR_ARG(json_get_str(source, STR("field"))));
    }
    if (keeper.n)
        buf_printf(b, " (not for the device: %.*s has taken it over)", STR_ARG(keeper));
    buf_append_char(b, '\n');
    write_lines(b, '-', json_get(change, STR("old")));
    write_lines(b, '+', json_get(change, STR("new")));
}

struct str preview_text(struct arena *a, const struct json *preview)
{
    BUF_AUTO b = {0};
    const struct json *effects = json_get(preview, STR("effects"));
    const struct json *changes = json_get(preview, STR("changes"));
    write_device(&b, preview);
    JSON_FOR_EACH_ITEM (effects, effect)
        buf_printf(&b, "  %.*s\n", STR_ARG(json_str(effect)));
    if (!json_count(changes))
        buf_append_str(&b, STR("  nothing changes\n"));
    else if (!json_count(effects))
        buf_append_str(&b, STR("  nothing restarts\n"));
    write_problems(&b, preview);
    if (json_count(changes))
        buf_append_str(&b, STR("--- now\n+++ then\n"));
    JSON_FOR_EACH_ITEM (changes, change)
        write_change(&b, change);
    return arena_str(a, buf_str(&b));
}

/* ---- provenance ---------------------------------------------------------------------------- */

enum { COLUMN_PATH, COLUMN_OBJECT, COLUMN_FIELD, COLUMN_REVISION, COLUMNS };

static void write_cell(struct buf *b, const struct json *source, int column)
{
    if (column == COLUMN_PATH)
        buf_append_str(b, json_get_str(source, STR("path")));
    else if (column == COLUMN_OBJECT)
        write_object(b, source);
    else if (column == COLUMN_FIELD)
        buf_append_str(b, json_get_str(source, STR("field")));
    else
        write_revision(b, source);
}

static void write_table(struct buf *b, const struct json *sources)
{
    static const struct str titles[] = {{"PATH", 4}, {"OBJECT", 6}, {"FIELD", 5}, {"REVISION", 8}};
    size_t widths[COLUMNS];
    BUF_AUTO cell = {0};
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = titles[c].n;
        JSON_FOR_EACH_ITEM (sources, source) {
            buf_reset(&cell);
            write_cell(&cell, source, c);
            widths[c] = MAX(widths[c], cell.n);
        }
        buf_printf(b, "%-*s%s", c == COLUMNS - 1 ? 0 : (int) widths[c], titles[c].p,
                   c == COLUMNS - 1 ? "\n" : "   ");
    }
    JSON_FOR_EACH_ITEM (sources, source) {
        for (int c = 0; c < COLUMNS; c++) {
            buf_reset(&cell);
            write_cell(&cell, source, c);
            buf_append_str(b, buf_str(&cell));
            if (c < COLUMNS - 1)
                buf_printf(b, "%*s", (int) (widths[c] - cell.n) + 3, "");
        }
        buf_append_char(b, '\n');
    }
}

struct str provenance_text(struct arena *a, const struct json *provenance)
{
    BUF_AUTO b = {0};
    const struct str path = json_get_str(provenance, STR("path"));
    const struct json *value = json_get(provenance, STR("value"));
    write_device(&b, provenance);
    if (path.n)
        buf_printf(&b, "%.*s%s\n", STR_ARG(path), value ? "" : ": not there");
    write_lines(&b, ' ', value);
    write_table(&b, json_get(provenance, STR("sources")));
    JSON_FOR_EACH_ITEM (json_get(provenance, STR("overrides")), o)
        buf_printf(&b, "~ %.*s: taken over by %.*s\n", STR_ARG(json_get_str(o, STR("path"))),
                   STR_ARG(json_get_str(o, STR("manager"))));
    write_problems(&b, provenance);
    return arena_str(a, buf_str(&b));
}
