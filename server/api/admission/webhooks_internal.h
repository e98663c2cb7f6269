/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of admission webhooks: configurations as compiled, matching, the review that is sent
 * and the answer to it. */
#pragma once

#include <stdatomic.h>

#include "api/admission/admission.h"
#include "api/admission/webhooks.h"
#include "api/selector.h"

/* ---- configurations ----------------------------------------------------------------------- */

struct webhook_rule {
    unsigned operations; /* enum admission_operation */
    enum { WEBHOOK_ANY_SCOPE, WEBHOOK_CLUSTER, WEBHOOK_NAMESPACED } scope;
    const struct json *groups, *versions, *resources; /* arrays of strings */
};

struct webhook {
    struct str name;
    struct str configuration; /* its name */
    struct webhook_rule *rules;
    size_t n_rules;
    struct selector namespaces, objects;
    bool is_exact;         /* matchPolicy */
    bool fails_open;       /* failurePolicy Ignore */
    bool is_asked_again;   /* reinvocationPolicy IfNeeded */
    bool has_side_effects; /* also in a dry run */
    int timeout_s;
    struct str review_version; /* STR_NONE: none of ours */
    struct str url;
    struct str ca_pem;  /* STR_NONE: the machine's */
    struct str problem; /* why it cannot be asked at all; STR_NONE: it can */
};

/* One object, compiled; immutable and shared. */
struct webhook_configuration {
    atomic_uint refs;
    struct arena *arena;
    struct str name;
    struct webhook *hooks;
    size_t n_hooks;
};

/* Never fails: what cannot be compiled becomes a hook's `problem`, so that a failurePolicy of Fail
 * holds. text is a stored configuration. One reference. */
struct webhook_configuration *webhook_compile(struct str text);
void webhook_configuration_unref(struct webhook_configuration *c);

enum webhook_phase { WEBHOOK_MUTATING, WEBHOOK_VALIDATING, WEBHOOK_PHASES };

/* All of them at one moment, each phase by name. */
struct webhook_set {
    atomic_uint refs;
    struct webhook_configuration **lists[WEBHOOK_PHASES];
    size_t n[WEBHOOK_PHASES];
};

/* With a reference; NULL when there are none. */
struct webhook_set *webhooks_current(struct webhooks *w);
void webhook_set_unref(struct webhook_set *s);
DEFINE_CLEANUP(struct webhook_set *, webhook_set_unref)
struct fetch_client *webhooks_client(struct webhooks *w);

/* ---- matching ----------------------------------------------------------------------------- */

/* A write as rules see it. */
struct webhook_target {
    unsigned operations; /* of enum admission_operation; more than one: any of them */
    struct str group, version, resource, subresource;
    struct str namespace; /* a Namespace is in itself; "" for what is cluster-wide */
};

bool webhook_rules_match(const struct webhook *h, const struct webhook_target *t);

/* One write that webhooks may be asked about. */
struct webhook_question {
    struct admission *a;
    enum admission_operation operation;
    struct str namespace;
};

struct webhook_question webhook_question_of(struct admission *a);
/* 1: it is to be asked, about the object in the version of *ret_kind; 0: it is not; negative: the
 * call's status says why nobody can tell. */
int webhook_matches(const struct webhook_question *q, const struct webhook *h,
                    const struct kind **ret_kind);
/* Configurations must stay changeable whatever webhooks say, or nobody could repair them; and what
 * is never stored is no write. */
bool webhook_is_exempt(const struct kind *k);

/* ---- the review --------------------------------------------------------------------------- */

#define WEBHOOK_MAX_ANSWER_BYTES ((size_t) 6 * 1024 * 1024)
#define WEBHOOK_MAX_WARNINGS 32
#define WEBHOOK_MAX_WARNING_BYTES 256
#define WEBHOOK_MAX_WARNINGS_BYTES 4096 /* of one call's, all webhooks together */
#define WEBHOOK_MAX_ANNOTATIONS 64
#define WEBHOOK_MAX_ANNOTATION_KEY_BYTES 253
#define WEBHOOK_MAX_ANNOTATION_BYTES 10240
#define WEBHOOK_MAX_CAUSES 100

/* The text of an AdmissionReview for h about the object in the version of k. */
struct str webhook_review_text(const struct webhook_question *q, const struct webhook *h,
                               const struct kind *k, struct str uid);

/* What a webhook said, checked. */
struct webhook_answer {
    bool is_allowed;
    const struct json *status;      /* an object or NULL */
    const struct json *warnings;    /* an array of strings or NULL */
    const struct json *annotations; /* an object of strings or NULL */
    const struct json *patch;       /* an array with something in it, or NULL */
};

/* -EINVAL and *ret_error, as it stands behind `failed calling webhook "x": `. version: "v1" or
 * "v1beta1", as was sent. */
int webhook_answer_parse(struct arena *a, struct str text, struct str version, struct str uid,
                         enum webhook_phase phase, struct webhook_answer *ret,
                         struct str *ret_error);
/* Takes warnings and annotations over into the call. */
void webhook_answer_note(struct call *c, const struct webhook *h, const struct webhook_answer *w);
/* Refuses the call in the webhook's words. */
int webhook_answer_refuse(struct call *c, const struct webhook *h, const struct webhook_answer *w);

/* ---- patches ------------------------------------------------------------------------------ */

/* What the webhook is shown: the object, or its Scale. */
struct json *webhook_view(const struct webhook_question *q, const struct json *object,
                          const struct kind *k);
/* Changes a->object as the webhook wants, shown to it in the version of k, and brings the result
 * into the form that a decoded write has. *ret_changed: it is not what it was. */
int webhook_patch(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                  const struct json *patch, bool *ret_changed);

/* ---- calling ------------------------------------------------------------------------------ */

/* All webhooks of one request together may take so long, as in kube-apiserver. */
#define WEBHOOK_MAX_WAIT_MS 34000

/* Asks h. 0 with the answer, which allows; 1 when it could not be asked and that does not matter;
 * negative with the call's status, or with must_block. */
int webhook_ask(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                enum webhook_phase phase, struct webhook_answer *ret);
/* "500 Internal error occurred: ..." */
int webhook_fail_internal(struct call *c, struct str why);
void webhook_annotate(struct call *c, struct str key, struct str value);
