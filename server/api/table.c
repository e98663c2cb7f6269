/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/table_internal.h"
#include "base/clock.h"

/* The text is part of the wire. */
#define NAME_DESCRIPTION \
    "Name must be unique within a namespace. Is required when creating resources, although some " \
    "resources may allow " \
    "a client to request the generation of an appropriate name automatically. Name is primarily " \
    "intended for " \
    "creation idempotence and configuration definition. Cannot be updated. More info: " \
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"

/* ---- ages --------------------------------------------------------------------------------- */

static struct str two_units(char *out, int64_t large, char large_unit, int64_t small,
                            char small_unit)
{
    const int n = small == 0 ? snprintf(out, TABLE_AGE_BYTES, "%" PRId64 "%c", large, large_unit)
                             : snprintf(out, TABLE_AGE_BYTES, "%" PRId64 "%c%" PRId64 "%c", large,
                                        large_unit, small, small_unit);
    return str_range(out, (size_t) n);
}

struct str table_age(int64_t age_us, char out[TABLE_AGE_BYTES])
{
    const int64_t seconds = age_us / 1000000, minutes = seconds / 60, hours = minutes / 60,
                  days = hours / 24;
    if (seconds < -1)
        return STR("<invalid>");
    if (seconds < 0)
        return STR("0s");
    if (seconds < 2 * 60)
        return two_units(out, seconds, 's', 0, 's');
    if (minutes < 10)
        return two_units(out, minutes, 'm', seconds % 60, 's');
    if (minutes < 3 * 60)
        return two_units(out, minutes, 'm', 0, 's');
    if (hours < 8)
        return two_units(out, hours, 'h', minutes % 60, 'm');
    if (hours < 48)
        return two_units(out, hours, 'h', 0, 'm');
    if (hours < 8 * 24)
        return two_units(out, days, 'd', hours % 24, 'h');
    if (days < 2 * 365)
        return two_units(out, days, 'd', 0, 'h');
    return two_units(out, days / 365, 'y', days < 8 * 365 ? days % 365 : 0, 'd');
}

void table_write_since(const struct table_cell *c, const struct json *time)
{
    char text[TABLE_AGE_BYTES];
    int64_t then_us;
    if (!time || time->type == JSON_NULL)
        json_write_str(c->out, STR("<unknown>"));
    else if (clock_parse(json_str(time), &then_us) < 0)
        json_write_str(c->out, STR("<invalid>"));
    else
        json_write_str(c->out, table_age(c->now_us - then_us, text));
}

/* ---- columns ------------------------------------------------------------------------------ */

static bool is_name_column(const struct kind_column *column)
{
    return str_is(column->format, "name");
}

/* A manifest may place the name itself, as events and storage classes do. */
static bool has_name_column(const struct kind *kind)
{
    for (size_t i = 0; i < kind->n_columns; i++)
        if (kind->is_native && is_name_column(&kind->columns[i]))
            return true;
    return false;
}

static void write_column(struct buf *b, const struct kind_column *column)
{
    buf_append_str(b, STR("{\"name\":"));
    json_write_str(b, column->name);
    buf_append_str(b, STR(",\"type\":"));
    json_write_str(b, column->type);
    buf_append_str(b, STR(",\"format\":"));
    json_write_str(b, column->format);
    buf_append_str(b, STR(",\"description\":"));
    json_write_str(b, column->description);
    buf_printf(b, ",\"priority\":%" PRId64 "}", column->priority);
}

void table_write_columns(struct buf *b, const struct kind *kind)
{
    static const struct kind_column name_column = {.name = STR("Name"),
                                                   .type = STR("string"),
                                                   .format = STR("name"),
                                                   .description = STR(NAME_DESCRIPTION)};
    const bool has_name = has_name_column(kind);
    buf_append_char(b, '[');
    if (!has_name)
        write_column(b, &name_column);
    for (size_t i = 0; i < kind->n_columns; i++) {
        struct kind_column column = kind->columns[i];
        if (has_name && is_name_column(&column))
            column.description = name_column.description;
        if (i > 0 || !has_name)
            buf_append_char(b, ',');
        write_column(b, &column);
    }
    buf_append_char(b, ']');
}

struct str table_no_rows(const struct kind *kind)
{
    const bool is_generic = kind->n_columns == 1 && str_is(kind->columns[0].function, "created-at");
    return is_generic ? STR("null") : STR("[]");
}

/* ---- cells -------------------------------------------------------------------------------- */

/* Natives hold Go values: what is absent is an empty string. */
static void write_native_value(const struct table_cell *c, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        buf_append_str(c->out, STR("\"\""));
    else
        json_write(c->out, v);
}

static void write_text(const struct table_cell *c, const struct json *v)
{
    if (v->type == JSON_STRING)
        json_write(c->out, v);
    else
        json_write_str(c->out, json_text(c->arena, v));
}

static void write_integer(const struct table_cell *c, const struct json *v)
{
    if (v->type == JSON_INT)
        json_write(c->out, v);
    else if (v->type == JSON_DOUBLE && v->d > -9.2e18 && v->d < 9.2e18)
        buf_printf(c->out, "%" PRId64, (int64_t) v->d);
    else
        buf_append_str(c->out, STR("null"));
}

static void write_if(const struct table_cell *c, const struct json *v, bool is_fit)
{
    if (is_fit)
        json_write(c->out, v);
    else
        buf_append_str(c->out, STR("null"));
}

/* A custom column shows what fits its type and null otherwise. */
static void write_custom_value(const struct table_cell *c, struct str type, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        buf_append_str(c->out, STR("null"));
    else if (str_is(type, "string"))
        write_text(c, v);
    else if (str_is(type, "integer"))
        write_integer(c, v);
    else if (str_is(type, "number"))
        write_if(c, v, json_is_number(v));
    else if (str_is(type, "boolean"))
        write_if(c, v, v->type == JSON_BOOL);
    else if (str_is(type, "date") && v->type == JSON_STRING)
        table_write_since(c, v);
    else
        buf_append_str(c->out, STR("null"));
}

/* False: nobody knows better than the object. */
static bool write_live(const struct table_cell *c, const struct kind *kind,
                       const struct kind_column *column, const struct table_live *live)
{
    char text[TABLE_AGE_BYTES];
    const int64_t then_us = live && str_is(column->type, "date")
                                ? live->time_us(live->ctx, kind, column->name, c->object)
                                : 0;
    if (then_us)
        json_write_str(c->out, table_age(MAX(c->now_us - then_us, 0), text));
    return then_us != 0;
}

static void write_cell(const struct table_cell *c, const struct kind *kind,
                       const struct kind_column *column, const struct table_live *live)
{
    if (write_live(c, kind, column, live))
        return;
    if (column->path) {
        const struct json *v = jsonpath_first(column->path, c->object);
        if (kind->is_native)
            write_native_value(c, v);
        else
            write_custom_value(c, column->type, v);
        return;
    }
    const struct table_function *function = table_function_find(column->function);
    if (function)
        function->write(c);
    else
        buf_append_str(c->out, STR("null"));
}

static void write_object(struct buf *b, const struct json *object,
                         const struct table_options *options)
{
    switch (options->include) {
    case TABLE_INCLUDE_NONE:
        buf_append_str(b, STR("null"));
        return;
    case TABLE_INCLUDE_OBJECT:
        json_write(b, object);
        return;
    case TABLE_INCLUDE_METADATA:
        break;
    }
    const struct json none = json_object();
    const struct json *meta = json_get(object, STR("metadata"));
    buf_printf(
        b, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%.*s\",\"metadata\":",
        STR_ARG(options->meta_version));
    json_write(b, meta ? meta : &none);
    buf_append_char(b, '}');
}

void table_write_row(struct buf *b, struct arena *a, const struct kind *kind,
                     const struct json *object, const struct table_options *options)
{
    const struct table_cell c = {.out = b, .arena = a, .object = object, .now_us = options->now_us};
    const bool has_name = has_name_column(kind);
    buf_append_str(b, STR("{\"cells\":["));
    if (!has_name)
        json_write_str(b, json_get_str(json_get(object, STR("metadata")), STR("name")));
    for (size_t i = 0; i < kind->n_columns; i++) {
        if (i > 0 || !has_name)
            buf_append_char(b, ',');
        write_cell(&c, kind, &kind->columns[i], options->live);
    }
    buf_append_str(b, STR("],\"object\":"));
    write_object(b, object, options);
    buf_append_char(b, '}');
}
