/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/admission/webhooks_internal.h"
#include "base/log.h"
#include "base/random.h"
#include "fetch/fetch.h"

#define MAX_QUOTED_BYTES 1024 /* of an answer that is no review */

/* ---- failures ----------------------------------------------------------------------------- */

int webhook_fail_internal(struct call *c, struct str why)
{
    (void) status_fail(&c->status, 500, "InternalError", "Internal error occurred: %.*s",
                       STR_ARG(why));
    c->status.has_details = true;
    c->status.cause_message = why;
    return -EIO;
}

/* An HTTP status that is no success, in the words of Kubernetes' client. */
static struct str explain_status(struct arena *a, const struct fetch_answer *answer)
{
    static const struct {
        int status;
        const char *words;
    } table[] = {
        {400, "the server rejected our request for an unknown reason"},
        {401, "the server has asked for the client to provide credentials"},
        {404, "the server could not find the requested resource"},
        {405, "the server does not allow this method on the requested resource"},
        {409, "the server reported a conflict"},
        {422, "the server rejected our request due to an error in our request"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504, "the server was unable to return a response in the time allotted, but may still be "
              "processing the request"},
    };
    bool is_text = !answer->content_type.n || str_starts_with(answer->content_type, STR("text/"));
    struct str said = str_trim(str_sub(answer->body, 0, MAX_QUOTED_BYTES));
    said = is_text && str_is_utf8(said) ? said : STR("unknown");
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        if (table[i].status == answer->status)
            return str_of(table[i].words);
    if (answer->status == 403)
        return said;
    if (answer->status >= 500)
        return arena_printf(
            a, "an error on the server (%.*s) has prevented the request from succeeding",
            STR_ARG(status_quote(a, said)));
    return arena_printf(
        a, "the server responded with the status code %d but did not return more information",
        answer->status);
}

/* ---- asking ------------------------------------------------------------------------------- */

static int64_t now_us(const struct call *c)
{
    const struct clock *clock = api_clock(c->api);
    return clock->monotonic_us(clock);
}

/* How long this one may take: no longer than it says, nor than is left for all. */
static int64_t time_left_ms(struct call *c, const struct webhook *h)
{
    if (!c->webhook_deadline_us)
        c->webhook_deadline_us = now_us(c) + (int64_t) WEBHOOK_MAX_WAIT_MS * 1000;
    int64_t left_ms = (c->webhook_deadline_us - now_us(c)) / 1000;
    return MIN(left_ms, (int64_t) h->timeout_s * 1000);
}

static int fetch_answer_of(const struct webhook_question *q, const struct webhook *h,
                           struct str review, struct fetch_answer *ret, struct str *ret_error)
{
    static const struct str headers[] = {STR("Content-Type: application/json"),
                                         STR("Accept: application/json, */*")};
    struct call *c = q->a->call;
    int64_t left_ms = time_left_ms(c, h);
    struct fetch_request request = {
        .method = "POST",
        .url = arena_printf(c->arena, "%.*s?timeout=%llds", STR_ARG(h->url),
                            (long long) (MAX(left_ms, 0) + 999) / 1000),
        .headers = headers,
        .n_headers = N_ELEMENTS(headers),
        .body = review,
        .ca_pem = h->ca_pem,
        .timeout_ms = left_ms,
        .max_bytes = WEBHOOK_MAX_ANSWER_BYTES,
    };
    struct str why = STR_NONE;
    int r = -ETIMEDOUT;
    if (left_ms <= 0)
        why = arena_printf(c->arena, "Post \"%.*s\": context deadline exceeded",
                           STR_ARG(request.url));
    else
        r = fetch(webhooks_client(api_webhooks(c->api)), c->arena, &request, ret, &why);
    if (r == 0) {
        if (ret->status >= 200 && ret->status <= 206)
            return 0;
        why = explain_status(c->arena, ret);
        r = -EIO;
    }
    *ret_error = arena_printf(c->arena, "failed to call webhook: %.*s", STR_ARG(why));
    return r;
}

/* 0, or negative with *ret_error as it stands behind `failed calling webhook "x": `. */
static int consult(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                   enum webhook_phase phase, struct webhook_answer *ret, struct str *ret_error)
{
    struct call *c = q->a->call;
    struct fetch_answer answer = {0};
    char uid[UUID_TEXT_BYTES];
    random_uuid(uid);
    if (h->problem.n) {
        *ret_error = h->problem;
        return -EINVAL;
    }
    struct str review = webhook_review_text(q, h, k, arena_str(c->arena, str_of(uid)));
    int r = fetch_answer_of(q, h, review, &answer, ret_error);
    if (r < 0)
        return r;
    return webhook_answer_parse(c->arena, answer.body, h->review_version, str_of(uid), phase, ret,
                                ret_error);
}

/* It could not be asked: its failurePolicy says what that means. */
static int settle_failure(struct call *c, const struct webhook *h, struct str error)
{
    struct str why = arena_printf(c->arena, "failed calling webhook %.*s: %.*s",
                                  STR_ARG(status_quote(c->arena, h->name)), STR_ARG(error));
    log_warning(h->fails_open ? "ignoring a webhook that cannot be asked"
                              : "refusing a write whose webhook cannot be asked",
                LOG_STR("webhook", h->name), LOG_STR("configuration", h->configuration),
                LOG_STR("error", error));
    if (!h->fails_open)
        return webhook_fail_internal(c, why);
    if (now_us(c) < c->webhook_deadline_us || !c->webhook_deadline_us)
        return 1;
    return status_fail(&c->status, 504, "Timeout",
                       "Timeout: request did not complete within requested timeout");
}

int webhook_ask(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                enum webhook_phase phase, struct webhook_answer *ret)
{
    struct call *c = q->a->call;
    struct str error = STR_NONE;
    if (!c->may_block) {
        c->must_block = true;
        return -EAGAIN;
    }
    if (c->is_dry_run && h->has_side_effects)
        return status_bad_request(&c->status, "admission webhook %.*s does not support dry run",
                                  STR_ARG(status_quote(c->arena, h->name)));
    int r = consult(q, h, k, phase, ret, &error);
    if (r == -ECANCELED) /* we gave up, not the webhook: its failurePolicy has no say */
        return status_fail(&c->status, 503, "ServiceUnavailable", "the server is shutting down");
    if (r < 0)
        return settle_failure(c, h, error);
    webhook_answer_note(c, h, ret);
    return ret->is_allowed ? 0 : webhook_answer_refuse(c, h, ret);
}
