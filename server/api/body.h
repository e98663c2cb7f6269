/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a write: bytes to a value of the call's kind, with field validation. */
#pragma once

#include "api/call.h"

enum field_validation { FIELDS_WARN, FIELDS_STRICT, FIELDS_IGNORE };

/* The object of a create or update, parsed and checked to be of the call's kind (apiVersion and
 * kind filled in where a native kind lets them be left out), pruned to its schema. */
int body_object(struct call *c, struct json **ret_object);
/* A patch or options document in JSON, or in YAML (which JSON is part of). what: "patch". */
int body_value(struct call *c, bool is_yaml, struct json_parse_result *ret);

/* What is no object of the call's kind (DeleteOptions, Scale), in any encoding a body may have. In
 * protobuf, an object of another kind than `message` comes with apiVersion and kind alone. Fails
 * with 400 or 415; the value may be of any type. */
int body_document(struct call *c, const struct protobuf_message *message, struct json **ret_value);

/* apiVersion and kind are the call's, else 422. */
int body_check_type(struct call *c, const struct json *object);
/* Judges unknown and duplicate fields by the fieldValidation parameter: warnings, or a failure with
 * `context` before the text. Removes the unknown ones from object. from_patch: the object came
 * about by a patch, so the failure is a 422 that quotes it. */
int body_check_fields(struct call *c, struct json *object, const struct json_duplicate *duplicates,
                      bool from_patch);
/* 422 that blames the patch, quoting `value` as what is bad. */
int body_fail_quoted(struct call *c, struct str value, struct str why);
/* 422 of an object that a patch made: quotes it and says why. */
int body_fail_patched(struct call *c, const struct json *object, struct str why);
/* The duplicates of an applied configuration, whose unknown fields apply itself refuses: warnings,
 * or 400. */
int body_check_duplicates(struct call *c, const struct json_duplicate *duplicates);
/* Decodes as Go would (see decode.h): 400 on a wrong JSON type, in the words of Go's decoder. */
int body_check_types(struct call *c, struct json *object, bool from_patch);
