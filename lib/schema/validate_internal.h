/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a schema over a value, shared by the files that check its parts. */
#pragma once

#include "schema/schema_internal.h"

struct validation {
    struct causes *causes; /* NULL: errors are counted and not written */
    bool is_first;         /* only finds out whether there is any error */
    const struct field_path *root;
    size_t n_errors;
    struct pattern_matcher matcher;
};

/* Counts an error and, unless the run is silent, writes it down. `at` is relative to the root. */
void validation_add(struct validation *v, enum cause_type type, const struct field_path *at,
                    const struct json *value, const char *detail, ...) PRINTF_LIKE(5, 6);
/* The same; the detail begins with "<path> in body ". */
void validation_add_in_body(struct validation *v, enum cause_type type, const struct field_path *at,
                            const struct json *value, const char *detail, ...) PRINTF_LIKE(5, 6);
/* An error that has no field of its own: `"<path>" must validate ...`. */
void validation_add_composite(struct validation *v, const struct field_path *at, const char *format,
                              ...) PRINTF_LIKE(3, 4);
/* In a silent run counts an error and says so: its text need not be made. */
bool validation_counts_only(struct validation *v);
/* The path as messages name it; not in a silent run. */
struct str validation_name(struct validation *v, const struct field_path *at);

void validate_type(struct validation *v, const struct schema *s, const struct json *value,
                   const struct field_path *at);
void validate_string(struct validation *v, const struct schema *s, const struct json *value,
                     const struct field_path *at);
void validate_number(struct validation *v, const struct schema *s, const struct json *value,
                     const struct field_path *at);
void validate_enum(struct validation *v, const struct schema *s, const struct json *value,
                   const struct field_path *at);
/* Does the schema say anything about the type or the format of a value. */
bool validate_type_applies(const struct schema *s);
