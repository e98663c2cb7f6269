/* SPDX-License-Identifier: Apache-2.0 */
/* What a webhook answers: the first byte is the phase (m, v) in AdmissionReview v1, or the same in
 * capitals for v1beta1; then the answer, whose uid is "u". Its patch is applied. */
#include <stdlib.h>

#include "api/admission/webhooks_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char manifest[] =
    "{\"metadata\":{\"name\":\"things.example.org\"},\"spec\":{\"group\":\"example.org\",\"scope\":"
    "\"Cluster\",\"names\":{\"plural\":\"things\",\"kind\":\"Thing\"},\"versions\":[{\"name\":"
    "\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
    "\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
    "\"default\":1},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}}}}]}}";
static const char object[] =
    "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\"},\"spec\":{"
    "\"n\":1,\"list\":[\"x\",\"y\"]}}";

static void patch(struct call *c, const struct webhook *h, const struct json *operations)
{
    struct admission a = {.call = c, .object = json_parse_quick(c->arena, str_of(object))};
    struct webhook_question q = webhook_question_of(&a);
    bool changed = false;
    if (webhook_patch(&q, h, c->kind, operations, &changed) < 0) {
        if (!c->status.code || !c->status.message.n)
            abort();
        return;
    }
    /* It is still the kind's, and what was accepted can be stored and read again. */
    if (!str_is(json_get_str(a.object, STR("kind")), "Thing") ||
        !json_is(json_get(a.object, STR("metadata")), JSON_OBJECT) ||
        !json_parse_quick(c->arena, json_text(c->arena, a.object)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    ARENA_AUTO a = arena_new();
    const struct kind **kinds = NULL;
    size_t n_kinds = 0;
    struct str error = STR_NONE;
    if (kind_compile(a, json_parse_quick(a, str_of(manifest)), &kinds, &n_kinds, &error) < 0)
        abort();
    struct call c = {.arena = a, .kind = kinds[0]};
    struct webhook h = {.name = STR("a.example.org")};
    struct webhook_answer answer = {0};
    c.last_warning = &c.warnings;
    status_init(&c.status, a);
    bool is_mutating = data[0] == 'm' || data[0] == 'M', is_v1 = data[0] >= 'a';
    struct str text = str_range((const char *) data + 1, size - 1);
    if (webhook_answer_parse(a, text, is_v1 ? STR("v1") : STR("v1beta1"), STR("u"),
                             is_mutating ? WEBHOOK_MUTATING : WEBHOOK_VALIDATING, &answer,
                             &error) < 0) {
        if (!error.n)
            abort();
        return 0;
    }
    webhook_answer_note(&c, &h, &answer);
    if (!answer.is_allowed) {
        BUF_AUTO b = {0};
        (void) webhook_answer_refuse(&c, &h, &answer);
        status_write(&b, &c.status);
        if (c.status.code < 400 || c.status.code > 599 || !json_parse_quick(a, buf_str(&b)))
            abort();
    } else if (answer.patch) {
        patch(&c, &h, answer.patch);
    }
    return 0;
}
