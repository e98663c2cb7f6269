/* SPDX-License-Identifier: Apache-2.0 */
/* One API call in flight: what was asked, by whom, and the answer as it comes about. HTTP makes one
 * per request, controllers through the in-process client; the verbs know neither. A call runs on
 * its host's thread and leaves it only while a write is being made durable: then the host arranges
 * for call_continue(). */
#pragma once

#include "api/api.h"
#include "api/hooks.h"
#include "api/media.h"
#include "api/overlay.h"
#include "api/request.h"
#include "api/selector.h"
#include "api/status.h"
#include "api/user.h"
#include "store/store.h"

struct quota_pending;
struct unique_claim;
struct reference_claim;

/* What a call was asked, filled by its host. Strings live as long as the call's arena. */
struct call_input {
    struct user user;
    struct request_path path;
    struct request_query query;
    enum verb verb;
    struct str accept, content_type, user_agent;
    struct str body;
    const struct json *value; /* the body of who is in this process and has no text of it */
};

/* Copies the strings of an input, all but the body, so that they outlive the request they came
 * with. */
void call_input_copy(struct arena *a, struct call_input *in);

struct call_warning {
    struct str text;
    struct call_warning *next;
};

/* What admission webhooks want to see in the audit log. */
struct call_annotation {
    struct str key, value;
    struct call_annotation *next;
};

/* The answer: a whole body, or a watch that the host streams. */
struct call_reply {
    int code;
    struct str content_type;
    struct slice
        *body; /* heap array; host takes the slices over and frees the array with mem_free() */
    size_t n_slices;
    const struct watch_request *watch; /* not NULL: stream this instead */
    struct json *value; /* not NULL: the host takes a value, and this is it instead of a body */
};

struct call {
    struct api *api;
    struct arena *arena;
    struct registry *registry; /* referenced for the life of the call */
    struct call_input in;

    const struct kind *kind;
    const struct kind_subresource *subresource; /* NULL: the object itself */
    struct media_choice media;                  /* the form of the answer */
    bool takes_value;                           /* its host is in this process */
    bool is_dry_run;
    const struct overlay *overlay; /* of a dry run that is one of several; NULL: none */
    struct status status;          /* code != 0: the call has failed */
    struct call_reply reply;
    struct call_warning *warnings, **last_warning;
    struct call_annotation *annotations;

    /* The host's thread may wait for another server (a webhook). A call that has to and may not
     * ends with must_block set and is run again where it may. */
    bool may_block, must_block;
    int64_t webhook_deadline_us; /* of all webhooks together, monotonic; 0: none was asked yet */

    /* The host's. resume is called on another thread and must lead to call_continue() on the host's
     * own; on_done is the end. */
    void (*resume)(struct call *c);
    void (*on_done)(struct call *c);
    void *host;

    /* The verb's, while a write is under way. */
    struct store_write write;
    void (*on_written)(struct call *c);
    struct str key;
    void *verb_state;
    void *patch;                        /* of verb_patch */
    void (*on_release)(struct call *c); /* frees what verb_state holds outside the arena */
    int n_attempts;
    /* Of admission, from its judgement until the write is over. */
    struct quota_pending *quota_pending;
    struct unique_claim *unique_claim;
    struct reference_claim *reference_claims;
};

/* Fills kind, subresource, media, options ... and runs the verb. on_done may be called before this
 * returns. */
void call_run(struct call *c);
void call_continue(struct call *c);
/* Releases what the call holds besides its arena. */
void call_done(struct call *c);

/* ---- for verbs ---------------------------------------------------------------------------- */

void call_warn(struct call *c, struct str text);
struct hook_context call_hook_context(struct call *c, enum write_operation operation);
/* "<collection>/<namespace>/<name>" */
struct str call_key(struct call *c, struct str name);
/* Ends the call. */
void call_fail(struct call *c);                                     /* c->status says why */
void call_reply_object(struct call *c, int code, struct object *o); /* borrows o */
void call_reply_json(struct call *c, int code, const struct json *object);
/* To a host that takes it; in the call's arena, and the host's to change. */
void call_reply_value(struct call *c, int code, struct json *value);
void call_reply_text(struct call *c, int code, struct buf *json); /* takes the buffer's memory */
/* Submits c->write (condition, expected_revision, object set); on_written runs on the host's
 * thread. */
void call_submit(struct call *c, void (*on_written)(struct call *c));

void verb_get(struct call *c);
void verb_list(struct call *c);
void verb_watch(struct call *c);
void verb_create(struct call *c);
/* A create of what is answered and not stored. */
bool verb_reviews(const struct call *c);
void verb_review(struct call *c);
void verb_update(struct call *c);
void verb_patch(struct call *c);
void verb_delete(struct call *c);
void verb_delete_collection(struct call *c);
