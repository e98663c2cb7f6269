/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder of gnostic's OpenAPI messages back to JSON, independent of the encoder: its own tables,
 * its own walk. */
#pragma once

#include "json/json.h"

struct gnostic_field {
    const char *message;
    int number;
    const char *key;  /* "$ref", "additionalProperties" ... */
    const char *type; /* "string", "bool", "int64", "double" or a message */
    bool is_repeated;
};

/* End with a line of NULLs. */
extern const struct gnostic_field gnostic_v2[], gnostic_v3[];

/* Fails the test on anything the tables do not know. */
struct json gnostic_decode(struct arena *a, const struct gnostic_field *table, struct str bytes);
