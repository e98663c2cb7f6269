/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "api/event_record.h"

/* What happens within this is told together. */
#define TELL_EVERY_US ((int64_t) 2000000)

static struct json *status_of(struct run *run)
{
    return json_ensure_object(run->arena, run->object, STR("status"));
}

void summary_count(struct run *run, const char *key, int64_t n)
{
    (void) json_set(run->arena, status_of(run), str_of(key), json_int(n));
}

void summary_text(struct run *run, const char *key, struct str text)
{
    (void) json_set(run->arena, status_of(run), str_of(key), json_string(text));
}

/* ---- conditions ---------------------------------------------------------------------------- */

struct json *summary_condition(struct run *run, const struct condition *c, bool *ret_changed)
{
    struct json *conditions = conditions_of(run->arena, run->object);
    const bool has_changed = conditions_set(run->arena, conditions, c, run->now_us);
    if (ret_changed)
        *ret_changed = has_changed;
    return conditions_find(conditions, c->type);
}

void summary_available(struct run *run, const struct summary_tally *t)
{
    const bool is_true = t->n_standing >= t->n_needed;
    const int64_t n_silent = t->n_standing - t->n_available;
    BUF_AUTO text = {0};
    buf_printf(&text, "%" PRId64 " of %" PRId64 " are available", t->n_available, t->n_wanted);
    if (n_silent > 0)
        buf_printf(&text, ", %" PRId64 " are on devices that are out of touch", n_silent);
    const struct condition c = {.type = "Available",
                                .status = is_true ? "True" : "False",
                                .reason = is_true ? STR("MinimumReplicasAvailable")
                                                  : STR("MinimumReplicasUnavailable"),
                                .message = arena_str(run->arena, buf_str(&text))};
    (void) summary_condition(run, &c, NULL);
}

static void say_failure(struct run *run)
{
    struct json *conditions = conditions_of(run->arena, run->object);
    const struct condition c = {"ReplicaFailure", "True", STR("FailedCreate"), run->failure};
    if (run->failure.n) {
        (void) conditions_set(run->arena, conditions, &c, run->now_us);
        return;
    }
    for (size_t i = json_count(conditions); i-- > 0;)
        if (str_is(json_get_str(&conditions->items[i], STR("type")), "ReplicaFailure"))
            json_remove_at(conditions, i);
}

/* ---- selectors ----------------------------------------------------------------------------- */

struct part {
    struct str key, text;
};

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct part *) a)->key, ((const struct part *) b)->key);
}

static struct str expression_text(struct arena *a, const struct json *e)
{
    const struct str key = json_get_str(e, STR("key")), op = json_get_str(e, STR("operator"));
    if (str_is(op, "Exists"))
        return key;
    if (str_is(op, "DoesNotExist"))
        return arena_printf(a, "!%.*s", STR_ARG(key));
    BUF_AUTO b = {0};
    buf_printf(&b, "%.*s %s (", STR_ARG(key), str_is(op, "In") ? "in" : "notin");
    const struct json *values = json_get(e, STR("values"));
    JSON_FOR_EACH_ITEM (values, v)
        buf_printf(&b, "%s%.*s", v == values->items ? "" : ",", STR_ARG(json_str(v)));
    buf_append_char(&b, ')');
    return arena_str(a, buf_str(&b));
}

struct str summary_selector(struct arena *a, const struct json *selector)
{
    const struct json *labels = json_get(selector, STR("matchLabels")),
                      *expressions = json_get(selector, STR("matchExpressions"));
    struct part *parts =
        ARENA_ARRAY(a, struct part, json_count(labels) + json_count(expressions) + 1);
    size_t n = 0;
    BUF_AUTO b = {0};
    JSON_FOR_EACH_MEMBER (labels, m)
        parts[n++] = (struct part){
            json_str(&m->key),
            arena_printf(a, "%.*s=%.*s", STR_ARG(json_str(&m->key)), STR_ARG(json_str(&m->value)))};
    JSON_FOR_EACH_ITEM (expressions, e)
        parts[n++] = (struct part){json_get_str(e, STR("key")), expression_text(a, e)};
    qsort(parts, n, sizeof(struct part), by_key);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%.*s", i ? "," : "", STR_ARG(parts[i].text));
    return arena_str(a, buf_str(&b));
}

/* ---- status -------------------------------------------------------------------------------- */

void summary_common(struct run *run)
{
    const struct json *generation = object_meta_at(run->object, "generation");
    if (generation)
        (void) json_set(run->arena, status_of(run), STR("observedGeneration"), *generation);
    if (run->n_collisions)
        summary_count(run, "collisionCount", run->n_collisions);
    if (run->kind != WORKLOAD_DAEMON_SET)
        summary_text(run, "selector",
                     summary_selector(run->arena, json_get(run->spec, STR("selector"))));
    say_failure(run);
}

int summary_write(struct run *run, const struct json *before)
{
    if (json_equal(before, run->object))
        return 0;
    int r = objects_update(run->ctx, run->arena, &run->at, "status", run->object, NULL);
    return r == -ENOENT ? 0 : r;
}

/* ---- Events -------------------------------------------------------------------------------- */

static void record(struct run *run, bool is_warning, const char *reason, struct str message)
{
    const struct event_notice n = {.about = {.api_version = STR(WORKLOAD_API_VERSION),
                                             .kind = str_of(workload_kinds[run->kind].kind),
                                             .namespace = run->at.namespace,
                                             .name = run->at.name,
                                             .uid = run->uid},
                                   .is_warning = is_warning,
                                   .reason = reason,
                                   .message = message};
    (void) event_record(run->ctx->client, run->ctx->clock, &n);
}

static struct str tale(struct arena *a, const char *verb, size_t n, const char *last)
{
    return n == 1 ? arena_printf(a, "%s Application %s", verb, last)
                  : arena_printf(a, "%s %zu Applications, the last of them %s", verb, n, last);
}

void summary_tell(struct run *run)
{
    struct index_memory *m = &run->memory;
    if (run->failure.n)
        record(run, true, "FailedCreate", run->failure);
    if (run->delete_failure.n)
        record(run, true, "FailedDelete", run->delete_failure);
    if (!m->n_created && !m->n_deleted)
        return;
    if (m->told_us && run->now_us - m->told_us >= 0 && run->now_us - m->told_us < TELL_EVERY_US) {
        run_again(run, (m->told_us + TELL_EVERY_US - run->now_us) / 1000 + 1);
        return;
    }
    if (m->n_created)
        record(run, false, "SuccessfulCreate",
               tale(run->arena, "Created", m->n_created, m->last_created));
    if (m->n_deleted)
        record(run, false, "SuccessfulDelete",
               tale(run->arena, "Deleted", m->n_deleted, m->last_deleted));
    m->n_created = m->n_deleted = 0;
    m->told_us = run->now_us;
}
