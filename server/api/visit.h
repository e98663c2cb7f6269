/* SPDX-License-Identifier: Apache-2.0 */
/* One request on its way through the door: who asks and what, the place it takes, what is recorded
 * of it. It belongs to its loop's thread; only its call may be with a worker for a while. */
#pragma once

#include "api/audit/audit.h"
#include "api/call.h"
#include "api/door.h"
#include "api/fairness.h"
#include "api/metrics.h"

#define ANSWER_MAX_HEADERS 64

struct answer_headers {
    struct http_header list[ANSWER_MAX_HEADERS];
    size_t n;
};

struct visit {
    struct door *door;
    const struct annex *annex; /* whose path it is; NULL: the API's */
    unsigned refs;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct arena *arena;
    struct arena *own_arena; /* of what may outlive its exchange: all but reads; NULL: `arena` is
                                the exchange's */
    int64_t began_us;        /* monotonic */
    struct user real;        /* who asks; in.user is whom they impersonate, or the same */
    bool is_impersonating;
    bool has_verb; /* the method means something there */
    struct call_input in;
    struct str method, path; /* path is decoded */
    struct fairness_place place;
    struct audit_record record;
    struct request_measure measure;
    struct call call;
};

struct visit *visit_new(struct door *door, struct http_exchange *x);
/* After it was answered, or when nobody waits for an answer any more. A stream keeps it until it
 * ends. */
void visit_free(struct visit *v);
/* What it may do has been settled: does it. Frees the visit in the end. */
void visit_handle(struct visit *v);
/* Answers and frees. */
void visit_refuse(struct visit *v, const struct status *st);

/* ---- answering: each ends the visit ------------------------------------------------------- */

void visit_reply_status(struct visit *v, const struct status *st);
void visit_reply_not_found_text(struct visit *v);
void visit_reply_document(struct visit *v, struct document_reply *d);
/* A body of our own; copied. */
void visit_reply_text(struct visit *v, int code, struct str content_type, struct str body);
/* What its call came to. */
void visit_reply_call(struct visit *v);

/* Its exchange may go before it: what it refers to is to be its own from here on. */
void visit_outlive(struct visit *v);

/* A watch begins: from here on it is long-running, until visit_end_stream(). */
void visit_begin_stream(struct visit *v);
void visit_end_stream(struct visit *v);
/* Sends the head of a stream whose body the caller sends. */
void visit_start_stream(struct visit *v, struct str content_type);
/* The answer is on its way (or never will be, code 0): leaves its place, is recorded and counted.
 */
void visit_finish(struct visit *v, int code, size_t n_bytes);

/* The Status of a request that never became a visit. */
void answer_refused(struct http_exchange *x, const struct status *st);

/* ---- annexes (annex.c) --------------------------------------------------------------------- */

/* Finds the annex whose path it is, if any, and what right it takes. Negative with st filled:
 * refused. */
int annex_claim(struct visit *v, struct status *st);
bool annex_is_open(const struct visit *v);
bool annex_wants_stream(const struct visit *v);
/* Answers, now or later; frees the visit in the end. */
void annex_handle(struct visit *v);
