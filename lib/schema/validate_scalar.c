/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "schema/validate_internal.h"

#define MAX_SAFE_INTEGER 9007199254740991.0 /* 2^53 - 1 */
#define CLOSE_ENOUGH 1e-9
#define ENUM_MAX_SHOWN 1000

/* ---- types -------------------------------------------------------------------------------- */

/* Formats of numbers; those of strings are in the format table. */
static bool is_number_format(struct str format)
{
    return str_is(format, "int32") || str_is(format, "int64") || str_is(format, "float") ||
           str_is(format, "double");
}

static bool has_format(const struct schema *s)
{
    return s->rules->format || (s->format.n && is_number_format(s->format));
}

bool validate_type_applies(const struct schema *s)
{
    return s->type != SCHEMA_ANY || s->int_or_string || has_format(s);
}

static bool allows(const struct schema *s, enum schema_type type)
{
    return s->int_or_string ? type == SCHEMA_INTEGER || type == SCHEMA_STRING : s->type == type;
}

static const char *type_text(const struct schema *s)
{
    static const char *const names[] = {
        [SCHEMA_ANY] = "",           [SCHEMA_OBJECT] = "object",   [SCHEMA_ARRAY] = "array",
        [SCHEMA_STRING] = "string",  [SCHEMA_INTEGER] = "integer", [SCHEMA_NUMBER] = "number",
        [SCHEMA_BOOLEAN] = "boolean"};
    return s->int_or_string ? "integer,string" : names[s->type];
}

static enum schema_type type_of(const struct json *value)
{
    static const enum schema_type types[] = {
        [JSON_NULL] = SCHEMA_ANY,      [JSON_BOOL] = SCHEMA_BOOLEAN,  [JSON_INT] = SCHEMA_INTEGER,
        [JSON_DOUBLE] = SCHEMA_NUMBER, [JSON_STRING] = SCHEMA_STRING, [JSON_ARRAY] = SCHEMA_ARRAY,
        [JSON_OBJECT] = SCHEMA_OBJECT,
    };
    return types[value->type];
}

/* As the validator's library decides it: nearly an integer is one, beyond 2^53 nothing is. */
static bool is_json_integer(double d)
{
    if (!(fabs(d) <= MAX_SAFE_INTEGER))
        return false;
    double whole = trunc(d);
    return d == whole || (whole != 0 && fabs(d - whole) / (fabs(d) + fabs(whole)) < CLOSE_ENOUGH);
}

static void add_wrong_type(struct validation *v, const struct field_path *at, struct str wanted,
                           struct str got)
{
    struct json shown = json_string(got);
    validation_add_in_body(v, CAUSE_TYPE_INVALID, at, &shown, "must be of type %.*s: \"%.*s\"",
                           STR_ARG(wanted), STR_ARG(got));
}

void validate_type(struct validation *v, const struct schema *s, const struct json *value,
                   const struct field_path *at)
{
    bool is_typed = s->type != SCHEMA_ANY || s->int_or_string;
    if (value->type == JSON_NULL) {
        if (is_typed && !s->nullable)
            add_wrong_type(v, at, str_of(type_text(s)), STR("null"));
        return;
    }
    bool fits = allows(s, type_of(value));
    if (!fits && value->type == JSON_DOUBLE)
        fits = allows(s, SCHEMA_INTEGER) && is_json_integer(value->d);
    if (!fits && value->type == JSON_INT)
        fits = allows(s, SCHEMA_NUMBER);
    if (fits)
        return;
    bool is_text = value->type == JSON_STRING || value->type == JSON_ARRAY;
    if (has_format(s) && !is_text) {
        struct str got = value->type == JSON_INT      ? STR("int64")
                         : value->type == JSON_DOUBLE ? STR("float64")
                                                      : STR("");
        add_wrong_type(v, at, s->format, got);
        return;
    }
    if (is_typed)
        add_wrong_type(v, at, str_of(type_text(s)), schema_type_name(value));
}

/* ---- enums -------------------------------------------------------------------------------- */

static void add_not_supported(struct validation *v, const struct json *values,
                              const struct json *value, const struct field_path *at)
{
    if (validation_counts_only(v))
        return;
    struct arena *a = v->causes->arena;
    size_t n = MIN(values->n, (size_t) ENUM_MAX_SHOWN);
    struct str *texts = ARENA_ARRAY(a, struct str, n + 1);
    for (size_t i = 0; i < n; i++)
        texts[i] = json_is(&values->items[i], JSON_STRING) ? json_str(&values->items[i])
                                                           : json_text(a, &values->items[i]);
    BUF_AUTO detail = {0};
    causes_write_supported(&detail, texts, n);
    validation_add(v, CAUSE_NOT_SUPPORTED, at, value, "%.*s", STR_ARG(buf_str(&detail)));
}

void validate_enum(struct validation *v, const struct schema *s, const struct json *value,
                   const struct field_path *at)
{
    JSON_FOR_EACH_ITEM (s->rules->enum_values, allowed)
        if (json_equal(allowed, value))
            return;
    add_not_supported(v, s->rules->enum_values, value, at);
}

/* ---- strings ------------------------------------------------------------------------------ */

static int64_t count_runes(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char) s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Bytes bound the runes from above, which mostly saves the counting. */
static bool is_too_long(struct str s, int64_t max)
{
    return max != SCHEMA_NO_BOUND && (int64_t) s.n > max && count_runes(s) > max;
}

static bool is_too_short(struct str s, int64_t min)
{
    return min != SCHEMA_NO_BOUND && ((int64_t) s.n < min || count_runes(s) < min);
}

static void check_format(struct validation *v, const struct schema *s, const struct json *value,
                         const struct field_path *at)
{
    if (s->rules->format->matches(json_str(value)))
        return;
    BUF_AUTO quoted = {0};
    if (v->causes)
        causes_quote(&quoted, str_sub(json_str(value), 0, CAUSE_VALUE_MAX_BYTES));
    validation_add_in_body(v, CAUSE_TYPE_INVALID, at, value, "must be of type %.*s: %.*s",
                           STR_ARG(s->format), STR_ARG(buf_str(&quoted)));
}

void validate_string(struct validation *v, const struct schema *s, const struct json *value,
                     const struct field_path *at)
{
    const struct schema_rules *r = s->rules;
    struct str text = json_str(value);
    if (is_too_long(text, r->max_length))
        validation_add(v, CAUSE_TOO_LONG, at, NULL, "may not be more than %lld %s",
                       (long long) r->max_length, r->max_length == 1 ? "byte" : "bytes");
    else if (is_too_short(text, r->min_length))
        validation_add_in_body(v, CAUSE_INVALID, at, value, "should be at least %lld chars long",
                               (long long) r->min_length);
    else if (r->pattern && !pattern_matches(&v->matcher, r->pattern, text))
        validation_add_in_body(v, CAUSE_INVALID, at, value, "should match '%.*s'",
                               STR_ARG(r->pattern_text));
    if (r->format)
        check_format(v, s, value, at);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static int64_t to_int64(double d)
{
    return d >= 0x1p63 ? INT64_MAX : d <= -0x1p63 ? INT64_MIN : isnan(d) ? 0 : (int64_t) d;
}

/* Can the number be held by the schema's type and format; if not that is an error of its own. */
static bool check_range(struct validation *v, const struct schema *s, const struct json *number,
                        const char *what, const struct field_path *at)
{
    double d = number->type == JSON_INT ? (double) number->i : number->d;
    bool fits = true;
    if (s->type == SCHEMA_INTEGER && str_is(s->format, "int32"))
        fits = d == trunc(d) && d >= INT32_MIN && d <= INT32_MAX;
    else if (s->type == SCHEMA_INTEGER && str_is(s->format, "int64"))
        fits = number->type == JSON_INT || (d == trunc(d) && d >= -0x1p63 && d < 0x1p63);
    else if (s->type == SCHEMA_NUMBER && str_is(s->format, "float"))
        fits = fabs(d) <= FLT_MAX;
    if (fits)
        return true;
    if (validation_counts_only(v))
        return false;
    struct json nothing = json_string(STR(""));
    struct str name = validation_name(v, at);
    validation_add(v, CAUSE_INVALID, NULL, &nothing,
                   "%s value must be of type %s with format %.*s in %.*s", what, type_text(s),
                   STR_ARG(s->format), STR_ARG(name));
    return false;
}

/* The bound as messages print it: an integer's bound is an integer. */
static void add_beyond(struct validation *v, const struct json *value, bool as_int, double bound,
                       const char *relation, const struct field_path *at)
{
    BUF_AUTO text = {0};
    struct json whole = json_int(to_int64(bound));
    if (as_int)
        json_write(&text, &whole);
    else
        schema_write_number(&text, bound);
    struct json shown =
        as_int || value->type == JSON_DOUBLE ? *value : json_double((double) value->i);
    validation_add_in_body(v, CAUSE_INVALID, at, &shown, "should be %s %.*s", relation,
                           STR_ARG(buf_str(&text)));
}

static void add_not_positive(struct validation *v, const struct json *factor,
                             const struct field_path *at)
{
    if (validation_counts_only(v))
        return;
    struct str name = validation_name(v, at);
    validation_add(v, CAUSE_INVALID, at, factor,
                   "factor MultipleOf declared for %.*s must be positive: %.*s", STR_ARG(name),
                   STR_ARG(json_text(v->causes->arena, factor)));
}

static void check_multiple(struct validation *v, const struct schema *s, const struct json *value,
                           const struct field_path *at)
{
    double factor = s->rules->multiple_of;
    struct json number = json_double(factor);
    bool as_int = check_range(v, s, &number, "MultipleOf", at) && value->type == JSON_INT;
    double d = value->type == JSON_INT ? (double) value->i : value->d;
    if (as_int ? to_int64(factor) <= 0 : factor <= 0) {
        struct json shown = as_int ? json_int(to_int64(factor)) : number;
        add_not_positive(v, &shown, at);
        return;
    }
    bool fits = as_int ? value->i % to_int64(factor) == 0
                       : is_json_integer(factor < 1 ? 1 / factor * d : d / factor);
    if (!fits)
        add_beyond(v, value, as_int, factor, "a multiple of", at);
}

static void check_maximum(struct validation *v, const struct schema *s, const struct json *value,
                          const struct field_path *at)
{
    const struct schema_rules *r = s->rules;
    struct json bound = json_double(r->maximum);
    bool as_int = check_range(v, s, &bound, "Maximum boundary", at) && value->type == JSON_INT;
    double d = value->type == JSON_INT ? (double) value->i : value->d;
    int64_t limit = to_int64(r->maximum);
    bool beyond = as_int ? value->i > limit || (r->exclusive_maximum && value->i == limit)
                         : d > r->maximum || (r->exclusive_maximum && d == r->maximum);
    if (beyond)
        add_beyond(v, value, as_int, r->maximum,
                   r->exclusive_maximum ? "less than" : "less than or equal to", at);
}

static void check_minimum(struct validation *v, const struct schema *s, const struct json *value,
                          const struct field_path *at)
{
    const struct schema_rules *r = s->rules;
    struct json bound = json_double(r->minimum);
    bool as_int = check_range(v, s, &bound, "Minimum boundary", at) && value->type == JSON_INT;
    double d = value->type == JSON_INT ? (double) value->i : value->d;
    int64_t limit = to_int64(r->minimum);
    bool beyond = as_int ? value->i < limit || (r->exclusive_minimum && value->i == limit)
                         : d < r->minimum || (r->exclusive_minimum && d == r->minimum);
    if (beyond)
        add_beyond(v, value, as_int, r->minimum,
                   r->exclusive_minimum ? "greater than" : "greater than or equal to", at);
}

void validate_number(struct validation *v, const struct schema *s, const struct json *value,
                     const struct field_path *at)
{
    (void) check_range(v, s, value, "Checked", at);
    if (s->rules->has_multiple_of)
        check_multiple(v, s, value, at);
    if (s->rules->has_maximum)
        check_maximum(v, s, value, at);
    if (s->rules->has_minimum)
        check_minimum(v, s, value, at);
}
