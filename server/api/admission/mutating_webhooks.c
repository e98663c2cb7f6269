/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks that may change what is written, one after the other by name of their configuration.
 * Those that want to know are asked once more when a later one has changed the object. */
#include "api/admission/webhooks_internal.h"

#define ROUNDS 2

/* All of them in one row, and who is owed a second look. */
struct row {
    const struct webhook **hooks;
    bool *was_asked; /* since the object last changed, and wants to be asked again */
    bool *must_ask_again;
    size_t n;
};

static struct row row_of(struct arena *a, const struct webhook_set *s)
{
    struct row row = {0};
    for (size_t i = 0; i < s->n[WEBHOOK_MUTATING]; i++)
        row.n += s->lists[WEBHOOK_MUTATING][i]->n_hooks;
    row.hooks = ARENA_ARRAY(a, const struct webhook *, row.n + 1);
    row.was_asked = ARENA_ARRAY(a, bool, row.n + 1);
    row.must_ask_again = ARENA_ARRAY(a, bool, row.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n[WEBHOOK_MUTATING]; i++) {
        const struct webhook_configuration *c = s->lists[WEBHOOK_MUTATING][i];
        for (size_t j = 0; j < c->n_hooks; j++)
            row.hooks[n++] = &c->hooks[j];
    }
    return row;
}

static void owe_second_look(struct row *row)
{
    for (size_t i = 0; i < row->n; i++) {
        row->must_ask_again[i] |= row->was_asked[i];
        row->was_asked[i] = false;
    }
}

static void annotate(struct call *c, const char *prefix, int round, size_t index, struct str value)
{
    webhook_annotate(c, arena_printf(c->arena, "%s/round_%d_index_%zu", prefix, round, index),
                     value);
}

static void annotate_mutation(struct call *c, const struct webhook *h, int round, size_t index,
                              bool changed)
{
    struct json o = json_object();
    (void) json_append_member(c->arena, &o, STR("configuration"), json_string(h->configuration));
    (void) json_append_member(c->arena, &o, STR("webhook"), json_string(h->name));
    (void) json_append_member(c->arena, &o, STR("mutated"), json_bool(changed));
    annotate(c, "mutation.webhook.admission.k8s.io", round, index, json_text(c->arena, &o));
}

static int ask_one(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                   bool *ret_changed)
{
    struct webhook_answer answer = {0};
    int r = webhook_ask(q, h, k, WEBHOOK_MUTATING, &answer);
    if (r == 0 && answer.patch)
        r = webhook_patch(q, h, k, answer.patch, ret_changed);
    return r;
}

static int run_round(struct admission *a, struct row *row, int round)
{
    struct call *c = a->call;
    for (size_t i = 0; i < row->n; i++) {
        const struct webhook *h = row->hooks[i];
        /* Again for each: the last one may have changed name and labels. */
        struct webhook_question q = webhook_question_of(a);
        const struct kind *k = NULL;
        bool changed = false;
        if (round > 0 && !row->must_ask_again[i])
            continue;
        int r = webhook_matches(&q, h, &k);
        if (r == 0)
            continue;
        if (r > 0)
            r = ask_one(&q, h, k, &changed);
        if (r < 0)
            return r;
        annotate_mutation(c, h, round, i, changed);
        if (r > 0)
            annotate(c, "failed-open.mutation.webhook.admission.k8s.io", round, i, h->name);
        if (changed)
            owe_second_look(row);
        row->was_asked[i] = h->is_asked_again;
    }
    return 0;
}

static int run(struct admission *a)
{
    struct call *c = a->call;
    CLEANUP(webhook_set_unrefp) struct webhook_set *s = webhooks_current(api_webhooks(c->api));
    if (!s || !s->n[WEBHOOK_MUTATING] || webhook_is_exempt(c->kind))
        return 0;
    struct row row = row_of(c->arena, s);
    int r = 0;
    for (int round = 0; round < ROUNDS && r == 0; round++)
        r = run_round(a, &row, round);
    return r;
}

const struct admission_hook mutating_webhooks = {
    .name = "mutating webhooks", .admit = run, .remove = run};
