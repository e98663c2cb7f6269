/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: one audit.k8s.io/v1 Event per line for each stage of a request that the policy
 * wants. Lines are made on the request's loop and written by a thread of the log's own; when its
 * queue is full the event is dropped and counted. From any thread. */
#pragma once

#include "api/call.h"

struct audit;

struct audit_options {
    const char *policy_path; /* NULL: Metadata for everything, stage ResponseComplete only */
    const char *log_path;    /* "-": standard output */
    int64_t max_size_bytes;  /* then the file is rotated; 0: never */
    int64_t max_age_s;       /* of rotated files; 0: no limit */
    int64_t max_backups;     /* 0: no limit */
    const struct clock *clock;
};
int audit_open(const struct audit_options *o, struct audit **ret_audit, char **ret_error);
/* Reads the policy again, and reopens the file if it was moved away. Failure keeps the old. */
int audit_reload(struct audit *a, char **ret_error);
/* Writes what is queued and closes. NULL allowed. */
void audit_close(struct audit *a);

/* Larger bodies are left out, and the annotation audit.k8s.io/truncated says so. */
#define AUDIT_MAX_BODY_BYTES ((size_t) 256 * 1024)

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST, AUDIT_REQUEST_RESPONSE };
enum audit_stage {
    AUDIT_REQUEST_RECEIVED,
    AUDIT_RESPONSE_STARTED, /* of long-running requests */
    AUDIT_RESPONSE_COMPLETE,
    AUDIT_PANIC
};

/* What is known of a request, filled as it becomes known; strings live until the last stage. */
struct audit_record {
    char id[37];            /* a UUID */
    enum audit_level level; /* by audit_begin() */
    unsigned omitted_stages;
    bool omit_managed_fields;
    int64_t received_us, stage_us; /* wall clock */
    struct str uri;                /* as sent, with query */
    struct str verb;               /* "get", "list", ... or the method in lower case for paths */
    const struct user *user, *impersonated; /* impersonated NULL: nobody */
    struct str source_ip, user_agent;
    bool is_resource;
    struct str group, version, resource, subresource, namespace, name; /* objectRef */
    struct str decision, reason; /* authorization.k8s.io/decision ("allow", "forbid"), /reason */
    const struct call_annotation *annotations; /* of webhooks */
    int code;                                  /* of the answer */
    const struct status *failure;              /* NULL: none */
    struct str request_body, response_body; /* JSON text as it went; STR_NONE: none or not kept */
};

/* Judges the request by the policy (user, verb, resource or path must be set) and sets level and
 * omitted_stages. */
void audit_begin(struct audit *a, struct audit_record *r);
void audit_emit(struct audit *a, const struct audit_record *r, enum audit_stage stage);

struct audit_stats {
    int64_t n_events, n_dropped, n_errors;
};
void audit_stats(struct audit *a, struct audit_stats *ret);
