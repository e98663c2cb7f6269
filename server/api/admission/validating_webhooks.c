/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks that may refuse what is written, once nothing changes any more. */
#include "api/admission/webhooks_internal.h"

static int ask_one(const struct webhook_question *q, const struct webhook *h, size_t index)
{
    struct call *c = q->a->call;
    struct webhook_answer answer = {0};
    const struct kind *k = NULL;
    int r = webhook_matches(q, h, &k);
    if (r <= 0)
        return r;
    r = webhook_ask(q, h, k, WEBHOOK_VALIDATING, &answer);
    if (r > 0)
        webhook_annotate(
            c,
            arena_printf(c->arena,
                         "failed-open.validating.webhook.admission.k8s.io/round_0_index_%zu",
                         index),
            h->name);
    return r < 0 ? r : 0;
}

static int run(struct admission *a)
{
    struct call *c = a->call;
    CLEANUP(webhook_set_unrefp) struct webhook_set *s = webhooks_current(api_webhooks(c->api));
    if (!s || !s->n[WEBHOOK_VALIDATING] || webhook_is_exempt(c->kind))
        return 0;
    struct webhook_question q = webhook_question_of(a);
    size_t index = 0;
    int r = 0;
    for (size_t i = 0; i < s->n[WEBHOOK_VALIDATING] && r == 0; i++) {
        const struct webhook_configuration *configuration = s->lists[WEBHOOK_VALIDATING][i];
        for (size_t j = 0; j < configuration->n_hooks && r == 0; j++)
            r = ask_one(&q, &configuration->hooks[j], index++);
    }
    return r;
}

const struct admission_hook validating_webhooks = {
    .name = "validating webhooks", .validate = run, .remove = run};
