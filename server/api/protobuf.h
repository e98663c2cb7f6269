/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in Kubernetes's protobuf form, as clients written in Go send those of native kinds. Read
 * by the table kinds/protobuf.yaml into the JSON they would have sent otherwise; nothing here knows
 * a message by name. Answers are JSON, but for the refusal of a client that takes nothing else. */
#pragma once

#include "json/json.h"

#define PROTOBUF_MAGIC STR("k8s\0")
#define PROTOBUF_MAX_DEPTH 128        /* messages inside messages */
#define PROTOBUF_MAX_NUMBER 536870911 /* of a field */

/* ---- the table ---------------------------------------------------------------------------- */

enum protobuf_type {
    PROTOBUF_STRING,
    PROTOBUF_BYTES, /* base64 in JSON */
    PROTOBUF_BOOL,
    PROTOBUF_INT32,
    PROTOBUF_INT64,
    PROTOBUF_DOUBLE,
    PROTOBUF_TIME,       /* a message of seconds; RFC 3339 in JSON */
    PROTOBUF_MICRO_TIME, /* ... and nanoseconds */
    PROTOBUF_JSON,       /* bytes that are JSON text */
    PROTOBUF_MESSAGE,
};

enum protobuf_form {
    PROTOBUF_PLAIN,    /* always sent, left out of JSON when zero */
    PROTOBUF_OPTIONAL, /* a zero that was sent counts */
    PROTOBUF_REPEATED,
    PROTOBUF_MAP,    /* from strings */
    PROTOBUF_INLINE, /* a message whose fields are members of the object around it */
};

struct protobuf_field {
    struct str name; /* in JSON */
    uint32_t number;
    enum protobuf_form form;
    enum protobuf_type type;
    const struct protobuf_message *message; /* PROTOBUF_MESSAGE */
};

struct protobuf_message {
    struct str group_version, name;
    /* In JSON not an object, but the value of the first of its fields that is there. */
    bool is_union;
    const struct protobuf_field *fields;
    size_t n_fields;
};

struct protobuf {
    const struct protobuf_message *messages;
    size_t n_messages;
};

/* Compiles the table (its form: kinds/README.md). `table` must live as long as a. -EINVAL and
 * *ret_error. */
int protobuf_compile(struct arena *a, const struct json *table, const struct protobuf **ret,
                     struct str *ret_error);
/* NULL when there is none: a custom resource. */
const struct protobuf_message *protobuf_find(const struct protobuf *p, struct str group_version,
                                             struct str name);

/* ---- bodies ------------------------------------------------------------------------------- */

/* What a body says of itself. */
struct protobuf_envelope {
    struct str api_version, kind; /* may be empty */
    struct str object;            /* the message, borrowed from the body */
};

/* -EINVAL and *ret_error, in kube-apiserver's words. */
int protobuf_open(struct arena *a, struct str body, struct protobuf_envelope *ret,
                  struct str *ret_error);
/* Sets the members of a message in object. Fields that the table does not have are skipped; of one
 * that is not repeated the last counts. The bytes need not outlive the call. -EINVAL and
 * *ret_error. */
int protobuf_decode(struct arena *a, const struct protobuf_message *message, struct str bytes,
                    struct json *object, struct str *ret_error);

/* Appends a Status as a body. */
void protobuf_write_status(struct buf *b, const struct protobuf *p, const struct json *status);
